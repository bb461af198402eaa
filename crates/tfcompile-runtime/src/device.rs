//! Programs that run on a GPU: the device of a model, calls of its entry function with host memory,
//! and runs on device memory.

mod array;

pub use array::DeviceArray;

use crate::call::failure;
use crate::{Error, Frame};
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

/// The driver that runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// NVIDIA's driver.
    Cuda,
    /// An OpenCL driver.
    OpenCl,
}

/// The device of a model. It is opened by the first use and closed when this value is dropped.
#[derive(Debug)]
pub struct Device {
    kind: DeviceKind,
    /// The state of the C runtime, once it is needed.
    state: Option<NonNull<c_void>>,
    /// The program on the device, or null.
    instance: *mut c_void,
    /// The caller's addresses of arguments. 0 or none selects the program's own.
    arguments: Vec<u64>,
    /// The caller's addresses of results, likewise.
    results: Vec<u64>,
    /// True from the start of a run on device memory until the caller has waited for it.
    is_started: bool,
}

#[expect(unsafe_code, reason = "the C runtime")]
unsafe extern "C" {
    fn tfcompile_rust_device_create(kind: i32) -> *mut c_void;
    fn tfcompile_rust_device_destroy(state: *mut c_void, frame: *mut Frame);
    fn tfcompile_rust_device_close(state: *mut c_void, frame: *mut Frame);
    fn tfcompile_rust_device_select(state: *mut c_void, frame: *mut Frame, ordinal: i32) -> i32;
    fn tfcompile_rust_device_load(state: *mut c_void, frame: *mut Frame, program: *const c_void) -> i32;
    fn tfcompile_rust_device_own(state: *mut c_void, frame: *mut Frame) -> i32;
    fn tfcompile_rust_device_start(
        state: *mut c_void,
        frame: *mut Frame,
        arguments: *const u64,
        argument_count: usize,
        results: *const u64,
        result_count: usize,
        stream: *mut c_void,
    ) -> i32;
    fn tfcompile_rust_device_finish(
        state: *mut c_void,
        frame: *mut Frame,
        sizes: *mut i64,
        size_count: usize,
    ) -> i32;
    fn tfcompile_rust_device_stream(frame: *const Frame) -> *mut c_void;
    fn tfcompile_rust_device_context(state: *const c_void) -> *mut c_void;
}

// SAFETY: the C runtime's functions may be called from any thread, by one thread at a time for one
// state.
#[expect(unsafe_code, reason = "the C runtime allows it")]
unsafe impl Send for Device {}
// SAFETY: the methods that take a shared reference only read.
#[expect(unsafe_code, reason = "as above")]
unsafe impl Sync for Device {}

impl Device {
    /// Device 0 of a driver, not open yet.
    pub const fn new(kind: DeviceKind) -> Self {
        Self {
            kind,
            state: None,
            instance: null_mut(),
            arguments: Vec::new(),
            results: Vec::new(),
            is_started: false,
        }
    }

    fn state(&mut self) -> Result<*mut c_void, Error> {
        if self.state.is_none() {
            let kind = match self.kind {
                DeviceKind::Cuda => 1,
                DeviceKind::OpenCl => 2,
            };
            // SAFETY: the function only allocates.
            #[expect(unsafe_code, reason = "the C runtime")]
            let state = unsafe { tfcompile_rust_device_create(kind) };
            self.state = NonNull::new(state);
        }
        let state = self.state.ok_or(Error::new("not enough memory for the state of a device"))?;
        Ok(state.as_ptr())
    }

    /// Calls a function of the C runtime with the state, and a frame with the program.
    fn call(&mut self, function: impl FnOnce(*mut c_void, *mut Frame) -> i32) -> Result<(), Error> {
        let state = self.state()?;
        let mut frame = Frame { device: self.instance, ..Frame::empty() };
        let status = function(state, &raw mut frame);
        self.instance = frame.device;
        if status == 0 { Ok(()) } else { Err(failure(&frame, status)) }
    }

    /// Like [`Device::call`], with a program on the device.
    fn call_loaded(&mut self, function: impl FnOnce(*mut c_void, *mut Frame) -> i32) -> Result<(), Error> {
        if self.instance.is_null() {
            return Err(Error::new("the program is not on the device"));
        }
        self.call(function)
    }

    /// Selects a device by its number among those of its driver, before the first run.
    ///
    /// # Errors
    /// Returns an error if the device is already open.
    pub fn select(&mut self, ordinal: usize) -> Result<(), Error> {
        let ordinal =
            i32::try_from(ordinal).map_err(|_| Error::new("the number of the device is too large"))?;
        // SAFETY: the state and the frame are valid.
        #[expect(unsafe_code, reason = "the C runtime")]
        self.call(|state, frame| unsafe { tfcompile_rust_device_select(state, frame, ordinal) })
    }

    /// Waits for the work of the program and closes the device. The next use opens it again, and
    /// loads the constants again. The program's own device memory starts as zeros again.
    pub fn close(&mut self) {
        if let Some(state) = self.state {
            let mut frame = Frame { device: self.instance, ..Frame::empty() };
            // SAFETY: the state is valid, and the instance is its own.
            #[expect(unsafe_code, reason = "the C runtime")]
            unsafe {
                tfcompile_rust_device_close(state.as_ptr(), &raw mut frame);
            }
            self.instance = null_mut();
            self.is_started = false;
        }
    }

    /// Opens the device and loads the program if necessary.
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// `program` and `constants` must be the device program and the constants of one object. Both
    /// must stay valid and unchanged until [`Device::close`], or until the device is dropped.
    #[expect(unsafe_code, reason = "generated code follows raw addresses")]
    pub unsafe fn load(&mut self, program: *const u8, constants: *const c_void) -> Result<(), Error> {
        self.call(|state, frame| {
            // SAFETY: the state and the frame are valid, and the instance is its own. The caller
            // guarantees the rest.
            unsafe {
                (*frame).constants = constants;
                tfcompile_rust_device_load(state, frame, program.cast())
            }
        })
    }

    /// Calls the entry function of the loaded program, which copies arguments to the device and
    /// results back.
    ///
    /// # Errors
    /// Returns the driver's error, or that of the program.
    ///
    /// # Safety
    /// As for [`enter`](crate::enter()). `entry` and the loaded program must be of the same object.
    #[expect(unsafe_code, reason = "generated code follows raw addresses")]
    pub unsafe fn enter(
        &mut self,
        entry: unsafe extern "C" fn(*mut Frame) -> i32,
        frame: Frame,
    ) -> Result<(), Error> {
        // SAFETY: the state and the frame are valid, and the instance is its own.
        self.call_loaded(|state, frame| unsafe { tfcompile_rust_device_own(state, frame) })?;
        let mut frame = Frame { device: self.instance, ..frame };
        // SAFETY: guaranteed by the caller.
        let status = unsafe { entry(&raw mut frame) };
        if status == 0 { Ok(()) } else { Err(failure(&frame, status)) }
    }

    /// Starts a run of the loaded program on device memory, on the program's own stream. Runs of a
    /// program are ordered.
    ///
    /// # Errors
    /// Returns the driver's error. Nothing is in progress then.
    pub fn start(&mut self) -> Result<(), Error> {
        // SAFETY: the null stream is the program's own.
        #[expect(unsafe_code, reason = "a stream of the C runtime")]
        unsafe {
            self.start_on(null_mut())
        }
    }

    /// Like [`Device::start`], on a stream of the caller's. Null selects the program's own.
    ///
    /// # Errors
    /// As for [`Device::start`].
    ///
    /// # Safety
    /// `stream` must be a `CUstream` of the device's primary context, or an in-order
    /// `cl_command_queue` of the context [`Device::context`]. It must stay valid until the run is
    /// done.
    #[expect(unsafe_code, reason = "a stream of the caller's")]
    pub unsafe fn start_on(&mut self, stream: *mut c_void) -> Result<(), Error> {
        let (arguments, results) = (std::mem::take(&mut self.arguments), std::mem::take(&mut self.results));
        // SAFETY: the state, the frame, and the arrays are valid, and the instance is its own.
        // The addresses are guaranteed by `DeviceArray::set_address`, the stream by the caller.
        let result = self.call_loaded(|state, frame| unsafe {
            tfcompile_rust_device_start(
                state,
                frame,
                arguments.as_ptr(),
                arguments.len(),
                results.as_ptr(),
                results.len(),
                stream,
            )
        });
        (self.arguments, self.results) = (arguments, results);
        self.is_started = result.is_ok();
        result
    }

    /// Waits for the last [`Device::start`], if there is one to wait for, and stores the actual
    /// sizes of bounded dimensions.
    ///
    /// # Errors
    /// Returns the driver's error, or that of the program.
    pub fn finish(&mut self, sizes: &mut [i64]) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_started) {
            return Ok(());
        }
        // SAFETY: the state, the frame, and the sizes are valid, and the instance is its own.
        #[expect(unsafe_code, reason = "the C runtime")]
        self.call_loaded(|state, frame| unsafe {
            tfcompile_rust_device_finish(state, frame, sizes.as_mut_ptr(), sizes.len())
        })
    }

    /// Returns the stream of the loaded program: a `CUstream` or a `cl_command_queue`. It is valid
    /// until [`Device::close`], or until the device is dropped. Null if no program is loaded.
    pub fn stream(&self) -> *mut c_void {
        if self.instance.is_null() {
            return null_mut();
        }
        let frame = Frame { device: self.instance, ..Frame::empty() };
        // SAFETY: the instance is alive.
        #[expect(unsafe_code, reason = "the C runtime")]
        unsafe {
            tfcompile_rust_device_stream(&raw const frame)
        }
    }

    /// Returns the driver's context of the open device, in which the caller can allocate memory and
    /// create streams: a `CUcontext` or a `cl_context`. Null if the device is not open.
    pub fn context(&self) -> *mut c_void {
        match self.state {
            Some(state) if !self.instance.is_null() => {
                // SAFETY: the device of a loaded program is open.
                #[expect(unsafe_code, reason = "the C runtime")]
                unsafe {
                    tfcompile_rust_device_context(state.as_ptr())
                }
            }
            _ => null_mut(),
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(state) = self.state {
            let mut frame = Frame { device: self.instance, ..Frame::empty() };
            // SAFETY: the state is valid and not used afterwards, and the instance is its own.
            #[expect(unsafe_code, reason = "the C runtime")]
            unsafe {
                tfcompile_rust_device_destroy(state.as_ptr(), &raw mut frame);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_does_not_exist_is_an_error_of_every_use() {
        let mut device = Device::new(DeviceKind::OpenCl);
        device.select(1000).expect("not open yet");
        device.close();
        for _ in 0..2 {
            // SAFETY: no device is opened, so nothing is read.
            #[expect(unsafe_code, reason = "a call of the runtime")]
            let result = unsafe { device.load([0u8; 8].as_ptr(), core::ptr::null()) };
            assert!(!result.expect_err("no such device").message().is_empty());
        }
        assert!(device.stream().is_null() && device.context().is_null());
    }

    #[test]
    fn a_program_that_is_not_loaded_does_not_run() {
        extern "C" fn entry(_frame: *mut Frame) -> i32 {
            panic!("called without a device");
        }
        let mut device = Device::new(DeviceKind::OpenCl);
        // SAFETY: nothing is called.
        #[expect(unsafe_code, reason = "a call of the runtime")]
        let entered = unsafe { device.enter(entry, Frame::empty()) };
        let started = device.start();
        for result in [entered, started] {
            assert_eq!(result.expect_err("not loaded").message(), "the program is not on the device");
        }
        device.finish(&mut []).expect("nothing to wait for");
    }
}
