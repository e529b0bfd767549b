//! Host memory: aligned blocks from a pool, because freshly mapped pages cost more than the kernels
//! that fill them.

use std::alloc::{Layout, alloc, dealloc};
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::memory::{self, Counter, Memory};
use crate::{Error, Result};

/// Every block starts on a cache line, which is also the widest vector.
const ALIGNMENT: usize = 64;

/// Blocks of two of the system's large pages or more consist of them, where it has such: kernels that stream memory wait
/// less for addresses to be looked up, and the first of them for pages to be mapped.
const LARGE_PAGE: usize = 2 << 20;

/// Blocks of sizes in this range do not all begin at the beginning of a page. Larger ones are no longer near when they are
/// read again, and their lines of 4 KiB should not lie in two pages: these begin further on only beside others, see [`APART`].
const STAGGERED: Range<usize> = 64 << 10..2 * LARGE_PAGE;

/// How far apart in their pages the large results of a kernel begin. What is stored around the caches is collected by line, and on
/// a Zen 3 not of two lines with the same place in their pages: AdamW takes 3 times as long there (benches/notes/memory.md).
const APART: usize = 5 * ALIGNMENT;

/// What begins at multiples of it shares sets of the nearest cache, which hold 8 to 12 lines each.
const PAGE: usize = 4096;

/// Freed bytes that the pool keeps for reuse; beyond it those that were freed first go back to the system.
const POOL_LIMIT: usize = 4 << 30;

/// A block of host memory of a fixed size; returned to the pool when dropped.
///
/// Kernels write through [`HostBuffer::as_ptr`] before the buffer is shared, and when nobody shares it any more
/// (`runtime::donation`); between, it is only read.
#[derive(Debug)]
pub(crate) struct HostBuffer {
    block: Block,
    bytes: usize,
    /// Of memory that is others': they keep it until this is dropped.
    keeper: Option<Box<dyn Any + Send + Sync>>,
}

#[derive(Debug)]
struct Block {
    start: NonNull<u8>,
    capacity: usize,
}

impl Block {
    /// Where its allocation begins.
    fn allocation(&self) -> NonNull<u8> {
        let place = if has_room(self.capacity) { self.start.addr().get() % PAGE } else { 0 };
        // SAFETY: allocations with room begin with a page, and the block in it.
        unsafe { self.start.sub(place) }
    }

    /// Has a large one begin where no other of so many does.
    fn place_beside(&mut self, others: usize) {
        if self.capacity >= STAGGERED.end {
            // SAFETY: there is a page more than the capacity.
            self.start = unsafe { self.allocation().add(others * APART % PAGE) };
        }
    }
}

// SAFETY: a block is plain memory that its one owner may use from any thread.
unsafe impl Send for Block {}
// SAFETY: shared access is read-only; writes happen before a buffer is shared (see HostBuffer).
unsafe impl Sync for Block {}

struct Pool {
    /// Free blocks by capacity, with how many were freed before; the last one is the warmest.
    free: BTreeMap<usize, VecDeque<(u64, Block)>>,
    bytes: usize,
    freed: u64,
    limit: usize,
}

/// What buffers have.
static COUNTER: Counter = Counter::new();
/// Bytes of all blocks, used or kept.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Bytes that are freed next and go back to the system: what there was when it had no more. Others than buffers need memory too,
/// and end the process where there is none.
static OWED: AtomicU64 = AtomicU64::new(0);
/// Whether the system ever had no more.
static WAS_SHORT: AtomicBool = AtomicBool::new(false);

static POOL: Mutex<Pool> = Mutex::new(Pool::new(POOL_LIMIT));

impl Pool {
    const fn new(limit: usize) -> Pool {
        Pool { free: BTreeMap::new(), bytes: 0, freed: 0, limit }
    }

    fn take(&mut self, capacity: usize) -> Option<Block> {
        let (_, block) = self.free.get_mut(&capacity)?.pop_back()?;
        self.bytes -= capacity;
        Some(block)
    }

    /// Keeps a block. Gives those for which there is no room any more: a program goes on with the sizes of now.
    fn put(&mut self, block: Block) -> Vec<Block> {
        self.freed += 1;
        self.bytes += block.capacity;
        self.free.entry(block.capacity).or_default().push_back((self.freed, block));
        let mut rest = Vec::new();
        while self.bytes > self.limit {
            let first =
                |blocks: &VecDeque<(u64, Block)>| blocks.front().map_or(u64::MAX, |&(freed, _)| freed);
            let oldest = self.free.iter_mut().min_by_key(|(_, blocks)| first(blocks));
            let Some((_, block)) = oldest.and_then(|(_, blocks)| blocks.pop_front()) else { break };
            self.bytes -= block.capacity;
            rest.push(block);
        }
        if !rest.is_empty() {
            self.free.retain(|_, blocks| !blocks.is_empty());
        }
        rest
    }
}

fn pool() -> std::sync::MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Capacities are rounded up to an eighth of a power of two, so that near sizes share blocks.
fn capacity_for(bytes: usize) -> Option<usize> {
    let bytes = bytes.max(ALIGNMENT);
    let step = (bytes.checked_next_power_of_two()? / 8).max(ALIGNMENT);
    bytes.checked_next_multiple_of(step)
}

/// Whether a block of that capacity can begin anywhere in the first page of its allocation.
fn has_room(capacity: usize) -> bool {
    capacity >= STAGGERED.start
}

/// How a block of that capacity is allocated.
fn layout_for(capacity: usize) -> Option<Layout> {
    let room = if has_room(capacity) { PAGE } else { 0 };
    let alignment = match capacity {
        _ if capacity >= STAGGERED.end => LARGE_PAGE,
        _ if room > 0 => PAGE,
        _ => ALIGNMENT,
    };
    Layout::from_size_align(capacity.checked_add(room)?, alignment).ok()
}

/// Where in its allocation the next block of that capacity begins: each at another line, and none at the line after the one
/// before, where a load would falsely wait for a store that has the same place in its page (4K aliasing).
fn place_for(capacity: usize) -> usize {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    const LINES: u64 = (PAGE / ALIGNMENT) as u64;
    if !STAGGERED.contains(&capacity) {
        return 0;
    }
    // A step near the golden ratio of all lines keeps any few of them apart.
    (NEXT.fetch_add(1, Ordering::Relaxed) * 39 % LINES) as usize * ALIGNMENT
}

/// A wish: the system may have none, or not give any.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(start: NonNull<u8>, capacity: usize) {
    let pages = capacity / LARGE_PAGE * LARGE_PAGE;
    if capacity >= 2 * LARGE_PAGE {
        // SAFETY: whole pages of a block that nobody else has yet; how they are mapped does not change what they hold.
        let _ =
            unsafe { rustix::mm::madvise(start.as_ptr().cast(), pages, rustix::mm::Advice::LinuxHugepage) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_: NonNull<u8>, _: usize) {}

impl HostBuffer {
    /// A block with unspecified but initialised contents.
    pub(crate) fn allocate(bytes: usize) -> Result<HostBuffer> {
        HostBuffer::allocate_beside(bytes, 0)
    }

    /// The same for one of several results of a kernel, after so many others.
    pub(crate) fn allocate_beside(bytes: usize, others: usize) -> Result<HostBuffer> {
        let no_room = || out_of_memory(bytes as u64);
        let capacity = capacity_for(bytes).ok_or_else(no_room)?;
        let layout = layout_for(capacity).ok_or_else(no_room)?;
        if !COUNTER.take(bytes) {
            return Err(no_room());
        }
        let pooled = pool().take(capacity);
        if let Some(mut block) = pooled {
            block.place_beside(others);
            return Ok(HostBuffer { block, bytes, keeper: None });
        }
        let limit = COUNTER.limit();
        if limit < u64::MAX && RESERVED.load(Ordering::Relaxed).saturating_add(layout.size() as u64) > limit {
            trim();
        }
        // SAFETY: the layout's size is not zero.
        let attempt = || NonNull::new(unsafe { alloc(layout) });
        let allocation = attempt().or_else(|| {
            // The system is out of memory while the pool holds some.
            trim();
            attempt()
        });
        let Some(allocation) = allocation else {
            COUNTER.give_back(bytes);
            note_shortage();
            return Err(no_room());
        };
        ask_for_large_pages(allocation, capacity);
        // SAFETY: what is staggered has a page more than its capacity.
        let start = unsafe { allocation.add(place_for(capacity)) };
        RESERVED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        let mut block = Block { start, capacity };
        block.place_beside(others);
        Ok(HostBuffer { block, bytes, keeper: None })
    }

    /// A block of zeros.
    pub(crate) fn zeroed(bytes: usize) -> Result<HostBuffer> {
        let buffer = HostBuffer::allocate(bytes)?;
        // SAFETY: the block holds at least `bytes` bytes, and nobody else has it yet.
        unsafe { std::ptr::write_bytes(buffer.as_ptr(), 0, bytes) };
        Ok(buffer)
    }

    /// A copy of the bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<HostBuffer> {
        let buffer = HostBuffer::allocate(bytes.len())?;
        // SAFETY: the block holds at least `bytes.len()` bytes, and nobody else has it yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.as_ptr(), bytes.len()) };
        Ok(buffer)
    }

    /// Memory of others. It need not be aligned as blocks are, but as its elements.
    ///
    /// # Safety
    /// There are so many bytes, which nobody writes or releases until `keeper` is dropped.
    pub(crate) unsafe fn of_others(
        start: *const u8,
        bytes: usize,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> HostBuffer {
        let start = NonNull::new(start.cast_mut()).unwrap_or(NonNull::dangling());
        HostBuffer { block: Block { start, capacity: 0 }, bytes, keeper: Some(keeper) }
    }

    /// What others' memory is kept by.
    #[cfg(feature = "cuda")]
    pub(crate) fn keeper(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.keeper.as_deref()
    }

    /// Whether others have it, and may see what is written.
    pub(crate) fn is_of_others(&self) -> bool {
        self.keeper.is_some()
    }

    /// The first byte; aligned to 64 but for memory of others. Writing through it is up to the executor, before the buffer is shared.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.block.start.as_ptr()
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The contents. They must have been written before (see [`HostBuffer::allocate`]).
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the block holds `bytes` bytes; a buffer is only read once it is shared, and every
        // buffer is filled by a kernel or a copy before anyone reads it.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if self.is_of_others() {
            return;
        }
        COUNTER.give_back(self.bytes);
        memory::let_go(None, self.as_ptr() as u64, self.bytes);
        let block = Block { start: self.block.start, capacity: self.block.capacity };
        if is_owed(block.capacity) {
            return release(block);
        }
        let rest = pool().put(block);
        // The lock is not held: giving back takes long.
        rest.into_iter().for_each(release);
    }
}

/// The system had no more.
fn note_shortage() {
    WAS_SHORT.store(true, Ordering::Relaxed);
    OWED.fetch_max(RESERVED.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Whether so many bytes go back to the system, and not to the pool.
fn is_owed(bytes: usize) -> bool {
    if OWED.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let less = |owed: u64| (owed > 0).then(|| owed.saturating_sub(bytes as u64));
    OWED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
}

/// Something that is not a buffer's will need memory: where there once was too little, it is to have what the pool keeps.
pub(crate) fn make_room() {
    if WAS_SHORT.load(Ordering::Relaxed) {
        trim();
    }
}

fn release(block: Block) {
    if let Some(layout) = layout_for(block.capacity) {
        RESERVED.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: allocated with the same layout in `allocate`, and this is its only owner.
        unsafe { dealloc(block.allocation().as_ptr(), layout) };
    }
}

/// Room in `elements` for `more`, or an error: where a user's size decides, a vector must not end the process.
pub(crate) fn reserve<T>(elements: &mut Vec<T>, more: usize) -> Result<()> {
    let reserved = elements.try_reserve_exact(more).or_else(|_| {
        // The system is out of memory while the pool holds some.
        trim();
        elements.try_reserve_exact(more)
    });
    let elements = elements.len().saturating_add(more);
    reserved.map_err(|_| {
        note_shortage();
        out_of_memory(elements.saturating_mul(size_of::<T>()) as u64)
    })
}

/// [`Iterator::collect`], with an error where it would end the process.
pub(crate) fn collect<T>(elements: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let mut elements = elements.into_iter();
    let mut collected = Vec::new();
    reserve(&mut collected, elements.size_hint().0)?;
    loop {
        let room = collected.capacity() - collected.len();
        collected.extend(elements.by_ref().take(room));
        if collected.len() < collected.capacity() {
            return Ok(collected);
        }
        let Some(next) = elements.next() else { return Ok(collected) };
        let more = collected.len().max(64);
        reserve(&mut collected, more)?;
        collected.push(next);
    }
}

pub(crate) fn out_of_memory(requested: u64) -> Error {
    memory::out_of_memory("cpu".into(), None, requested, memory(), COUNTER.limit())
}

/// From now on, tensors have at most so many bytes.
pub(crate) fn limit(bytes: u64) {
    COUNTER.set_limit(bytes);
}

/// The host's memory, as buffers use it.
pub(crate) fn memory() -> Memory {
    COUNTER.read(RESERVED.load(Ordering::Relaxed))
}

pub(crate) fn reset_peak() {
    COUNTER.reset_peak();
}

/// Gives the pool's free blocks back to the system.
pub(crate) fn trim() {
    let free = std::mem::replace(&mut *pool(), Pool::new(POOL_LIMIT)).free;
    for (_, block) in free.into_values().flatten() {
        release(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_sizes_share_a_capacity_and_waste_at_most_a_quarter() {
        assert_eq!(capacity_for(1), Some(64));
        assert_eq!(capacity_for(1_000_000), capacity_for(1_000_001));
        for bytes in [1usize, 63, 64, 65, 4097, 1 << 20, (1 << 20) + 1, 123_456_789] {
            let capacity = capacity_for(bytes).unwrap();
            assert!(capacity >= bytes && capacity <= (bytes + bytes / 4).max(64).next_multiple_of(64));
        }
    }

    #[test]
    fn what_was_freed_first_makes_room() {
        let block = |capacity| Block { start: NonNull::dangling(), capacity };
        let capacities = |blocks: Vec<Block>| -> Vec<usize> { blocks.iter().map(|b| b.capacity).collect() };
        let mut pool = Pool::new(1024);
        for capacity in [512, 256, 256] {
            assert!(pool.put(block(capacity)).is_empty());
        }
        assert_eq!(capacities(pool.put(block(640))), [512, 256]);
        assert_eq!((pool.bytes, pool.take(512).is_none()), (896, true));
        assert!(pool.take(640).is_some() && pool.take(256).is_some() && pool.take(256).is_none());
        assert_eq!(pool.bytes, 0);
        assert!(pool.put(block(64)).is_empty());
        assert_eq!(capacities(pool.put(block(4096))), [64, 4096]);
        assert!(pool.bytes == 0 && pool.free.is_empty());
    }

    #[test]
    fn large_results_of_a_kernel_begin_at_different_places() {
        let bytes = STAGGERED.end + 1;
        // The second time the blocks come from the pool, in whatever order.
        for _ in 0..2 {
            let results: Vec<HostBuffer> =
                (0..16).map(|others| HostBuffer::allocate_beside(bytes, others).unwrap()).collect();
            let places: Vec<usize> = results.iter().map(|result| result.as_ptr().addr() % PAGE).collect();
            assert_eq!(places[..3], [0, APART, 2 * APART]);
            let is_apart = |n: usize| places[..n].iter().all(|place| *place != places[n]);
            assert!((0..16).all(is_apart) && places.iter().all(|place| place % ALIGNMENT == 0));
            // SAFETY: nobody else has them.
            results.iter().for_each(|result| unsafe { result.as_ptr().add(bytes - 1).write(1) });
        }
        assert_eq!(HostBuffer::allocate(bytes).unwrap().as_ptr().addr() % PAGE, 0);
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(matches!(HostBuffer::allocate(usize::MAX / 2), Err(Error::OutOfMemory { .. })));
    }

    #[test]
    fn an_impossible_vector_is_an_error() {
        let mut elements = vec![1u64; 3];
        let error = reserve(&mut elements, 1 << 55).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { requested, .. } if requested == 8 * ((1 << 55) + 3)));
        assert!(collect((0..1u64 << 60).map(|n| n as u8)).is_err());
    }

    #[test]
    fn elements_are_collected_whatever_is_known_of_their_number() {
        for count in [0u64, 1, 63, 64, 65, 1000] {
            let expected: Vec<u64> = (0..count).collect();
            assert_eq!(collect(0..count).unwrap(), expected);
            assert_eq!(collect((0..2 * count).filter(|&n| n < count)).unwrap(), expected);
        }
    }

    #[test]
    fn bytes_come_back_as_they_went_in() {
        let buffer = HostBuffer::from_bytes(b"lazuli").unwrap();
        assert_eq!(buffer.as_slice(), b"lazuli");
        assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
    }
}
