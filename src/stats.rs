//! Counters of what the process has planned, compiled and launched.

use std::sync::atomic::{AtomicU64, Ordering};

/// What has happened so far in this process.
///
/// ```
/// use lazuli::Tensor;
/// let before = lazuli::stats();
/// let _ = (Tensor::from_vec(vec![1.0f32, 2.0], [2]) + 1.0).to_vec::<f32>()?;
/// assert!(lazuli::stats().evaluations > before.evaluations);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Evaluations that had something to compute.
    pub evaluations: u64,
    /// Graphs that went through passes, fusion and lowering.
    pub plans_made: u64,
    /// Graphs whose structure was planned before, perhaps with other numbers, other positions, or sizes that are about the
    /// same.
    pub plan_hits: u64,
    /// Kernels that a compiler was run for.
    pub kernels_compiled: u64,
    /// Kernels found in the cache on disk.
    pub disk_hits: u64,
    /// Kernels launched.
    pub launches: u64,
    /// Results that were written over an input, in its memory.
    pub in_place: u64,
    /// Calls of compiled functions that a GPU was given as one graph; their kernels are among those launched.
    pub graph_replays: u64,
    /// Bytes copied from the host to GPUs.
    pub bytes_uploaded: u64,
    /// Bytes copied from GPUs to the host.
    pub bytes_downloaded: u64,
    /// Bytes copied from one GPU to another one.
    pub bytes_between_devices: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Counter {
    Evaluations,
    PlansMade,
    PlanHits,
    KernelsCompiled,
    DiskHits,
    Launches,
    InPlace,
    GraphReplays,
    BytesUp,
    BytesDown,
    BytesBetween,
}

static COUNTERS: [AtomicU64; 11] = [const { AtomicU64::new(0) }; 11];

pub(crate) fn add(counter: Counter) {
    add_many(counter, 1);
}

pub(crate) fn add_many(counter: Counter, many: usize) {
    COUNTERS[counter as usize].fetch_add(many as u64, Ordering::Relaxed);
}

/// The counters of this process.
///
/// ```
/// use lazuli::{Device, Tensor};
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], [2]).to(&Device::cpu());
/// let run = || (&x * 3.0).relu().eval();
/// run()?;
/// let before = lazuli::stats();
/// run()?; // the same structure again
/// assert_eq!(lazuli::stats().kernels_compiled, before.kernels_compiled);
/// # Ok::<(), lazuli::Error>(())
/// ```
pub fn stats() -> Stats {
    let get = |counter: Counter| COUNTERS[counter as usize].load(Ordering::Relaxed);
    Stats {
        evaluations: get(Counter::Evaluations),
        plans_made: get(Counter::PlansMade),
        plan_hits: get(Counter::PlanHits),
        kernels_compiled: get(Counter::KernelsCompiled),
        disk_hits: get(Counter::DiskHits),
        launches: get(Counter::Launches),
        in_place: get(Counter::InPlace),
        graph_replays: get(Counter::GraphReplays),
        bytes_uploaded: get(Counter::BytesUp),
        bytes_downloaded: get(Counter::BytesDown),
        bytes_between_devices: get(Counter::BytesBetween),
    }
}
