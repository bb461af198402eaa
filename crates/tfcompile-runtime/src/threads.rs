//! Parallel execution: the trait that implements a frame's `parallel_for`, and a pool of threads.

#[cfg(feature = "std")]
mod pool;

use crate::frame::ParallelBody;
use core::ffi::c_void;
#[cfg(feature = "std")]
pub use pool::ThreadPool;

/// Function that runs a range of items. Takes the first item, one past the last item, and the
/// number of the worker. Returns 0, or a code that ends the run.
pub type Part<'p> = dyn Fn(i64, i64, i64) -> i32 + Sync + 'p;

/// Executor of parallel work, such as a thread pool.
///
/// # Safety
/// `run` must cover `0..count` with calls of `part` on disjoint ranges, and must return only after
/// the last of them has returned. Calls that overlap in time must have different worker numbers,
/// each at least 0 and less than `count()`.
#[expect(unsafe_code, reason = "generated code gives each worker memory of its own")]
pub unsafe trait Workers: Send + Sync {
    /// Returns the number of workers, at least 1.
    fn count(&self) -> usize;
    /// Runs the items `0..count`. Returns 0, or the code of a part that failed; other items may not
    /// have run in that case.
    fn run(&self, count: i64, part: &Part<'_>) -> i32;
}

/// Implements [`Frame::parallel_for`](crate::Frame::parallel_for) on top of [`Workers`].
///
/// # Safety
/// `context` must point to a live `&dyn Workers`, and `body` must accept `data`.
#[expect(unsafe_code, reason = "called by generated code")]
pub unsafe extern "C" fn parallel_for(
    context: *mut c_void,
    count: i64,
    body: Option<ParallelBody>,
    data: *mut c_void,
) -> i32 {
    struct Data(*mut c_void);
    // SAFETY: the record is only read, and outlives `run`.
    unsafe impl Sync for Data {}
    let Some(body) = body else { return -1 };
    let data = &Data(data);
    // SAFETY: guaranteed by the caller.
    let workers: &dyn Workers = unsafe { *context.cast::<&dyn Workers>() };
    // SAFETY: generated code accepts its own record, on any thread.
    workers.run(count, &move |begin, end, worker| unsafe { body(data.0, begin, end, worker) })
}
