//! Translation of loop nests to object files through LLVM. Only this crate depends on LLVM.
//!
//! The translation is direct: kernels are already tiled and vectorized, so LLVM only selects
//! instructions, schedules, and allocates registers. No pass that vectorizes, unrolls, or
//! recognizes library functions runs. Objects are position-independent, export the entry function
//! and the constants, and need only `memcpy`, `memset`, and `memmove` from outside.

mod cache;
mod device;
mod elf;
mod function;
mod llvm;
mod loaded;
mod machine;
mod merge;
mod module;
mod object_file;
mod placement;
mod routines;
mod sanitizer;
mod symbols;
mod translate;
mod units;
mod version;

pub use cache::{MemoryCache, UNIT_MAGIC, UnitCache, seal, unseal};
pub use device::{
    DeviceImage, DeviceMemory, ImageKind, bundle, compile_device_entry, compile_kernels, kernel_symbol,
};
pub use llvm::{on_exhausted_memory, version as llvm_version};
pub use loaded::{LoadedFunctions, LoadedObject};
pub use machine::{host_target, host_triple};
pub use placement::check_section;
pub use routines::compile_routines;
pub use sanitizer::Sanitizer;
pub use version::Version;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use placement::Placement;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use support::{Error, Result, is_c_identifier};
use target::{ObjectFormat, Target};
use units::{Source, Unit};

/// Options of code generation.
#[derive(Clone, Debug)]
pub struct CodegenOptions {
    /// Symbol of the entry function, a C identifier. `<entry_point>_constants` is the constants'
    /// symbol.
    pub entry_point: String,
    /// True to optimize. If false, LLVM's cheapest optimizing settings are used.
    pub optimize: bool,
    /// True to emit the object. If false, `CompiledModule::object` and `functions` are empty,
    /// which saves callers that only read the assembly a second instruction selection.
    pub object: bool,
    /// True to return the LLVM IR as text.
    pub llvm_ir: bool,
    /// True to return the assembly as text.
    pub assembly: bool,
    /// Sanitizer that instruments the code. Instrumented code calls the sanitizer's library.
    pub sanitize: Option<Sanitizer>,
    /// Forbids all external functions, even `memcpy` and similar ones. Incompatible with
    /// `sanitize`.
    pub freestanding: bool,
    /// Size in bytes above which constants are placed in a separate section anywhere in the address
    /// space and reached through the variable `<entry_point>_constants_pointer`. Only ELF has such
    /// sections.
    pub large_constants: u64,
    /// Section of the constants in place of `.rodata.tfcompile`; ELF only.
    pub constants_section: Option<String>,
    /// Cache of generated code, which does not change any byte of the object. Bypassed if text
    /// output is requested.
    pub cache: Option<Arc<dyn UnitCache>>,
    /// Number of threads, which does not change any byte either. `None` uses all processors.
    pub threads: Option<NonZero<usize>>,
}

/// Default of [`CodegenOptions::large_constants`]: half of the range of a 32-bit address.
pub const LARGE_CONSTANTS: u64 = 1 << 30;

impl CodegenOptions {
    /// Returns options for optimized code without text output.
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
            constants_section: None,
            cache: None,
            threads: None,
        }
    }
}

/// Contents of the constants block, in pieces. Gaps are zeros.
#[derive(Clone, Debug, Default)]
pub struct Constants<'a> {
    /// Total size in bytes. 0 embeds nothing; the symbol then refers to 64 zero bytes.
    pub size: u64,
    /// Offsets and contents, within `size`.
    pub chunks: Vec<(u64, &'a [u8])>,
}

impl<'a> Constants<'a> {
    /// Creates a block of one piece.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { size: bytes.len() as u64, chunks: vec![(0, bytes)] }
    }

    /// Copies the chunks into `block`, which must be zeroed. Fails if a chunk extends beyond the
    /// block.
    pub fn copy_to(&self, block: &mut [u8]) -> Result<()> {
        for (offset, bytes) in &self.chunks {
            let place = usize::try_from(*offset)
                .ok()
                .and_then(|start| block.get_mut(start..start.checked_add(bytes.len())?))
                .ok_or_else(|| {
                    Error::internal(format!(
                        "a constant of {} bytes at offset {offset} extends beyond the block of {} bytes",
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
    /// Symbol.
    pub name: String,
    /// Size of the code in bytes.
    pub bytes: u64,
}

/// Result of [`compile`].
#[derive(Clone, Debug)]
pub struct CompiledModule {
    /// Relocatable object file.
    pub object: Vec<u8>,
    /// Upper bound of the stack that one call of the entry uses within the object, excluding
    /// `memcpy` and similar functions and the caller's `parallel_for`.
    pub stack_bytes: u64,
    /// True if the constants are reached through `<entry_point>_constants_pointer`.
    pub large_constants: bool,
    /// Functions in address order.
    pub functions: Vec<FunctionSize>,
    /// For each version, the symbol of each function of its program.
    pub symbols: Vec<Vec<String>>,
    /// LLVM IR, if requested.
    pub llvm_ir: Option<String>,
    /// Assembly, if requested.
    pub assembly: Option<String>,
    /// Number of parts in which the code was generated.
    pub units: usize,
    /// Number of parts that came from the cache.
    pub cached_units: usize,
}

/// Compiles a program for a target. Equal arguments yield equal bytes.
///
/// Errors: `invalid` for an unknown or invalid triple, processor, feature, or entry point;
/// `unsupported` for constants too large for an object and code that uses too much stack;
/// `internal` for a program that the verifier rejects and for code that would call a library.
pub fn compile(
    program: &nest::Program,
    target: &Target,
    options: &CodegenOptions,
    constants: &Constants<'_>,
) -> Result<CompiledModule> {
    compile_versions(&[Version { program, target }], options, constants)
}

/// Compiles several versions of a program into one object. Its entry calls the last version whose
/// instructions the running processor supports. The first version is for every processor. The
/// others must be in the order of the x86-64 levels, which are their targets' processors.
///
/// Errors: as [`compile`]; `invalid` for versions whose processors cannot be distinguished.
pub fn compile_versions(
    versions: &[Version<'_>],
    options: &CodegenOptions,
    constants: &Constants<'_>,
) -> Result<CompiledModule> {
    let mut chunks = constants.chunks.clone();
    chunks.sort_by_key(|&(offset, _)| offset);
    compile_versions_with(versions, options, constants.size, chunks)
}

/// Does the same as [`compile_versions`] with an iterator over the chunks of the constants in
/// offset order. Each chunk is dropped as soon as it has been written, so owned constants are never
/// held twice.
pub fn compile_versions_with<B: AsRef<[u8]>>(
    versions: &[Version<'_>],
    options: &CodegenOptions,
    constants_size: u64,
    chunks: impl IntoIterator<Item = (u64, B)>,
) -> Result<CompiledModule> {
    let target = versions.first().ok_or_else(|| Error::internal("no versions to compile"))?.target;
    if options.freestanding && options.sanitize.is_some() {
        return Err(Error::invalid(
            "--freestanding cannot be combined with --sanitize: instrumented code calls the sanitizer's library",
        ));
    }
    check_entry_point(&options.entry_point)?;
    let placement = Placement::of(constants_size, target, options)?;
    for version in versions {
        nest::verify(version.program)?;
        if version.program.functions.values().last().map(|f| f.linkage) != Some(nest::Linkage::Entry) {
            return Err(Error::internal("the program has no entry function"));
        }
        check_external_symbols(version.program, &options.entry_point)?;
        // Names are validated for each version. The code generator is the first version's.
        machine::target_machine(version.target, options.optimize)?;
    }
    // The triple's default processor: the instructions that every machine supports.
    let baseline = Target::new(target.triple.as_str(), "", "")?;
    let source = Source::new(versions, &baseline, &options.entry_point)?;
    let units = source.units(target, options);
    let parts = generate_all(&source, &units, target, options, placement)?;
    let frames = parts.iter().flat_map(|part| part.frames.clone()).collect();
    let used = parts.iter().flat_map(|part| part.routines.clone()).collect();
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
    let stack_bytes = nest::stack::bound(&self::routines::add_calls(&source.calls, &used), &frames);
    if options.sanitize.is_none() {
        nest::stack::check(stack_bytes)?;
    }
    let functions = if options.object {
        let external = versions.iter().flat_map(|v| v.program.external_symbols()).collect();
        object_file::check_undefined_symbols(&object, target, options, &external)?;
        let functions = object_file::function_sizes(&object, target)?;
        let block = object_file::Block { entry_point: &options.entry_point, size: constants_size, placement };
        object_file::write_constants(&mut object, target, &block, chunks)?;
        functions
    } else {
        Vec::new()
    };
    let large_constants = placement == Placement::Large;
    Ok(CompiledModule {
        object,
        stack_bytes,
        large_constants,
        functions,
        symbols: source.symbols,
        llvm_ir,
        assembly,
        units,
        cached_units,
    })
}

/// Merges the objects of several programs for one target into one. Each keeps its entry and the
/// symbol of its constants.
///
/// Errors: `unsupported` for formats other than ELF with 64 bits.
pub fn merge_objects(objects: &[Vec<u8>]) -> Result<Vec<u8>> {
    // ELF's magic number and the class of 64 bits.
    if objects.iter().any(|object| !object.starts_with(b"\x7fELF\x02")) {
        return Err(Error::unsupported(
            "several functions in one object need a target with 64-bit ELF objects: build each function alone, or all as C source (--emit=c)",
        ));
    }
    merge::merge(objects)
}

/// Output of code generation for a unit.
struct Generated {
    object: Vec<u8>,
    llvm_ir: Option<String>,
    assembly: Option<String>,
    /// Size of each function's stack frame in bytes, for functions with a frame.
    frames: BTreeMap<String, u64>,
    /// Routines for operations without an instruction.
    routines: BTreeSet<String>,
    /// True if it came from the cache.
    is_cached: bool,
}

/// Stack of a thread that generates code. LLVM recurses as deep as expressions are nested.
const STACK_BYTES: usize = 64 << 20;

/// Generates the code of all units on several threads.
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
        let mut outputs = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(number) else { return Ok(outputs) };
            outputs.push((number, generate(source, unit, &machine, target, options, placement)));
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
            all.extend(other.join().map_err(|_| Error::internal("a code generation thread panicked"))??);
        }
        Ok(all)
    })?;
    all.sort_by_key(|&(number, _)| number);
    all.into_iter().map(|(_, generated)| generated).collect()
}

/// Generates the code of a unit, again if it turns out to need routines.
fn generate(
    source: &Source<'_>,
    unit: &Unit,
    machine: &TargetMachine,
    target: &Target,
    options: &CodegenOptions,
    placement: Placement,
) -> Result<Generated> {
    let finds =
        unit.is_whole && options.sanitize.is_none() && target.triple.object_format == ObjectFormat::Elf;
    let searched = CodegenOptions { object: options.object || target.is_microcontroller, ..options.clone() };
    let mut routines = BTreeSet::new();
    loop {
        let generated = generate_with(source, unit, machine, target, &searched, placement, &routines)?;
        let more = if finds && searched.object {
            self::routines::missing(&generated.object)?
        } else {
            BTreeSet::new()
        };
        if more.is_empty() {
            let object = if options.object { generated.object } else { Vec::new() };
            return Ok(Generated { object, routines, ..generated });
        }
        routines.extend(more);
    }
}

fn generate_with(
    source: &Source<'_>,
    unit: &Unit,
    machine: &TargetMachine,
    target: &Target,
    options: &CodegenOptions,
    placement: Placement,
    routines: &BTreeSet<String>,
) -> Result<Generated> {
    let context = Context::create();
    let diagnostics = llvm::Diagnostics::listen(&context);
    let module = &translate::translate(&context, machine, source, unit, options, placement, routines)?;
    if cfg!(debug_assertions) {
        module.verify().map_err(|e| {
            Error::internal(format!(
                "LLVM's verifier rejects the code: {e}\n{}",
                module.print_to_string().to_string()
            ))
        })?;
    }
    let passes = passes(target, options.sanitize);
    let make = || optimize_and_emit(module, machine, &passes, &diagnostics, target, options);
    match &options.cache {
        Some(cache) if options.object && !options.llvm_ir && !options.assembly => {
            let compiler = cache.compiler().unwrap_or_default();
            let settings = format!("{passes} optimize={} compiler={compiler}", options.optimize);
            cache::get_or_generate(cache.as_ref(), &cache::key(module, machine, &settings), make)
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
    // Emission modifies the module, so each output uses a separate copy.
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
    Ok(Generated {
        object,
        llvm_ir,
        assembly,
        frames: diagnostics.frames(),
        routines: BTreeSet::new(),
        is_cached: false,
    })
}

/// Returns the passes: inlining of marked functions and elimination of common subexpressions. The
/// lowering leaves little else to do. Processors whose addressing modes `addresses` does not know
/// benefit from LLVM's loop strength reduction; see `llvm::initialize`.
fn passes(target: &Target, sanitize: Option<Sanitizer>) -> String {
    let instrument = sanitize.map_or("", Sanitizer::passes);
    let is_reduced = function::has_addresses(target.triple.architecture);
    let addresses = if is_reduced { "" } else { ",function(loop(loop-reduce))" };
    format!("always-inline,function(early-cse){instrument}{addresses}")
}

fn emit(machine: &TargetMachine, module: &Module<'_>, kind: FileType) -> Result<Vec<u8>> {
    let buffer = machine.write_to_memory_buffer(module, kind).map_err(|e| {
        Error::unsupported(format!("LLVM cannot write this output format for the target: {e}"))
    })?;
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
