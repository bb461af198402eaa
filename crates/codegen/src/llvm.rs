//! What LLVM holds once for a whole process: its back ends, and what happens when one of them gives up.

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

/// LLVM's refusals of instructions are defects of the translation.
pub(crate) trait Built<T> {
    /// The value, or our error.
    fn built(self) -> Result<T>;
}

impl<T> Built<T> for std::result::Result<T, BuilderError> {
    fn built(self) -> Result<T> {
        self.map_err(|e| Error::internal(format!("LLVM refuses an instruction: {e}")))
    }
}

/// Makes every back end of this LLVM known and installs the handler of fatal errors. Cheap when done already.
pub(crate) fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function of the right type and lives as long as the process.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        unsafe {
            LLVMInstallFatalErrorHandler(Some(fatal_error));
        }
        Target::initialize_all(&InitializationConfig::default());
        // `addresses` has done what this pass of the code generator takes two fifths of the time for; where that is not
        // enough, it is one of `passes`. LLVM has no other way to leave it out.
        let words = [c"tfcompile".as_ptr(), c"-disable-lsr".as_ptr()];
        // SAFETY: as many NUL-terminated words as are told, of which LLVM keeps copies; nothing generates code yet.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        unsafe {
            LLVMParseCommandLineOptions(words.len() as i32, words.as_ptr(), std::ptr::null());
        }
    });
}

/// LLVM's version.
pub fn version() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{major}.{minor}.{patch}")
}

/// LLVM cannot go on, and does not return: one message and exit code 1, where LLVM itself would raise SIGABRT.
extern "C" fn fatal_error(reason: *const c_char) {
    // SAFETY: LLVM hands over a NUL-terminated string that outlives the call.
    #[expect(unsafe_code, reason = "LLVM's C interface")]
    let reason = unsafe { CStr::from_ptr(reason) };
    eprintln!("error: LLVM cannot generate code for this target: {}", reason.to_string_lossy());
    std::process::exit(1);
}

/// Collects what back ends report through a context: errors, which LLVM would print, and the sizes of stack frames,
/// which LLVM reports of functions with the attribute `warn-stack-size`.
pub(crate) struct Diagnostics {
    collected: Rc<RefCell<Collected>>,
}

#[derive(Default)]
struct Collected {
    errors: Vec<String>,
    frames: BTreeMap<String, u64>,
}

impl Diagnostics {
    /// Listens to a context. The result must live as long as code is generated in it.
    pub(crate) fn listen(context: &Context) -> Self {
        let collected = Rc::<RefCell<Collected>>::default();
        let data = Rc::as_ptr(&collected).cast_mut();
        // SAFETY: the record stays where it is as long as `self` lives, which the caller keeps while it generates code.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        unsafe {
            LLVMContextSetDiagnosticHandler(context.raw(), Some(collect), data.cast());
        }
        Self { collected }
    }

    /// The first error so far.
    pub(crate) fn first_error(&self) -> Option<String> {
        self.collected.borrow().errors.first().cloned()
    }

    /// The bytes of the stack frame of each function that has one.
    pub(crate) fn frames(&self) -> BTreeMap<String, u64> {
        self.collected.borrow().frames.clone()
    }
}

extern "C" fn collect(diagnostic: LLVMDiagnosticInfoRef, data: *mut c_void) {
    // SAFETY: LLVM calls this with a live diagnostic and with the pointer that `listen` registered, on the thread
    // that generates code; the description is ours to free.
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

/// The function and the bytes in `stack frame size (24) exceeds limit (0) in function 'f'`.
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
