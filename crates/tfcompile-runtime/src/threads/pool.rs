//! The pool of threads.

use std::ffi::c_void;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, available_parallelism, yield_now};

use super::{Part, Workers};
use crate::Error;

/// Pool of threads for parallel work. The calling thread is one of the workers.
///
/// Several models may share a pool. A caller that finds it busy runs its work alone.
#[derive(Debug)]
pub struct ThreadPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Maximum number of workers.
const MAX_THREADS: usize = 1024;

/// Number of times that an idle thread looks for work before it sleeps. This takes from some tens
/// to some hundreds of microseconds.
const SPINS: u32 = 4000;

/// Number of times that the caller looks whether the others have finished before it yields its
/// processor.
const LOOKS: u32 = 1000;

/// Number of times that a worker looks whether the others have finished before it helps them. This
/// takes a few microseconds. Workers of a balanced job finish within a shorter time of each other,
/// and looking at another worker's counter would only delay that worker.
const PATIENCE: u32 = 64;

/// Number of chunks of a share. Workers that finish early take chunks of other shares.
const CHUNKS: i64 = 8;

/// Number of low bits that count chunks. The high bits hold the number of the job.
const COUNTER_BITS: u32 = 16;
const COUNTER_MASK: u64 = (1 << COUNTER_BITS) - 1;

#[derive(Debug)]
struct Shared {
    present: Present,
    shares: Vec<Share>,
    /// True while a caller uses the threads. Each job writes it; the fields below change rarely.
    busy: Line<AtomicBool>,
    /// Code with which a part of the present job failed, or 0.
    status: AtomicI32,
    sleepers: AtomicUsize,
    stop: AtomicBool,
    /// Protects the transition to sleep.
    sleep: Mutex<()>,
    /// Signals new work, or the end of the pool.
    wake: Condvar,
    spins: bool,
}

/// The present job. Only the caller that set `busy` writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Present {
    /// Number of the job. Odd while the other fields are being written, so that readers can tell.
    number: AtomicU64,
    /// Address of the `&Part` on the caller's stack. Only workers that have taken a chunk read it.
    part: AtomicPtr<c_void>,
    count: AtomicI64,
}

/// Progress of one worker's share of the items.
///
/// Each worker starts with its own share, which is the same for every job of the same size. The
/// data that it computed in one job is therefore in its caches in the next one.
#[derive(Debug, Default)]
struct Share {
    /// Number of chunks taken from the share, for the job in the high bits. A job ends when all of
    /// its chunks are done, so a late worker finds none to take, and no other worker waits for it.
    taken: Line<AtomicU64>,
    /// Number of chunks of any share that the worker has done, for the job in the high bits.
    done: Line<AtomicU64>,
}

/// Value alone in its pair of cache lines: processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

/// Work, divided into one fixed share of items per participating worker.
#[derive(Clone, Copy, Debug)]
struct Job {
    number: u64,
    part: *const c_void,
    count: i64,
    workers: i64,
    chunk: i64,
}

impl Job {
    fn new(number: u64, part: *const c_void, count: i64, pool: usize) -> Self {
        // The number of items grows with the work. Each worker gets at least two of them.
        let workers = (count / 2 + count % 2).min(pool as i64).max(2);
        let chunks = workers * CHUNKS;
        Self { number, part, count, workers, chunk: count / chunks + i64::from(count % chunks != 0) }
    }

    /// Returns the first item of a share. For the number after the last share, returns the number
    /// of items.
    fn first(&self, worker: i64) -> i64 {
        self.count / self.workers * worker + worker.min(self.count % self.workers)
    }

    fn chunks(&self, worker: i64) -> u64 {
        let items = self.first(worker + 1) - self.first(worker);
        (items / self.chunk + i64::from(items % self.chunk != 0)) as u64
    }

    /// Returns the first item of a chunk of a share, which is also the end of the previous chunk.
    fn begin(&self, worker: i64, chunk: u64) -> i64 {
        self.first(worker + 1).min(self.first(worker) + chunk as i64 * self.chunk)
    }
}

impl ThreadPool {
    /// Creates a pool of `count` workers: the calling thread and `count - 1` new threads.
    ///
    /// # Errors
    /// Returns an error if `count` is not in 1..=1024, or if the system cannot start a thread.
    pub fn new(count: usize) -> Result<Self, Error> {
        if count == 0 || count > MAX_THREADS {
            return Err(Error::new("invalid number of workers: expected 1 to 1024"));
        }
        let shared = Arc::new(Shared {
            present: Present::default(),
            shares: (0..count).map(|_| Share::default()).collect(),
            busy: Line::default(),
            status: AtomicI32::new(0),
            sleepers: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            sleep: Mutex::default(),
            wake: Condvar::new(),
            // With more threads than processors, a spinning thread would block the one that has
            // work.
            spins: available_parallelism().map_or(1, usize::from) >= count,
        });
        let mut pool = Self { shared, threads: Vec::new() };
        for worker in 1..count {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new().spawn(move || shared.serve(worker));
            pool.threads.push(thread.map_err(|_| Error::new("the system cannot start another thread"))?);
        }
        Ok(pool)
    }
}

// SAFETY: every chunk is taken once. The caller is worker 0 and the threads are workers 1, 2, ....
// `run` returns only when all chunks are done. If the pool is busy with another caller's job, `run`
// does all work on the calling thread.
#[expect(unsafe_code, reason = "the trait's promise")]
unsafe impl Workers for ThreadPool {
    fn count(&self) -> usize {
        self.threads.len() + 1
    }

    fn run(&self, count: i64, part: &Part<'_>) -> i32 {
        if count <= 0 {
            return 0;
        }
        let shared = &self.shared;
        if count == 1 || self.threads.is_empty() || shared.busy.0.swap(true, Ordering::Acquire) {
            return part(0, count, 0);
        }
        let job = shared.offer(std::ptr::from_ref(&part).cast(), count);
        let mut done = 0;
        shared.take_share(&job, 0, 0, &mut done);
        if !shared.await_others(&job, done, Some(PATIENCE)) {
            shared.help(&job, 0, &mut done);
            shared.await_others(&job, done, None);
        }
        let status = shared.status.load(Ordering::Relaxed);
        if status != 0 {
            shared.status.store(0, Ordering::Relaxed);
        }
        shared.busy.0.store(false, Ordering::Release);
        status
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let guard = self.shared.lock();
        self.shared.stop.store(true, Ordering::Relaxed);
        drop(guard);
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A thread cannot panic: it runs only generated code and this file.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.sleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes a job. No store may move before an earlier one.
    fn offer(&self, part: *const c_void, count: i64) -> Job {
        let present = &self.present;
        let number = present.number.load(Ordering::Relaxed) + 2;
        present.number.store(number - 1, Ordering::Relaxed);
        present.part.store(part.cast_mut(), Ordering::Release);
        present.count.store(count, Ordering::Release);
        present.number.store(number, Ordering::Release);
        // A thread that is just falling asleep may miss the job. The others then do its work.
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // Without the lock, the notification could come between a sleeper's check and its wait.
            drop(self.lock());
            self.wake.notify_all();
        }
        Job::new(number, part, count, self.shares.len())
    }

    /// Returns the present job, or `None` while it is being written.
    fn present_job(&self) -> Option<Job> {
        let present = &self.present;
        let number = present.number.load(Ordering::Acquire);
        let part = present.part.load(Ordering::Acquire);
        let count = present.count.load(Ordering::Acquire);
        let is_whole = number.is_multiple_of(2) && present.number.load(Ordering::Relaxed) == number;
        is_whole.then(|| Job::new(number, part, count, self.shares.len()))
    }

    /// Does the remaining chunks of `owner`'s share, and adds their number to `done`.
    fn take_share(&self, job: &Job, worker: i64, owner: i64, done: &mut u64) {
        let (chunks, before) = (job.chunks(owner), *done);
        while let Some(taken) = take(&self.shares[owner as usize].taken.0, job.number, chunks) {
            self.do_chunks(job, job.begin(owner, taken.start), job.begin(owner, taken.end), worker);
            *done += taken.end - taken.start;
        }
        if *done != before {
            let count = job.number << COUNTER_BITS | *done;
            self.shares[worker as usize].done.0.store(count, Ordering::Release);
        }
    }

    /// Does the remaining chunks of the other shares.
    fn help(&self, job: &Job, worker: i64, done: &mut u64) {
        for owner in (worker + 1..job.workers).chain(0..worker) {
            self.take_share(job, worker, owner, done);
        }
    }

    fn do_chunks(&self, job: &Job, begin: i64, end: i64, worker: i64) {
        if self.status.load(Ordering::Relaxed) != 0 {
            return;
        }
        // SAFETY: a chunk of the job is taken and not done, so `run` waits and its reference is
        // alive.
        #[expect(unsafe_code, reason = "a reference on another thread's stack")]
        let part = unsafe { *job.part.cast::<&Part<'_>>() };
        let status = part(begin, end, worker);
        if status != 0 {
            let _ = self.status.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Waits until the others have done all chunks except `done`, but looks at most `most` times.
    /// Returns true if they have.
    fn await_others(&self, job: &Job, done: u64, most: Option<u32>) -> bool {
        let all: u64 = (0..job.workers).map(|worker| job.chunks(worker)).sum();
        let of_job = |share: &Share| {
            let done = share.done.0.load(Ordering::Acquire);
            if done >> COUNTER_BITS == job.number { done & COUNTER_MASK } else { 0 }
        };
        let others = &self.shares[1..job.workers as usize];
        let mut looks = 0;
        while done + others.iter().map(of_job).sum::<u64>() < all {
            if most == Some(looks) {
                return false;
            }
            looks = LOOKS.min(looks + 1);
            if self.spins && looks < LOOKS { spin_loop() } else { yield_now() }
        }
        true
    }

    /// Main loop of a thread.
    fn serve(&self, worker: usize) {
        let (mut seen, worker) = (0, worker as i64);
        while self.await_job_after(seen) {
            let Some(job) = self.present_job() else { continue };
            seen = job.number;
            if worker >= job.workers {
                continue;
            }
            let mut done = 0;
            self.take_share(&job, worker, worker, &mut done);
            let is_present = || self.present.number.load(Ordering::Relaxed) == seen;
            (0..PATIENCE).take_while(|_| is_present()).for_each(|_| spin_loop());
            if is_present() {
                self.help(&job, worker, &mut done);
            }
        }
    }

    /// Waits for a job other than `seen`. Returns false when the pool ends.
    fn await_job_after(&self, seen: u64) -> bool {
        // A job that is being written does not count yet.
        let is_same = || {
            let number = self.present.number.load(Ordering::Acquire);
            number == seen || !number.is_multiple_of(2)
        };
        if self.spins && self.spin_while(is_same) {
            return true;
        }
        let mut guard = self.lock();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while is_same() && !self.stop.load(Ordering::Relaxed) {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        !self.stop.load(Ordering::Relaxed)
    }

    /// Spins until `is_same` is false. Returns false if that takes too long.
    fn spin_while(&self, is_same: impl Fn() -> bool) -> bool {
        for _ in 0..SPINS {
            if !is_same() {
                return true;
            }
            spin_loop();
        }
        false
    }
}

/// Takes half of the chunks of a share that are left, at least one. Returns their numbers.
fn take(taken: &AtomicU64, job: u64, chunks: u64) -> Option<Range<u64>> {
    let left = |word: u64| {
        let of = word >> COUNTER_BITS;
        let first = if of < job { 0 } else { word & COUNTER_MASK };
        (of <= job && first < chunks).then(|| first..first + (chunks - first).div_ceil(2))
    };
    let next = |word: u64| left(word).map(|range| (job << COUNTER_BITS) + range.end);
    taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok().and_then(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fewer for an interpreter, which chooses another order of the threads each time.
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 50 };

    #[test]
    fn every_item_is_done_once_and_workers_are_apart() {
        for count in [1usize, 2, 3, 7] {
            let pool = ThreadPool::new(count).expect("a few threads");
            for items in [0i64, 1, 2, 63, if cfg!(miri) { 100 } else { 1000 }] {
                let done: Vec<AtomicUsize> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                let busy: Vec<AtomicBool> = (0..count).map(|_| AtomicBool::new(false)).collect();
                for round in 1..ROUNDS {
                    let status = pool.run(items, &|begin, end, worker| {
                        let was_busy = busy[worker as usize].swap(true, Ordering::SeqCst);
                        for item in begin..end {
                            done[item as usize].fetch_add(1, Ordering::SeqCst);
                        }
                        busy[worker as usize].store(false, Ordering::SeqCst);
                        i32::from(was_busy)
                    });
                    assert_eq!(status, 0);
                    assert!(done.iter().all(|d| d.load(Ordering::SeqCst) == round));
                }
            }
        }
    }

    #[test]
    fn chunks_are_taken_by_halves() {
        let taken = AtomicU64::new(6 << COUNTER_BITS | 3);
        let all: Vec<_> = std::iter::from_fn(|| take(&taken, 7, 8)).collect();
        assert_eq!(all, [0..4, 4..6, 6..7, 7..8]);
        assert_eq!(take(&taken, 6, 8), None, "a share of an earlier job");
        assert_eq!(std::iter::from_fn(|| take(&taken, 8, 3)).collect::<Vec<_>>(), [0..2, 2..3]);
    }

    #[test]
    fn a_failure_comes_back_and_the_pool_goes_on() {
        let pool = ThreadPool::new(3).expect("a few threads");
        assert_eq!(pool.run(100, &|begin, end, _| if (begin..end).contains(&50) { 5 } else { 0 }), 5);
        assert_eq!(pool.run(100, &|_, _, _| 0), 0);
    }

    #[test]
    fn two_callers_share_one_pool() {
        let pool = ThreadPool::new(2).expect("a few threads");
        let total = AtomicI64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..4 * ROUNDS {
                        let status = pool.run(10, &|begin, end, _| {
                            total.fetch_add((begin..end).sum(), Ordering::SeqCst);
                            0
                        });
                        assert_eq!(status, 0);
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 3 * 4 * ROUNDS as i64 * 45);
    }

    #[test]
    fn too_many_threads_are_refused() {
        assert!(ThreadPool::new(0).is_err());
        assert!(ThreadPool::new(1_000_000).is_err());
    }
}
