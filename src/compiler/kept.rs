//! Plans that are kept in memory.

use std::hash::Hash;

use lru::LruCache;
use rustc_hash::FxBuildHasher;

/// How many plans are kept, however large.
pub(super) const PLANS: usize = 512;
/// How many plans are kept, however small.
const MOST_PLANS: usize = 4096;
/// Nodes of all plans, beyond which no more than [`PLANS`] are kept. A node takes 2.5 to 3 KB with its share of kernels: 45 MB.
const MOST_NODES: usize = 1 << 14;

/// Plans, least recently used first out: some however large, and more as far as they are small. What goes over a thousand lengths comes
/// back to each of them.
pub(super) struct Kept<K, T> {
    plans: LruCache<K, (T, usize), FxBuildHasher>,
    nodes: usize,
}

impl<K: Hash + Eq, T> Kept<K, T> {
    pub(super) fn new() -> Kept<K, T> {
        // The key is a hash already.
        Kept { plans: LruCache::unbounded_with_hasher(FxBuildHasher), nodes: 0 }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&T> {
        self.plans.get(key).map(|(plan, _)| plan)
    }

    pub(super) fn put(&mut self, key: K, plan: T, nodes: usize) {
        self.nodes += nodes;
        if let Some((_, before)) = self.plans.put(key, (plan, nodes)) {
            self.nodes -= before;
        }
        while self.plans.len() > MOST_PLANS || self.plans.len() > PLANS && self.nodes > MOST_NODES {
            let Some((_, (_, nodes))) = self.plans.pop_lru() else { return };
            self.nodes -= nodes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_plans_are_many_and_large_ones_some() {
        for (nodes, most) in [(1, MOST_PLANS), (8, MOST_NODES / 8), (1000, PLANS)] {
            let mut kept = Kept::new();
            for number in 0..2 * MOST_PLANS {
                kept.put(number, number, nodes);
                // In the place of itself.
                kept.put(number, number, nodes);
            }
            let left: Vec<usize> = (0..2 * MOST_PLANS).filter(|number| kept.get(number).is_some()).collect();
            assert_eq!(left, (2 * MOST_PLANS - most..2 * MOST_PLANS).collect::<Vec<_>>());
            assert_eq!(kept.nodes, most * nodes);
        }
    }
}
