//! What LLVM holds once for a whole process: its back ends, and what happens when one of them gives up.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::rc::Rc;
use std::sync::Once;

use inkwell::context::Context;
use inkwell::llvm_sys;
use inkwell::targets::{InitializationConfig, Target};
use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use llvm_sys::prelude::LLVMDiagnosticInfoRef;

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
    });
}

/// LLVM cannot go on, and does not return: one message and exit code 1, where LLVM itself would raise SIGABRT.
extern "C" fn fatal_error(reason: *const c_char) {
    // SAFETY: LLVM hands over a NUL-terminated string that outlives the call.
    #[expect(unsafe_code, reason = "LLVM's C interface")]
    let reason = unsafe { CStr::from_ptr(reason) };
    eprintln!("error: LLVM cannot generate code for this target: {}", reason.to_string_lossy());
    std::process::exit(1);
}

/// Collects the errors that back ends report through a context, which LLVM would print.
pub(crate) struct Diagnostics {
    errors: Rc<RefCell<Vec<String>>>,
}

impl Diagnostics {
    /// Listens to a context. The result must live as long as code is generated in it.
    pub(crate) fn listen(context: &Context) -> Self {
        let errors = Rc::<RefCell<Vec<String>>>::default();
        let data = Rc::as_ptr(&errors).cast_mut();
        // SAFETY: the list stays where it is as long as `self` lives, which the caller keeps while it generates code.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        unsafe {
            LLVMContextSetDiagnosticHandler(context.raw(), Some(collect), data.cast());
        }
        Self { errors }
    }

    /// The first error so far.
    pub(crate) fn first_error(&self) -> Option<String> {
        self.errors.borrow().first().cloned()
    }
}

extern "C" fn collect(diagnostic: LLVMDiagnosticInfoRef, data: *mut c_void) {
    // SAFETY: LLVM calls this with a live diagnostic and with the pointer that `listen` registered, on the thread
    // that generates code; the description is ours to free.
    #[expect(unsafe_code, reason = "LLVM's C interface")]
    unsafe {
        if LLVMGetDiagInfoSeverity(diagnostic) != LLVMDiagnosticSeverity::LLVMDSError {
            return;
        }
        let description = LLVMGetDiagInfoDescription(diagnostic);
        let errors = &*data.cast::<RefCell<Vec<String>>>();
        errors.borrow_mut().push(CStr::from_ptr(description).to_string_lossy().into_owned());
        LLVMDisposeMessage(description);
    }
}
