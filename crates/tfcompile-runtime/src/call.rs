//! Calling the entry function.

use crate::threads::parallel_for;
use crate::{Aligned, Error, Frame, Workers};
use core::ffi::{CStr, c_void};

/// Status with which an entry asks to end the process after a failed assert: `TFCOMPILE_ABORT` of
/// the C header.
#[cfg(feature = "std")]
const ABORT: i32 = i32::MIN;

/// Scratch memory for the workers of a call.
#[derive(Debug)]
pub struct Scratch<'m> {
    /// The memory of all workers. Aligned to 64 bytes.
    pub bytes: &'m mut [u8],
    /// Size of each worker's part in bytes.
    pub each: usize,
}

impl<'m> Scratch<'m> {
    /// Creates scratch memory from one piece per worker.
    pub fn of<const N: usize>(pieces: &'m mut [Aligned<[u8; N]>]) -> Self {
        let bytes = size_of_val(pieces);
        // SAFETY: the pieces are borrowed uniquely. Their padding is written before it is read.
        #[expect(unsafe_code, reason = "aligned pieces as bytes")]
        let bytes = unsafe { core::slice::from_raw_parts_mut(pieces.as_mut_ptr().cast(), bytes) };
        Self { bytes, each: N }
    }
}

/// Calls an entry function. Adds the workers and the scratch memory to the frame.
///
/// A failed assertion of a program built with `--assert=abort` prints its message and aborts the
/// process. Without the feature `std`, it is an ordinary error.
///
/// # Errors
/// Returns an error if the scratch memory is too small or misaligned, or if the compiled function
/// fails.
///
/// # Safety
/// `entry` must be a function that tfcompile compiled. All other addresses in the frame must be
/// valid for the sizes and alignments for which it was compiled. They must not overlap, except that
/// the result of a variable is the argument of that variable. Nothing else may use that memory
/// during the call.
#[expect(unsafe_code, reason = "generated code follows raw addresses")]
pub unsafe fn enter(
    entry: unsafe extern "C" fn(*mut Frame) -> i32,
    frame: Frame,
    workers: Option<&dyn Workers>,
    scratch: Scratch<'_>,
) -> Result<(), Error> {
    let count = workers.map_or(1, |workers| workers.count().max(1));
    let address = scratch.bytes.as_mut_ptr();
    let is_enough = scratch.each.checked_mul(count).is_some_and(|bytes| scratch.bytes.len() >= bytes);
    if !is_enough || scratch.each > 0 && !address.addr().is_multiple_of(64) {
        return Err(Error::new(
            "the scratch memory is too small for the number of workers, or not aligned to 64 bytes",
        ));
    }
    let mut frame = Frame {
        parallel_for: workers.is_some().then_some(parallel_for as crate::ParallelFor),
        context: workers.as_ref().map_or(core::ptr::null_mut(), |workers| {
            core::ptr::from_ref::<&dyn Workers>(workers).cast_mut().cast::<c_void>()
        }),
        max_workers: count as i64,
        scratch: address.cast(),
        ..frame
    };
    // SAFETY: guaranteed by the caller. The context points to a `&dyn Workers` that lives through
    // the call, and the scratch is large enough.
    let status = unsafe { entry(&raw mut frame) };
    if status == 0 {
        return Ok(());
    }
    let error = if frame.error.is_null() {
        Error::new("the compiled function failed")
    } else {
        // SAFETY: the code sets `error` to a static message that ends in NUL.
        let message: &'static CStr = unsafe { CStr::from_ptr(frame.error) };
        Error::new(message.to_str().unwrap_or("the compiled function failed; its message is not valid UTF-8"))
    };
    Err(ended(error, status))
}

/// Ends the process if the status asks for it, else returns the error.
#[cfg_attr(not(feature = "std"), expect(unused_variables, reason = "a process cannot end itself"))]
fn ended(error: Error, status: i32) -> Error {
    #[cfg(feature = "std")]
    if status == ABORT {
        eprintln!("{error}");
        std::process::abort();
    }
    error
}

/// Returns the error of a call on a device, whose message is in the device's memory.
#[cfg(feature = "device")]
pub(crate) fn failure(frame: &Frame, status: i32) -> Error {
    if frame.error.is_null() {
        return Error::new("the compiled function failed");
    }
    // SAFETY: the runtime sets `error` to a message that ends in NUL and lives as long as the device.
    #[expect(unsafe_code, reason = "the C runtime")]
    let message = unsafe { CStr::from_ptr(frame.error) };
    ended(Error::interned(&message.to_string_lossy()), status)
}
