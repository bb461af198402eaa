//! Threads that compile clusters while their nodes run one by one.

use crate::lock::lock;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Maximum number of compilations that wait or run; beyond it, clusters are deferred. This is
/// TensorFlow's `kNumAsyncDeviceCompilerThreads`. It also limits the number of threads.
const MAX_ONGOING: usize = 10;

/// Same stack size as the threads that run nodes, because those compile, too.
const STACK_BYTES: usize = 16 << 20;

type Work = Box<dyn FnOnce() + Send>;

/// Compilations that no run waits for. Dropping this waits for those that have begun.
#[derive(Default)]
pub(crate) struct Background {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Background")
            .field("ongoing", &lock(&self.shared.queue).ongoing)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    /// Number of compilations that wait or run.
    ongoing: usize,
    /// Number of threads that look for work.
    threads: usize,
}

impl Background {
    /// True if another compilation should be deferred because too many are pending.
    pub(super) fn is_full(&self) -> bool {
        lock(&self.shared.queue).ongoing >= MAX_ONGOING
    }

    /// Queues work for a thread. Returns false and drops the work if the system starts no thread.
    pub(super) fn begin(&self, work: impl FnOnce() + Send + 'static) -> bool {
        let limit = std::thread::available_parallelism().map_or(1, |count| count.get().min(MAX_ONGOING));
        let mut queue = lock(&self.shared.queue);
        if queue.threads < limit {
            let shared = self.shared.clone();
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            let thread = builder.spawn(move || shared.serve());
            if let Ok(thread) = thread {
                queue.threads += 1;
                let mut threads = lock(&self.threads);
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
            } else if queue.threads == 0 {
                return false;
            }
        }
        queue.waiting.push_back(Box::new(work));
        queue.ongoing += 1;
        true
    }

    /// Waits until all work is done.
    pub(crate) fn wait(&self) {
        let mut queue = lock(&self.shared.queue);
        while queue.ongoing > 0 {
            queue = self.shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    /// Runs work until the queue is empty.
    fn serve(&self) {
        let mut queue = lock(&self.queue);
        while let Some(work) = queue.waiting.pop_front() {
            drop(queue);
            // After a panic, the cluster stays uncompiled, which is safe.
            let _ = catch_unwind(AssertUnwindSafe(work));
            queue = lock(&self.queue);
            queue.ongoing -= 1;
            self.changed.notify_all();
        }
        queue.threads -= 1;
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let waiting = {
            let mut queue = lock(&self.shared.queue);
            queue.ongoing -= queue.waiting.len();
            std::mem::take(&mut queue.waiting)
        };
        drop(waiting);
        for thread in lock(&self.threads).drain(..) {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Background, MAX_ONGOING};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};

    #[test]
    fn all_work_is_done_even_after_a_panic() {
        let background = Background::default();
        let done = Arc::new(AtomicUsize::new(0));
        assert!(background.begin(|| panic!("on purpose")));
        for _ in 0..50 {
            let done = done.clone();
            let count = move || {
                done.fetch_add(1, Ordering::Relaxed);
            };
            assert!(background.begin(count));
        }
        background.wait();
        assert_eq!(done.load(Ordering::Relaxed), 50);
        assert!(!background.is_full());
    }

    #[test]
    fn it_is_full_while_compilations_block() {
        let background = Background::default();
        let done = Arc::new(AtomicUsize::new(0));
        let mut gates = Vec::new();
        for _ in 0..MAX_ONGOING {
            assert!(!background.is_full());
            let (gate, closed) = mpsc::channel::<()>();
            gates.push(gate);
            let done = done.clone();
            let blocked = move || {
                let _ = closed.recv();
                done.fetch_add(1, Ordering::Relaxed);
            };
            assert!(background.begin(blocked));
        }
        assert!(background.is_full());
        assert_eq!(done.load(Ordering::Relaxed), 0);
        // A running task ends when its gate is dropped.
        drop(gates);
        background.wait();
        assert!(!background.is_full());
        assert_eq!(done.load(Ordering::Relaxed), MAX_ONGOING);
    }
}
