//! Instances of device programs: a program's memory on a device, and the records of its runs.

use crate::{Device, failed, ffi};
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};
use support::{Code, Error, Result};

/// A program on a device. It owns the buffers of its arguments, results, and temporaries there.
#[derive(Debug)]
pub struct Instance {
    pointer: NonNull<ffi::Instance>,
    /// Receives the records of profiled runs. Its address is known to the runtime.
    #[expect(clippy::box_collection, reason = "the address stays the same when the instance moves")]
    records: Box<Vec<Record>>,
    /// Closed after the instance.
    device: Device,
}

// SAFETY: an instance may move to another thread; it is used by one thread at a time.
#[expect(unsafe_code, reason = "the C runtime allows it")]
unsafe impl Send for Instance {}

/// Status of a run in which a check of the program failed.
const CHECK_FAILED: c_int = 11;

/// Kind of an operation of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Ran a kernel.
    Launch,
    /// Copied from the host.
    CopyIn,
    /// Copied to the host.
    CopyOut,
    /// Copied on the device.
    Copy,
    /// Filled memory.
    Fill,
}

/// One operation of a profiled run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Kind of the operation.
    pub operation: Operation,
    /// Number of the kernel in its program; 0 for other operations.
    pub kernel: u32,
    /// Symbol of the kernel, or name of the operation.
    pub name: String,
    /// The HLO instruction and node that the kernel computes.
    pub label: String,
    /// Bytes that were copied, or an estimate of those that the kernel reads and writes.
    pub bytes: u64,
    /// Estimated operations of the kernel.
    pub operations: u64,
    /// Number of the stream.
    pub stream: u64,
    /// Start in nanoseconds since the first operation of the run.
    pub start: u64,
    /// End, likewise.
    pub end: u64,
}

/// Resources of a kernel, from the driver. Zero where the driver does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFacts {
    /// Threads of a workgroup.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Bytes of a thread's own memory: spilled registers and arrays.
    pub local_bytes: u32,
    /// Workgroups that a multiprocessor runs at once.
    pub active_workgroups: u32,
    /// Threads that a multiprocessor can run at once.
    pub max_threads: u32,
}

impl KernelFacts {
    /// Part of a multiprocessor's threads that the kernel can occupy, if the driver tells.
    pub fn occupancy(&self) -> Option<f64> {
        let active = f64::from(self.active_workgroups) * f64::from(self.threads);
        (active > 0.0 && self.max_threads > 0).then(|| active / f64::from(self.max_threads))
    }
}

impl Instance {
    /// Loads a program on a device.
    ///
    /// # Errors
    /// `invalid` with code `Device`: no code for this device, too little memory, or code that the
    /// driver rejects.
    ///
    /// # Safety
    /// `program` is the address of a device program of the compiler, and `constants` that of its
    /// constants. Both outlive the instance.
    #[expect(unsafe_code, reason = "addresses in a loaded object")]
    pub unsafe fn create(device: &Device, program: *const c_void, constants: *const c_void) -> Result<Self> {
        let mut error = ffi::Failure::new();
        // SAFETY: the device is open; the rest is required of the caller.
        let pointer =
            unsafe { ffi::tfcdev_instance_create(device.pointer(), program, constants, &mut error) };
        let pointer = NonNull::new(pointer).ok_or_else(|| failed(&error))?;
        Ok(Self { pointer, records: Box::default(), device: device.clone() })
    }

    /// The address for the frame's field `device`.
    pub fn address(&self) -> *mut c_void {
        self.pointer.as_ptr().cast()
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Records every operation of later runs, or none.
    pub fn set_profiled(&mut self, is_profiled: bool) -> Result<()> {
        let mut error = ffi::Failure::new();
        let context: *mut Vec<Record> = &raw mut *self.records;
        let profiler = is_profiled.then_some(receive as ffi::Profiler);
        // SAFETY: the records live as long as the instance.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status = unsafe {
            ffi::tfcdev_instance_profile(self.pointer.as_ptr(), profiler, context.cast(), &mut error)
        };
        if status == 0 { Ok(()) } else { Err(failed(&error)) }
    }

    /// Why records have the times of events, which lengthen runs, and not those of CUPTI: empty if
    /// they have not, or for OpenCL, whose commands have times.
    pub fn profile_note(&self) -> String {
        // SAFETY: the instance is alive, and its text ends with a 0.
        #[expect(unsafe_code, reason = "the C runtime")]
        unsafe {
            ffi::text_at(ffi::tfcdev_instance_profile_note(self.pointer.as_ptr()))
        }
    }

    /// Runs the program on device memory and waits for it. `sizes` receives the true sizes of
    /// bounded dimensions.
    ///
    /// # Errors
    /// `invalid` with code `Device` for failures of the driver, and with code `FailedRun` for
    /// failed checks of the program.
    ///
    /// # Safety
    /// There is one address for each argument and one for each result, of memory on this device
    /// with at least the program's sizes. The address of a result that shares an argument's memory
    /// is ignored. Written memory is used by nothing else meanwhile. `sizes` has the program's
    /// length.
    #[expect(unsafe_code, reason = "addresses on a device")]
    pub unsafe fn run(&mut self, arguments: &[u64], results: &[u64], sizes: &mut [i64]) -> Result<()> {
        let mut error = ffi::Failure::new();
        // SAFETY: required of the caller.
        let status = unsafe {
            ffi::tfcdev_instance_run(
                self.device.pointer(),
                self.pointer.as_ptr(),
                arguments.as_ptr(),
                results.as_ptr(),
                sizes.as_mut_ptr(),
                sizes.len() as u32,
                &mut error,
            )
        };
        match status {
            0 => Ok(()),
            CHECK_FAILED => Err(Error::invalid(ffi::text(&error.text)).coded(Code::FailedRun)),
            _ => Err(failed(&error)),
        }
    }

    /// Resources of a kernel of the program.
    pub fn kernel_facts(&mut self, kernel: u32) -> KernelFacts {
        let mut facts = ffi::KernelFacts::default();
        // SAFETY: the instance is alive, and the address is valid during the call.
        #[expect(unsafe_code, reason = "the C runtime")]
        unsafe {
            ffi::tfcdev_instance_kernel(self.device.pointer(), self.pointer.as_ptr(), kernel, &mut facts);
        }
        KernelFacts {
            threads: facts.threads,
            registers: facts.registers,
            workgroup_bytes: facts.workgroup_bytes,
            local_bytes: facts.local_bytes,
            active_workgroups: facts.active_workgroups,
            max_threads: facts.max_threads,
        }
    }

    /// Takes the records of the runs since the last call.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// True if the last run failed because of the device or its driver, not because of a check of
    /// the program.
    pub fn has_driver_error(&self) -> bool {
        // SAFETY: the instance is alive.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status = unsafe { ffi::tfcdev_instance_status(self.pointer.as_ptr()) };
        ![0, CHECK_FAILED].contains(&status)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: the instance is alive, and the device is closed later.
        #[expect(unsafe_code, reason = "the C runtime")]
        unsafe {
            let mut error = ffi::Failure::new();
            ffi::tfcdev_instance_profile(self.pointer.as_ptr(), None, null_mut(), &mut error);
            ffi::tfcdev_instance_destroy(self.pointer.as_ptr());
        }
    }
}

/// Adds a record of the runtime to the instance's.
#[expect(unsafe_code, reason = "called by the C runtime")]
unsafe extern "C" fn receive(context: *mut c_void, record: *const ffi::RawRecord) {
    // SAFETY: the context is the instance's list, and the record is valid during the call.
    unsafe {
        let (records, raw) = (&mut *context.cast::<Vec<Record>>(), &*record);
        let operation = match raw.operation {
            2 => Operation::CopyIn,
            3 => Operation::CopyOut,
            4 => Operation::Copy,
            5 => Operation::Fill,
            _ => Operation::Launch,
        };
        records.push(Record {
            operation,
            kernel: raw.kernel,
            name: ffi::text_at(raw.name),
            label: ffi::text_at(raw.label),
            bytes: raw.bytes,
            operations: raw.flops,
            stream: raw.stream.addr() as u64,
            start: raw.start_ns,
            end: raw.end_ns,
        });
    }
}

/// Converts the error of a run whose message is the runtime's.
pub fn run_error(message: String) -> Error {
    Error::invalid(message).coded(Code::Device)
}
