//! Blocks of a kernel over threads.
//!
//! The caller starts at once and takes chunks of consecutive blocks; helpers on rayon's threads take more as soon
//! as they wake, which may be never: nobody waits for a helper that has not begun. What is known to be short is not
//! handed over at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::settings;

/// Waking a sleeping thread takes about as long.
const HAND_OVER: Duration = Duration::from_micros(20);
/// So many for each thread even out threads of different speed, and are long enough to stream memory.
const CHUNKS_PER_THREAD: u64 = 4;
/// How often the caller looks for the end before it sleeps: some microseconds.
const SPINS: u32 = 2000;

/// What is known of a function's time: nanoseconds of a block, 0 before it has run.
#[derive(Debug, Default)]
pub(super) struct Cost(AtomicU64);

impl Cost {
    /// An estimate for that many blocks.
    fn of(&self, blocks: u64) -> Option<Duration> {
        let block = self.0.load(Ordering::Relaxed);
        (block > 0).then(|| Duration::from_nanos(block.saturating_mul(blocks)))
    }

    fn learn(&self, blocks: u64, time: Duration) {
        let block = time.as_nanos() as u64 / blocks.max(1);
        self.0.store(block.max(1), Ordering::Relaxed);
    }
}

/// Work that is shared with helpers.
struct Job {
    /// Points to nothing once all chunks are done, though a helper may hold the job for longer.
    work: *const (dyn Fn(u64, u64) + Sync),
    blocks: u64,
    chunk: u64,
    chunks: u64,
    /// The next chunk that nobody has claimed.
    next: AtomicU64,
    /// Chunks that are finished.
    done: AtomicU64,
    caller: Thread,
}

// SAFETY: the work may be shared between threads (`Sync`); everything else is made for that.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    /// Claims a chunk and runs it: false if none was left.
    fn step(&self) -> bool {
        // A count that passes the end stays small: each thread passes it once.
        let chunk = self.next.fetch_add(1, Ordering::Relaxed);
        if chunk >= self.chunks {
            return false;
        }
        let first = chunk * self.chunk;
        // SAFETY: this chunk is claimed and not done, so that `share` has not returned.
        let work = unsafe { &*self.work };
        work(first, (first + self.chunk).min(self.blocks));
        // Releases what the chunk wrote to whoever sees the count.
        if self.done.fetch_add(1, Ordering::Release) + 1 == self.chunks {
            self.caller.unpark();
        }
        true
    }

    fn wait(&self) {
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

/// Threads that a kernel may have: those of the pool, or what the settings allow of them.
pub(crate) fn threads() -> u64 {
    (rayon::current_num_threads() as u64).min(settings::most_threads())
}

/// Calls `work` with ranges that together are `0..blocks`, each block once, and returns when all calls have
/// returned. `work` must not panic.
pub(super) fn run(blocks: u64, cost: &Cost, work: &(dyn Fn(u64, u64) + Sync)) {
    if blocks == 0 {
        return;
    }
    if blocks == 1 && cost.of(1).is_some() {
        // Nothing to decide, and nothing to learn: a look at the clock is a part of a short call.
        return work(0, 1);
    }
    let begin = Instant::now();
    let threads = if blocks == 1 { 1 } else { threads() };
    if threads == 1 {
        work(0, blocks);
        return cost.learn(blocks, begin.elapsed());
    }
    let chunk = blocks.div_ceil(threads * CHUNKS_PER_THREAD);
    let mut first = 0;
    if cost.of(blocks).is_some_and(|estimate| estimate < HAND_OVER) {
        // Sizes may have grown since: look at the clock now and then.
        while first < blocks && begin.elapsed() < HAND_OVER {
            let end = (first + chunk).min(blocks);
            work(first, end);
            first = end;
        }
    }
    let alone = begin.elapsed();
    if first == blocks {
        return cost.learn(blocks, alone);
    }
    let busy = AtomicU64::new(0);
    let rest = |a: u64, b: u64| {
        let begin = Instant::now();
        work(first + a, first + b);
        busy.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
    };
    share(blocks - first, chunk, threads, &rest);
    cost.learn(blocks, alone + Duration::from_nanos(busy.into_inner()));
}

fn share(blocks: u64, chunk: u64, threads: u64, work: &(dyn Fn(u64, u64) + Sync)) {
    // SAFETY: only the lifetime changes. Who claims a chunk before the last one is done may use the work
    // (`Job::step`), and this function waits for that; `work` does not panic.
    let work = unsafe {
        std::mem::transmute::<*const (dyn Fn(u64, u64) + Sync + '_), *const (dyn Fn(u64, u64) + Sync)>(work)
    };
    let job = Arc::new(Job {
        work,
        blocks,
        chunk,
        chunks: blocks.div_ceil(chunk),
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        caller: std::thread::current(),
    });
    for _ in 1..threads.min(job.chunks) {
        let job = Arc::clone(&job);
        rayon::spawn(move || while job.step() {});
    }
    while job.step() {}
    job.wait();
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn count(blocks: u64, cost: &Cost) {
        let seen: Vec<AtomicU32> = (0..blocks).map(|_| AtomicU32::new(0)).collect();
        run(blocks, cost, &|first, end| {
            assert!(first < end);
            for block in first..end {
                seen[block as usize].fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn each_block_runs_once() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        pool.install(|| {
            for blocks in [0, 1, 2, 3, 15, 16, 17, 1000] {
                for nanoseconds in [0, 1, 1_000_000] {
                    count(blocks, &Cost(AtomicU64::new(nanoseconds)));
                }
            }
        });
        count(100, &Cost::default());
    }

    #[test]
    fn callers_in_the_pool_do_not_wait_for_each_other() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|_| count(50, &Cost::default()));
            }
        });
    }

    #[test]
    fn a_wrong_estimate_is_mended() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let cost = Cost(AtomicU64::new(1));
        let threads = Mutex::new(std::collections::HashSet::new());
        pool.install(|| {
            run(8, &cost, &|first, end| {
                threads.lock().unwrap().insert(std::thread::current().id());
                std::thread::sleep(Duration::from_millis(5) * (end - first) as u32);
            });
        });
        assert_eq!(threads.into_inner().unwrap().len(), 2);
        assert!(cost.of(1).unwrap() >= Duration::from_millis(4));
    }
}
