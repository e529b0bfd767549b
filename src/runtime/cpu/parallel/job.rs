//! Chunks of consecutive blocks, for whoever takes part.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;

/// How often the caller looks for the end before it sleeps: some microseconds.
const SPINS: u32 = 2000;

/// Work that is shared with helpers.
pub(super) struct Job {
    /// Points to nothing once all chunks are done, though a helper may hold the job for longer.
    work: *const (dyn Fn(u64, u64) + Sync),
    blocks: u64,
    chunk: u64,
    chunks: u64,
    /// The next chunk that nobody has claimed.
    next: AtomicU64,
    /// Chunks that are finished.
    done: AtomicU64,
    /// Helpers that linger and may take part.
    seats: AtomicU64,
    caller: Thread,
}

// SAFETY: the work may be shared between threads (`Sync`); everything else is made for that.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    /// Of this thread.
    ///
    /// # Safety
    /// `work` is there until [`Job::wait`] has returned, and does not panic.
    pub(super) unsafe fn new(blocks: u64, chunk: u64, work: &(dyn Fn(u64, u64) + Sync)) -> Job {
        // SAFETY: only the lifetime changes. Who claims a chunk before the last one is done may use the work
        // (`Job::step`), and the caller waits for that.
        let work = unsafe {
            std::mem::transmute::<*const (dyn Fn(u64, u64) + Sync + '_), *const (dyn Fn(u64, u64) + Sync)>(
                work,
            )
        };
        Job {
            work,
            blocks,
            chunk,
            chunks: blocks.div_ceil(chunk),
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            seats: AtomicU64::new(0),
            caller: std::thread::current(),
        }
    }

    pub(super) fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Runs chunks until none is left to claim.
    pub(super) fn take_part(&self) {
        while self.step() {}
    }

    /// Claims a chunk and runs it: false if none was left.
    fn step(&self) -> bool {
        // A count that passes the end stays small: each thread passes it once.
        let chunk = self.next.fetch_add(1, Ordering::Relaxed);
        if chunk >= self.chunks {
            return false;
        }
        let first = chunk * self.chunk;
        // SAFETY: this chunk is claimed and not done, so that the caller waits.
        let work = unsafe { &*self.work };
        work(first, (first + self.chunk).min(self.blocks));
        // Releases what the chunk wrote to whoever sees the count.
        if self.done.fetch_add(1, Ordering::Release) + 1 == self.chunks {
            self.caller.unpark();
        }
        true
    }

    /// Whether there is nothing left to claim.
    pub(super) fn is_given_out(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.chunks
    }

    /// Has so many helpers that linger take part.
    pub(super) fn invite(&self, helpers: u64) {
        self.seats.store(helpers, Ordering::Relaxed);
    }

    /// Whether one more may.
    pub(super) fn admits(&self) -> bool {
        let take = |seats: u64| seats.checked_sub(1);
        self.seats.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Returns when all chunks are done, which are all claimed.
    pub(super) fn wait(&self) {
        let mut spins = 0;
        while self.done.load(Ordering::Acquire) < self.chunks {
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::park();
            }
        }
    }
}
