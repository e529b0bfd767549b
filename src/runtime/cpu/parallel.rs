//! Blocks of a kernel over threads.
//!
//! The caller starts at once with its share of the blocks, chunk by chunk; helpers on rayon's threads begin with theirs as
//! soon as they wake, which may be never: nobody waits for a helper that has not begun, the others take its chunks. What is
//! known to be short is not handed over at all, and no more threads are asked for than the rest keeps busy. Helpers that
//! are done linger for a moment (`lingering`), so that the next kernel of a plan wakes nobody.

mod job;
mod lingering;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::runtime::fork;
use crate::settings;
use job::Job;

/// Waking a sleeping thread takes about as long.
const HAND_OVER: Duration = Duration::from_micros(20);
/// The same of one that lingers.
const HAND_OVER_AWAKE: Duration = Duration::from_micros(4);
/// So many for each thread even out threads of different speed, and are long enough to stream memory.
const CHUNKS_PER_THREAD: u64 = 4;
/// What is known of a function's time: nanoseconds of a block, 0 before it has run.
#[derive(Debug, Default)]
pub(crate) struct Cost(AtomicU64);

impl Cost {
    pub(crate) const fn new() -> Cost {
        Cost(AtomicU64::new(0))
    }

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

/// Threads that a kernel may have: those of the pool, or what the settings allow of them.
pub(crate) fn threads() -> u64 {
    fork::ready();
    (rayon::current_num_threads() as u64).min(settings::most_threads())
}

/// Calls `work` with ranges that together are `0..blocks`, each block once, and returns when all calls have
/// returned. `work` must not panic.
pub(crate) fn run(blocks: u64, cost: &Cost, work: &(dyn Fn(u64, u64) + Sync)) {
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
    let hand_over = if lingering::is_anyone() { HAND_OVER_AWAKE } else { HAND_OVER };
    let threads = cost.of(blocks).map_or(threads, |estimate| worth_it(estimate, hand_over, threads));
    let chunk = blocks.div_ceil(threads * CHUNKS_PER_THREAD);
    let mut first = 0;
    if cost.of(blocks).is_some_and(|estimate| estimate < hand_over) {
        // Sizes may have grown since: look at the clock now and then.
        while first < blocks && begin.elapsed() < hand_over {
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

/// How many threads such a time is for: each has at least as much to do as it takes to hand it over. Two at least, since
/// the estimate may be an old one.
fn worth_it(estimate: Duration, hand_over: Duration, threads: u64) -> u64 {
    let most = estimate.as_nanos() / hand_over.as_nanos().max(1);
    threads.min((most as u64).max(2))
}

fn share(blocks: u64, chunk: u64, threads: u64, work: &(dyn Fn(u64, u64) + Sync)) {
    // SAFETY: the job is waited for below; `work` does not panic.
    let job = Arc::new(unsafe { Job::new(blocks, chunk, threads, work) });
    let helpers = job.participants() - 1;
    for _ in lingering::post(&job, helpers)..helpers {
        let job = Arc::clone(&job);
        rayon::spawn(move || {
            job.take_part();
            drop(job);
            lingering::linger();
        });
    }
    job.take_part();
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

    /// Each finds the next one waiting when it has nothing to do.
    #[test]
    fn helpers_of_many_callers_need_no_deep_stack() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).stack_size(128 << 10).build().unwrap();
        pool.scope(|scope| {
            for _ in 0..10_000 {
                scope.spawn(|_| lingering::linger());
            }
        });
    }

    #[test]
    fn participants_begin_far_apart() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let begun = Mutex::new(Vec::new());
        pool.install(|| {
            run(64, &Cost(AtomicU64::new(1_000_000)), &|first, _| {
                let mut begun = begun.lock().unwrap();
                begun.push((std::thread::current().id(), first));
                drop(begun);
                std::thread::sleep(Duration::from_millis(20));
            });
        });
        let begun = begun.into_inner().unwrap();
        let other = begun.iter().find(|(thread, _)| *thread != begun[0].0).expect("a second thread");
        let mut firsts = [begun[0].1, other.1];
        firsts.sort_unstable();
        assert_eq!(firsts, [0, 32]);
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
