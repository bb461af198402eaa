//! The argument of the entry function.

use core::ffi::{c_char, c_void};
use core::ptr::{null, null_mut};

/// Part of a parallel region: `data`, the first and one past the last index, the worker's number.
pub type ParallelBody = unsafe extern "C" fn(*mut c_void, i64, i64, i64) -> i32;

/// Runs a body over `0..count`, in parts, on any number of workers: `context`, `count`, body, `data`.
pub type ParallelFor = unsafe extern "C" fn(*mut c_void, i64, Option<ParallelBody>, *mut c_void) -> i32;

/// `tfcompile_frame` of the C header, field by field.
#[derive(Debug)]
#[repr(C)]
pub struct Frame {
    /// Bytes of the struct that the caller knows.
    pub size: u64,
    /// 1.
    pub version: u32,
    /// 0.
    pub reserved: u32,
    /// One address for each entry parameter: feeds, then variables; aligned as their element types.
    pub args: *const *mut c_void,
    /// One address for each element of the root tuple. That of an in-out variable is its argument's.
    pub results: *const *mut c_void,
    /// The temporary block; 64-byte aligned.
    pub temps: *mut c_void,
    /// The constants block; 64-byte aligned.
    pub constants: *const c_void,
    /// The caller's threads, or none.
    pub parallel_for: Option<ParallelFor>,
    /// The first argument of `parallel_for`.
    pub context: *mut c_void,
    /// At least 1; workers are numbered below it.
    pub max_workers: i64,
    /// Memory for each worker; null where none needs any.
    pub scratch: *mut c_void,
    /// Cycle counters, or null.
    pub profile_counters: *mut i64,
    /// The message, where the entry returned something other than 0.
    pub error: *const c_char,
    /// The true sizes of bounded dimensions, or null.
    pub dynamic_sizes: *mut i64,
}

impl Frame {
    /// A frame without any buffer, for one worker.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn the_layout_is_the_one_of_the_header() {
        assert_eq!(size_of::<Frame>(), 104);
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
    }
}
