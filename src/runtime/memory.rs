//! Memory as users ask for it: what tensors have, the most they had, and what is kept for the next ones.

use std::sync::atomic::{AtomicU64, Ordering};

/// A device's memory, in bytes, as this process uses it.
///
/// ```
/// use lazuli::{DType, Device, Tensor};
/// let cpu = Device::cpu();
/// cpu.reset_peak_memory()?;
/// let before = cpu.memory()?;
/// let x = Tensor::zeros([1000, 1000], DType::F32).to(&cpu);
/// x.eval()?;
/// let now = cpu.memory()?;
/// assert!(now.allocated >= before.allocated + 4_000_000);
/// assert!(now.reserved >= now.allocated && now.peak >= now.allocated);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Memory {
    /// Of tensors that have values, and of evaluations that are under way.
    pub allocated: u64,
    /// The most that `allocated` was, since the beginning or [`Device::reset_peak_memory`](crate::Device::reset_peak_memory).
    pub peak: u64,
    /// With what was released and is kept for the next allocations; [`Device::trim_memory`](crate::Device::trim_memory) gives
    /// that back to the system.
    pub reserved: u64,
}

/// Counts bytes.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    allocated: AtomicU64,
    peak: AtomicU64,
}

impl Counter {
    pub(crate) const fn new() -> Counter {
        Counter { allocated: AtomicU64::new(0), peak: AtomicU64::new(0) }
    }

    pub(crate) fn take(&self, bytes: usize) {
        let now = self.allocated.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.peak.fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.allocated.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn reset_peak(&self) {
        self.peak.store(self.allocated.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// What it says, beside what is reserved.
    pub(crate) fn read(&self, reserved: u64) -> Memory {
        let allocated = self.allocated.load(Ordering::Relaxed);
        Memory {
            allocated,
            peak: self.peak.load(Ordering::Relaxed).max(allocated),
            reserved: reserved.max(allocated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_most_since_it_was_reset() {
        let counter = Counter::new();
        counter.take(100);
        counter.take(50);
        counter.give_back(100);
        assert_eq!(counter.read(200), Memory { allocated: 50, peak: 150, reserved: 200 });
        counter.reset_peak();
        counter.take(10);
        assert_eq!(counter.read(0), Memory { allocated: 60, peak: 60, reserved: 60 });
    }
}
