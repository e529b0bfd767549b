//! A process that `fork` has made of this one, which has the thread that called it and no other.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this is such a process. Known where [`ready`] was called before.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// To be called before rayon is asked for anything: its pool's threads are not there in a child, and who waits for them does
/// for ever. There the thread becomes a pool of its own.
pub(crate) fn ready() {
    static NOTED: Once = Once::new();
    NOTED.call_once(note);
    if is_child() && rayon::current_thread_index().is_none() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        // It lasts as long as the thread.
        std::mem::forget(pool);
    }
}

#[cfg(unix)]
fn note() {
    extern "C" fn in_child() {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
    // SAFETY: the function sets an atomic, which may be done after `fork`. Without room for it, all is as it would be without.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(not(unix))]
fn note() {}
