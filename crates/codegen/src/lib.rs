//! Loop nests to object bytes, through LLVM. The only crate that names LLVM.
//!
//! The translation is direct: kernels are tiled and vectorised already, and LLVM selects instructions, schedules and
//! allocates registers. No pass that vectorises, unrolls or recognises library functions runs. The object is
//! position-independent, exports the entry function and the constants, and needs nothing but `memcpy`, `memset` and
//! `memmove` from outside.

mod dedup;
mod expression;
mod function;
mod llvm;
mod loaded;
mod machine;
mod memory;
mod module;
mod object_file;
mod parallel;

pub use dedup::dedup;
pub use loaded::LoadedObject;
pub use machine::{host_target, host_triple};

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use kernel::ir;
use support::{Error, Result};
use target::{ObjectFormat, Target};

/// What the caller wants.
#[derive(Clone, Debug)]
pub struct CodegenOptions {
    /// The symbol of the entry function, a C identifier; `<entry_point>_constants` is the constants' symbol.
    pub entry_point: String,
    /// Whether to spend time on good code; without, LLVM's cheapest optimising settings.
    pub optimize: bool,
    /// Whether to return the LLVM IR as text.
    pub llvm_ir: bool,
    /// Whether to return the assembly as text.
    pub assembly: bool,
}

impl CodegenOptions {
    /// Good code, no text.
    pub fn new(entry_point: impl Into<String>) -> Self {
        Self { entry_point: entry_point.into(), optimize: true, llvm_ir: false, assembly: false }
    }
}

/// The bytes of the constants block, in pieces. Gaps are zeros.
#[derive(Clone, Debug, Default)]
pub struct Constants<'a> {
    /// Bytes in all. 0 embeds nothing (the symbol stands before 64 zero bytes then).
    pub size: u64,
    /// Offsets and bytes, within `size`.
    pub chunks: Vec<(u64, &'a [u8])>,
}

impl<'a> Constants<'a> {
    /// A block in one piece.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { size: bytes.len() as u64, chunks: vec![(0, bytes)] }
    }

    /// Copies the chunks to a block of `size` zeros. An error where a chunk reaches beyond it.
    pub fn copy_to(&self, block: &mut [u8]) -> Result<()> {
        for (offset, bytes) in &self.chunks {
            let place = usize::try_from(*offset)
                .ok()
                .and_then(|start| block.get_mut(start..start.checked_add(bytes.len())?))
                .ok_or_else(|| {
                    Error::internal(format!(
                        "constant of {} bytes at offset {offset} reaches beyond the block of {} bytes",
                        bytes.len(),
                        self.size
                    ))
                })?;
            place.copy_from_slice(bytes);
        }
        Ok(())
    }
}

/// A function of an object and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSize {
    /// The symbol.
    pub name: String,
    /// Bytes of code.
    pub bytes: u64,
}

/// The result of [`compile`].
#[derive(Clone, Debug)]
pub struct CompiledModule {
    /// A relocatable object file.
    pub object: Vec<u8>,
    /// The functions in it, in the order of their addresses. Empty for formats without such a table (WebAssembly).
    pub functions: Vec<FunctionSize>,
    /// LLVM IR, if asked for.
    pub llvm_ir: Option<String>,
    /// Assembly, if asked for.
    pub assembly: Option<String>,
}

/// Compiles a program for a target. The same arguments give the same bytes.
///
/// Errors: `invalid` for a triple, processor, feature or entry point that does not exist or cannot be; `unsupported`
/// for constants too large for an object; `internal` for a program that the verifier refuses and for code that would
/// call a library.
pub fn compile(
    program: &ir::Program,
    target: &Target,
    options: &CodegenOptions,
    constants: &Constants<'_>,
) -> Result<CompiledModule> {
    check_entry_point(&options.entry_point)?;
    check_constants(constants, target)?;
    ir::verify(program)?;
    if program.functions.values().last().map(|function| function.linkage) != Some(ir::Linkage::Entry) {
        return Err(Error::internal("the program has no entry"));
    }
    let machine = machine::target_machine(target, options.optimize)?;
    let context = Context::create();
    let diagnostics = llvm::Diagnostics::listen(&context);
    let module = module::ModuleTranslator::translate(
        &context,
        &machine,
        program,
        target,
        &options.entry_point,
        constants.size,
    )?;
    if cfg!(debug_assertions) {
        module.verify().map_err(|e| {
            Error::internal(format!("LLVM refuses the code: {e}\n{}", module.print_to_string().to_string()))
        })?;
    }
    module
        .run_passes(PASSES, &machine, PassBuilderOptions::create())
        .map_err(|e| Error::internal(format!("LLVM's passes: {e}")))?;
    let llvm_ir = options.llvm_ir.then(|| module.print_to_string().to_string());
    // Emission rewrites the module, so each kind of output has its own.
    let assembly = if options.assembly {
        Some(String::from_utf8_lossy(&emit(&machine, &module.clone(), FileType::Assembly)?).into_owned())
    } else {
        None
    };
    let mut object = emit(&machine, &module, FileType::Object)?;
    if let Some(error) = diagnostics.first_error() {
        return Err(Error::unsupported(format!(
            "LLVM cannot generate code for {}: {error}",
            target.triple.as_str()
        )));
    }
    let functions = if target.triple.object_format == ObjectFormat::Wasm {
        Vec::new()
    } else {
        object_file::check_undefined_symbols(&object, target)?;
        object_file::write_constants(&mut object, target, &options.entry_point, constants)?;
        object_file::function_sizes(&object, target)?
    };
    Ok(CompiledModule { object, functions, llvm_ir, assembly })
}

/// Inlines what is marked so, and drops what is computed twice; the lowering leaves little else to do.
const PASSES: &str = "always-inline,function(early-cse)";

fn emit(machine: &TargetMachine, module: &Module<'_>, kind: FileType) -> Result<Vec<u8>> {
    let buffer = machine
        .write_to_memory_buffer(module, kind)
        .map_err(|e| Error::unsupported(format!("LLVM cannot write this kind of output: {e}")))?;
    Ok(buffer.as_slice().to_vec())
}

fn check_entry_point(name: &str) -> Result<()> {
    let first = name.chars().next();
    let identifier = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !identifier {
        return Err(Error::invalid(format!(
            "entry point '{name}' is no C identifier; it names the object's function"
        )));
    }
    if ["memcpy", "memset", "memmove", "main"].contains(&name) {
        return Err(Error::invalid(format!("entry point '{name}' is the name of a C library function")));
    }
    Ok(())
}

fn check_constants(constants: &Constants<'_>, target: &Target) -> Result<()> {
    if constants.size > module::MAX_CONSTANTS {
        return Err(Error::unsupported(format!(
            "{} bytes of constants do not fit into an object file, which holds less than 2 GiB",
            constants.size
        )));
    }
    // LLVM and the object's copy need the bytes twice, and LLVM does not say if it gets none.
    let needed = usize::try_from(constants.size).ok().and_then(|size| size.checked_mul(3));
    if needed.is_none_or(|needed| Vec::<u8>::new().try_reserve_exact(needed).is_err()) {
        return Err(Error::unsupported(format!(
            "{} bytes of constants: there is not enough memory to write an object file with them",
            constants.size
        )));
    }
    if constants.size > 0 && target.triple.object_format == ObjectFormat::Wasm {
        return Err(Error::unsupported("constants inside of WebAssembly objects"));
    }
    Ok(())
}
