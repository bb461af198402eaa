//! Loaded code and its buffers.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use codegen::LoadedObject;
use device::{Device, Instance as DeviceInstance};
use hlo::{Argument, Interface, Output};
use shape::ArrayShape;
use support::{Code, Error, Result};

use crate::device_instances::DeviceInstances;
use crate::{ALIGNMENT, AlignedBytes, Frame, Workers, thread_pool};
use tfcompile_runtime::{ParallelFor, parallel_for};

/// Memory that an entry function expects in its frame besides arguments, results, and their true
/// sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Size of the temporaries in bytes.
    pub temps_bytes: usize,
    /// Size of the scratch memory per worker in bytes.
    pub scratch_bytes: usize,
    /// Number of profile counters.
    pub profile_counters: usize,
    /// True if an array whose leading dimension is the batch may end after the true number of rows:
    /// the code neither reads nor writes anything beyond them. The batch is the only named
    /// dimension.
    pub takes_true_sizes: bool,
}

/// Size of an array in bytes.
pub(crate) fn bytes(shape: &ArrayShape) -> usize {
    shape.byte_size() as usize
}

/// Required alignment of an argument: that of its element type.
pub(crate) fn alignment(argument: &Argument) -> usize {
    argument.shape.element_type.real_part().byte_size()
}

/// A loaded object.
pub struct Executable {
    /// Instances for [`Executable::run_on_device`]. They refer to the object and the constants, so
    /// they are dropped first.
    pub(crate) device_instances: DeviceInstances,
    object: LoadedObject,
    interface: Interface,
    memory: Memory,
    /// Constants that are not embedded in the object.
    constants: Option<Constants>,
    /// The device that runs the code, if the object has a device program.
    device: Option<Device>,
}

/// A block of constants, owned by this process or by a shared file mapping, at a multiple of
/// [`ALIGNMENT`].
pub type Constants = Box<dyn AsRef<[u8]> + Send + Sync>;

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executable").field("interface", &self.interface).finish_non_exhaustive()
    }
}

impl Executable {
    /// Loads an object for this machine. The code is trusted: it must come from the compiler, with
    /// the same `interface` and `memory`. Constants that are not embedded in the object are passed
    /// separately.
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

    /// Like [`Self::load`], with constants in memory of any kind.
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
            return Err(Error::internal("the address of the constants is not a multiple of 64 bytes"));
        }
        for (k, result) in interface.results().iter().enumerate() {
            if let Some(alias) = result.alias
                && interface.arguments().get(alias).is_none_or(|a| bytes(&a.shape) < bytes(&result.shape))
            {
                return Err(Error::internal(format!("result {k} does not fit into argument {alias}")));
            }
        }
        Ok(Self {
            device_instances: DeviceInstances::default(),
            object: LoadedObject::load(object, entry_point)?,
            interface,
            memory,
            constants,
            device: None,
        })
    }

    /// Runs the object's device program on this device from now on.
    #[must_use]
    pub fn on_device(self, device: Device) -> Self {
        Self { device: Some(device), ..self }
    }

    /// True if the object has a device program, which needs [`Executable::on_device`].
    pub fn needs_device(&self) -> bool {
        self.object.device_address().is_some()
    }

    /// Loads the device program, if there is one.
    ///
    /// # Safety
    /// The result must not outlive `self`, which owns the program and its constants.
    #[expect(unsafe_code, reason = "addresses in the loaded object")]
    pub unsafe fn device_instance(&self) -> Result<Option<DeviceInstance>> {
        let Some(program) = self.object.device_address() else { return Ok(None) };
        let device = self
            .device
            .as_ref()
            .ok_or_else(|| Error::internal("the code runs on a device, but none was opened for it"))?;
        let constants = self.constants_address();
        // SAFETY: the program and its constants come from the compiler. The caller keeps `self`.
        let instance = unsafe { DeviceInstance::create(device, program.as_ptr().cast(), constants) }?;
        Ok(Some(instance))
    }

    /// Arguments and results of the entry function.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Other memory that the entry function expects.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Creates a set of buffers for one user of the code.
    pub fn instance(&self) -> Result<Instance<'_>> {
        let buffer = |result: &Output| match result.alias {
            Some(_) => AlignedBytes::zeroed(0),
            None => AlignedBytes::zeroed(bytes(&result.shape)),
        };
        // SAFETY: the instance borrows `self`.
        #[expect(unsafe_code, reason = "addresses in the loaded object")]
        let device = unsafe { self.device_instance() }?;
        Ok(Instance {
            executable: self,
            results: self.interface.results().iter().map(buffer).collect::<Result<_>>()?,
            temps: AlignedBytes::zeroed(self.memory.temps_bytes)?,
            scratch: AlignedBytes::zeroed(self.memory.scratch_bytes)?,
            workers: None,
            profile_counters: vec![0; self.memory.profile_counters],
            dynamic_sizes: vec![0; self.interface.size_count()],
            device,
        })
    }

    /// Calls the entry function and returns its status.
    ///
    /// # Safety
    /// The frame's addresses must be valid for the sizes and alignments of the interface. They must
    /// be distinct, except where a result aliases an argument. Nothing else may access their memory
    /// during the call.
    #[expect(unsafe_code, reason = "generated code follows raw addresses")]
    pub unsafe fn call(&self, frame: &mut Frame) -> i32 {
        // SAFETY: `load` requires an object of the compiler, whose entry has this signature.
        let entry = unsafe {
            std::mem::transmute::<*mut (), unsafe extern "C" fn(*mut Frame) -> i32>(
                self.object.entry_address().as_ptr(),
            )
        };
        // SAFETY: required of the caller.
        unsafe { entry(frame) }
    }

    /// Like [`Executable::call`]. A status other than 0 becomes an error with the code's message.
    ///
    /// # Safety
    /// As for [`Executable::call`].
    #[expect(unsafe_code, reason = "generated code follows raw addresses")]
    pub(crate) unsafe fn enter(&self, frame: &mut Frame) -> Result<()> {
        // SAFETY: required of the caller.
        let status = unsafe { self.call(frame) };
        if status == 0 {
            return Ok(());
        }
        if frame.error.is_null() {
            return Err(Error::internal(format!("the code returned status {status} without a message")));
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

/// Results, temporaries, and counters of one user of the code. Persistent state in the temporaries
/// lives as long as this.
pub struct Instance<'e> {
    executable: &'e Executable,
    results: Vec<AlignedBytes>,
    temps: AlignedBytes,
    scratch: AlignedBytes,
    workers: Option<Arc<dyn Workers>>,
    profile_counters: Vec<i64>,
    dynamic_sizes: Vec<i64>,
    device: Option<DeviceInstance>,
}

impl Instance<'_> {
    /// Uses `count` threads from now on, including the caller's; 1 means serial execution. Fails
    /// for 0 or too many threads.
    pub fn set_threads(&mut self, count: usize) -> Result<()> {
        match count {
            1 => self.set_workers(None),
            _ => self.set_workers(Some(Arc::new(thread_pool(count)?))),
        }
    }

    /// Uses these workers for parallel loops from now on. Other instances may share them. `None`
    /// means serial execution.
    pub fn set_workers(&mut self, workers: Option<Arc<dyn Workers>>) -> Result<()> {
        let count = workers.as_ref().map_or(1, |workers| workers.count().max(1));
        let bytes = self.executable.memory.scratch_bytes.checked_mul(count);
        self.scratch = AlignedBytes::zeroed(bytes.unwrap_or(usize::MAX))?;
        self.workers = workers;
        Ok(())
    }

    /// Runs the code once. Variables among the arguments receive their new values.
    ///
    /// # Errors
    /// Fails if the size or alignment of an argument is wrong, or with the code's own message.
    pub fn run(&mut self, arguments: &mut [&mut [u8]]) -> Result<()> {
        let interface = &self.executable.interface;
        if arguments.len() != interface.arguments().len() {
            return Err(Error::invalid(format!(
                "got {} arguments, but the code expects {}",
                arguments.len(),
                interface.arguments().len()
            )));
        }
        for (k, (operand, argument)) in arguments.iter().zip(interface.arguments()).enumerate() {
            let (bytes, alignment) = (bytes(&argument.shape), alignment(argument));
            if operand.len() != bytes {
                return Err(Error::invalid(format!(
                    "argument {k} has {} bytes, but the code expects {bytes}",
                    operand.len()
                )));
            }
            if bytes > 0 && !operand.as_ptr().addr().is_multiple_of(alignment) {
                return Err(Error::invalid(format!(
                    "the address of argument {k} is not a multiple of {alignment} bytes"
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
            device: self.device.as_ref().map_or(std::ptr::null_mut(), DeviceInstance::address),
            ..Frame::empty()
        };
        // SAFETY: arguments were checked against the interface and are borrowed uniquely. Results,
        // temporaries, scratch memory (for all workers), and counters have the interface's sizes
        // and are borrowed uniquely through `self`. Constants are only read. The context is a
        // reference to the workers, which `self` owns.
        #[expect(unsafe_code, reason = "generated code follows raw addresses")]
        let result = unsafe { self.executable.enter(&mut frame) };
        match &self.device {
            Some(device) if device.has_driver_error() => {
                result.map_err(|error| device::run_error(error.message().to_owned()))
            }
            _ => result,
        }
    }

    /// The instance on the device, for profiles.
    pub fn device(&mut self) -> Option<&mut DeviceInstance> {
        self.device.as_mut()
    }

    /// Number of workers that share the work.
    pub fn workers(&self) -> usize {
        self.workers.as_ref().map_or(1, |workers| workers.count())
    }

    /// Bytes of a result; empty if the result is written to an argument.
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
