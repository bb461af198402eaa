//! Threads for parallel loops: what the frame's `parallel_for` of an [`Instance`](crate::Instance) calls.

use std::ffi::c_void;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, available_parallelism, yield_now};

use support::{Error, Result};

use crate::frame::ParallelBody;

/// Does items `begin..end` as a worker; 0, or a code that ends the run.
pub type Part<'p> = dyn Fn(i64, i64, i64) -> i32 + Sync + 'p;

/// Whoever shares parallel work out.
///
/// # Safety
/// `run` covers `0..count` by calls of `part` on disjoint ranges and returns after the last of them has returned. Calls
/// that overlap in time have different workers, all at least 0 and below `count()`.
#[expect(unsafe_code, reason = "generated code gives each worker memory of its own")]
pub unsafe trait Workers: Send + Sync {
    /// How many workers there are; at least 1.
    fn count(&self) -> usize;
    /// Does items `0..count`. 0, or the code of a part that failed; items may be left out then.
    fn run(&self, count: i64, part: &Part<'_>) -> i32;
}

/// The frame's callback; `context` is an `Arc<dyn Workers>`.
///
/// # Safety
/// `context` points to a live `Arc<dyn Workers>`, and `body` takes `data`.
#[expect(unsafe_code, reason = "called by generated code")]
pub(crate) unsafe extern "C" fn parallel_for(
    context: *mut c_void,
    count: i64,
    body: Option<ParallelBody>,
    data: *mut c_void,
) -> i32 {
    struct Data(*mut c_void);
    // SAFETY: the record behind it is only read, and outlives `run`.
    unsafe impl Sync for Data {}
    let Some(body) = body else { return -1 };
    let data = &Data(data);
    // SAFETY: the caller's promise.
    let workers = unsafe { &*context.cast::<Arc<dyn Workers>>() };
    // SAFETY: generated code takes its own record, on any thread.
    workers.run(count, &move |begin, end, worker| unsafe { body(data.0, begin, end, worker) })
}

/// A few threads that wait for work. The caller is a worker too.
#[derive(Debug)]
pub struct ThreadPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// More threads than this are a mistake.
const MAX_THREADS: usize = 1024;

/// Rounds of looking for work before a thread sleeps: some microseconds.
const SPINS: u32 = 4000;

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// More work, or the end.
    wake: Condvar,
    /// Counts the jobs, for those who look without the lock.
    epoch: AtomicU64,
    spins: u32,
}

#[derive(Debug, Default)]
struct State {
    job: Option<Job>,
    /// Threads that work at the job.
    inside: usize,
    sleepers: usize,
    stop: bool,
}

/// Work that is being done; lives on the stack of the caller of `run`.
#[derive(Clone, Copy, Debug)]
struct Job(*const Work<'static>);

// SAFETY: `Work` is shared by reference only, and is `Sync`.
#[expect(unsafe_code, reason = "a pointer to another thread's stack")]
unsafe impl Send for Job {}

struct Work<'p> {
    part: &'p Part<'p>,
    chunk: i64,
    /// For each worker the items that it begins with, the same ones whenever the number is the same: what it computed in
    /// one loop is in its caches when the next one reads it. Then it helps the others.
    shares: Vec<Share>,
    status: AtomicI32,
}

/// Items that are left of some.
#[repr(align(64))]
struct Share {
    next: AtomicI64,
    end: i64,
}

impl Work<'_> {
    fn take_chunks(&self, worker: usize) {
        let (others, own) = self.shares.split_at(worker);
        for share in own.iter().chain(others) {
            while self.status.load(Ordering::Relaxed) == 0 {
                let begin = share.next.fetch_add(self.chunk, Ordering::Relaxed);
                if begin >= share.end {
                    break;
                }
                let status = (self.part)(begin, share.end.min(begin + self.chunk), worker as i64);
                let _ = self.status.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }
}

impl ThreadPool {
    /// A pool of `count` workers: the caller's thread and one less of its own.
    pub fn new(count: usize) -> Result<Self> {
        if count == 0 || count > MAX_THREADS {
            return Err(Error::invalid(format!("{count} threads; 1 to {MAX_THREADS} can be had")));
        }
        // Whoever spins with more threads than processors keeps the one that has the work from running.
        let spins = if available_parallelism().map_or(1, usize::from) >= count { SPINS } else { 0 };
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            epoch: AtomicU64::new(0),
            spins,
        });
        let mut pool = Self { shared, threads: Vec::new() };
        for worker in 1..count {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new().spawn(move || shared.serve(worker));
            pool.threads.push(thread.map_err(|e| Error::invalid(format!("cannot start a thread: {e}")))?);
        }
        Ok(pool)
    }
}

// SAFETY: chunks are taken from one counter; the caller is worker 0 and the threads are 1, 2, ...; `run` leaves only
// when nobody is inside. If the pool has a job already, of a second caller, `run` does the whole on the caller's thread.
#[expect(unsafe_code, reason = "the trait's promise")]
unsafe impl Workers for ThreadPool {
    fn count(&self) -> usize {
        self.threads.len() + 1
    }

    fn run(&self, count: i64, part: &Part<'_>) -> i32 {
        if count <= 0 {
            return 0;
        }
        let workers = self.count() as i64;
        if count == 1 || workers == 1 {
            return part(0, count, 0);
        }
        let first = |worker: i64| count / workers * worker + (count % workers).min(worker);
        let share = |worker| Share { next: AtomicI64::new(first(worker)), end: first(worker + 1) };
        let work = Work {
            part,
            chunk: count / (8 * workers) + 1,
            shares: (0..workers).map(share).collect(),
            status: AtomicI32::new(0),
        };
        if !self.shared.open(&work) {
            return part(0, count, 0);
        }
        work.take_chunks(0);
        self.shared.close();
        work.status.load(Ordering::Relaxed)
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.epoch.fetch_add(1, Ordering::Release);
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A thread cannot panic: it runs generated code and this file.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers work to the threads; false if they have some already.
    fn open(&self, work: &Work<'_>) -> bool {
        let mut state = self.lock();
        if state.job.is_some() {
            return false;
        }
        state.job = Some(Job(std::ptr::from_ref(work).cast()));
        self.epoch.fetch_add(1, Ordering::Release);
        if state.sleepers > 0 {
            self.wake.notify_all();
        }
        true
    }

    /// Lets nobody in any more, and waits for those inside.
    fn close(&self) {
        let mut spins = 0;
        loop {
            let mut state = self.lock();
            // While it waits the job stays, so that no second caller opens another; but it is done, so that whoever
            // comes finds no chunk.
            if state.inside == 0 {
                state.job = None;
                return;
            }
            drop(state);
            spins += 1;
            if spins > self.spins { yield_now() } else { spin_loop() }
        }
    }

    /// A thread's life.
    fn serve(&self, worker: usize) {
        let mut seen = 0;
        while let Some(job) = self.await_job(&mut seen) {
            // SAFETY: `close` waits while this thread is inside, and the work lives until it returns.
            #[expect(unsafe_code, reason = "work on another thread's stack")]
            unsafe { &*job.0 }.take_chunks(worker);
            self.lock().inside -= 1;
        }
    }

    /// The next job, which this thread is inside of then; nothing at the end.
    fn await_job(&self, seen: &mut u64) -> Option<Job> {
        loop {
            for _ in 0..self.spins {
                if self.epoch.load(Ordering::Acquire) != *seen {
                    break;
                }
                spin_loop();
            }
            let mut state = self.lock();
            while self.epoch.load(Ordering::Acquire) == *seen && !state.stop {
                state.sleepers += 1;
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.sleepers -= 1;
            }
            *seen = self.epoch.load(Ordering::Acquire);
            if state.stop {
                return None;
            }
            if let Some(job) = state.job {
                state.inside += 1;
                return Some(job);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

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
