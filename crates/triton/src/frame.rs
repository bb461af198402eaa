//! The memory of an instance, and runs of its program.

use crate::program::Program;
use device::{Device, Kind, Options};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use support::{Code, Error, Result};
use tfcompile_runtime::{AlignedBlock, Frame, Scratch, ThreadPool, Workers, enter};

/// Memory for the arguments and results of one run at a time. Weights belong to the program, which
/// instances share.
pub struct Memory {
    /// The program on a GPU. It refers to the code, so it is dropped first.
    device: Option<device::Instance>,
    program: Arc<Program>,
    arguments: Vec<AlignedBlock>,
    results: Vec<AlignedBlock>,
    temps: AlignedBlock,
    scratch: AlignedBlock,
    workers: Option<ThreadPool>,
    /// True sizes of bounded dimensions after a run.
    sizes: Vec<i64>,
}

impl Memory {
    /// Allocates the memory for runs on `threads` threads, or on the GPU of this number.
    pub fn new(program: Arc<Program>, threads: usize, gpu: usize) -> Result<Self> {
        let block = |bytes: u64| {
            let bytes = usize::try_from(bytes).ok();
            let block = bytes.and_then(|bytes| AlignedBlock::zeroed(bytes).ok());
            block
                .ok_or_else(|| Error::unsupported("too little memory for an instance").coded(Code::Resources))
        };
        let interface = &program.interface;
        let arguments = interface.arguments().iter().map(|a| block(a.shape.byte_size()));
        let results = interface.results().iter().map(|r| block(r.shape.byte_size()));
        let workers = match threads {
            1 => None,
            count => Some(ThreadPool::new(count).map_err(|e| {
                Error::invalid(format!("cannot start {count} threads: {e}; reduce the parameter 'threads'"))
            })?),
        };
        Ok(Self {
            arguments: arguments.collect::<Result<_>>()?,
            results: results.collect::<Result<_>>()?,
            temps: block(program.temps_bytes as u64)?,
            scratch: block((program.scratch_bytes as u64).saturating_mul(threads as u64))?,
            workers,
            sizes: vec![0; interface.size_count()],
            device: open_device(&program, gpu)?,
            program,
        })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Memory of an argument.
    pub fn argument(&mut self, number: usize) -> &mut [u8] {
        self.arguments[number].bytes_mut()
    }

    /// A result of the last run.
    pub fn result(&self, number: usize) -> &[u8] {
        self.results[number].bytes()
    }

    /// Runs the program. Arguments are in this memory, or where `given` says; such an argument is
    /// aligned for its elements and has all bytes that the program reads. Returns the true sizes of
    /// bounded dimensions.
    pub fn run(&mut self, given: &[(usize, &[u8])]) -> Result<&[i64]> {
        let mut arguments: Vec<*mut c_void> =
            self.arguments.iter_mut().map(|block| block.bytes_mut().as_mut_ptr().cast()).collect();
        for (number, bytes) in given {
            arguments[*number] = bytes.as_ptr().cast_mut().cast();
        }
        let results: Vec<*mut c_void> =
            self.results.iter_mut().map(|block| block.bytes_mut().as_mut_ptr().cast()).collect();
        let frame = Frame {
            args: arguments.as_ptr(),
            results: results.as_ptr(),
            temps: self.temps.bytes_mut().as_mut_ptr().cast(),
            constants: self.program.constants,
            dynamic_sizes: self.sizes.as_mut_ptr(),
            device: self.device.as_ref().map_or(null_mut(), device::Instance::address),
            ..Frame::empty()
        };
        // SAFETY: the entry of a program that tfcompile compiled.
        let entry = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Frame) -> i32>(
                self.program.entry.as_ptr(),
            )
        };
        let scratch = Scratch { bytes: self.scratch.bytes_mut(), each: self.program.scratch_bytes };
        let workers = self.workers.as_ref().map(|pool| pool as &dyn Workers);
        // SAFETY: the blocks have the sizes of the interface and are borrowed uniquely. The program
        // has no variables, so arguments are only read. The caller vouches for those in `given`.
        unsafe { enter(entry, frame, workers, scratch) }
            .map_err(|e| Error::invalid(e.message()).coded(Code::FailedRun))?;
        Ok(&self.sizes)
    }
}

/// Loads the program on its GPU, if it is for one.
fn open_device(program: &Program, gpu: usize) -> Result<Option<device::Instance>> {
    let Some(driver) = program.driver.as_deref() else { return Ok(None) };
    let kind = match driver {
        "cuda" => Kind::Cuda,
        "opencl" => Kind::OpenCl,
        _ => return Err(Error::invalid("the library's metadata is damaged: unknown driver")),
    };
    let code = program.device_program;
    let code = code.ok_or_else(|| Error::invalid("the library does not export its program for the GPU"))?;
    let device = Device::open(&Options::new(kind, gpu))?;
    // SAFETY: the program comes from the compiler; `Memory` drops the instance before the program.
    unsafe { device::Instance::create(&device, code.as_ptr(), program.constants) }.map(Some)
}
