//! Memory as users ask for it: what tensors have, the most they had, and what is kept for the next ones.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Error, SourceLocation};

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
#[derive(Debug)]
pub(crate) struct Counter {
    allocated: AtomicU64,
    peak: AtomicU64,
    limit: AtomicU64,
}

impl Counter {
    pub(crate) const fn new() -> Counter {
        let [allocated, peak] = [const { AtomicU64::new(0) }; 2];
        Counter { allocated, peak, limit: AtomicU64::new(u64::MAX) }
    }

    /// Gives whether there may be so many more; if so, there are.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let limit = self.limit();
        let more = |now: u64| now.checked_add(bytes as u64).filter(|&now| now <= limit);
        let Ok(before) = self.allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) else {
            return false;
        };
        let now = before + bytes as u64;
        // Looking takes less than writing, and peaks are rare.
        if self.peak.load(Ordering::Relaxed) < now {
            self.peak.fetch_max(now, Ordering::Relaxed);
        }
        true
    }

    /// The most that there may be.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
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

/// Smaller tensors are not listed one by one.
const LISTED: usize = 1 << 20;
/// Lines of the user's that an error names.
const NAMED: usize = 4;

/// Whose memory it is: a GPU's by its number, or the host's.
pub(crate) type Space = Option<usize>;

/// What made a tensor.
struct Holder {
    bytes: u64,
    op: &'static str,
    location: SourceLocation,
}

/// Tensors with much memory, by where that is.
fn holders() -> MutexGuard<'static, BTreeMap<(Space, u64), Holder>> {
    static HOLDERS: Mutex<BTreeMap<(Space, u64), Holder>> = Mutex::new(BTreeMap::new());
    HOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, until it [lets go](let_go), the memory is a tensor's.
pub(crate) fn hold(space: Space, address: u64, bytes: usize, op: &'static str, location: SourceLocation) {
    if bytes >= LISTED {
        holders().insert((space, address), Holder { bytes: bytes as u64, op, location });
    }
}

pub(crate) fn let_go(space: Space, address: u64, bytes: usize) {
    if bytes >= LISTED {
        holders().remove(&(space, address));
    }
}

/// An error that says what has the memory.
pub(crate) fn out_of_memory(
    device: String,
    space: Space,
    requested: u64,
    memory: Memory,
    limit: u64,
) -> Error {
    let mut lines: BTreeMap<(&str, SourceLocation), (u64, usize)> = BTreeMap::new();
    for (_, holder) in holders().iter().filter(|((other, _), _)| *other == space) {
        let (bytes, tensors) = lines.entry((holder.op, holder.location)).or_default();
        *bytes += holder.bytes;
        *tensors += 1;
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|&(_, (bytes, _))| std::cmp::Reverse(bytes));
    let mut usage = format!("Tensors have {} bytes", memory.allocated);
    for (number, ((op, location), (bytes, tensors))) in lines.iter().take(NAMED).enumerate() {
        let start = if number == 0 { ": " } else { ", " };
        let of = if *tensors == 1 { String::new() } else { format!("{tensors} of ") };
        let _ = write!(usage, "{start}{bytes} in {of}{op} at {location}");
    }
    if limit < u64::MAX {
        let _ = write!(usage, "; {limit} are allowed (limit_memory)");
    }
    Error::OutOfMemory { device, requested, usage: Arc::from(usage), op: None, location: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_limit_is_not_taken() {
        let counter = Counter::new();
        counter.set_limit(100);
        assert!(counter.take(60) && !counter.take(41) && counter.take(40) && counter.take(0));
        counter.give_back(60);
        assert!(!counter.take(usize::MAX) && counter.take(60));
        assert_eq!(counter.read(0).peak, 100);
    }

    #[test]
    fn the_peak_is_the_most_since_it_was_reset() {
        let counter = Counter::new();
        assert!(counter.take(100) && counter.take(50));
        counter.give_back(100);
        assert_eq!(counter.read(200), Memory { allocated: 50, peak: 150, reserved: 200 });
        counter.reset_peak();
        assert!(counter.take(10));
        assert_eq!(counter.read(0), Memory { allocated: 60, peak: 60, reserved: 60 });
    }
}
