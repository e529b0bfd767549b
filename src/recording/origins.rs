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

    pub(super) fn join(&mut self, other: &Origins<T>) {
        for list in &other.0 {
            if !self.0.iter().any(|own| Arc::ptr_eq(own, list)) {
                self.0.push(list.clone());
            }
        }
    }

    /// One list more. Each stays more than twice as long as the next: of `n` tensors there are few lists, and each tensor was
    /// copied few times.
    pub(super) fn add(&mut self, list: Vec<Weak<T>>) {
        let list = Origins::list(list);
        if list.is_empty() {
            return;
        }
        self.0.push(list);
        self.0.sort_by_key(|list| std::cmp::Reverse(list.len()));
        while let [.., longer, shorter] = &self.0[..]
            && longer.len() <= 2 * shorter.len()
        {
            let both = Origins::list(longer.iter().chain(shorter.iter()).cloned().collect());
            self.0.truncate(self.0.len() - 2);
            self.0.push(both);
            self.0.sort_by_key(|list| std::cmp::Reverse(list.len()));
        }
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
