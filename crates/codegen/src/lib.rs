//! Loop nests to object bytes, through LLVM. The only crate that names LLVM.
//!
//! The translation is direct: kernels are tiled and vectorised already, and LLVM selects instructions, schedules and
//! allocates registers. No pass that vectorises, unrolls or recognises library functions runs. The object is
//! position-independent, exports the entry function and the constants, and needs nothing but `memcpy`, `memset` and
//! `memmove` from outside.

mod cache;
mod elf;
mod function;
mod llvm;
mod loaded;
mod machine;
mod merge;
mod module;
mod object_file;
mod placement;
mod sanitizer;
mod symbols;
mod translate;
mod units;
mod version;

pub use cache::{UnitCache, seal, unseal};
pub use llvm::version as llvm_version;
pub use loaded::LoadedObject;
pub use machine::{host_target, host_triple};
pub use sanitizer::Sanitizer;
pub use version::Version;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use placement::Placement;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use support::{Error, Result, is_c_identifier};
use target::{Architecture, ObjectFormat, Target};
use units::{Source, Unit};

/// What the caller wants.
#[derive(Clone, Debug)]
pub struct CodegenOptions {
    /// The symbol of the entry function, a C identifier; `<entry_point>_constants` is the constants' symbol.
    pub entry_point: String,
    /// Whether to spend time on good code; without, LLVM's cheapest optimising settings.
    pub optimize: bool,
    /// Whether to emit the object. Without it, `CompiledModule::object` and `functions` are empty, and selecting
    /// instructions a second time is saved for readers of the assembly alone.
    pub object: bool,
    /// Whether to return the LLVM IR as text.
    pub llvm_ir: bool,
    /// Whether to return the assembly as text.
    pub assembly: bool,
    /// The defects that the code is instrumented to find. Such code calls the sanitizer's library.
    pub sanitize: Option<Sanitizer>,
    /// Whether the object may need nothing from outside at all, not even `memcpy` and its kind. Not with `sanitize`.
    pub freestanding: bool,
    /// Constants of more bytes lie in a section of their own that may be anywhere in the address space, and are found
    /// through the variable `<entry_point>_constants_pointer`. Only ELF has such sections.
    pub large_constants: u64,
    /// Where generated code is kept from one compilation to the next. It changes no byte of the object. Whoever asks for
    /// text gets it from code that is made again.
    pub cache: Option<Arc<dyn UnitCache>>,
    /// How many threads generate code, which changes no byte either; without, as many as there are processors.
    pub threads: Option<NonZero<usize>>,
}

/// The default of [`CodegenOptions::large_constants`]: half of what an address of 32 bits reaches.
pub const LARGE_CONSTANTS: u64 = 1 << 30;

impl CodegenOptions {
    /// Good code, no text.
    pub fn new(entry_point: impl Into<String>) -> Self {
        Self {
            entry_point: entry_point.into(),
            optimize: true,
            object: true,
            llvm_ir: false,
            assembly: false,
            sanitize: None,
            freestanding: false,
            large_constants: LARGE_CONSTANTS,
            cache: None,
            threads: None,
        }
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
    /// A bound on the stack that one call of the entry takes, of what is in the object: without `memcpy` and its kind,
    /// without what the caller's `parallel_for` takes.
    pub stack_bytes: u64,
    /// Whether the constants are found through `<entry_point>_constants_pointer`.
    pub large_constants: bool,
    /// The functions in it, in the order of their addresses. Empty for formats without such a table (WebAssembly).
    pub functions: Vec<FunctionSize>,
    /// LLVM IR, if asked for.
    pub llvm_ir: Option<String>,
    /// Assembly, if asked for.
    pub assembly: Option<String>,
    /// In how many parts the code was generated.
    pub units: usize,
    /// How many of them came from the cache.
    pub cached_units: usize,
}

/// Compiles a program for a target. The same arguments give the same bytes.
///
/// Errors: `invalid` for a triple, processor, feature or entry point that does not exist or cannot be; `unsupported`
/// for constants too large for an object and code that takes too much stack; `internal` for a program that the verifier
/// refuses and for code that would call a library.
pub fn compile(
    program: &nest::Program,
    target: &Target,
    options: &CodegenOptions,
    constants: &Constants<'_>,
) -> Result<CompiledModule> {
    compile_versions(&[Version { program, target }], options, constants)
}

/// Compiles several versions of a program into one object, whose entry calls the last one that the processor it runs on
/// has the instructions for. The first is for every processor; the others stand in the order of the levels of x86-64,
/// which are their targets' processors.
///
/// Errors: as [`compile`]; `invalid` for versions whose processors cannot be told apart.
pub fn compile_versions(
    versions: &[Version<'_>],
    options: &CodegenOptions,
    constants: &Constants<'_>,
) -> Result<CompiledModule> {
    let mut chunks = constants.chunks.clone();
    chunks.sort_by_key(|&(offset, _)| offset);
    compile_versions_with(versions, options, constants.size, chunks)
}

/// As [`compile_versions`], with the chunks of the constants one by one, their offsets rising: each is dropped when it is in
/// the object. What is given by value is so in memory once.
pub fn compile_versions_with<B: AsRef<[u8]>>(
    versions: &[Version<'_>],
    options: &CodegenOptions,
    constants_size: u64,
    chunks: impl IntoIterator<Item = (u64, B)>,
) -> Result<CompiledModule> {
    let target = versions.first().ok_or_else(|| Error::internal("nothing to compile"))?.target;
    if options.freestanding && options.sanitize.is_some() {
        return Err(Error::invalid(
            "code that a sanitizer watches calls the sanitizer's library: leave --freestanding or --sanitize away",
        ));
    }
    check_entry_point(&options.entry_point)?;
    let placement = Placement::of(constants_size, target, options)?;
    for version in versions {
        nest::verify(version.program)?;
        if version.program.functions.values().last().map(|f| f.linkage) != Some(nest::Linkage::Entry) {
            return Err(Error::internal("the program has no entry"));
        }
        check_external_symbols(version.program, &options.entry_point)?;
        // Names are judged for each version; the code generator is the first one's.
        machine::target_machine(version.target, options.optimize)?;
    }
    // The triple's own processor: what every machine can do until it is asked.
    let baseline = Target::new(target.triple.as_str(), "", "")?;
    let source = Source::new(versions, &baseline, &options.entry_point)?;
    let units = source.units(target, options);
    let parts = generate_all(&source, &units, target, options, placement)?;
    let frames = parts.iter().flat_map(|part| part.frames.clone()).collect();
    let text = |of: fn(&Generated) -> Option<&String>| {
        parts.iter().map(of).collect::<Option<Vec<_>>>().map(|texts| texts.into_iter().cloned().collect())
    };
    let (llvm_ir, assembly) = (text(|part| part.llvm_ir.as_ref()), text(|part| part.assembly.as_ref()));
    let (units, cached_units) = (parts.len(), parts.iter().filter(|part| part.is_cached).count());
    let objects: Vec<Vec<u8>> = parts.into_iter().map(|part| part.object).collect();
    let mut object = match <[Vec<u8>; 1]>::try_from(objects) {
        Ok([object]) => object,
        Err(_) if !options.object => Vec::new(),
        Err(objects) => merge::merge(&objects)?,
    };
    let stack_bytes = nest::stack::bound(&source.calls, &frames);
    if options.sanitize.is_none() {
        nest::stack::check(stack_bytes)?;
    }
    let functions = if target.triple.object_format == ObjectFormat::Wasm || !options.object {
        Vec::new()
    } else {
        let external = versions.iter().flat_map(|v| v.program.external_symbols()).collect();
        object_file::check_undefined_symbols(&object, target, options, &external)?;
        let functions = object_file::function_sizes(&object, target)?;
        let block = object_file::Block { entry_point: &options.entry_point, size: constants_size, placement };
        object_file::write_constants(&mut object, target, &block, chunks)?;
        functions
    };
    let large_constants = placement == Placement::Large;
    Ok(CompiledModule {
        object,
        stack_bytes,
        large_constants,
        functions,
        llvm_ir,
        assembly,
        units,
        cached_units,
    })
}

/// What code generation makes of a unit.
struct Generated {
    object: Vec<u8>,
    llvm_ir: Option<String>,
    assembly: Option<String>,
    /// The bytes of the stack frame of each function that has one.
    frames: BTreeMap<String, u64>,
    /// Whether it was made before.
    is_cached: bool,
}

/// Stack of a thread that generates code: recursion in LLVM is as deep as expressions are.
const STACK_BYTES: usize = 64 << 20;

/// Generates the code of all units, on several threads.
fn generate_all(
    source: &Source<'_>,
    units: &[Unit],
    target: &Target,
    options: &CodegenOptions,
    placement: Placement,
) -> Result<Vec<Generated>> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, Result<Generated>)>> {
        let machine = machine::target_machine(target, options.optimize)?;
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(number) else { return Ok(done) };
            done.push((number, generate(source, unit, &machine, target, options, placement)));
        }
    };
    let threads = options.threads.or_else(|| available_parallelism().ok()).map_or(1, usize::from);
    let threads = threads.min(units.len());
    let mut all = std::thread::scope(|scope| -> Result<Vec<(usize, Result<Generated>)>> {
        let others: Vec<_> = (1..threads)
            .filter_map(|_| {
                std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).ok()
            })
            .collect();
        let mut all = work()?;
        for other in others {
            all.extend(other.join().map_err(|_| Error::internal("a thread that generates code panicked"))??);
        }
        Ok(all)
    })?;
    all.sort_by_key(|&(number, _)| number);
    all.into_iter().map(|(_, generated)| generated).collect()
}

fn generate(
    source: &Source<'_>,
    unit: &Unit,
    machine: &TargetMachine,
    target: &Target,
    options: &CodegenOptions,
    placement: Placement,
) -> Result<Generated> {
    let context = Context::create();
    let diagnostics = llvm::Diagnostics::listen(&context);
    let module = &translate::translate(&context, machine, source, unit, options, placement)?;
    if cfg!(debug_assertions) {
        module.verify().map_err(|e| {
            Error::internal(format!("LLVM refuses the code: {e}\n{}", module.print_to_string().to_string()))
        })?;
    }
    let passes = passes(target, options.sanitize);
    let make = || optimize_and_emit(module, machine, &passes, &diagnostics, target, options);
    match &options.cache {
        Some(cache) if options.object && !options.llvm_ir && !options.assembly => {
            let settings = format!("{passes} optimize={}", options.optimize);
            cache::through(cache.as_ref(), &cache::key(module, machine, &settings), make)
        }
        _ => make(),
    }
}

fn optimize_and_emit(
    module: &Module<'_>,
    machine: &TargetMachine,
    passes: &str,
    diagnostics: &llvm::Diagnostics,
    target: &Target,
    options: &CodegenOptions,
) -> Result<Generated> {
    module
        .run_passes(passes, machine, PassBuilderOptions::create())
        .map_err(|e| Error::internal(format!("LLVM's passes: {e}")))?;
    let llvm_ir = options.llvm_ir.then(|| module.print_to_string().to_string());
    // Emission rewrites the module, so each kind of output has its own.
    let assembly = if options.assembly {
        Some(String::from_utf8_lossy(&emit(machine, &module.clone(), FileType::Assembly)?).into_owned())
    } else {
        None
    };
    let object = if options.object { emit(machine, module, FileType::Object)? } else { Vec::new() };
    if let Some(error) = diagnostics.first_error() {
        return Err(Error::unsupported(format!(
            "LLVM cannot generate code for {}: {error}",
            target.triple.as_str()
        )));
    }
    Ok(Generated { object, llvm_ir, assembly, frames: diagnostics.frames(), is_cached: false })
}

/// Inlines what is marked so, and drops what is computed twice; the lowering leaves little else to do. Processors whose
/// addresses are no sums of two registers and a number gain by LLVM's search for better ones, see `llvm::initialize`.
fn passes(target: &Target, sanitize: Option<Sanitizer>) -> String {
    let instrument = sanitize.map_or("", Sanitizer::passes);
    let addresses = match target.triple.architecture {
        Architecture::X86_64 | Architecture::X86 => "",
        _ => ",function(loop(loop-reduce))",
    };
    format!("always-inline,function(early-cse){instrument}{addresses}")
}

fn emit(machine: &TargetMachine, module: &Module<'_>, kind: FileType) -> Result<Vec<u8>> {
    let buffer = machine
        .write_to_memory_buffer(module, kind)
        .map_err(|e| Error::unsupported(format!("LLVM cannot write this kind of output: {e}")))?;
    Ok(buffer.as_slice().to_vec())
}

/// Refuses functions of the user's with names that the object uses itself.
fn check_external_symbols(program: &nest::Program, entry_point: &str) -> Result<()> {
    let own = symbols::entry_symbols(entry_point);
    let is_taken = |symbol: &str| {
        ["memcpy", "memset", "memmove", "main"].contains(&symbol) || own.iter().any(|own| own == symbol)
    };
    match program.external_symbols().into_iter().find(|symbol| is_taken(symbol)) {
        Some(symbol) => Err(Error::invalid(format!(
            "the function '{symbol}' of a custom call has a name that the object needs for something else: rename it"
        ))),
        None => Ok(()),
    }
}

fn check_entry_point(name: &str) -> Result<()> {
    if !is_c_identifier(name) {
        return Err(Error::invalid(format!(
            "entry point '{name}' is no C identifier; it names the object's function"
        )));
    }
    if ["memcpy", "memset", "memmove", "main"].contains(&name) {
        return Err(Error::invalid(format!("entry point '{name}' is the name of a C library function")));
    }
    Ok(())
}
