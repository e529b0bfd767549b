//! A merge undone: what benchmarks and tuning compare a plan with.

use std::cell::Cell;

use super::group::Group;
use super::reads::Reads;
use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};
use crate::tuned::{Place, Side};

thread_local! {
    static UNDONE: Cell<Option<Cut>> = const { Cell::new(None) };
}

/// The merge that is undone in what this thread plans.
pub(crate) fn undone() -> Option<Cut> {
    UNDONE.get()
}

/// Plans without the merge while `f` runs on this thread.
pub(crate) fn without<T>(cut: Cut, f: impl FnOnce() -> T) -> T {
    /// Restores the setting also if `f` panics.
    struct Restore(Option<Cut>);
    impl Drop for Restore {
        fn drop(&mut self) {
            UNDONE.set(self.0);
        }
    }
    let _restore = Restore(UNDONE.replace(Some(cut)));
    f()
}

/// A merge that fusion does not make, at one node of a graph that went through all passes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Cut {
    /// The value is stored, and who reads it is another kernel.
    Below(NodeId),
    /// The kernel that stores the value stores no other one.
    Beside(NodeId),
}

impl Cut {
    /// Whether one kernel may have these nodes, ascending, and store these outputs.
    pub(super) fn allows(self, nodes: &[NodeId], outputs: &[NodeId], reads: &Reads) -> bool {
        let has = |id: &NodeId| nodes.binary_search(id).is_ok();
        match self {
            Cut::Below(value) => !has(&value) || !reads.users(value).iter().any(has),
            Cut::Beside(value) => outputs.len() < 2 || !outputs.contains(&value),
        }
    }

    /// Every merge of these groups that can be undone.
    pub(crate) fn all(groups: &[Group], reads: &Reads) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for group in groups {
            let is_read_inside =
                |id: &&NodeId| reads.users(**id).iter().any(|user| group.nodes.contains(user));
            cuts.extend(group.nodes.iter().filter(is_read_inside).map(|&id| Cut::Below(id)));
            if group.outputs.len() > 1 {
                // Of two, either way is the same.
                let apart = if group.outputs.len() == 2 { 1 } else { group.outputs.len() };
                cuts.extend(group.outputs.iter().take(apart).map(|&id| Cut::Beside(id)));
            }
        }
        cuts.sort_by_key(|&cut| cut.node());
        cuts.dedup();
        cuts
    }

    /// Where it is, in words: by the value, and which it is of those of the nodes that these words are true of.
    pub(crate) fn place(self, graph: &Graph, nodes: &[NodeId]) -> Place {
        let (side, id) = match self {
            Cut::Below(id) => (Side::Below, id),
            Cut::Beside(id) => (Side::Beside, id),
        };
        let words = |id: NodeId| {
            let node = graph.node(id);
            (node.called(), node.dtype, &*node.shape)
        };
        let (operation, dtype, shape) = words(id);
        let alike = nodes.iter().filter(|&&other| other <= id && words(other) == words(id));
        let number = alike.count().max(1);
        Place { side, operation: operation.to_owned(), dtype, shape: shape.to_vec(), number }
    }

    /// The cut of a group at a place.
    pub(crate) fn at(place: &Place, graph: &Graph, group: &Group, reads: &Reads) -> Option<Cut> {
        let cuts = Cut::all(std::slice::from_ref(group), reads);
        cuts.into_iter().find(|cut| cut.place(graph, &group.nodes) == *place)
    }

    /// Whether more than an element follows from an element there, or the other way round: where fusing may lose.
    pub(crate) fn is_doubtful(self, graph: &Graph, reads: &Reads) -> bool {
        let Cut::Below(id) = self else { return true };
        let is_read_otherwise = |&user: &NodeId| {
            let mut own = reads.reads(user).iter().filter(|read| read.node == id);
            changes(&graph.node(user).op) || own.any(|read| !read.aligned)
        };
        changes(&graph.node(id).op) || reads.users(id).iter().any(is_read_otherwise)
    }

    pub(crate) fn node(self) -> NodeId {
        match self {
            Cut::Below(node) | Cut::Beside(node) => node,
        }
    }
}

/// Whether results are elsewhere, or fewer, than what they are made of.
fn changes(op: &Op) -> bool {
    matches!(
        op,
        Op::Reduce { .. }
            | Op::Scan { .. }
            | Op::Recurrence { .. }
            | Op::Scatter { .. }
            | Op::Sort { .. }
            | Op::Gather { .. }
    )
}
