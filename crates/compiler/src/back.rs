//! Compilation from HLO to object code.

mod several;

pub(crate) use several::lower_modules;

use crate::compiled::{Compiled, CountedCode, MachineCode};
use crate::options::BackOptions;
use crate::sizes::report::SizeCode;
use crate::versions::{is_worth, variants};
use crate::{Observer, PassRun, Point, counters, device, pipeline_for, sizes};
use aot::ProfileCounter;
use buffers::{Allocation, BufferAssignment, ConstantsBlock, ConstantsPool, Schedule, Slice};
use codegen::{CodegenOptions, CompiledModule, MemoryCache, Version};
use hlo::{Module, Program};
use kernel::{Counter, EntryOptions};
use plan::ModulePlan;
use std::sync::Arc;
use support::{Code, Coded as _, Error, Result};
use target::Target;

/// Optimizes, plans, assigns buffers, lowers, and generates code.
pub fn compile_module(
    mut module: Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<Compiled> {
    optimize(&mut module, options, observer)?;
    compile_optimized(module, options, observer)
}

/// Same as [`compile_module`], for a program. If it has modules for several sizes, the code is made
/// of all of them, and the result has the module for all sizes before any pass
/// ([`has_several_modules`]).
pub fn compile_program(
    program: Program,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<Compiled> {
    if !has_several_modules(&program, options) {
        return compile_module(program.module, options, observer);
    }
    let (code, constants) = compile_modules(&program, options, observer)?;
    let plan_options = options.plan.clone();
    Ok(Compiled { module: program.module, plan_options, constants, code, open_device: None })
}

/// Compiles the modules of a program with several. Returns the code, and the constants of all.
pub(crate) fn compile_modules(
    program: &Program,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<(MachineCode, ConstantsBlock)> {
    let mut pool = ConstantsPool::default();
    let versions = lower_modules(program, options, &mut pool, observer)?;
    let constants = pool.finish();
    let embedded = options.embed_constants.then(|| constants.clone());
    Ok((generate(versions, options, embedded, observer)?, constants))
}

/// True if the code of a program computes a batch in pieces of several sizes.
pub(crate) fn is_in_pieces(program: &Program, options: &BackOptions) -> bool {
    !program.sized.is_empty() && has_several_modules(program, options)
}

/// True if the code of a program is made of modules for several sizes: of the pieces of a batch, or
/// of those for particular sizes beside the whole one.
pub fn has_several_modules(program: &Program, options: &BackOptions) -> bool {
    let has_one = program.sized.is_empty() && program.exact.is_empty();
    !has_one && options.devices.is_empty() && !options.is_profiled
}

/// Runs the passes.
pub fn optimize(module: &mut Module, options: &BackOptions, observer: &mut dyn Observer) -> Result<()> {
    let pipeline = pipeline_for(options.targets(), options.plan.clone());
    let mut run = PassRun { disabled: &options.disabled_passes, observer: &mut *observer };
    run.run(&pipeline, module).coded(Code::UnsupportedHlo)?;
    observer.module(Point::Optimized, module);
    Ok(())
}

/// Same as [`compile_module`], for a module that is already optimized.
pub fn compile_optimized(
    module: Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<Compiled> {
    if !options.devices.is_empty() {
        let (code, constants) = device::compile(&module, options, observer)?;
        let (plan_options, open_device) = (options.plan.clone(), options.open_device.clone());
        return Ok(Compiled { module, plan_options, constants, code, open_device });
    }
    let mut pool = ConstantsPool::default();
    let versions = lower_versions(&module, options, &mut pool, observer)?;
    let constants = pool.finish();
    let embedded = options.embed_constants.then(|| constants.clone());
    let code = generate(versions, options, embedded, observer)?;
    Ok(Compiled { module, plan_options: options.plan.clone(), constants, code, open_device: None })
}

/// Same as [`compile_module`], with and without counters. The passes, the plan, and the assignment
/// are the same, and code that both programs have is generated once.
pub fn compile_with_counters(
    mut module: Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<(Compiled, CountedCode)> {
    if !(options.devices.is_empty() && options.variants.is_empty()) {
        return Err(Error::internal("counters beside code for devices or of several versions"));
    }
    let cache = options.cache.clone().unwrap_or_else(|| Arc::new(MemoryCache::default()));
    let options = &BackOptions { cache: Some(cache), ..options.clone() };
    optimize(&mut module, options, observer)?;
    let mut pool = ConstantsPool::default();
    let mut lower = || {
        let planned = Planned::new(&module, &options.target, options, &mut pool, observer)?;
        let profiled = BackOptions { is_profiled: true, ..options.clone() };
        let kernel::Lowered { mut program, counters, .. } =
            planned.lower(&module, &options.target, &profiled)?;
        nest::dedup(&mut program);
        let plain = BackOptions { is_profiled: false, ..options.clone() };
        let lowered = planned.lower(&module, &options.target, &plain)?;
        Ok((planned.finish(lowered, options, observer)?, program, counters))
    };
    let (first, program, counted) = lower().coded(Code::UnsupportedHlo)?;
    let constants = pool.finish();
    let embedded = options.embed_constants.then(|| constants.clone());
    let versions = Versions { first, others: Vec::new(), counters: Vec::new() };
    let code = generate(versions, options, embedded, observer)?;
    let version = Version { program: &program, target: &options.target };
    let none: Vec<(u64, Vec<u8>)> = Vec::new();
    let output = codegen::compile_versions_with(&[version], &codegen_options(options), 0, none)?;
    observer.ended("codegen with counters", &|| {
        format!("{} of {} units are those without counters", output.cached_units, output.units)
    });
    let counters = counters::describe(&module, &counted);
    let plan_options = options.plan.clone();
    let compiled = Compiled { module, plan_options, constants, code, open_device: None };
    Ok((compiled, CountedCode { object: output.object, counters, counted }))
}

/// Code of a module, without the module.
pub(crate) struct CompiledObject {
    pub(crate) code: MachineCode,
    /// Size in bytes of the block of constants.
    pub(crate) constants_size: u64,
    /// Constants, unless the object contains them.
    pub(crate) constants: Option<ConstantsBlock>,
}

/// Same as [`compile_module`], but drops the module and packed copies in the plan if the constants
/// are embedded. Large constants are then in memory once, or twice if they were packed.
pub(crate) fn compile_object(
    program: Program,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<CompiledObject> {
    if has_several_modules(&program, options) {
        let mut pool = ConstantsPool::default();
        let versions = lower_modules(&program, options, &mut pool, observer)?;
        drop(program);
        return object_of(versions, pool, options, observer);
    }
    let mut module = program.module;
    optimize(&mut module, options, observer)?;
    if !options.devices.is_empty() {
        let (code, constants) = device::compile(&module, options, observer)?;
        let constants_size = constants.size;
        let constants = (!options.embed_constants).then_some(constants);
        return Ok(CompiledObject { code, constants_size, constants });
    }
    let mut pool = ConstantsPool::default();
    let versions = lower_versions(&module, options, &mut pool, observer)?;
    drop(module);
    object_of(versions, pool, options, observer)
}

/// Generates an object with its constants, unless they are in a file.
fn object_of(
    mut versions: Versions,
    pool: ConstantsPool,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<CompiledObject> {
    let constants = pool.finish();
    let constants_size = constants.size;
    let (embedded, constants) = if options.embed_constants {
        versions.drop_packed();
        (Some(constants), None)
    } else {
        (None, Some(constants))
    };
    let code = generate(versions, options, embedded, observer)?;
    Ok(CompiledObject { code, constants_size, constants })
}

/// Optimizes and lowers one of several functions that share constants. Drops the module and the
/// plan's packed copies.
pub(crate) fn lower_function(
    program: Program,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Versions> {
    let mut versions = if has_several_modules(&program, options) {
        lower_modules(&program, options, pool, observer)?
    } else {
        let mut module = program.module;
        optimize(&mut module, options, observer)?;
        lower_versions(&module, options, pool, observer)?
    };
    versions.drop_packed();
    Ok(versions)
}

/// Versions of a module for all targets. The sizes of the first one's assignment are large enough
/// for all.
pub(crate) struct Versions {
    first: Lowered,
    others: Vec<(Target, Lowered)>,
    counters: Vec<ProfileCounter>,
}

impl Versions {
    fn drop_packed(&mut self) {
        self.first.plan.drop_packed();
        self.others.iter_mut().for_each(|(_, version)| version.plan.drop_packed());
    }
}

/// Lowers a module for all targets. The pool receives the constants that the versions share.
fn lower_versions(
    module: &Module,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Versions> {
    let mut lower =
        |target: &Target| lower(module, target, options, pool, observer).coded(Code::UnsupportedHlo);
    let first = lower(&options.target)?;
    let mut others = Vec::new();
    for target in variants(module, options) {
        let lowered = lower(&target)?;
        if is_worth(&target, &lowered.program) {
            others.push((target, lowered));
        }
    }
    let mut versions = joined(first, others)?;
    versions.counters = counters::describe(module, &versions.first.counters);
    Ok(versions)
}

/// Joins the code for all targets. The sizes of the first assignment become large enough for all.
fn joined(mut first: Lowered, others: Vec<(Target, Lowered)>) -> Result<Versions> {
    for (_, other) in &others {
        let (first, other) = (&mut first.assignment, &other.assignment);
        if first.persistent_size != other.persistent_size {
            return Err(Error::internal(
                "the versions of the code differ in the size of their persistent state",
            ));
        }
        first.temps_size = first.temps_size.max(other.temps_size);
        first.worker_scratch_size = first.worker_scratch_size.max(other.worker_scratch_size);
    }
    if others.iter().any(|(_, other)| other.counters != first.counters) {
        return Err(Error::internal("the versions of the code differ in their counters"));
    }
    Ok(Versions { first, others, counters: Vec::new() })
}

/// Generates the object. Each chunk of embedded constants is dropped as soon as it is written.
pub(crate) fn generate(
    versions: Versions,
    options: &BackOptions,
    embedded: Option<ConstantsBlock>,
    observer: &mut dyn Observer,
) -> Result<MachineCode> {
    // Unless the versions and the object still need them, packed constants are no longer kept.
    options.plan.packings.clear();
    let Versions { first, others, counters } = versions;
    let code_options = codegen_options(options);
    let versions: Vec<Version<'_>> = std::iter::once((&first, &options.target))
        .chain(others.iter().map(|(target, lowered)| (lowered, target)))
        .map(|(lowered, target)| Version { program: &lowered.program, target })
        .collect();
    let ConstantsBlock { size, chunks } = embedded.unwrap_or_default();
    let output = match options.c_source {
        Some(vectors) => c_source(&versions, options, vectors, size, &chunks)?,
        None => codegen::compile_versions_with(&versions, &code_options, size, chunks)?,
    };
    observer.ended("codegen", &|| {
        let cached = match options.cache {
            Some(_) => format!(", {} of {} units from the cache", output.cached_units, output.units),
            None => String::new(),
        };
        format!(
            "{} bytes of object code, {} bytes of stack at most{cached}",
            output.object.len(),
            output.stack_bytes
        )
    });
    if options.llvm_ir || options.assembly {
        observer.code(output.llvm_ir.as_deref(), output.assembly.as_deref());
    }
    let names = |program: &nest::Program| program.functions.values().map(|f| f.name.clone()).collect();
    let all = std::iter::once(&first).chain(others.iter().map(|(_, lowered)| lowered));
    let sizes: Vec<_> = all.map(|lowered| (lowered.sizes.clone(), names(&lowered.program))).collect();
    let sizes = sizes::report::facts(&sizes, &output);
    if !sizes.is_empty() {
        observer.ended("code of sizes", &|| sizes::report::to_text(&sizes));
    }
    let kernels = names(&first.program);
    let Lowered { plan, assignment, counters: counted, .. } = first;
    let variants = others.into_iter().map(|(target, lowered)| (target, lowered.plan)).collect();
    Ok(MachineCode { plan, assignment, kernels, sizes, counters, counted, variants, output, device: None })
}

fn codegen_options(options: &BackOptions) -> CodegenOptions {
    CodegenOptions {
        freestanding: options.freestanding,
        sanitize: options.sanitize,
        constants_section: options.constants_section.clone(),
        cache: options.cache.clone(),
        llvm_ir: options.llvm_ir,
        assembly: options.assembly,
        ..CodegenOptions::new(&options.entry_point)
    }
}

/// Writes a program as C source, in place of an object.
fn c_source(
    versions: &[Version<'_>],
    options: &BackOptions,
    vectors: csource::Vectors,
    size: u64,
    chunks: &[(u64, bytes::Bytes)],
) -> Result<CompiledModule> {
    let [Version { program, target }] = versions else {
        return Err(Error::invalid("C source has one version of the code: remove --multiversion"));
    };
    if options.sanitize.is_some() {
        return Err(Error::invalid("C source has no sanitizer: compile it with the compiler's -fsanitize"));
    }
    let c_options = c_options(options, vectors);
    let chunks: Vec<(u64, &[u8])> = chunks.iter().map(|(offset, bytes)| (*offset, &bytes[..])).collect();
    let source = csource::write(program, target, &c_options, csource::Constants { size, chunks: &chunks })?;
    Ok(CompiledModule {
        object: source.text.into_bytes(),
        stack_bytes: source.stack_bytes,
        large_constants: false,
        functions: Vec::new(),
        symbols: vec![source.symbols],
        llvm_ir: None,
        assembly: None,
        units: 1,
        cached_units: 0,
    })
}

fn c_options(options: &BackOptions, vectors: csource::Vectors) -> csource::Options {
    csource::Options {
        constants_section: options.constants_section.clone(),
        ..csource::Options::new(&options.entry_point, vectors)
    }
}

/// Writes several functions as one C file. Their constants are in a file.
pub(crate) fn c_functions(
    functions: &[(&Versions, &BackOptions)],
    vectors: csource::Vectors,
) -> Result<Vec<u8>> {
    let Some((_, BackOptions { target, .. })) = functions.first() else {
        return Err(Error::internal("no functions to write as C source"));
    };
    let options: Vec<_> = functions.iter().map(|(_, options)| c_options(options, vectors)).collect();
    let programs = functions.iter().zip(&options);
    let programs: Vec<_> =
        programs.map(|((versions, _), options)| (&versions.first.program, options)).collect();
    Ok(csource::write_functions(&programs, target)?.into_bytes())
}

/// Lowered module for one target.
struct Lowered {
    plan: ModulePlan,
    assignment: BufferAssignment,
    program: nest::Program,
    counters: Vec<Counter>,
    /// The sizes with code of their own, if there are several.
    sizes: Vec<SizeCode>,
}

fn lower(
    module: &Module,
    target: &Target,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Lowered> {
    let planned = Planned::new(module, target, options, pool, observer)?;
    let lowered = planned.lower(module, target, options)?;
    planned.finish(lowered, options, observer)
}

/// The decisions about a module.
struct Planned {
    plan: ModulePlan,
    schedule: Schedule,
    assignment: BufferAssignment,
}

impl Planned {
    fn new(
        module: &Module,
        target: &Target,
        options: &BackOptions,
        pool: &mut ConstantsPool,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let plan = plan::plan_with(module, target, &options.plan)?;
        Self::of(module, plan, target, options, pool, observer)
    }

    /// Schedules a planned module, and assigns its buffers.
    fn of(
        module: &Module,
        plan: ModulePlan,
        target: &Target,
        options: &BackOptions,
        pool: &mut ConstantsPool,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        observer.ended("plan", &|| {
            let version = if options.variants.is_empty() {
                String::new()
            } else {
                format!("version for {}\n", target.processor())
            };
            version + &plan.to_text(module)
        });
        let schedule = buffers::schedule(module, &plan);
        let assignment = buffers::assign(module, &plan, &schedule, pool)?;
        buffers::check(module, &plan, &schedule, &assignment)?;
        observer.ended("buffers", &|| assignment.to_text(module, pool.size()));
        Ok(Self { plan, schedule, assignment })
    }

    fn lower(&self, module: &Module, target: &Target, options: &BackOptions) -> Result<kernel::Lowered> {
        let Self { plan, schedule, assignment } = self;
        let entry = EntryOptions { name: &options.entry_point, is_profiled: options.is_profiled };
        kernel::lower_with(module, plan, schedule, assignment, target, &entry)
    }

    fn parts<'a>(&'a self, module: &'a Module) -> kernel::Parts<'a> {
        let Self { plan, schedule, assignment } = self;
        kernel::Parts { module, plan, schedule, assignment }
    }

    /// Returns the last one of several. The sizes of its assignment are large enough for all.
    fn with_space_for_all(mut all: Vec<Self>) -> Result<Self> {
        if all.iter().any(|planned| planned.assignment.persistent_size > 0) {
            return Err(Error::unsupported("code for several sizes with persistent state"));
        }
        let largest = |size: fn(&BufferAssignment) -> u64| {
            all.iter().map(|planned| size(&planned.assignment)).max().unwrap_or(0)
        };
        let (temps, scratch) = (
            largest(|assignment| assignment.temps_size),
            largest(|assignment| assignment.worker_scratch_size),
        );
        let mut last = all.pop().ok_or_else(|| Error::internal("expected a module"))?;
        last.assignment.temps_size = temps;
        last.assignment.worker_scratch_size = scratch;
        Ok(last)
    }

    /// Takes into account that the rows of results begin anywhere in the caller's arrays.
    fn move_results(&mut self, results: &[kernel::BatchArray]) {
        let is_moved = |slice: &&Slice| match slice.allocation {
            Allocation::Result(number) => {
                results.get(number).is_some_and(|array| array.row_bytes % buffers::ALIGNMENT as i64 != 0)
            }
            _ => false,
        };
        let moved: Vec<Slice> = self.assignment.slices.values().filter(is_moved).copied().collect();
        self.assignment.weakly_aligned.extend(moved);
    }

    /// Adds the loop nests.
    fn finish(
        self,
        lowered: kernel::Lowered,
        options: &BackOptions,
        observer: &mut dyn Observer,
    ) -> Result<Lowered> {
        let kernel::Lowered { mut program, regions, counters, .. } = lowered;
        #[cfg(debug_assertions)]
        if let Some(defect) = options.planted
            && nest::defects::plant(&mut program, defect) == 0
        {
            return Err(Error::internal(format!("found no kernel in which to plant the defect {defect:?}")));
        }
        #[cfg(not(debug_assertions))]
        let _ = options;
        nest::dedup(&mut program);
        observer.ended("kernel", &|| program.to_string());
        observer.ended("regions", &|| kernel::regions::to_text(&regions));
        Ok(Lowered { plan: self.plan, assignment: self.assignment, program, counters, sizes: Vec::new() })
    }
}
