//! Who does parallel loops: what a frame's `parallel_for` calls, and a pool of threads.

#[cfg(feature = "std")]
mod pool;

use crate::frame::ParallelBody;
use core::ffi::c_void;
#[cfg(feature = "std")]
pub use pool::ThreadPool;

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

/// The frame's callback; `context` is a `&dyn Workers`.
///
/// # Safety
/// `context` points to a live `&dyn Workers`, and `body` takes `data`.
#[expect(unsafe_code, reason = "called by generated code")]
pub unsafe extern "C" fn parallel_for(
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
    let workers: &dyn Workers = unsafe { *context.cast::<&dyn Workers>() };
    // SAFETY: generated code takes its own record, on any thread.
    workers.run(count, &move |begin, end, worker| unsafe { body(data.0, begin, end, worker) })
}
