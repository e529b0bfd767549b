//! Memory that buffers have released, kept for the next ones of the same stream.
//!
//! A pool's allocation and its release are work of the stream: on an H200 a kernel between them takes 1.3 µs longer. What comes from
//! a free list needs neither.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::stream::CudaStream;

/// The least that a block has.
const LEAST: usize = 512;
/// Blocks of one size class differ by less than one part in so many.
const CLASSES_OF_A_POWER: usize = 8;
/// All kept blocks together have at most one part in so many of the device's memory.
const PART_OF_MEMORY: u64 = 32;
/// And a single one, one part in so many of that: a kernel over more takes far longer than the pool does.
const PART_OF_KEPT: usize = 8;

/// A block of the pool. All that has used it comes before what its stream starts from now on.
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) bytes: usize,
    pub(super) stream: Arc<CudaStream>,
}

/// Blocks by the numbers of their streams and their bytes.
pub(super) struct FreeLists {
    kept: Mutex<Kept>,
}

struct Kept {
    /// Each with when it came. Empty lists stay: there are as many as streams and size classes.
    lists: FxHashMap<(u64, usize), VecDeque<(u64, Block)>>,
    now: u64,
    bytes: usize,
    most: usize,
}

impl FreeLists {
    /// Of a device with so many bytes.
    pub(super) fn new(memory: u64) -> FreeLists {
        let (lists, most) = (FxHashMap::default(), most_of(memory));
        FreeLists { kept: Mutex::new(Kept { lists, now: 0, bytes: 0, most }) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a block is that so many bytes are taken from. Those that are too long to be kept have no class.
    pub(super) fn block_bytes(&self, bytes: usize) -> usize {
        if bytes > self.kept().longest() {
            return bytes;
        }
        let bytes = bytes.max(LEAST);
        let power = 1 << bytes.ilog2();
        bytes.next_multiple_of((power / CLASSES_OF_A_POWER).max(LEAST))
    }

    /// A block of just so many bytes whose last user's work comes before what is started on the stream.
    pub(super) fn take(&self, stream: &CudaStream, bytes: usize) -> Option<u64> {
        let mut kept = self.kept();
        // The latest: it is the one that a cache still has.
        let (_, block) = kept.lists.get_mut(&(stream.id, bytes))?.pop_back()?;
        kept.bytes -= bytes;
        Some(block.address)
    }

    /// Gives what the pool is to have instead: the block itself, or those that have been here longest.
    pub(super) fn keep(&self, block: Block) -> Vec<Block> {
        let mut kept = self.kept();
        if block.bytes > kept.longest() {
            return vec![block];
        }
        kept.now += 1;
        kept.bytes += block.bytes;
        let now = kept.now;
        kept.lists.entry((block.stream.id, block.bytes)).or_default().push_back((now, block));
        let most = kept.most;
        kept.all_beyond(most)
    }

    /// Gives all of them.
    pub(super) fn clear(&self) -> Vec<Block> {
        self.kept().all_beyond(0)
    }

    /// From now on as for a device with so many bytes.
    pub(super) fn limit(&self, memory: u64) -> Vec<Block> {
        let mut kept = self.kept();
        kept.most = most_of(memory);
        let most = kept.most;
        kept.all_beyond(most)
    }
}

/// What all blocks of a device may have.
fn most_of(memory: u64) -> usize {
    usize::try_from(memory / PART_OF_MEMORY).unwrap_or(usize::MAX)
}

impl Kept {
    fn longest(&self) -> usize {
        self.most / PART_OF_KEPT
    }

    /// Takes out those that have been here longest until the others have at most so many bytes.
    fn all_beyond(&mut self, most: usize) -> Vec<Block> {
        let mut out = Vec::new();
        while self.bytes > most {
            let first = |list: &VecDeque<(u64, Block)>| list.front().map(|&(since, _)| since);
            let oldest = self.lists.iter_mut().filter(|(_, list)| !list.is_empty());
            let Some((_, list)) = oldest.min_by_key(|(_, list)| first(list)) else { break };
            out.extend(list.pop_front().map(|(_, block)| block));
            self.bytes -= out.last().map_or(0, |block| block.bytes);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    fn stream() -> Arc<CudaStream> {
        Arc::new(CudaStream::new(null_mut(), 0, false))
    }

    fn keep(lists: &FreeLists, stream: &Arc<CudaStream>, address: u64, bytes: usize) -> Vec<u64> {
        let bytes = lists.block_bytes(bytes);
        let out = lists.keep(Block { address, bytes, stream: stream.clone() });
        out.iter().map(|block| block.address).collect()
    }

    #[test]
    fn blocks_are_those_of_the_stream_and_the_size_class() {
        let (lists, one, other) = (FreeLists::new(1 << 30), stream(), stream());
        assert!(keep(&lists, &one, 1, 1000).is_empty() && keep(&lists, &one, 2, 1024).is_empty());
        let bytes = lists.block_bytes(990);
        assert_eq!(bytes, 1024);
        assert_eq!(lists.take(&other, bytes), None);
        assert_eq!(lists.take(&one, lists.block_bytes(1025)), None);
        assert_eq!(
            [lists.take(&one, bytes), lists.take(&one, bytes), lists.take(&one, bytes)],
            [Some(2), Some(1), None]
        );
    }

    #[test]
    fn blocks_hold_what_is_asked_and_little_more() {
        let lists = FreeLists::new(1 << 40);
        for bytes in (1..100_000).step_by(37).chain([1 << 20, (1 << 20) + 1, (1 << 33) + 1, (1 << 40) + 1]) {
            let block = lists.block_bytes(bytes);
            assert!(block >= bytes && block <= bytes + (bytes / 8).max(512), "{block} for {bytes}");
            assert_eq!(lists.block_bytes(block), block);
        }
    }

    #[test]
    fn the_oldest_make_room() {
        let (lists, one, other) = (FreeLists::new(32 << 20), stream(), stream());
        let eighth = 1 << 17;
        for address in 1..=8 {
            assert!(keep(&lists, if address % 2 == 0 { &one } else { &other }, address, eighth).is_empty());
        }
        assert_eq!(keep(&lists, &one, 9, eighth), [1]);
        assert_eq!(lists.take(&other, eighth), Some(7));
        assert!(keep(&lists, &one, 10, eighth).is_empty());
        assert_eq!(keep(&lists, &one, 11, eighth), [2]);
        assert_eq!(keep(&lists, &one, 12, 8 * eighth), [12], "too long");
        assert_eq!(lists.limit(16 << 20).len(), 4);
        assert_eq!(lists.clear().len(), 4);
        assert!(lists.clear().is_empty());
    }
}
