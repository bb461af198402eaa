//! Loaded code and the buffers it runs on.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use codegen::LoadedObject;
use hlo::{Argument, Interface, Output};
use shape::ArrayShape;
use support::{Code, Error, Result};

use crate::{ALIGNMENT, AlignedBytes, Frame, Workers, thread_pool};
use tfcompile_runtime::{ParallelFor, parallel_for};

/// The memory that an entry function expects in its frame beside arguments, results and their true sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of temps.
    pub temps_bytes: usize,
    /// Bytes of scratch for each worker.
    pub scratch_bytes: usize,
    /// Number of profile counters.
    pub profile_counters: usize,
}

/// The size in bytes of an array.
pub(crate) fn bytes(shape: &ArrayShape) -> usize {
    shape.byte_size() as usize
}

/// The divisor of an argument's address: the element type's alignment.
pub(crate) fn alignment(argument: &Argument) -> usize {
    argument.shape.element_type.real_part().byte_size()
}

/// A loaded object.
pub struct Executable {
    object: LoadedObject,
    interface: Interface,
    memory: Memory,
    /// Constants that the object does not carry.
    constants: Option<Constants>,
}

/// A block of constants in whoever's memory: of this process, or of a file that several map. Begins at a multiple of
/// [`ALIGNMENT`].
pub type Constants = Box<dyn AsRef<[u8]> + Send + Sync>;

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executable").field("interface", &self.interface).finish_non_exhaustive()
    }
}

impl Executable {
    /// Loads an object for this machine. The code is trusted: it must be the compiler's, and `interface` and `memory` what
    /// it was compiled for. Constants that are not embedded in the object are given beside it.
    pub fn load(
        object: &[u8],
        entry_point: &str,
        interface: Interface,
        memory: Memory,
        constants: Option<AlignedBytes>,
    ) -> Result<Self> {
        let constants = constants.map(|block| Box::new(block) as Constants);
        Self::load_with(object, entry_point, interface, memory, constants)
    }

    /// The same with constants in whoever's memory.
    pub fn load_with(
        object: &[u8],
        entry_point: &str,
        interface: Interface,
        memory: Memory,
        constants: Option<Constants>,
    ) -> Result<Self> {
        if let Some(block) = &constants
            && !(**block).as_ref().as_ptr().addr().is_multiple_of(ALIGNMENT)
        {
            return Err(Error::internal("the constants do not begin at a multiple of 64 bytes"));
        }
        for (k, result) in interface.results().iter().enumerate() {
            if let Some(alias) = result.alias
                && interface.arguments().get(alias).is_none_or(|a| bytes(&a.shape) < bytes(&result.shape))
            {
                return Err(Error::internal(format!("result {k} does not fit into argument {alias}")));
            }
        }
        Ok(Self { object: LoadedObject::load(object, entry_point)?, interface, memory, constants })
    }

    /// The arguments and results of the entry function.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The other memory that the entry function expects.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Buffers of its own for one user of the code.
    pub fn instance(&self) -> Result<Instance<'_>> {
        let buffer = |result: &Output| match result.alias {
            Some(_) => AlignedBytes::zeroed(0),
            None => AlignedBytes::zeroed(bytes(&result.shape)),
        };
        Ok(Instance {
            executable: self,
            results: self.interface.results().iter().map(buffer).collect::<Result<_>>()?,
            temps: AlignedBytes::zeroed(self.memory.temps_bytes)?,
            scratch: AlignedBytes::zeroed(self.memory.scratch_bytes)?,
            workers: None,
            profile_counters: vec![0; self.memory.profile_counters],
            dynamic_sizes: vec![0; self.interface.size_count()],
        })
    }

    /// Calls the entry function; returns what it returns.
    ///
    /// # Safety
    /// The frame's addresses must be valid for the sizes and alignments of the interface, distinct except where the
    /// interface says that a result is an argument, and nobody else may use the memory behind them meanwhile.
    #[expect(unsafe_code, reason = "generated code follows raw addresses")]
    pub unsafe fn call(&self, frame: &mut Frame) -> i32 {
        // SAFETY: `load` was promised an object of ours, whose entry has this signature.
        let entry = unsafe {
            std::mem::transmute::<*mut (), unsafe extern "C" fn(*mut Frame) -> i32>(
                self.object.entry_address().as_ptr(),
            )
        };
        // SAFETY: the caller's promise.
        unsafe { entry(frame) }
    }

    /// As [`Executable::call`]; an error with the code's message if it does not return 0.
    ///
    /// # Safety
    /// That of [`Executable::call`].
    #[expect(unsafe_code, reason = "generated code follows raw addresses")]
    pub(crate) unsafe fn enter(&self, frame: &mut Frame) -> Result<()> {
        // SAFETY: the caller's promise.
        let status = unsafe { self.call(frame) };
        if status == 0 {
            return Ok(());
        }
        if frame.error.is_null() {
            return Err(Error::internal(format!("the code returned {status}")));
        }
        // SAFETY: the code sets `error` to a static NUL-terminated message.
        let message = unsafe { CStr::from_ptr(frame.error) };
        Err(Error::invalid(message.to_string_lossy()).coded(Code::FailedRun))
    }

    pub(crate) fn constants_address(&self) -> *const c_void {
        match &self.constants {
            Some(constants) => (**constants).as_ref().as_ptr().cast(),
            None => self.object.constants_address().as_ptr().cast_const().cast(),
        }
    }
}

/// The results, the temps and the counters of one user. Persistent parts of temps live as long as this.
pub struct Instance<'e> {
    executable: &'e Executable,
    results: Vec<AlignedBytes>,
    temps: AlignedBytes,
    scratch: AlignedBytes,
    workers: Option<Arc<dyn Workers>>,
    profile_counters: Vec<i64>,
    dynamic_sizes: Vec<i64>,
}

impl Instance<'_> {
    /// Runs on so many threads from now on, the caller's included; 1 is serial. Errors: none or too many.
    pub fn set_threads(&mut self, count: usize) -> Result<()> {
        match count {
            1 => self.set_workers(None),
            _ => self.set_workers(Some(Arc::new(thread_pool(count)?))),
        }
    }

    /// Shares parallel loops out to these workers from now on, which other instances may use as well; none is serial.
    pub fn set_workers(&mut self, workers: Option<Arc<dyn Workers>>) -> Result<()> {
        let count = workers.as_ref().map_or(1, |workers| workers.count().max(1));
        let bytes = self.executable.memory.scratch_bytes.checked_mul(count);
        self.scratch = AlignedBytes::zeroed(bytes.unwrap_or(usize::MAX))?;
        self.workers = workers;
        Ok(())
    }

    /// Runs the code once. Variables among the arguments get their new values. Errors: an argument of the wrong size
    /// or alignment, or the code's own message.
    pub fn run(&mut self, arguments: &mut [&mut [u8]]) -> Result<()> {
        let interface = &self.executable.interface;
        if arguments.len() != interface.arguments().len() {
            return Err(Error::invalid(format!(
                "{} arguments, but the code takes {}",
                arguments.len(),
                interface.arguments().len()
            )));
        }
        for (k, (given, argument)) in arguments.iter().zip(interface.arguments()).enumerate() {
            let (bytes, alignment) = (bytes(&argument.shape), alignment(argument));
            if given.len() != bytes {
                return Err(Error::invalid(format!(
                    "argument {k} has {} bytes, but the code takes {bytes}",
                    given.len()
                )));
            }
            if bytes > 0 && !given.as_ptr().addr().is_multiple_of(alignment) {
                return Err(Error::invalid(format!(
                    "argument {k} does not begin at a multiple of {alignment} bytes"
                )));
            }
        }
        let arguments: Vec<*mut c_void> = arguments.iter_mut().map(|a| a.as_mut_ptr().cast()).collect();
        let results: Vec<*mut c_void> = interface
            .results()
            .iter()
            .zip(&mut self.results)
            .map(|(result, buffer)| match result.alias {
                Some(argument) => arguments[argument],
                None => buffer.as_mut_ptr().cast(),
            })
            .collect();
        let workers: Option<&dyn Workers> = self.workers.as_deref();
        let context = workers.as_ref().map(std::ptr::from_ref);
        let mut frame = Frame {
            args: arguments.as_ptr(),
            results: results.as_ptr(),
            temps: self.temps.as_mut_ptr().cast(),
            constants: self.executable.constants_address(),
            parallel_for: context.map(|_| parallel_for as ParallelFor),
            context: context.map_or(std::ptr::null_mut(), |workers| workers.cast_mut().cast()),
            max_workers: self.workers.as_ref().map_or(1, |workers| workers.count() as i64),
            scratch: self.scratch.as_mut_ptr().cast(),
            profile_counters: self.profile_counters.as_mut_ptr(),
            dynamic_sizes: self.dynamic_sizes.as_mut_ptr(),
            ..Frame::empty()
        };
        // SAFETY: arguments were checked against the interface and are borrowed uniquely; results, temps, scratch (for as
        // many workers) and counters are of the interface's sizes and borrowed uniquely through `self`; constants are only
        // read; the context is a reference to the workers, which `self` keeps.
        #[expect(unsafe_code, reason = "generated code follows raw addresses")]
        unsafe {
            self.executable.enter(&mut frame)
        }
    }

    /// How many workers share the work.
    pub fn workers(&self) -> usize {
        self.workers.as_ref().map_or(1, |workers| workers.count())
    }

    /// A result's bytes. Empty for one that is written to an argument.
    pub fn result(&self, index: usize) -> &[u8] {
        self.results.get(index).map_or(&[], |buffer| buffer)
    }

    /// The profile counters.
    pub fn profile_counters(&self) -> &[i64] {
        &self.profile_counters
    }

    /// The true sizes of bounded dimensions.
    pub fn dynamic_sizes(&self) -> &[i64] {
        &self.dynamic_sizes
    }
}

impl std::fmt::Debug for Instance<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("workers", &self.workers()).finish_non_exhaustive()
    }
}
