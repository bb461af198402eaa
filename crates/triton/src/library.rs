//! A shared library in this process, from bytes.
//!
//! The dynamic linker knows a library by its file. For a file that was overwritten while the old
//! model still runs, it would return the old code, which would crash. The bytes are therefore
//! copied to memory that has a file of its own.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;
use support::{Error, Result};

/// A loaded library. Its addresses are valid as long as it lives.
#[derive(Debug)]
pub struct Library {
    handle: NonNull<c_void>,
    /// The copy. The linker compares names, and the name is the number of this file, so it stays
    /// open: no later library can have the same name.
    _file: File,
}

// SAFETY: the dynamic linker may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: as above; `&Library` only hands out addresses.
unsafe impl Sync for Library {}

const MFD_CLOEXEC: c_uint = 1;
const RTLD_NOW: c_int = 2;

unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
    fn dlerror() -> *const c_char;
}

impl Library {
    /// Loads a library, whose code is trusted.
    pub fn load(bytes: &[u8]) -> Result<Self> {
        let cannot = |e: std::io::Error| Error::invalid(format!("cannot copy the library to memory: {e}"));
        // SAFETY: the name ends with NUL.
        let descriptor = unsafe { memfd_create(c"tfcompile".as_ptr(), MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(cannot(std::io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is new, and nothing else closes it.
        let mut file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        file.write_all(bytes).map_err(cannot)?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("digits");
        // SAFETY: the path ends with NUL. What tfcompile writes has no initializers.
        let handle = NonNull::new(unsafe { dlopen(path.as_ptr(), RTLD_NOW) });
        let handle = handle.ok_or_else(|| {
            // SAFETY: the message of the failure above, which ends with NUL.
            let why = unsafe { CStr::from_ptr(dlerror()) }.to_string_lossy();
            let why = why.strip_prefix(&*path.to_string_lossy()).map_or(&*why, |why| why.trim_start_matches(": "));
            Error::invalid(format!(
                "the dynamic linker refuses the library: {why}; build it for this machine, with the code of its custom calls"
            ))
        })?;
        Ok(Self { handle, _file: file })
    }

    /// Returns the address of an exported symbol.
    pub fn symbol(&self, name: &str) -> Option<NonNull<c_void>> {
        let name = CString::new(name).ok()?;
        // SAFETY: the library is loaded, and the name ends with NUL.
        NonNull::new(unsafe { dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: loaded by `load`, closed once. Users of addresses keep the library.
        unsafe { dlclose(self.handle.as_ptr()) };
    }
}
