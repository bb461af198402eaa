//! GPUs in this process: opening one, and instances of device programs on it.
//!
//! The work is done by the C runtime `tfcompile/device.h`, the one that users' programs include, so
//! that the tool runs what they run. The driver's library is opened at run time.

#[expect(unsafe_code, reason = "the C runtime")]
mod ffi;
mod instance;
mod memory;
mod program;

pub use ffi::Statistics;
pub use instance::{Instance, KernelFacts, Operation, Record, run_error};
pub use memory::Memory;
pub use program::{LoadedProgram, Program};

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::Arc;
use support::{Code, Error, Result};

/// The programming interface of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// NVIDIA's driver.
    Cuda,
    /// An OpenCL driver that takes SPIR-V.
    OpenCl,
}

impl Kind {
    const fn number(self) -> c_int {
        match self {
            Self::Cuda => 1,
            Self::OpenCl => 2,
        }
    }

    /// The name for users: `cuda` or `opencl`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::OpenCl => "opencl",
        }
    }
}

/// Options of opening a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The driver.
    pub kind: Kind,
    /// The number of the device among those of its kind.
    pub ordinal: usize,
    /// True to take all memory that the pool may use at once; false to take it as needed
    /// (TensorFlow's `allow_growth`).
    pub preallocates: bool,
    /// The part of the device's memory that the pool may use, such as 0.9; 0 for the default.
    pub memory_fraction: f64,
}

impl Options {
    /// Options for a device whose memory pool grows as needed.
    pub const fn new(kind: Kind, ordinal: usize) -> Self {
        Self { kind, ordinal, preallocates: false, memory_fraction: 0.0 }
    }
}

/// Properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The name from the driver.
    pub name: String,
    /// Compute capability times ten, such as 90; 0 for OpenCL.
    pub architecture: u32,
    /// Number of multiprocessors or compute units.
    pub processors: u32,
    /// Size of its memory in bytes.
    pub memory_bytes: u64,
    /// Version of the driver's interface: 12040 for CUDA 12.4, 3000 for OpenCL 3.0.
    pub driver_version: u32,
    /// True if an OpenCL device takes SPIR-V; otherwise its code is OpenCL C.
    pub takes_spirv: bool,
}

/// An open device. Clones refer to the same one; it is closed with the last of them.
#[derive(Clone, Debug)]
pub struct Device(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    pointer: NonNull<ffi::Device>,
    kind: Kind,
    ordinal: usize,
}

// SAFETY: the runtime's functions may be called from any thread.
#[expect(unsafe_code, reason = "the C runtime is thread-safe")]
unsafe impl Send for Handle {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "the C runtime is thread-safe")]
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the device is open, and nothing uses it any more.
        #[expect(unsafe_code, reason = "the C runtime")]
        unsafe {
            ffi::tfcdev_close(self.pointer.as_ptr());
        }
    }
}

/// Number of devices of a kind.
///
/// Errors: `invalid` with code `Device` if the driver's library is missing or too old.
pub fn count(kind: Kind) -> Result<usize> {
    let mut error = ffi::Failure::new();
    let mut count = 0;
    // SAFETY: both addresses are valid during the call.
    #[expect(unsafe_code, reason = "the C runtime")]
    let status = unsafe { ffi::tfcdev_count(kind.number(), &mut count, &mut error) };
    if status == 0 { Ok(usize::try_from(count).unwrap_or(0)) } else { Err(failed(&error)) }
}

impl Device {
    /// Opens a device, or returns it again if it is open.
    ///
    /// Errors: `invalid` with code `Device`, with the driver's own words: no driver, a driver that
    /// is too old, no such device, too little memory.
    pub fn open(options: &Options) -> Result<Self> {
        let raw = ffi::Options {
            kind: options.kind.number(),
            ordinal: c_int::try_from(options.ordinal).unwrap_or(c_int::MAX),
            preallocate: c_int::from(options.preallocates),
            disable_graphs: 0,
            memory_fraction: options.memory_fraction,
            staging_bytes: 0,
        };
        let mut error = ffi::Failure::new();
        // SAFETY: both addresses are valid during the call.
        #[expect(unsafe_code, reason = "the C runtime")]
        let pointer = unsafe { ffi::tfcdev_open(&raw, &mut error) };
        let pointer = NonNull::new(pointer).ok_or_else(|| failed(&error))?;
        Ok(Self(Arc::new(Handle { pointer, kind: options.kind, ordinal: options.ordinal })))
    }

    /// The driver.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The number of the device among those of its kind.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// The name for users, such as `cuda:0`.
    pub fn label(&self) -> String {
        format!("{}:{}", self.kind().name(), self.ordinal())
    }

    /// True if both are the same device.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.pointer == other.0.pointer
    }

    /// Properties of the device.
    pub fn info(&self) -> Result<Info> {
        let mut raw = ffi::Info::new();
        let mut error = ffi::Failure::new();
        // SAFETY: the device is open, and the addresses are valid during the call.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status = unsafe { ffi::tfcdev_info(self.pointer(), &mut raw, &mut error) };
        if status != 0 {
            return Err(failed(&error));
        }
        let positive = |number: c_int| u32::try_from(number).unwrap_or(0);
        Ok(Info {
            name: ffi::text(&raw.name),
            architecture: positive(raw.arch),
            processors: positive(raw.processors),
            memory_bytes: raw.memory_bytes,
            driver_version: positive(raw.driver_version),
            takes_spirv: raw.takes_spirv != 0,
        })
    }

    /// Waits for all work of all streams of the device, also those that others created.
    ///
    /// Errors: `invalid` with code `Device` for failures of the driver.
    pub fn synchronize(&self) -> Result<()> {
        let mut error = ffi::Failure::new();
        // SAFETY: the device is open, and the address is valid during the call.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status = unsafe { ffi::tfcdev_synchronize(self.pointer(), &mut error) };
        if status == 0 { Ok(()) } else { Err(failed(&error)) }
    }

    /// Waits for the work of a stream.
    ///
    /// Errors: `invalid` with code `Device` for failures of the driver.
    ///
    /// # Safety
    /// `stream` is the address of a stream of this device: a `CUstream` or a `cl_command_queue`.
    #[expect(unsafe_code, reason = "a stream of the caller's")]
    pub unsafe fn synchronize_stream(&self, stream: usize) -> Result<()> {
        let mut error = ffi::Failure::new();
        let stream = std::ptr::with_exposed_provenance_mut(stream);
        // SAFETY: the device is open, and the address is valid during the call. The stream is
        // required of the caller.
        let status = unsafe { ffi::tfcdev_stream_synchronize(self.pointer(), stream, &mut error) };
        if status == 0 { Ok(()) } else { Err(failed(&error)) }
    }

    /// Use of the device's memory pool.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        // SAFETY: the device is open, and the address is valid during the call.
        #[expect(unsafe_code, reason = "the C runtime")]
        unsafe {
            ffi::tfcdev_statistics(self.pointer(), &mut statistics);
        }
        statistics
    }

    fn pointer(&self) -> *mut ffi::Device {
        self.0.pointer.as_ptr()
    }
}

/// Converts a failure of the runtime.
fn failed(failure: &ffi::Failure) -> Error {
    Error::invalid(ffi::text(&failure.text)).coded(Code::Device)
}
