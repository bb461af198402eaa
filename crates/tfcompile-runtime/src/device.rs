//! Programs that run on a GPU: the device of a model, and calls of its entry function.

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

/// The device of a model. It is opened by the first run and closed when this value is dropped.
#[derive(Debug)]
pub struct Device {
    kind: DeviceKind,
    /// The state of the C runtime, once it is needed.
    state: Option<NonNull<c_void>>,
    /// The program on the device, or null.
    instance: *mut c_void,
}

#[expect(unsafe_code, reason = "the C runtime")]
unsafe extern "C" {
    fn tfcompile_rust_device_create(kind: i32) -> *mut c_void;
    fn tfcompile_rust_device_destroy(state: *mut c_void, frame: *mut Frame);
    fn tfcompile_rust_device_close(state: *mut c_void, frame: *mut Frame);
    fn tfcompile_rust_device_select(state: *mut c_void, frame: *mut Frame, ordinal: i32) -> i32;
    fn tfcompile_rust_device_load(state: *mut c_void, frame: *mut Frame, program: *const c_void) -> i32;
}

// SAFETY: the C runtime's functions may be called from any thread, by one thread at a time for one
// state.
#[expect(unsafe_code, reason = "the C runtime allows it")]
unsafe impl Send for Device {}
// SAFETY: all methods that reach the C runtime need exclusive access.
#[expect(unsafe_code, reason = "as above")]
unsafe impl Sync for Device {}

impl Device {
    /// Device 0 of a driver, not open yet.
    pub const fn new(kind: DeviceKind) -> Self {
        Self { kind, state: None, instance: null_mut() }
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

    /// Selects a device by its number among those of its driver, before the first run.
    ///
    /// # Errors
    /// Returns an error if the device is already open.
    pub fn select(&mut self, ordinal: usize) -> Result<(), Error> {
        let ordinal =
            i32::try_from(ordinal).map_err(|_| Error::new("the number of the device is too large"))?;
        let state = self.state()?;
        let mut frame = Frame::empty();
        // SAFETY: the state and the frame are valid.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status = unsafe { tfcompile_rust_device_select(state, &raw mut frame, ordinal) };
        if status == 0 { Ok(()) } else { Err(failure(&frame, status)) }
    }

    /// Closes the device. The next run opens it again, and loads the constants again.
    pub fn close(&mut self) {
        if let Some(state) = self.state {
            let mut frame = Frame { device: self.instance, ..Frame::empty() };
            // SAFETY: the state is valid, and the instance is its own.
            #[expect(unsafe_code, reason = "the C runtime")]
            unsafe {
                tfcompile_rust_device_close(state.as_ptr(), &raw mut frame);
            }
            self.instance = null_mut();
        }
    }

    /// Opens the device and loads the program if necessary, and calls an entry function.
    ///
    /// # Errors
    /// Returns the driver's error, or that of the program.
    ///
    /// # Safety
    /// As for [`enter`](crate::enter()). `program` must be the device program of the same object. The
    /// frame's constants must stay valid and unchanged until [`Device::close`], or until the device
    /// is dropped.
    #[expect(unsafe_code, reason = "generated code follows raw addresses")]
    pub unsafe fn enter(
        &mut self,
        entry: unsafe extern "C" fn(*mut Frame) -> i32,
        program: *const u8,
        mut frame: Frame,
    ) -> Result<(), Error> {
        let state = self.state()?;
        frame.device = self.instance;
        // SAFETY: the state is valid, the instance is its own, and the caller guarantees the rest.
        let mut status = unsafe { tfcompile_rust_device_load(state, &raw mut frame, program.cast()) };
        self.instance = frame.device;
        if status == 0 {
            // SAFETY: guaranteed by the caller.
            status = unsafe { entry(&raw mut frame) };
        }
        if status == 0 { Ok(()) } else { Err(failure(&frame, status)) }
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
    fn a_device_that_does_not_exist_is_an_error_of_the_first_run() {
        extern "C" fn entry(_frame: *mut Frame) -> i32 {
            0
        }
        let mut device = Device::new(DeviceKind::OpenCl);
        device.select(1000).expect("not open yet");
        device.close();
        for _ in 0..2 {
            // SAFETY: no device is opened, so nothing is read.
            #[expect(unsafe_code, reason = "a call of the runtime")]
            let result = unsafe { device.enter(entry, [0u8; 8].as_ptr(), Frame::empty()) };
            assert!(!result.expect_err("no such device").message().is_empty());
        }
    }
}
