//! How long each kernel takes, and what is done beside kernels, for who measures plans.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::time::Instant;

use crate::Device;

/// A kernel that was launched, and waited for.
#[derive(Clone, Debug)]
pub(crate) struct Launched {
    pub(crate) device: Device,
    pub(crate) name: String,
    pub(crate) schedule: String,
    /// The operations whose results it gives, with their lines.
    pub(crate) operations: String,
    /// How often something was launched for it: of a long reduction, parts and what comes of them.
    pub(crate) launches: u64,
    /// When the host launched it.
    pub(crate) start: Instant,
    /// What it reads and writes at least.
    pub(crate) bytes: u64,
    /// Additions and multiplications of its products.
    pub(crate) flops: u64,
    pub(crate) seconds: f64,
    /// On a GPU: registers of a thread, and the share of a multiprocessor's threads that run at once.
    pub(crate) occupancy: Option<(u32, f64)>,
}

/// What an evaluation does beside running kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Kernels are compiled, or read from the cache, and loaded.
    Compiling,
    /// An interpreter computes what there are no kernels for.
    Interpreting,
    /// A library computes.
    Libraries,
}

/// What a thread has done.
#[derive(Clone, Default, Debug)]
pub(crate) struct Noted {
    pub(crate) launched: Vec<Launched>,
    seconds: [f64; 3],
}

impl Noted {
    /// How long that took.
    pub(crate) fn seconds(&self, of: Work) -> f64 {
        self.seconds[of as usize]
    }
}

thread_local! {
    /// What is noted is taken back in the end: nothing is left to drop, so that it is there in destructors of others.
    static NOTED: ManuallyDrop<RefCell<Option<Noted>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Whether this thread wants to know how long each kernel takes.
pub(crate) fn is_timing() -> bool {
    NOTED.with(|all| all.borrow().is_some())
}

/// Notes a kernel.
pub(super) fn note(launched: impl FnOnce() -> Launched) {
    NOTED.with(|all| {
        if let Some(all) = all.borrow_mut().as_mut() {
            all.launched.push(launched());
        }
    });
}

/// Notes how long `f` takes, which is work of that kind.
pub(super) fn noting<T>(work: Work, f: impl FnOnce() -> T) -> T {
    let start = is_timing().then(Instant::now);
    let result = f();
    if let Some(start) = start {
        NOTED.with(|all| {
            if let Some(all) = all.borrow_mut().as_mut() {
                all.seconds[work as usize] += start.elapsed().as_secs_f64();
            }
        });
    }
    result
}

/// What this thread does while `f` runs. What it does inside of another such call is that call's.
pub(crate) fn of_kernels<T>(f: impl FnOnce() -> T) -> (T, Noted) {
    let outer = NOTED.with(|all| all.replace(Some(Noted::default())));
    let result = f();
    (result, NOTED.with(|all| all.replace(outer)).unwrap_or_default())
}
