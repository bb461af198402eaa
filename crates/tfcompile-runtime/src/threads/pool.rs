//! A pool of threads.

use std::ffi::c_void;
use std::hint::spin_loop;
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

/// More threads than this are a mistake.
const MAX_THREADS: usize = 1024;

/// A thread goes to sleep when it has looked so often for work: within some dozens to hundreds of microseconds.
const SPINS: u32 = 4000;

/// The caller gives its processor away when it has looked so often for the others' end.
const LOOKS: u32 = 1000;

/// Who has done its share looks so often whether the others have done theirs before it helps them: what it would take from
/// them has its data, and the counter, in their caches.
const PATIENCE: u32 = 16;

/// Chunks that a share is taken in, so that whoever is done early can help.
const CHUNKS: i64 = 8;

/// Counters of chunks have so many bits; above them stands the job that they are of.
const COUNTER_BITS: u32 = 16;
const COUNTER_MASK: u64 = (1 << COUNTER_BITS) - 1;

#[derive(Debug)]
struct Shared {
    present: Present,
    shares: Vec<Share>,
    /// Whether a caller has the threads.
    busy: AtomicBool,
    /// What a part of the present job failed with.
    status: AtomicI32,
    sleepers: AtomicUsize,
    stop: AtomicBool,
    /// Guards falling asleep.
    sleep: Mutex<()>,
    /// More work, or the end.
    wake: Condvar,
    spins: bool,
}

/// The present job; written by the caller that is busy.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Present {
    /// Odd while the rest is written, so that who reads it meanwhile notices.
    number: AtomicU64,
    /// Where the `&Part` is, on the caller's stack; read only by who has taken a chunk of the job.
    part: AtomicPtr<c_void>,
    count: AtomicI64,
}

/// Each worker begins with items of its own, the same ones whenever the number is the same: what it computed in one loop
/// is in its caches when the next one reads it. Then it helps the others.
#[derive(Debug, Default)]
struct Share {
    /// How many chunks of the share are taken, of the job that stands above; of later jobs none are. A job ends when all
    /// its chunks are done, so whoever comes too late finds nothing to take, and need not be waited for.
    taken: Line<AtomicU64>,
    /// How many chunks of all shares the worker has done, of the job that stands above.
    done: Line<AtomicU64>,
}

/// A cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line<T>(T);

/// Work, and how it is cut: fixed shares of items, one for each worker that takes part.
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
        // Items come in as many as there is work for: of few items, each worker gets two at least.
        let workers = (count / 2 + count % 2).min(pool as i64).max(2);
        let chunks = workers * CHUNKS;
        Self { number, part, count, workers, chunk: count / chunks + i64::from(count % chunks != 0) }
    }

    /// The first item of a share; behind the last share, the number of items.
    fn first(&self, worker: i64) -> i64 {
        self.count / self.workers * worker + worker.min(self.count % self.workers)
    }

    fn chunks(&self, worker: i64) -> u64 {
        let items = self.first(worker + 1) - self.first(worker);
        (items / self.chunk + i64::from(items % self.chunk != 0)) as u64
    }

    /// Where a chunk of a share begins, or where the one before ends.
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
            return Err(Error::new("that many threads cannot be had: 1 to 1024 can"));
        }
        let shared = Arc::new(Shared {
            present: Present::default(),
            shares: (0..count).map(|_| Share::default()).collect(),
            busy: AtomicBool::new(false),
            status: AtomicI32::new(0),
            sleepers: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            sleep: Mutex::default(),
            wake: Condvar::new(),
            // Whoever spins with more threads than processors keeps the one that has the work from running.
            spins: available_parallelism().map_or(1, usize::from) >= count,
        });
        let mut pool = Self { shared, threads: Vec::new() };
        for worker in 1..count {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new().spawn(move || shared.serve(worker));
            pool.threads.push(thread.map_err(|_| Error::new("the system starts no more threads"))?);
        }
        Ok(pool)
    }
}

// SAFETY: every chunk is taken once; the caller is worker 0 and the threads are 1, 2, ...; `run` leaves only when all
// chunks are done. If the pool has a job already, of a second caller, `run` does the whole on the caller's thread.
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
        if count == 1 || self.threads.is_empty() || shared.busy.swap(true, Ordering::Acquire) {
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
        shared.busy.store(false, Ordering::Release);
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
            // A thread cannot panic: it runs generated code and this file.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.sleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes work; each store comes before those behind it.
    fn offer(&self, part: *const c_void, count: i64) -> Job {
        let present = &self.present;
        let number = present.number.load(Ordering::Relaxed) + 2;
        present.number.store(number - 1, Ordering::Relaxed);
        present.part.store(part.cast_mut(), Ordering::Release);
        present.count.store(count, Ordering::Release);
        present.number.store(number, Ordering::Release);
        // Who falls asleep at this moment is missed, and the work done without it.
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // Without the lock the notice could fall between a sleeper's look at the number and its wait.
            drop(self.lock());
            self.wake.notify_all();
        }
        Job::new(number, part, count, self.shares.len())
    }

    /// The present job; nothing while it is being written.
    fn present_job(&self) -> Option<Job> {
        let present = &self.present;
        let number = present.number.load(Ordering::Acquire);
        let part = present.part.load(Ordering::Acquire);
        let count = present.count.load(Ordering::Acquire);
        let is_whole = number.is_multiple_of(2) && present.number.load(Ordering::Relaxed) == number;
        is_whole.then(|| Job::new(number, part, count, self.shares.len()))
    }

    /// Does what is left of a share, and adds up the chunks.
    fn take_share(&self, job: &Job, worker: i64, owner: i64, done: &mut u64) {
        let (chunks, before) = (job.chunks(owner), *done);
        while let Some(chunk) = take(&self.shares[owner as usize].taken.0, job.number, chunks) {
            self.do_chunk(job, job.begin(owner, chunk), job.begin(owner, chunk + 1), worker);
            *done += 1;
        }
        if *done != before {
            let count = job.number << COUNTER_BITS | *done;
            self.shares[worker as usize].done.0.store(count, Ordering::Release);
        }
    }

    /// Does what is left of the others' shares.
    fn help(&self, job: &Job, worker: i64, done: &mut u64) {
        for owner in (worker + 1..job.workers).chain(0..worker) {
            self.take_share(job, worker, owner, done);
        }
    }

    fn do_chunk(&self, job: &Job, begin: i64, end: i64, worker: i64) {
        if self.status.load(Ordering::Relaxed) != 0 {
            return;
        }
        // SAFETY: a chunk of the job is taken and not done, so `run` waits, and its reference lives.
        #[expect(unsafe_code, reason = "a reference on another thread's stack")]
        let part = unsafe { *job.part.cast::<&Part<'_>>() };
        let status = part(begin, end, worker);
        if status != 0 {
            let _ = self.status.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Returns when the others have done all chunks but so many, or after so many looks: whether they have.
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

    /// A thread's life.
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

    /// False at the end.
    fn await_job_after(&self, seen: u64) -> bool {
        // What is being written is no job yet.
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

    /// Whether a job came in time.
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

/// Takes a chunk of a share of a job, which has so many; its number.
fn take(taken: &AtomicU64, job: u64, chunks: u64) -> Option<u64> {
    let next = |word: u64| {
        let of = word >> COUNTER_BITS;
        let count = if of < job { 0 } else { word & COUNTER_MASK };
        (of <= job && count < chunks).then(|| (job << COUNTER_BITS) + count + 1)
    };
    let before = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
    Some(if before >> COUNTER_BITS < job { 0 } else { before & COUNTER_MASK })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_and_workers_are_apart() {
        for count in [1usize, 2, 3, 7] {
            let pool = ThreadPool::new(count).expect("a few threads");
            for items in [0i64, 1, 2, 63, 1000] {
                let done: Vec<AtomicUsize> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                let busy: Vec<AtomicBool> = (0..count).map(|_| AtomicBool::new(false)).collect();
                for round in 1..50 {
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
                    for _ in 0..200 {
                        let status = pool.run(10, &|begin, end, _| {
                            total.fetch_add((begin..end).sum(), Ordering::SeqCst);
                            0
                        });
                        assert_eq!(status, 0);
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 3 * 200 * 45);
    }

    #[test]
    fn too_many_threads_are_refused() {
        assert!(ThreadPool::new(0).is_err());
        assert!(ThreadPool::new(1_000_000).is_err());
    }
}
