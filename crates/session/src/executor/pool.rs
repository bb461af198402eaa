//! Threads that help the calling threads with their runs.

use crate::lock::lock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use support::{Error, Result};

/// Maximum number of threads; a larger number is rejected as a mistake.
const MAX_THREADS: usize = 1024;

/// Enough for nested function calls that run kernels, whose stack use is bounded.
const STACK_BYTES: usize = 16 << 20;

/// A run that other threads can help with.
pub(crate) trait Help: Send + Sync {
    /// Does some of the run's work.
    fn help(self: Arc<Self>);
}

/// Threads that wait for runs to help with.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Number of idle threads.
    idle: AtomicUsize,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    runs: VecDeque<Arc<dyn Help>>,
    stop: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("runs", &self.runs.len()).finish_non_exhaustive()
    }
}

impl Pool {
    /// Creates a pool of `count` threads, or of those that the system starts. The thread that calls
    /// a run counts as one of them.
    pub(crate) fn new(count: usize) -> Result<Self> {
        if count == 0 || count > MAX_THREADS {
            return Err(Error::invalid(format!("expected 1 to {MAX_THREADS} threads, got {count}")));
        }
        let mut pool = Self { shared: Arc::default(), threads: Vec::new() };
        for _ in 1..count {
            let shared = pool.shared.clone();
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            let thread = builder.spawn(move || shared.serve());
            let Ok(thread) = thread else { break };
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Asks idle threads to help with a run that has `tasks` tasks to share.
    pub(crate) fn invite<R: Help + 'static>(&self, run: &Arc<R>, tasks: usize) {
        let idle = self.shared.idle.load(Ordering::Relaxed);
        if idle == 0 {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        let invitations = tasks.min(idle).saturating_sub(queue.runs.len());
        for _ in 0..invitations {
            queue.runs.push_back(run.clone());
            self.shared.wake.notify_one();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.queue).stop = true;
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has already reported it. A thread of the pool itself may drop
            // the last run and cannot join itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn serve(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if queue.stop {
                return;
            }
            if let Some(run) = queue.runs.pop_front() {
                drop(queue);
                run.help();
                queue = lock(&self.queue);
                continue;
            }
            self.idle.fetch_add(1, Ordering::Relaxed);
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
