//! How long each kernel takes, for who measures plans.

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
    pub(crate) seconds: f64,
    /// On a GPU: registers of a thread, and the share of a multiprocessor's threads that run at once.
    pub(crate) occupancy: Option<(u32, f64)>,
}

thread_local! {
    /// What is noted is taken back in the end: nothing is left to drop, so that it is there in destructors of others.
    static LAUNCHED: ManuallyDrop<RefCell<Option<Vec<Launched>>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Whether this thread wants to know how long each kernel takes.
pub(crate) fn is_timing() -> bool {
    LAUNCHED.with(|all| all.borrow().is_some())
}

/// Notes a kernel.
pub(super) fn note(launched: impl FnOnce() -> Launched) {
    LAUNCHED.with(|all| {
        if let Some(all) = all.borrow_mut().as_mut() {
            all.push(launched());
        }
    });
}

/// The kernels that this thread launches while `f` runs. Those inside of another such call are that call's.
pub(crate) fn of_kernels<T>(f: impl FnOnce() -> T) -> (T, Vec<Launched>) {
    let outer = LAUNCHED.with(|all| all.replace(Some(Vec::new())));
    let result = f();
    (result, LAUNCHED.with(|all| all.replace(outer)).unwrap_or_default())
}
