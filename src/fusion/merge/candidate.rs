//! What could be merged, ordered by what it saves.

use std::cmp::Ordering;

/// A possible merge and the seconds that the model says it saves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Candidate {
    /// An estimate until its turn comes.
    pub(super) saving: f64,
    pub(super) is_exact: bool,
    pub(super) action: Action,
    /// [`Action::order`].
    pub(super) order: u64,
    pub(super) versions: (u32, u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Action {
    /// A producer and one of its consumers become one kernel.
    Merge(usize, usize),
    /// A producer is computed again in each of its consumers.
    Inline(usize),
    /// Two independent kernels over the same space become one.
    Siblings(usize, usize),
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    /// By saving; equal ones in a fixed order, so that the same graph gives the same groups.
    fn cmp(&self, other: &Candidate) -> Ordering {
        self.saving.total_cmp(&other.saving).then_with(|| other.order.cmp(&self.order))
    }
}

impl Action {
    /// The kind, then the groups, as one number: repeated blocks of a graph make many equal candidates.
    pub(super) fn order(self) -> u64 {
        let (kind, a, b) = match self {
            Action::Merge(a, b) => (0, a, b),
            Action::Inline(a) => (1, a, 0),
            Action::Siblings(a, b) => (2, a, b),
        };
        kind << 62 | (a as u64) << 31 | b as u64
    }
}
