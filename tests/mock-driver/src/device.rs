//! Devices: their memory, and what became of their context.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;

use crate::status::{Result, Status};

/// As `cuMemAlloc` aligns.
const ALIGNMENT: usize = 512;
/// NaN, in every float.
const POISON: u8 = 0xff;

/// The capability that devices claim.
pub(crate) fn capability() -> (u32, u32) {
    let number = std::env::var("LAZULI_MOCK_CAPABILITY").ok().and_then(|number| number.parse::<u32>().ok());
    number.map_or((9, 0), |number| (number / 10, number % 10))
}
/// Shared memory of a block, as on sm_90: without asking for more, and with.
pub(crate) const SHARED_BYTES: u32 = 48 << 10;
pub(crate) const MOST_SHARED_BYTES: u32 = 227 << 10;
pub(crate) const MULTIPROCESSORS: u32 = 132;
/// What one of them has room for, as on sm_90.
pub(crate) const THREADS_OF_MULTIPROCESSOR: u32 = 2048;
pub(crate) const REGISTERS_OF_MULTIPROCESSOR: u32 = 64 << 10;
pub(crate) const MOST_BLOCKS: u32 = 32;
/// What kernels claim.
pub(crate) const REGISTERS_OF_THREAD: u32 = 40;

/// A device.
pub(crate) struct Device {
    /// What has not been released: bytes by address.
    blocks: BTreeMap<u64, usize>,
    pub(crate) used: usize,
    pub(crate) memory: usize,
    /// Why every call fails from now on.
    pub(crate) failure: Option<Status>,
    /// The next kernel accesses memory that is none.
    pub(crate) next_kernel_fails: bool,
}

impl Device {
    pub(crate) fn new(memory: usize) -> Device {
        Device { blocks: BTreeMap::new(), used: 0, memory, failure: None, next_kernel_fails: false }
    }

    /// The number of allocations.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// An address of fresh, poisoned memory.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<u64> {
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        if bytes > self.memory.saturating_sub(self.used) {
            return Err(Status::OUT_OF_MEMORY);
        }
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| Status::OUT_OF_MEMORY)?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            return Err(Status::OUT_OF_MEMORY);
        }
        // SAFETY: fresh memory of that size.
        unsafe { start.write_bytes(POISON, bytes) };
        self.blocks.insert(start as u64, bytes);
        self.used += bytes;
        Ok(start as u64)
    }

    /// Gives memory back, poisoned, and how much it was.
    pub(crate) fn release(&mut self, address: u64) -> Result<usize> {
        let bytes = self.blocks.remove(&address).ok_or(Status::INVALID_VALUE)?;
        self.used -= bytes;
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| Status::UNKNOWN)?;
        let start = address as *mut u8;
        // SAFETY: allocated above with this layout, and no longer known.
        unsafe {
            start.write_bytes(POISON, bytes);
            dealloc(start, layout);
        }
        Ok(bytes)
    }

    /// Whether the address is of an allocation.
    pub(crate) fn owns(&self, address: u64) -> bool {
        self.blocks.contains_key(&address)
    }

    /// Whether so many bytes from the address are within one allocation.
    pub(crate) fn holds(&self, address: u64, bytes: usize) -> bool {
        let block = self.blocks.range(..=address).next_back();
        block.is_some_and(|(&start, &length)| (address - start) as usize + bytes <= length)
    }
}
