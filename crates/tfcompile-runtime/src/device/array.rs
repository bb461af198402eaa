//! Arguments and results in device memory.

use super::Device;
use crate::{Error, Frame, Plain};
use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::null_mut;

#[expect(unsafe_code, reason = "the C runtime")]
unsafe extern "C" {
    fn tfcompile_rust_device_address(
        state: *mut c_void,
        frame: *mut Frame,
        is_result: i32,
        index: u32,
        address: *mut u64,
    ) -> i32;
    fn tfcompile_rust_device_copy(
        state: *mut c_void,
        frame: *mut Frame,
        is_out: i32,
        host: *mut c_void,
        address: u64,
        bytes: u64,
        stream: *mut c_void,
    ) -> i32;
    fn tfcompile_rust_device_resident(
        state: *mut c_void,
        frame: *mut Frame,
        argument: u32,
        is_resident: i32,
    ) -> i32;
}

/// Device memory of an argument or a result of a model, for runs on device memory. `T` is the array
/// type, such as `[[f32; 3]; 2]`.
///
/// By default this is the model's own memory, which starts as zeros.
#[derive(Debug)]
pub struct DeviceArray<'d, T> {
    device: &'d mut Device,
    is_result: bool,
    index: u32,
    array: PhantomData<T>,
}

/// Direction of a copy.
#[derive(Clone, Copy)]
enum Direction {
    ToDevice = 0,
    ToHost = 1,
}

impl Device {
    /// Returns the device memory of an argument of the loaded program.
    ///
    /// # Safety
    /// The program must have this argument, with the type `T`.
    #[expect(unsafe_code, reason = "generated code knows the type")]
    pub unsafe fn argument<T: Plain>(&mut self, index: u32) -> DeviceArray<'_, T> {
        DeviceArray { device: self, is_result: false, index, array: PhantomData }
    }

    /// Returns the device memory of a result of the loaded program, which must not be that of a
    /// variable.
    ///
    /// # Safety
    /// The program must have this result, with the type `T`.
    #[expect(unsafe_code, reason = "generated code knows the type")]
    pub unsafe fn result<T: Plain>(&mut self, index: u32) -> DeviceArray<'_, T> {
        DeviceArray { device: self, is_result: true, index, array: PhantomData }
    }
}

impl<T: Plain> DeviceArray<'_, T> {
    /// The caller's addresses of all arrays of this kind.
    fn chosen(&mut self) -> &mut Vec<u64> {
        if self.is_result { &mut self.device.results } else { &mut self.device.arguments }
    }

    /// Returns the address on the device: the caller's if set, else that of the model's own memory.
    /// With OpenCL, it is a pointer to shared virtual memory. The model's own memory is valid until
    /// the model is dropped or gets other constants.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn address(&mut self) -> Result<u64, Error> {
        let index = self.index as usize;
        let mut address = self.chosen().get(index).copied().unwrap_or(0);
        if address == 0 {
            let (is_result, index) = (i32::from(self.is_result), self.index);
            let place = &raw mut address;
            // SAFETY: the state, the frame, and the place are valid, and the instance is its own.
            #[expect(unsafe_code, reason = "the C runtime")]
            self.device.call_loaded(|state, frame| unsafe {
                tfcompile_rust_device_address(state, frame, is_result, index, place)
            })?;
        }
        Ok(address)
    }

    /// Uses memory of the caller's in later runs on device memory. 0 selects the model's own again.
    /// Runs on host memory do not use it.
    ///
    /// # Safety
    /// The address must be a multiple of 16 on the model's device, with `size_of::<T>()` bytes that
    /// are a valid `T`. Until another address is set and the runs with this one are done, or until
    /// the model is dropped, the memory must stay valid, and nothing may write to it during a run
    /// or a copy of the model. If the array is a result or a written variable, nothing may read it
    /// then either, and it must not overlap other arrays of the model.
    #[expect(unsafe_code, reason = "an address of the caller's")]
    pub unsafe fn set_address(&mut self, address: u64) {
        debug_assert!(address.is_multiple_of(16), "the address is not a multiple of 16");
        let index = self.index as usize;
        let chosen = self.chosen();
        chosen.resize(chosen.len().max(index + 1), 0);
        chosen[index] = address;
    }

    /// Waits for the model's last run, and copies an array from the host.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy_from(&mut self, from: &T) -> Result<(), Error> {
        let from = core::ptr::from_ref(from).cast_mut();
        // SAFETY: the host memory is borrowed during the call, which is done on return.
        #[expect(unsafe_code, reason = "the C runtime")]
        unsafe {
            self.copy(Direction::ToDevice, from, null_mut())
        }
    }

    /// Waits for the model's last run, and copies the array to the host. A failed assertion of the
    /// run is not an error here.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy_to(&mut self, to: &mut T) -> Result<(), Error> {
        // SAFETY: as above, borrowed uniquely.
        #[expect(unsafe_code, reason = "the C runtime")]
        unsafe {
            self.copy(Direction::ToHost, to, null_mut())
        }
    }

    /// Starts to copy an array from the host, in the order of a stream.
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// As for [`Device::start_on`]. The stream must not be null. `from` must be valid for reads and
    /// unchanged until the copy is done, and no run on another stream may use the array.
    #[expect(unsafe_code, reason = "memory and a stream of the caller's")]
    pub unsafe fn copy_from_on(&mut self, from: *const T, stream: *mut c_void) -> Result<(), Error> {
        // SAFETY: required of the caller.
        unsafe { self.copy(Direction::ToDevice, from.cast_mut(), stream) }
    }

    /// Starts to copy the array to the host, in the order of a stream.
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// As for [`Device::start_on`]. The stream must not be null. `to` must be valid for writes and
    /// used by nothing else until the copy is done, and no run on another stream may write to the
    /// array.
    #[expect(unsafe_code, reason = "memory and a stream of the caller's")]
    pub unsafe fn copy_to_on(&mut self, to: *mut T, stream: *mut c_void) -> Result<(), Error> {
        // SAFETY: required of the caller.
        unsafe { self.copy(Direction::ToHost, to, stream) }
    }

    /// Copies on a stream. With a null one, copies after the last run and returns when done.
    ///
    /// # Safety
    /// `host` and `stream` are valid until the copy is done.
    #[expect(unsafe_code, reason = "addresses")]
    unsafe fn copy(&mut self, direction: Direction, host: *mut T, stream: *mut c_void) -> Result<(), Error> {
        let (address, bytes) = (self.address()?, size_of::<T>() as u64);
        // SAFETY: the state and the frame are valid, and the instance is its own. The device memory
        // has the size of the type; the caller guarantees the rest.
        self.device.call_loaded(|state, frame| unsafe {
            tfcompile_rust_device_copy(state, frame, direction as i32, host.cast(), address, bytes, stream)
        })
    }

    /// Makes runs on host memory use the model's own device memory of an argument as it is, without
    /// a copy from or to the host: for weights and variables that [`DeviceArray::copy_from`] has
    /// stored there. This ends when the model gets other constants.
    ///
    /// # Errors
    /// Returns an error if the array is a result, or the driver's.
    pub fn set_resident(&mut self, is_resident: bool) -> Result<(), Error> {
        if self.is_result {
            return Err(Error::new("a result cannot be resident: only arguments are copied to the device"));
        }
        let (index, is_resident) = (self.index, i32::from(is_resident));
        // SAFETY: the state and the frame are valid, and the instance is its own.
        #[expect(unsafe_code, reason = "the C runtime")]
        self.device.call_loaded(|state, frame| unsafe {
            tfcompile_rust_device_resident(state, frame, index, is_resident)
        })
    }
}
