//! What attempts to make kernels have shown: limits that no analysis of the graph foresees.

use rustc_hash::FxHashMap;

use super::cut::Cut;
use super::group::{Group, MAX_NODES};
use crate::graph::NodeId;

/// How kernels with a node are restrained.
#[derive(Clone, Copy, Debug)]
struct Restraint {
    /// The most nodes of a kernel.
    nodes: usize,
    is_frugal: bool,
}

/// How the kernels of a graph are restrained, by the nodes in them.
#[derive(Clone, Default, Debug)]
pub(crate) struct Restraints {
    of: FxHashMap<NodeId, Restraint>,
    /// A merge that is not made.
    pub(super) undone: Option<Cut>,
    /// The nodes of kernels that were too much, and why.
    refused: Vec<(Vec<NodeId>, String)>,
}

impl Restraints {
    pub(crate) fn without(undone: Option<Cut>) -> Restraints {
        Restraints { undone, ..Restraints::default() }
    }

    /// Kernels with these nodes become smaller. Gives whether that is possible.
    pub(crate) fn divide(&mut self, nodes: &[NodeId], why: String) -> bool {
        if nodes.len() < 2 {
            return false;
        }
        self.restrain(nodes, |restraint| restraint.nodes = restraint.nodes.min(nodes.len() / 2));
        self.refused.push((nodes.to_vec(), why));
        true
    }

    /// Registers ran out in a kernel: first its threads compute fewer elements, then it becomes smaller. Gives whether
    /// that is possible.
    pub(crate) fn relieve(&mut self, group: &Group, why: String) -> bool {
        if self.is_frugal(group) {
            return self.divide(&group.nodes, why);
        }
        self.restrain(&group.nodes, |restraint| restraint.is_frugal = true);
        true
    }

    fn restrain(&mut self, nodes: &[NodeId], change: impl Fn(&mut Restraint)) {
        for &id in nodes {
            change(self.of.entry(id).or_insert(Restraint { nodes: MAX_NODES, is_frugal: false }));
        }
    }

    /// The most nodes of a kernel with this one.
    pub(super) fn most_nodes(&self, id: NodeId) -> usize {
        self.of.get(&id).map_or(MAX_NODES, |restraint| restraint.nodes)
    }

    /// Whether the threads of a kernel compute as little at once as they can.
    pub(crate) fn is_frugal(&self, group: &Group) -> bool {
        group.nodes.iter().any(|id| self.of.get(id).is_some_and(|restraint| restraint.is_frugal))
    }

    /// Why the value is not in one kernel with all that once was.
    pub(super) fn why_divided(&self, value: NodeId) -> Option<&str> {
        let refused = self.refused.iter().find(|(nodes, _)| nodes.contains(&value));
        refused.map(|(_, why)| why.as_str())
    }
}
