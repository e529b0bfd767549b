//! Butterflies, as the steps of a Fourier transform: each is one group from the start.

use super::{Merger, Numbers, ascending, partition};
use crate::fusion::facts::Facts;
use crate::graph::NodeId;

impl Merger<'_> {
    /// The nodes of a butterfly are one group, if nothing else is in theirs, nothing between them needs another group, and one
    /// kernel can do it.
    pub(super) fn join_butterflies(
        &mut self,
        computed: &[NodeId],
        group_of: &mut [usize],
        members: &mut [Vec<NodeId>],
    ) {
        let facts = self.facts;
        for region in partition::butterflies(facts, computed, self.part.most_nodes) {
            let is_inside = |id: &NodeId| region.binary_search(id).is_ok();
            let groups = ascending(region.iter().map(|id| group_of[id.index()]));
            let is_all = groups.iter().all(|&number| members[number].iter().all(is_inside));
            if !is_all || closes_cycle(facts, &groups, group_of, members) {
                continue;
            }
            let is_read = |id: &NodeId| facts.reads.users(*id).iter().any(|user| !is_inside(user));
            let is_needed = |id: &NodeId| self.part.is_wanted[id.index()] || is_read(id);
            let outputs = region.iter().copied().filter(is_needed).collect();
            if self.analyser.group(region.clone(), outputs).is_err() {
                continue;
            }
            groups.iter().for_each(|&number| members[number].clear());
            region.iter().for_each(|id| group_of[id.index()] = groups[0]);
            members[groups[0]] = region;
        }
    }
}

/// Whether one kernel of these groups would wait for another one that waits for it.
fn closes_cycle(facts: &Facts, groups: &Numbers, group_of: &[usize], members: &[Vec<NodeId>]) -> bool {
    let is_own = |number: &usize| groups.binary_search(number).is_ok();
    let readers = |number: usize| {
        let users = members[number].iter().flat_map(|id| facts.reads.users(*id));
        users.map(|user| group_of[user.index()]).filter(|&number| number != usize::MAX)
    };
    let mut pending: Vec<usize> =
        groups.iter().flat_map(|&number| readers(number)).filter(|number| !is_own(number)).collect();
    let mut seen = vec![false; members.len()];
    while let Some(number) = pending.pop() {
        if is_own(&number) {
            return true;
        }
        if !std::mem::replace(&mut seen[number], true) {
            pending.extend(readers(number));
        }
    }
    false
}
