//! The frame, which is the argument of an entry function.

use core::ffi::{c_char, c_void};
use core::ptr::{null, null_mut};

/// Function that runs a range of items of a parallel region. Takes `data`, the first item, one past
/// the last item, and the number of the worker. Returns 0, or a code that ends the call.
pub type ParallelBody = unsafe extern "C" fn(*mut c_void, i64, i64, i64) -> i32;

/// Function that runs a body over all items `0..count`, in ranges, on any number of workers. Takes
/// `context`, `count`, the body, and the `data` to pass to it.
pub type ParallelFor = unsafe extern "C" fn(*mut c_void, i64, Option<ParallelBody>, *mut c_void) -> i32;

/// Argument of an entry function: `struct tfcompile_frame` of the C header, field by field.
#[derive(Debug)]
#[repr(C)]
pub struct Frame {
    /// Size in bytes of the struct that the caller was compiled with.
    pub size: u64,
    /// Version of the layout: 1.
    pub version: u32,
    /// Reserved: 0.
    pub reserved: u32,
    /// Addresses of the arguments: feeds, then variables. Each is aligned as its element type.
    pub args: *const *mut c_void,
    /// Addresses of the results. The result of a written variable has the address of its argument.
    pub results: *const *mut c_void,
    /// Block of temporaries. Aligned to 64 bytes.
    pub temps: *mut c_void,
    /// Block of constants. Aligned to 64 bytes.
    pub constants: *const c_void,
    /// Function that runs parallel work on the caller's threads. `None` runs everything on the
    /// calling thread.
    pub parallel_for: Option<ParallelFor>,
    /// First argument of `parallel_for`.
    pub context: *mut c_void,
    /// Number of workers, at least 1. Workers are numbered from 0.
    pub max_workers: i64,
    /// Scratch memory, `max_workers` pieces of equal size. Null if no kernel needs any.
    pub scratch: *mut c_void,
    /// Cycle counters of a profiled program, or null.
    pub profile_counters: *mut i64,
    /// Set by the call: the error message if the entry function returned a code other than 0.
    pub error: *const c_char,
    /// Set by the call: the true sizes of bounded dimensions. Null if there are none.
    pub dynamic_sizes: *mut i64,
    /// The program's instance on a device. Null in programs for processors.
    pub device: *mut c_void,
}

impl Frame {
    /// Creates a frame with no buffers, for one worker.
    pub const fn empty() -> Self {
        Self {
            size: size_of::<Self>() as u64,
            version: 1,
            reserved: 0,
            args: null(),
            results: null(),
            temps: null_mut(),
            constants: null(),
            parallel_for: None,
            context: null_mut(),
            max_workers: 1,
            scratch: null_mut(),
            profile_counters: null_mut(),
            error: null(),
            dynamic_sizes: null_mut(),
            device: null_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn the_layout_is_the_one_of_the_header() {
        assert_eq!(size_of::<Frame>(), 112);
        assert_eq!(offset_of!(Frame, version), 8);
        assert_eq!(offset_of!(Frame, args), 16);
        assert_eq!(offset_of!(Frame, results), 24);
        assert_eq!(offset_of!(Frame, temps), 32);
        assert_eq!(offset_of!(Frame, constants), 40);
        assert_eq!(offset_of!(Frame, parallel_for), 48);
        assert_eq!(offset_of!(Frame, context), 56);
        assert_eq!(offset_of!(Frame, max_workers), 64);
        assert_eq!(offset_of!(Frame, scratch), 72);
        assert_eq!(offset_of!(Frame, profile_counters), 80);
        assert_eq!(offset_of!(Frame, error), 88);
        assert_eq!(offset_of!(Frame, dynamic_sizes), 96);
        assert_eq!(offset_of!(Frame, device), 104);
    }
}
