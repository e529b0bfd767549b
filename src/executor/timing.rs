//! How long each kernel takes, for who measures plans.

use std::cell::RefCell;

thread_local! {
    static TIMES: RefCell<Option<Vec<f64>>> = const { RefCell::new(None) };
}

/// Whether this thread wants to know how long each kernel takes.
pub(crate) fn is_timing() -> bool {
    TIMES.with_borrow(Option::is_some)
}

/// Notes how many seconds a kernel took.
pub(super) fn note(seconds: f64) {
    TIMES.with_borrow_mut(|times| times.iter_mut().for_each(|times| times.push(seconds)));
}

/// The seconds of each kernel that this thread launches while `f` runs.
pub(crate) fn of_kernels<T>(f: impl FnOnce() -> T) -> (T, Vec<f64>) {
    TIMES.set(Some(Vec::new()));
    let result = f();
    (result, TIMES.take().unwrap_or_default())
}
