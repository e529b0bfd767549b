//! Helpers that have nothing to do any more and stay awake for a moment: a plan's next kernel comes within microseconds, and
//! to wake a thread through the system takes ten times as long as to tell one that looks.
//!
//! A helper that lingers is still a task of rayon's pool. It takes on what else there is to do in the pool, so that
//! nobody waits for its end.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::job::Job;

/// For how long: kernels of a plan, and calls in a loop, follow sooner; what waits for a user is not worth a busy core.
const MOMENT: Duration = Duration::from_micros(50);
/// How often a helper looks for a job before it looks at the clock, and for other tasks of the pool.
const LOOKS: u32 = 32;

/// The latest job that helpers were asked to take part in.
static POSTED: Mutex<Option<Arc<Job>>> = Mutex::new(None);
/// How many there were.
static JOBS: AtomicU64 = AtomicU64::new(0);
/// Helpers that linger.
static HELPERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread lingers, though it may be at another task of the pool meanwhile.
    static LINGERS: Cell<bool> = const { Cell::new(false) };
}

/// Whether a helper lingers.
pub(super) fn is_anyone() -> bool {
    HELPERS.load(Ordering::Relaxed) > 0
}

/// Asks helpers that linger to take part in a job: how many of those that are wanted will.
pub(super) fn post(job: &Arc<Job>, wanted: u64) -> u64 {
    if wanted == 0 || !is_anyone() {
        return 0;
    }
    let mut posted = POSTED.lock().unwrap_or_else(PoisonError::into_inner);
    if posted.as_ref().is_some_and(|other| !other.is_given_out()) {
        // Of another thread's call.
        return 0;
    }
    job.invite(wanted);
    *posted = Some(Arc::clone(job));
    // In one order with what a helper does that leaves: either this sees that it does, or it sees the job.
    JOBS.fetch_add(1, Ordering::SeqCst);
    HELPERS.load(Ordering::SeqCst).min(wanted)
}

/// Stays for a moment, and takes part in what is posted meanwhile.
pub(super) fn linger() {
    // A helper's task that is taken on while its thread lingers ends, and the thread goes on lingering: tasks of many
    // callers would else be begun within each other until the stack is full.
    if LINGERS.replace(true) {
        return;
    }
    stay();
    LINGERS.set(false);
}

fn stay() {
    let mut seen = JOBS.load(Ordering::SeqCst);
    HELPERS.fetch_add(1, Ordering::SeqCst);
    let mut begin = Instant::now();
    loop {
        let is_news = (0..LOOKS).any(|_| {
            std::hint::spin_loop();
            JOBS.load(Ordering::Acquire) != seen
        });
        let is_over =
            !is_news && (begin.elapsed() >= MOMENT || rayon::yield_now() == Some(rayon::Yield::Executed));
        if is_over {
            HELPERS.fetch_sub(1, Ordering::SeqCst);
            if JOBS.load(Ordering::SeqCst) == seen {
                return;
            }
            HELPERS.fetch_add(1, Ordering::SeqCst);
        }
        let jobs = JOBS.load(Ordering::SeqCst);
        if jobs != seen {
            seen = jobs;
            HELPERS.fetch_sub(1, Ordering::SeqCst);
            take_part();
            HELPERS.fetch_add(1, Ordering::SeqCst);
            begin = Instant::now();
        }
    }
}

fn take_part() {
    let posted = POSTED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(job) = posted.filter(|job| job.admits()) {
        job.take_part();
    }
}
