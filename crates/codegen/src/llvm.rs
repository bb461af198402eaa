//! Process-wide state of LLVM: its back ends, and the handler of their fatal errors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::rc::Rc;
use std::sync::Once;

use inkwell::builder::BuilderError;
use inkwell::context::Context;
use inkwell::llvm_sys;
use inkwell::targets::{InitializationConfig, Target};
use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use llvm_sys::prelude::LLVMDiagnosticInfoRef;
use llvm_sys::support::LLVMParseCommandLineOptions;
use support::{Error, Result};

/// Conversion of LLVM's errors while instructions are built. Such errors are defects of the
/// translation.
pub(crate) trait Built<T> {
    /// Returns the value, or our error.
    fn built(self) -> Result<T>;
}

impl<T> Built<T> for std::result::Result<T, BuilderError> {
    fn built(self) -> Result<T> {
        self.map_err(|e| Error::internal(format!("LLVM rejects an instruction: {e}")))
    }
}

/// Registers all back ends of LLVM and installs the handler of fatal errors. Cheap if already done.
pub(crate) fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function of the right type and lives as long as the process.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        unsafe {
            LLVMInstallFatalErrorHandler(Some(fatal_error));
        }
        Target::initialize_all(&InitializationConfig::default());
        // `addresses` already does the work of this pass, which would take two fifths of the code
        // generator's time. Where that does not suffice, `passes` includes it. LLVM has no other
        // way to disable it.
        let words = [c"tfcompile".as_ptr(), c"-disable-lsr".as_ptr()];
        // SAFETY: the count matches the NUL-terminated words, which LLVM copies; nothing generates
        // code yet.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        unsafe {
            LLVMParseCommandLineOptions(words.len() as i32, words.as_ptr(), std::ptr::null());
        }
    });
}

/// Returns LLVM's version.
pub fn version() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{major}.{minor}.{patch}")
}

#[expect(unsafe_code, reason = "a function of cpp/memory.cc")]
unsafe extern "C" {
    fn tfcompile_on_exhausted_memory(handler: extern "C" fn());
}

/// Sets the function to call if LLVM cannot allocate memory. It must end the process, because LLVM
/// does not handle failed allocations. Without it, LLVM raises SIGABRT.
pub fn on_exhausted_memory(handler: extern "C" fn()) {
    // SAFETY: the handler is a function and lives as long as the process.
    #[expect(unsafe_code, reason = "a function of cpp/memory.cc")]
    unsafe {
        tfcompile_on_exhausted_memory(handler);
    }
}

/// Handles LLVM's fatal errors: prints one message and exits with code 1. LLVM itself would raise
/// SIGABRT.
extern "C" fn fatal_error(reason: *const c_char) {
    // SAFETY: LLVM passes a NUL-terminated string that outlives the call.
    #[expect(unsafe_code, reason = "LLVM's C interface")]
    let reason = unsafe { CStr::from_ptr(reason) };
    eprintln!("error: LLVM cannot generate code for this target: {}", reason.to_string_lossy());
    std::process::exit(1);
}

/// Collector of diagnostics that back ends report through a context: errors, which LLVM would
/// print, and the sizes of stack frames, which LLVM reports for functions with the attribute
/// `warn-stack-size`.
pub(crate) struct Diagnostics {
    collected: Rc<RefCell<Collected>>,
}

#[derive(Default)]
struct Collected {
    errors: Vec<String>,
    frames: BTreeMap<String, u64>,
}

impl Diagnostics {
    /// Listens to a context. The result must outlive all code generation in it.
    pub(crate) fn listen(context: &Context) -> Self {
        let collected = Rc::<RefCell<Collected>>::default();
        let data = Rc::as_ptr(&collected).cast_mut();
        // SAFETY: the record does not move while `self` lives, and the caller keeps `self` while it
        // generates code.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        unsafe {
            LLVMContextSetDiagnosticHandler(context.raw(), Some(collect), data.cast());
        }
        Self { collected }
    }

    /// Returns the first error so far.
    pub(crate) fn first_error(&self) -> Option<String> {
        self.collected.borrow().errors.first().cloned()
    }

    /// Returns the size of each function's stack frame in bytes, for functions with a frame.
    pub(crate) fn frames(&self) -> BTreeMap<String, u64> {
        self.collected.borrow().frames.clone()
    }
}

extern "C" fn collect(diagnostic: LLVMDiagnosticInfoRef, data: *mut c_void) {
    // SAFETY: LLVM calls this with a live diagnostic and with the pointer that `listen` registered,
    // on the thread that generates code. The caller must free the description.
    #[expect(unsafe_code, reason = "LLVM's C interface")]
    let (severity, text, collected) = unsafe {
        let description = LLVMGetDiagInfoDescription(diagnostic);
        let text = CStr::from_ptr(description).to_string_lossy().into_owned();
        LLVMDisposeMessage(description);
        (LLVMGetDiagInfoSeverity(diagnostic), text, &*data.cast::<RefCell<Collected>>())
    };
    match severity {
        LLVMDiagnosticSeverity::LLVMDSError => collected.borrow_mut().errors.push(text),
        LLVMDiagnosticSeverity::LLVMDSWarning => {
            if let Some((function, bytes)) = frame_size(&text) {
                let frames = &mut collected.borrow_mut().frames;
                let known = frames.entry(function.to_owned()).or_default();
                *known = bytes.max(*known);
            }
        }
        _ => {}
    }
}

/// Parses the function and the size in `stack frame size (24) exceeds limit (0) in function 'f'`.
fn frame_size(text: &str) -> Option<(&str, u64)> {
    let (_, rest) = text.split_once("stack frame size (")?;
    let (bytes, rest) = rest.split_once(')')?;
    let (_, function) = rest.split_once("in function '")?;
    Some((function.strip_suffix('\'')?, bytes.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_sizes_are_read_from_the_report() {
        let text = "<unknown>:0:0: stack frame size (24) exceeds limit (0) in function 'e.model/dense_0'";
        assert_eq!(frame_size(text), Some(("e.model/dense_0", 24)));
        assert_eq!(frame_size("something else"), None);
    }
}
