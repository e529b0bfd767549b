//! A merge undone: what benchmarks compare a plan with.

use std::cell::Cell;

use super::group::Group;
use super::reads::Reads;
use crate::graph::NodeId;

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

    pub(crate) fn node(self) -> NodeId {
        match self {
            Cut::Below(node) | Cut::Beside(node) => node,
        }
    }
}
