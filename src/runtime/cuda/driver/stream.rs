//! Streams: where a thread's work on a device goes.

use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::{DriverError, result, sys};
use smallvec::SmallVec;

/// A stream. The driver destroys none that is this crate's own: those that are free are given out again.
pub(crate) struct CudaStream {
    raw: sys::CUstream,
    pub(crate) id: u64,
    pub(super) priority: i32,
    /// How much work was started on it.
    pub(super) started: AtomicU64,
    /// It is another library's.
    is_foreign: bool,
    /// Others start work on it too, which is not counted.
    pub(super) is_shared: AtomicBool,
    /// A stream of others that may be gone: what was on it comes before what is now started on the device's own.
    pub(super) is_closed: AtomicBool,
    /// Which other streams it waits for, and how much of their work.
    pub(super) waited: Mutex<SmallVec<[(u64, u64); 2]>>,
}

// SAFETY: the handle is no memory of this process. The driver's functions may be called with it from any thread.
unsafe impl Send for CudaStream {}
// SAFETY: as above.
unsafe impl Sync for CudaStream {}

/// Streams by their devices' numbers.
type Streams = Vec<(usize, Arc<CudaStream>)>;

thread_local! {
    /// This thread's streams that are not their device's own, by the device's number; the last one counts. After the outermost
    /// scope nothing is left to drop, so that it is there in destructors of others.
    static CURRENT: ManuallyDrop<RefCell<Streams>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

impl CudaStream {
    pub(super) fn new(raw: sys::CUstream, priority: i32, is_foreign: bool) -> CudaStream {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        CudaStream {
            raw,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            priority,
            started: AtomicU64::new(0),
            is_foreign,
            is_shared: AtomicBool::new(is_foreign),
            is_closed: AtomicBool::new(false),
            waited: Mutex::default(),
        }
    }

    /// One of the context that is current.
    pub(super) fn create(priority: i32) -> Result<Arc<CudaStream>, DriverError> {
        let raw = result::stream::create_with_priority(result::stream::StreamKind::NonBlocking, priority)?;
        Ok(Arc::new(CudaStream::new(raw, priority, false)))
    }

    /// The driver's handle, for calls that this crate makes.
    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// The driver's handle, for others, who may start work on it.
    pub(crate) fn share(&self) -> *mut c_void {
        self.is_shared.store(true, Ordering::Release);
        self.raw.cast()
    }

    /// Whether it is another library's.
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// After work has been started on it.
    pub(super) fn has_started(&self) {
        self.started.fetch_add(1, Ordering::Release);
    }

    /// While `f` runs, this thread's work on a device goes to the stream.
    pub(super) fn within<T>(self: &Arc<CudaStream>, ordinal: usize, f: impl FnOnce() -> T) -> T {
        /// Also if `f` panics.
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                CURRENT.with(|current| {
                    let mut current = current.borrow_mut();
                    current.pop();
                    if current.is_empty() {
                        *current = Vec::new();
                    }
                });
            }
        }
        CURRENT.with(|current| current.borrow_mut().push((ordinal, self.clone())));
        let _leave = Leave;
        f()
    }

    /// Where this thread's work on a device goes, if not to the device's own stream.
    pub(super) fn current(ordinal: usize) -> Option<Arc<CudaStream>> {
        CURRENT.with(|current| {
            let current = current.borrow();
            let own = current.iter().rev().find(|(other, _)| *other == ordinal);
            own.map(|(_, stream)| stream.clone())
        })
    }
}
