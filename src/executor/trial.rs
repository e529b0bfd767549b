//! Kernels as they run, noted for whoever runs them again under other schedules.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use indexmap::IndexMap;
use smallvec::SmallVec;

use crate::compiler::Plan;
use crate::runtime::backend::Backend;
use crate::runtime::buffer::Buffer;
use crate::runtime::device::Device;
use crate::tuned::Key;

/// A kernel that was launched, and what it read.
pub(crate) struct Noted {
    pub(crate) key: Key,
    pub(crate) plan: Arc<Plan>,
    /// Which of the plan's kernels it is.
    pub(crate) number: usize,
    pub(crate) device: Device,
    pub(super) backend: Backend,
    /// By place, as in a run.
    pub(super) inputs: SmallVec<[Option<Buffer>; 6]>,
    /// Of all launches together.
    pub(crate) seconds: f64,
    pub(crate) launches: u64,
}

/// In the order of their first launch.
type AllNoted = IndexMap<(Device, Key), Noted>;

thread_local! {
    /// What is noted is taken back in the end: nothing is left to drop, so that it is there in destructors of others.
    static NOTED: ManuallyDrop<RefCell<Option<AllNoted>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Whether this thread notes kernels. Then nothing is written over what they have read.
pub(crate) fn is_noting() -> bool {
    NOTED.with(|all| all.borrow().is_some())
}

/// Notes a kernel, if that is wanted and its schedule can be another.
pub(super) fn note(launched: impl FnOnce() -> Option<Noted>) {
    NOTED.with(|all| {
        let mut all = all.borrow_mut();
        let Some(all) = all.as_mut() else { return };
        let Some(launched) = launched() else { return };
        let key = (launched.device, launched.key.clone());
        match all.get_mut(&key) {
            Some(known) => {
                known.seconds += launched.seconds;
                known.launches += 1;
            }
            None => drop(all.insert(key, launched)),
        }
    });
}

/// The kernels that this thread launches while `f` runs, each once.
pub(crate) fn noted<T>(f: impl FnOnce() -> T) -> (T, Vec<Noted>) {
    /// Restores what was noted before also if `f` panics.
    struct Restore(Option<AllNoted>);
    impl Drop for Restore {
        fn drop(&mut self) {
            NOTED.with(|all| drop(all.replace(self.0.take())));
        }
    }
    let restore = Restore(NOTED.with(|all| all.replace(Some(AllNoted::new()))));
    let result = f();
    let all = NOTED.with(|all| all.take()).unwrap_or_default();
    drop(restore);
    (result, all.into_values().collect())
}
