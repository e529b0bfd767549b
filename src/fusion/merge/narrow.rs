//! What lies between kernels lies there in its narrower dtype.

use super::super::group::Group;
use super::{Merger, Numbers};
use crate::graph::NodeId;
use crate::graph::op::Op;

impl Merger<'_> {
    /// Leaves conversions to wider dtypes, which one kernel stores for others, to those that read them. They join their
    /// producer at once, since a product would compute them anew for each tile; but then its factors are twice as many bytes,
    /// and no 16 bits that a processor multiplies by instructions of their own.
    pub(super) fn store_narrow(&mut self) {
        for number in 0..self.groups.len() {
            let outputs = self.groups[number].as_ref().map_or_else(Vec::new, |group| group.outputs.clone());
            for id in outputs {
                if let Some(narrow) = self.narrower(number, id) {
                    self.widen_in_readers(number, id, narrow);
                }
            }
        }
    }

    /// What a group converts to a wider dtype for others alone.
    fn narrower(&self, number: usize, id: NodeId) -> Option<NodeId> {
        let node = self.graph.node(id);
        let &[operand] = self.graph.operands(id).as_slice() else { return None };
        let is_wider = node.op == Op::Cast && self.graph.node(operand).dtype.size() < node.dtype.size();
        let [read] = self.facts.reads.reads(id) else { return None };
        let nodes = &self.groups[number].as_ref()?.nodes;
        let is_inside = |id: NodeId| nodes.binary_search(&id).is_ok();
        let is_others = !self.part.is_wanted[id.index()] && !self.readers[id.index()].is_empty();
        let is_own = self.facts.reads.users(id).iter().any(|&user| is_inside(user));
        (is_wider && is_others && !is_own && read.aligned && is_inside(read.node)).then_some(read.node)
    }

    /// Stores the narrower value, where all readers can convert it and either multiply it or take no longer.
    fn widen_in_readers(&mut self, number: usize, id: NodeId, narrow: NodeId) {
        let Some(group) = &self.groups[number] else { return };
        let (mut nodes, mut outputs) = (group.nodes.clone(), group.outputs.clone());
        nodes.retain(|&node| node != id);
        outputs.retain(|&output| output != id);
        outputs.push(narrow);
        outputs.sort_unstable();
        outputs.dedup();
        let readers: Numbers = self.readers[id.index()].iter().map(|&reader| reader as usize).collect();
        let widened = |reader: &usize| {
            let group = self.groups[*reader].as_ref()?;
            let mut nodes = group.nodes.clone();
            nodes.insert(nodes.partition_point(|&node| node < id), id);
            Some((nodes, group.outputs.clone()))
        };
        let Some(mut parts) = readers.iter().map(widened).collect::<Option<Vec<_>>>() else { return };
        parts.insert(0, (nodes, outputs));
        let mut groups: Vec<Group> = Vec::with_capacity(parts.len());
        for (nodes, outputs) in parts {
            let Ok(group) = self.analyser.group(nodes, outputs) else { return };
            groups.push(group);
        }
        let changed: Numbers = std::iter::once(number).chain(readers).collect();
        let before: f64 = changed.iter().map(|&number| self.seconds(number)).sum();
        let after: f64 = groups.iter().map(|group| group.work.seconds(self.figures)).sum();
        let reads = &self.facts.reads;
        let is_summed = |&user: &NodeId| reads.users(user).iter().any(|&sum| self.facts.of(sum).is_packed);
        if after < before || reads.users(id).iter().all(is_summed) {
            changed.iter().for_each(|&number| drop(self.take(number)));
            changed.iter().zip(groups).for_each(|(&number, group)| self.put(number, group));
        }
    }
}
