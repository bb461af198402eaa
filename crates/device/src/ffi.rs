//! Declarations of the C runtime, in the layout of `tfcompile/device.h`.

use std::ffi::{CStr, c_char, c_int, c_void};

/// `struct tfcompile_device`.
#[repr(C)]
pub(crate) struct Device {
    _private: [u8; 0],
}

/// `struct tfcompile_device_instance`.
#[repr(C)]
pub(crate) struct Instance {
    _private: [u8; 0],
}

/// Size of the text of a failure.
const TEXT_BYTES: usize = 1536;

/// `struct tfcompile_device_error`.
#[repr(C)]
pub(crate) struct Failure {
    pub(crate) status: c_int,
    pub(crate) code: c_int,
    pub(crate) text: [c_char; TEXT_BYTES],
}

impl Failure {
    pub(crate) const fn new() -> Self {
        Self { status: 0, code: 0, text: [0; TEXT_BYTES] }
    }
}

/// `struct tfcompile_device_options`.
#[repr(C)]
pub(crate) struct Options {
    pub(crate) kind: c_int,
    pub(crate) ordinal: c_int,
    pub(crate) preallocate: c_int,
    pub(crate) disable_graphs: c_int,
    pub(crate) memory_fraction: f64,
    pub(crate) staging_bytes: u64,
}

/// `struct tfcompile_device_info`.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) kind: c_int,
    pub(crate) ordinal: c_int,
    pub(crate) arch: c_int,
    pub(crate) processors: c_int,
    pub(crate) max_threads: c_int,
    pub(crate) driver_version: c_int,
    pub(crate) memory_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) name: [c_char; 128],
    pub(crate) takes_spirv: c_int,
    pub(crate) reserved: c_int,
}

impl Info {
    pub(crate) const fn new() -> Self {
        Self {
            kind: 0,
            ordinal: 0,
            arch: 0,
            processors: 0,
            max_threads: 0,
            driver_version: 0,
            memory_bytes: 0,
            free_bytes: 0,
            name: [0; 128],
            takes_spirv: 0,
            reserved: 0,
        }
    }
}

/// Use of a device's memory pool, in bytes where not stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Statistics {
    /// Handed out.
    pub used: u64,
    /// Maximum of `used`.
    pub peak: u64,
    /// Taken from the driver: used and cached.
    pub reserved: u64,
    /// Maximum of `reserved`.
    pub limit: u64,
    /// Number of allocations in use.
    pub allocations: u64,
    /// Number of allocations so far.
    pub total_allocations: u64,
    /// Number of allocations that the driver made for the pool.
    pub total_driver_allocations: u64,
}

/// The first members of `struct tfcompile_device_record`.
#[repr(C)]
pub(crate) struct RawRecord {
    pub(crate) operation: c_int,
    pub(crate) kernel: u32,
    pub(crate) name: *const c_char,
    pub(crate) label: *const c_char,
    pub(crate) bytes: u64,
    pub(crate) flops: u64,
    pub(crate) stream: *mut c_void,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// `struct tfcompile_device_facts`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct KernelFacts {
    pub(crate) threads: u32,
    pub(crate) registers: u32,
    pub(crate) workgroup_bytes: u32,
    pub(crate) local_bytes: u32,
    pub(crate) active_workgroups: u32,
    pub(crate) max_threads: u32,
}

/// `tfcompile_device_profiler`.
pub(crate) type Profiler = unsafe extern "C" fn(*mut c_void, *const RawRecord);

unsafe extern "C" {
    pub(crate) fn tfcdev_count(kind: c_int, count: *mut c_int, error: *mut Failure) -> c_int;
    pub(crate) fn tfcdev_open(options: *const Options, error: *mut Failure) -> *mut Device;
    pub(crate) fn tfcdev_close(device: *mut Device);
    pub(crate) fn tfcdev_info(device: *mut Device, info: *mut Info, error: *mut Failure) -> c_int;
    pub(crate) fn tfcdev_statistics(device: *mut Device, statistics: *mut Statistics);
    pub(crate) fn tfcdev_synchronize(device: *mut Device, error: *mut Failure) -> c_int;
    pub(crate) fn tfcdev_stream_synchronize(
        device: *mut Device,
        stream: *mut c_void,
        error: *mut Failure,
    ) -> c_int;
    pub(crate) fn tfcdev_instance_create(
        device: *mut Device,
        program: *const c_void,
        constants: *const c_void,
        error: *mut Failure,
    ) -> *mut Instance;
    pub(crate) fn tfcdev_instance_destroy(instance: *mut Instance);
    pub(crate) fn tfcdev_instance_profile(
        instance: *mut Instance,
        profiler: Option<Profiler>,
        context: *mut c_void,
        error: *mut Failure,
    ) -> c_int;
    pub(crate) fn tfcdev_instance_profile_note(instance: *const Instance) -> *const c_char;
    pub(crate) fn tfcdev_instance_status(instance: *const Instance) -> c_int;
    pub(crate) fn tfcdev_alloc(
        device: *mut Device,
        bytes: u64,
        address: *mut u64,
        error: *mut Failure,
    ) -> c_int;
    pub(crate) fn tfcdev_free(device: *mut Device, address: u64) -> c_int;
    pub(crate) fn tfcdev_copy_in(
        device: *mut Device,
        to: u64,
        from: *const c_void,
        bytes: u64,
        error: *mut Failure,
    ) -> c_int;
    pub(crate) fn tfcdev_copy_out(
        device: *mut Device,
        to: *mut c_void,
        from: u64,
        bytes: u64,
        error: *mut Failure,
    ) -> c_int;
    pub(crate) fn tfcdev_copy(
        device: *mut Device,
        to: u64,
        from: u64,
        bytes: u64,
        error: *mut Failure,
    ) -> c_int;
    pub(crate) fn tfcdev_instance_run(
        device: *mut Device,
        instance: *mut Instance,
        arguments: *const u64,
        results: *const u64,
        sizes: *mut i64,
        size_count: u32,
        error: *mut Failure,
    ) -> c_int;
    pub(crate) fn tfcdev_instance_kernel(
        device: *mut Device,
        instance: *mut Instance,
        index: u32,
        facts: *mut KernelFacts,
    );
}

/// Returns the text in a buffer that ends with a 0.
pub(crate) fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the text at an address.
///
/// # Safety
/// The address is null or that of a NUL-terminated text.
pub(crate) unsafe fn text_at(address: *const c_char) -> String {
    if address.is_null() {
        return String::new();
    }
    // SAFETY: required of the caller.
    unsafe { CStr::from_ptr(address) }.to_string_lossy().into_owned()
}
