//! Memory on a device.

use crate::{Device, failed, ffi};
use support::Result;

/// A block of a device's memory, from its pool or of the caller's.
#[derive(Debug)]
pub struct Memory {
    address: u64,
    len: usize,
    /// True if the block is from the pool.
    is_owned: bool,
    /// Closed after the memory is returned.
    device: Device,
}

impl Memory {
    /// Allocates `len` bytes, whose contents are undefined.
    ///
    /// Errors: `invalid` with code `Device` if there is too little memory.
    pub fn uninitialized(device: &Device, len: usize) -> Result<Self> {
        let (mut address, mut error) = (0, ffi::Failure::new());
        // SAFETY: the device is open, and the addresses are valid during the call.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status =
            unsafe { ffi::tfcdev_alloc(device.pointer(), len.max(1) as u64, &mut address, &mut error) };
        if status != 0 {
            return Err(failed(&error));
        }
        Ok(Self { address, len, is_owned: true, device: device.clone() })
    }

    /// Returns a block of memory of the caller's, which is not freed.
    ///
    /// # Safety
    /// There are `len` bytes at the address on the device. They stay valid as long as the result,
    /// and nothing else writes to them or, if the result is written, uses them.
    #[expect(unsafe_code, reason = "an address of the caller's")]
    pub unsafe fn of_caller(device: &Device, address: u64, len: usize) -> Self {
        Self { address, len, is_owned: false, device: device.clone() }
    }

    /// Copies bytes of the host to the device.
    pub fn from_bytes(device: &Device, bytes: &[u8]) -> Result<Self> {
        let mut memory = Self::uninitialized(device, bytes.len())?;
        memory.copy_in(bytes)?;
        Ok(memory)
    }

    /// Copies bytes of the host to the memory. Panics if the lengths differ.
    pub fn copy_in(&mut self, bytes: &[u8]) -> Result<()> {
        assert_eq!(bytes.len(), self.len, "lengths of a copy");
        let mut error = ffi::Failure::new();
        // SAFETY: both blocks have the same length, and the call returns when the copy is done.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status = unsafe {
            ffi::tfcdev_copy_in(
                self.device.pointer(),
                self.address,
                bytes.as_ptr().cast(),
                bytes.len() as u64,
                &mut error,
            )
        };
        if status == 0 { Ok(()) } else { Err(failed(&error)) }
    }

    /// Copies the memory to the host. Panics if the lengths differ.
    pub fn copy_out(&self, bytes: &mut [u8]) -> Result<()> {
        assert_eq!(bytes.len(), self.len, "lengths of a copy");
        let mut error = ffi::Failure::new();
        // SAFETY: both blocks have the same length, and the call returns when the copy is done.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status = unsafe {
            ffi::tfcdev_copy_out(
                self.device.pointer(),
                bytes.as_mut_ptr().cast(),
                self.address,
                self.len as u64,
                &mut error,
            )
        };
        if status == 0 { Ok(()) } else { Err(failed(&error)) }
    }

    /// Copies the memory to new memory on the same device.
    pub fn duplicate(&self) -> Result<Self> {
        let copy = Self::uninitialized(&self.device, self.len)?;
        let mut error = ffi::Failure::new();
        // SAFETY: both blocks have the same length, and the call returns when the copy is done.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status = unsafe {
            ffi::tfcdev_copy(self.device.pointer(), copy.address, self.address, self.len as u64, &mut error)
        };
        if status == 0 { Ok(copy) } else { Err(failed(&error)) }
    }

    /// Address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.is_owned {
            return;
        }
        // SAFETY: the device is open, and runs that use the memory have ended.
        #[expect(unsafe_code, reason = "the C runtime")]
        unsafe {
            ffi::tfcdev_free(self.device.pointer(), self.address);
        }
    }
}
