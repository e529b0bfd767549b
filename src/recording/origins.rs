//! What forgotten histories began from.

use std::sync::{Arc, Weak};

use smallvec::SmallVec;

/// Tensors that others followed from, in lists that many share: in a loop each step follows from all that the one before does.
pub(crate) struct Origins<T>(SmallVec<[Arc<[Weak<T>]>; 4]>);

impl<T> Origins<T> {
    pub(super) fn none() -> Origins<T> {
        Origins(SmallVec::new())
    }

    /// Those of which there are handles.
    pub(crate) fn alive(&self) -> impl Iterator<Item = Arc<T>> {
        let all = self.0.iter().flat_map(|list| list.iter());
        all.filter_map(Weak::upgrade)
    }

    /// Before one list is added: what both have is found then.
    pub(super) fn join(&mut self, other: &Origins<T>) {
        self.0.extend(other.0.iter().cloned());
    }

    /// One list more. Each stays more than twice as long as all shorter ones together: of `n` tensors there are few lists, and each
    /// tensor was copied few times.
    pub(super) fn add(&mut self, list: Vec<Weak<T>>) {
        self.0.push(Origins::list(list));
        self.0.sort_unstable_by_key(|list| (std::cmp::Reverse(list.len()), list.as_ptr()));
        self.0.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let mut after: usize = self.0.iter().map(|list| list.len()).sum();
        let is_short = |list: &Arc<[Weak<T>]>| {
            after -= list.len();
            list.len() <= 2 * after
        };
        if let Some(first) = self.0.iter().position(is_short) {
            let rest = self.0.drain(first..).flat_map(|list| list.to_vec()).collect();
            self.0.push(Origins::list(rest));
        }
        self.0.retain(|list| !list.is_empty());
    }

    /// Each of which there are handles once.
    fn list(mut all: Vec<Weak<T>>) -> Arc<[Weak<T>]> {
        all.retain(|origin| origin.strong_count() > 0);
        all.sort_unstable_by_key(Weak::as_ptr);
        all.dedup_by_key(|origin| origin.as_ptr());
        all.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a loop whose steps branch, and whose branches follow from each other's.
    #[test]
    fn branches_share_their_lists() {
        let tensors: Vec<Arc<usize>> = (0..300).map(Arc::new).collect();
        let mut branches: [Origins<usize>; 4] = std::array::from_fn(|_| Origins::none());
        for (number, tensor) in tensors.iter().enumerate() {
            let mut origins = Origins::none();
            branches.iter().for_each(|branch| origins.join(branch));
            origins.add(vec![Arc::downgrade(tensor)]);
            assert!(origins.0.len() <= 10);
            branches[number % 4] = origins;
        }
        let all: std::collections::BTreeSet<usize> =
            branches[299 % 4].alive().map(|tensor| *tensor).collect();
        assert_eq!(all, (0..300).collect());
    }

    /// Each step of a loop follows from what the one before does, and from one more.
    #[test]
    fn lists_stay_few_and_know_all_that_is_left() {
        let tensors: Vec<Arc<usize>> = (0..1000).map(Arc::new).collect();
        let mut before = Origins::none();
        for tensor in &tensors {
            let mut origins = Origins::none();
            origins.join(&before);
            origins.join(&before);
            origins.add(vec![Arc::downgrade(tensor), Weak::new()]);
            before = origins;
            assert!(before.0.len() <= 10);
        }
        let mut all: Vec<usize> = before.alive().map(|tensor| *tensor).collect();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        drop(tensors);
        assert_eq!(before.alive().count(), 0);
    }
}
