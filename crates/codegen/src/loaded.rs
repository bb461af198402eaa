//! Objects loaded into this process with LLVM's own linker.

use std::ffi::{CStr, CString};
use std::ptr::{NonNull, null_mut};

use inkwell::llvm_sys;
use llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile, LLVMOrcLLJITGetMainJITDylib,
    LLVMOrcLLJITLookup, LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
};
use llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcAbsoluteSymbols,
    LLVMOrcCSymbolMapPair, LLVMOrcJITDylibDefine,
};
use support::{Error, Result};

use crate::llvm;

/// Entry function and constants of an object. They are callable as long as this value lives.
#[derive(Debug)]
pub struct LoadedObject {
    /// Owner of the memory that the addresses below point into.
    jit: Jit,
    entry: NonNull<()>,
    constants: NonNull<u8>,
    /// The device program, if the object has one.
    device: Option<NonNull<u8>>,
}

#[derive(Debug)]
struct Jit(LLVMOrcLLJITRef);

// SAFETY: LLVM's JIT may be used and freed on any thread; the code and the constants are only read.
#[expect(unsafe_code, reason = "addresses of immutable memory")]
unsafe impl Send for LoadedObject {}
// SAFETY: as above; `&LoadedObject` only hands out addresses.
#[expect(unsafe_code, reason = "addresses of immutable memory")]
unsafe impl Sync for LoadedObject {}

#[expect(unsafe_code, reason = "the functions that generated code may need, of this process")]
unsafe extern "C" {
    fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
    fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
    fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8;
}

impl LoadedObject {
    /// Loads an object that [`compile`](crate::compile) generated for this machine.
    pub fn load(object: &[u8], entry_point: &str) -> Result<Self> {
        llvm::initialize();
        let jit = Jit::create()?;
        jit.define_allowed_symbols()?;
        jit.add(object)?;
        let constants = jit.lookup(&format!("{entry_point}_constants"))?;
        let entry = jit.lookup(entry_point)?;
        let device = jit.lookup(&format!("{entry_point}_device")).ok().map(NonNull::cast);
        Ok(Self { jit, entry, constants: constants.cast(), device })
    }

    /// Returns the address of the entry function, `extern "C" fn(*mut frame) -> i32`.
    pub fn entry_address(&self) -> NonNull<()> {
        debug_assert!(!self.jit.0.is_null(), "the code is loaded");
        self.entry
    }

    /// Returns the address of the device program, if the object has one.
    pub fn device_address(&self) -> Option<NonNull<u8>> {
        self.device
    }

    /// Returns the address of the constants in the object.
    pub fn constants_address(&self) -> NonNull<u8> {
        self.constants
    }
}

/// Functions of an object, callable as long as this value lives.
#[derive(Debug)]
pub struct LoadedFunctions(Jit);

impl LoadedFunctions {
    /// Loads an object for this machine.
    pub fn load(object: &[u8]) -> Result<Self> {
        llvm::initialize();
        let jit = Jit::create()?;
        jit.add(object)?;
        Ok(Self(jit))
    }

    /// Returns the address of a function that the object exports.
    pub fn address(&self, symbol: &str) -> Result<NonNull<()>> {
        self.0.lookup(symbol)
    }
}

impl Jit {
    fn create() -> Result<Self> {
        let mut jit = null_mut();
        // SAFETY: a null builder selects the defaults: this machine, JITLink, no threads.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        check(unsafe { LLVMOrcCreateLLJIT(&mut jit, null_mut()) }, "starting")?;
        Ok(Self(jit))
    }

    /// Defines only memcpy, memmove, and memset. Other symbols remain undefined.
    fn define_allowed_symbols(&self) -> Result<()> {
        let functions = [
            (c"memcpy", memcpy as *const () as usize),
            (c"memmove", memmove as *const () as usize),
            (c"memset", memset as *const () as usize),
        ];
        // SAFETY: the JIT is alive. The symbol table takes over each interned name, and the JIT's
        // main library takes over the table.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        let error = unsafe {
            let mut pairs = functions.map(|(name, address)| LLVMOrcCSymbolMapPair {
                Name: LLVMOrcLLJITMangleAndIntern(self.0, name.as_ptr()),
                Sym: LLVMJITEvaluatedSymbol {
                    Address: address as u64,
                    Flags: LLVMJITSymbolFlags {
                        GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8
                            | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8,
                        TargetFlags: 0,
                    },
                },
            });
            let symbols = LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len());
            LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(self.0), symbols)
        };
        check(error, "defining memcpy")
    }

    fn add(&self, object: &[u8]) -> Result<()> {
        // SAFETY: the buffer is a copy of the object, and the JIT takes it over.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        let error = unsafe {
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                c"object".as_ptr(),
            );
            LLVMOrcLLJITAddObjectFile(self.0, LLVMOrcLLJITGetMainJITDylib(self.0), buffer)
        };
        check(error, "cannot add the object")
    }

    fn lookup(&self, symbol: &str) -> Result<NonNull<()>> {
        let name = CString::new(symbol).map_err(|_| Error::internal("the symbol contains a NUL byte"))?;
        let mut address = 0;
        // SAFETY: the JIT is alive and the name NUL-terminated.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        check(unsafe { LLVMOrcLLJITLookup(self.0, &mut address, name.as_ptr()) }, symbol)?;
        NonNull::new(address as usize as *mut ())
            .ok_or_else(|| Error::internal(format!("the loaded object does not define '{symbol}'")))
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: created by `create` and freed once. No address of the code remains in use,
        // because addresses borrow `LoadedObject`.
        #[expect(unsafe_code, reason = "LLVM's C interface")]
        let error = unsafe { LLVMOrcDisposeLLJIT(self.0) };
        // LLVM requires errors to be consumed, and this one cannot be reported.
        let _ = check(error, "unloading");
    }
}

/// Converts LLVM's error.
fn check(error: LLVMErrorRef, what: &str) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is live. Its message is copied and freed.
    #[expect(unsafe_code, reason = "LLVM's C interface")]
    let message = unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        text
    };
    Err(Error::internal(format!("cannot load code into this process: {what}: {message}")))
}
