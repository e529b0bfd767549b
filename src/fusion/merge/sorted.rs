//! Elements in order and where they come from: two nodes, one sort.

use rustc_hash::FxHashMap;

use super::{Merger, partition};
use crate::graph::NodeId;
use crate::graph::op::Op;

impl Merger<'_> {
    /// Both results of one sort are one group from the start. Else each would join what follows from it, and where one of these
    /// waits for the other, the elements would be sorted twice.
    pub(super) fn join_sorts(
        &self,
        computed: &[NodeId],
        group_of: &mut [usize],
        members: &mut [Vec<NodeId>],
    ) {
        let mut sorts: FxHashMap<u32, NodeId> = FxHashMap::default();
        for &id in computed.iter().filter(|&&id| matches!(self.graph.node(id).op, Op::Sort { .. })) {
            let Some(number) = self.facts.of(id).scatter else { continue };
            let first = *sorts.entry(number).or_insert(id);
            let (to, from) = (group_of[first.index()], group_of[id.index()]);
            let [a, b] = [first, id].map(|id| self.part_of(&[id]));
            let is_beyond = a != b && a.min(b) != partition::NONE;
            if to == from || is_beyond || members[to].len() + members[from].len() > self.part.most_nodes {
                continue;
            }
            let moved = std::mem::take(&mut members[from]);
            moved.iter().for_each(|node| group_of[node.index()] = to);
            members[to].extend(moved);
        }
    }
}
