//! Chunks of consecutive blocks, for whoever takes part.
//!
//! Each participant has a share of its own, of neighbouring chunks, and begins at its front: two that read memory close to each
//! other are slower than two far apart, and in the next kernel a thread has the same part of memory again. Who is done takes
//! chunks from the ends of others' shares.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// One for each participant: together all chunks.
    shares: Box<[Share]>,
    /// Chunks that are finished.
    done: AtomicU64,
    /// Helpers that linger and may take part.
    seats: AtomicU64,
    caller: Thread,
}

/// Chunks that are neighbours, in a line of the cache of its own.
#[repr(align(128))]
struct Share {
    /// Those that nobody has claimed: the first in the lower half, the end in the upper one.
    left: AtomicU64,
    /// Whether a participant has begun with it.
    is_taken: AtomicBool,
}

impl Share {
    fn of(first: u64, end: u64) -> Share {
        Share { left: AtomicU64::new(end << 32 | first), is_taken: AtomicBool::new(false) }
    }

    /// Claims a chunk: the first one, or the last.
    fn claim(&self, is_own: bool) -> Option<u64> {
        let claim = |left: u64| {
            let (first, end) = (left & u64::from(u32::MAX), left >> 32);
            (first < end).then(|| if is_own { left + 1 } else { left - (1 << 32) })
        };
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim).ok()?;
        Some(if is_own { left & u64::from(u32::MAX) } else { (left >> 32) - 1 })
    }

    fn is_empty(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        left & u64::from(u32::MAX) >= left >> 32
    }
}

// SAFETY: the work may be shared between threads (`Sync`); everything else is made for that.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    /// Of this thread, for so many participants; fewer if there are not as many chunks, of which there are less than `2^32`.
    ///
    /// # Safety
    /// `work` is there until [`Job::wait`] has returned, and does not panic.
    pub(super) unsafe fn new(
        blocks: u64,
        chunk: u64,
        participants: u64,
        work: &(dyn Fn(u64, u64) + Sync),
    ) -> Job {
        // SAFETY: only the lifetime changes. Who claims a chunk before the last one is done may use the work
        // ([`Job::run`]), and the caller waits for that.
        let work = unsafe {
            std::mem::transmute::<*const (dyn Fn(u64, u64) + Sync + '_), *const (dyn Fn(u64, u64) + Sync)>(
                work,
            )
        };
        let chunks = blocks.div_ceil(chunk);
        let participants = participants.min(chunks).max(1);
        let first = |number: u64| chunks * number / participants;
        Job {
            work,
            blocks,
            chunk,
            chunks,
            shares: (0..participants).map(|number| Share::of(first(number), first(number + 1))).collect(),
            done: AtomicU64::new(0),
            seats: AtomicU64::new(0),
            caller: std::thread::current(),
        }
    }

    pub(super) fn participants(&self) -> u64 {
        self.shares.len() as u64
    }

    /// Runs chunks until none is left to claim: those of a share that nobody has begun with, then others'. The same thread
    /// of the pool has the same share, if it can.
    pub(super) fn take_part(&self) {
        let count = self.shares.len();
        let preferred = rayon::current_thread_index().map_or(0, |index| index + 1);
        let in_turn = |from: usize| (from..from + count).map(|number| &self.shares[number % count]);
        let own = in_turn(preferred).position(|share| !share.is_taken.swap(true, Ordering::Relaxed));
        let begin = preferred + own.unwrap_or(0);
        for (number, share) in in_turn(begin).enumerate() {
            while let Some(chunk) = share.claim(own.is_some() && number == 0) {
                self.run(chunk);
            }
        }
    }

    /// Runs a chunk that is claimed.
    fn run(&self, chunk: u64) {
        let first = chunk * self.chunk;
        // SAFETY: this chunk is claimed and not done, so that the caller waits.
        let work = unsafe { &*self.work };
        work(first, (first + self.chunk).min(self.blocks));
        // Releases what the chunk wrote to whoever sees the count.
        if self.done.fetch_add(1, Ordering::Release) + 1 == self.chunks {
            self.caller.unpark();
        }
    }

    /// Whether there is nothing left to claim.
    pub(super) fn is_given_out(&self) -> bool {
        self.shares.iter().all(Share::is_empty)
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
