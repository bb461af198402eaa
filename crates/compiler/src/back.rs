//! Compilation from HLO to object code.

use crate::compiled::{Compiled, MachineCode};
use crate::options::BackOptions;
use crate::versions::variants;
use crate::{Observer, PassRun, Point, counters, device, pipeline_for};
use aot::ProfileCounter;
use buffers::{BufferAssignment, ConstantsBlock, ConstantsPool};
use codegen::{CodegenOptions, Version};
use hlo::Module;
use kernel::{Counter, EntryOptions};
use nest::Program;
use plan::ModulePlan;
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
    mut module: Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<CompiledObject> {
    optimize(&mut module, options, observer)?;
    if !options.devices.is_empty() {
        let (code, constants) = device::compile(&module, options, observer)?;
        let constants_size = constants.size;
        let constants = (!options.embed_constants).then_some(constants);
        return Ok(CompiledObject { code, constants_size, constants });
    }
    let mut pool = ConstantsPool::default();
    let mut versions = lower_versions(&module, options, &mut pool, observer)?;
    let constants = pool.finish();
    let constants_size = constants.size;
    let (embedded, constants) = if options.embed_constants {
        drop(module);
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
    mut module: Module,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Versions> {
    optimize(&mut module, options, observer)?;
    let mut versions = lower_versions(&module, options, pool, observer)?;
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
    let mut first = lower(module, &options.target, options, pool, observer).coded(Code::UnsupportedHlo)?;
    let mut others = Vec::new();
    for target in variants(module, options) {
        let lowered = lower(module, &target, options, pool, observer).coded(Code::UnsupportedHlo)?;
        others.push((target, lowered));
    }
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
    let counters = counters::describe(module, &first.counters);
    Ok(Versions { first, others, counters })
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
    let code_options = CodegenOptions {
        freestanding: options.freestanding,
        sanitize: options.sanitize,
        cache: options.cache.clone(),
        llvm_ir: options.llvm_ir,
        assembly: options.assembly,
        ..CodegenOptions::new(&options.entry_point)
    };
    let versions: Vec<Version<'_>> = std::iter::once((&first, &options.target))
        .chain(others.iter().map(|(target, lowered)| (lowered, target)))
        .map(|(lowered, target)| Version { program: &lowered.program, target })
        .collect();
    let ConstantsBlock { size, chunks } = embedded.unwrap_or_default();
    let output = codegen::compile_versions_with(&versions, &code_options, size, chunks)?;
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
    let kernels = first.program.functions.values().map(|f| f.name.clone()).collect();
    let Lowered { plan, assignment, counters: counted, .. } = first;
    let variants = others.into_iter().map(|(target, lowered)| (target, lowered.plan)).collect();
    Ok(MachineCode { plan, assignment, kernels, counters, counted, variants, output, device: None })
}

/// Lowered module for one target.
struct Lowered {
    plan: ModulePlan,
    assignment: BufferAssignment,
    program: Program,
    counters: Vec<Counter>,
}

fn lower(
    module: &Module,
    target: &Target,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Lowered> {
    let plan = plan::plan_with(module, target, &options.plan)?;
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
    let entry = EntryOptions { name: &options.entry_point, is_profiled: options.is_profiled };
    let kernel::Lowered { mut program, regions, counters } =
        kernel::lower_with(module, &plan, &schedule, &assignment, target, &entry)?;
    #[cfg(debug_assertions)]
    if let Some(defect) = options.planted
        && nest::defects::plant(&mut program, defect) == 0
    {
        return Err(Error::internal(format!("found no kernel in which to plant the defect {defect:?}")));
    }
    nest::dedup(&mut program);
    observer.ended("kernel", &|| program.to_string());
    observer.ended("regions", &|| kernel::regions::to_text(&regions));
    Ok(Lowered { plan, assignment, program, counters })
}
