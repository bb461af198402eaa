//! From HLO to object code.

use crate::{Observer, PassRun, Point, counters, pipeline_for};
use aot::ProfileCounter;
use buffers::{BufferAssignment, ConstantsBlock, ConstantsPool};
use codegen::{CodegenOptions, CompiledModule, Sanitizer, UnitCache, Version};
use hlo::Module;
use kernel::{Counter, EntryOptions};
use nest::Program;
use plan::ModulePlan;
use std::sync::Arc;
use support::{Code, Coded as _, Error, Result};
use target::Target;

/// What the code is made for.
#[derive(Clone, Debug)]
pub struct BackOptions {
    /// The machine; with variants, the lowest one.
    pub target: Target,
    /// Machines that the object has a version of the code for too, in the order of the levels of x86-64. The entry
    /// chooses when it first runs. None is one version.
    pub variants: Vec<Target>,
    /// The symbol of the entry function.
    pub entry_point: String,
    /// Passes that do not run, by name (`--xla_disable_hlo_passes`).
    pub disabled_passes: Vec<String>,
    /// What the plan may do.
    pub plan: plan::Options,
    /// Whether the constants go into the object; without, whoever calls the code gives it a block of them.
    pub embed_constants: bool,
    /// Whether the object may need nothing from outside, not even `memcpy`.
    pub freestanding: bool,
    /// What the code is instrumented to find.
    pub sanitize: Option<Sanitizer>,
    /// Where generated code is kept from one compilation to the next.
    pub cache: Option<Arc<dyn UnitCache>>,
    /// Whether the code counts how long it and each instruction take.
    pub is_profiled: bool,
    /// Whether observers are shown LLVM's IR.
    pub llvm_ir: bool,
    /// Whether observers are shown the assembly.
    pub assembly: bool,
    /// A defect that the code is given, for tests of the sanitizers.
    #[cfg(debug_assertions)]
    pub planted: Option<nest::defects::Defect>,
}

impl BackOptions {
    /// All passes, everything in the object.
    pub fn new(target: Target, entry_point: impl Into<String>) -> Self {
        Self {
            target,
            variants: Vec::new(),
            entry_point: entry_point.into(),
            disabled_passes: Vec::new(),
            plan: plan::Options::default(),
            embed_constants: true,
            freestanding: false,
            sanitize: None,
            cache: None,
            is_profiled: false,
            llvm_ir: false,
            assembly: false,
            #[cfg(debug_assertions)]
            planted: None,
        }
    }

    /// A text that is the same for options that make the same code of a module: what is only shown or kept is left out.
    pub fn cache_key(&self) -> String {
        let plan::Options { winograd, choices } = &self.plan;
        let winograd = match winograd {
            plan::Winograd::Never => "never".to_owned(),
            plan::Winograd::Small => "small".to_owned(),
            plan::Winograd::Large => "large".to_owned(),
            plan::Winograd::Forced(side) => format!("forced {side}"),
        };
        let sanitizer = self.sanitize.map_or("none", |sanitizer| match sanitizer {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
        });
        let mut lines: Vec<String> = self.targets().iter().map(target_key).collect();
        lines.extend([
            format!("entry_point {}", self.entry_point),
            format!("disabled_passes {}", self.disabled_passes.join(",")),
            format!("winograd {winograd}"),
            format!("embed_constants {}", self.embed_constants),
            format!("freestanding {}", self.freestanding),
            format!("sanitize {sanitizer}"),
            format!("is_profiled {}", self.is_profiled),
            format!("choices {}", choices.to_text()),
        ]);
        #[cfg(debug_assertions)]
        lines.push(format!("planted {}", self.planted.map_or("none", nest::defects::Defect::name)));
        lines.join("\n")
    }

    /// Every machine that there is a version for.
    pub fn targets(&self) -> Vec<Target> {
        std::iter::once(&self.target).chain(&self.variants).cloned().collect()
    }
}

/// A text that tells targets apart.
fn target_key(target: &Target) -> String {
    format!(
        "target {} cpu {} features {} pointer_bytes {} vector_bytes {} vector_registers {} fma {} rounding {} float_parts {} \
         f16_conversion {} popcnt {} l1_bytes {} l2_bytes {}",
        target.triple.as_str(),
        target.cpu,
        target.features,
        target.pointer_bytes,
        target.vector_bytes,
        target.vector_registers,
        target.has_fma,
        target.has_rounding,
        target.has_float_parts,
        target.has_f16_conversion,
        target.has_popcnt,
        target.l1_bytes,
        target.l2_bytes
    )
}

/// A compiled module.
#[derive(Debug)]
pub struct Compiled {
    /// The optimized HLO.
    pub module: Module,
    /// Options of the plan.
    pub plan_options: plan::Options,
    /// The constants of all versions.
    pub constants: ConstantsBlock,
    /// The code.
    pub code: MachineCode,
}

/// The code of a module, and how it uses memory.
#[derive(Debug)]
pub struct MachineCode {
    /// The plan of the first version.
    pub plan: ModulePlan,
    /// Where the values of the first version live. The sizes are large enough for every version.
    pub assignment: BufferAssignment,
    /// The names of its kernels, in the order of their code.
    pub kernels: Vec<String>,
    /// What the code counts; nothing unless it is profiled.
    pub counters: Vec<ProfileCounter>,
    /// The instructions that these are about.
    pub counted: Vec<Counter>,
    /// The plans of the other versions, in the order of `BackOptions::variants`.
    pub variants: Vec<ModulePlan>,
    /// The object file.
    pub output: CompiledModule,
}

/// Optimises, plans, assigns buffers, lowers and generates code.
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

/// As [`compile_module`], for a module that the passes have been through.
pub fn compile_optimized(
    module: Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<Compiled> {
    let (versions, constants) = lower_versions(&module, options, observer)?;
    let embedded = options.embed_constants.then(|| constants.clone());
    let code = generate(versions, options, embedded, observer)?;
    Ok(Compiled { module, plan_options: options.plan.clone(), constants, code })
}

/// The code of a module, without the module.
pub(crate) struct CompiledObject {
    pub(crate) code: MachineCode,
    /// Size in bytes of the block of constants.
    pub(crate) constants_size: u64,
    /// The constants, unless the object holds them.
    pub(crate) constants: Option<ConstantsBlock>,
}

/// As [`compile_module`], and only the object holds the constants afterwards, if they are embedded: neither module nor plan
/// does, so that large ones are in memory once, or twice where they were packed.
pub(crate) fn compile_object(
    mut module: Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<CompiledObject> {
    optimize(&mut module, options, observer)?;
    let (mut versions, constants) = lower_versions(&module, options, observer)?;
    let constants_size = constants.size;
    let (embedded, constants) = if options.embed_constants {
        drop(module);
        for version in std::iter::once(&mut versions.first).chain(&mut versions.others) {
            version.plan.drop_packed();
        }
        (Some(constants), None)
    } else {
        (None, Some(constants))
    };
    let code = generate(versions, options, embedded, observer)?;
    Ok(CompiledObject { code, constants_size, constants })
}

/// The versions of a module for all machines. The sizes of the first one's assignment are large enough for all.
struct Versions {
    first: Lowered,
    others: Vec<Lowered>,
    counters: Vec<ProfileCounter>,
}

/// Lowers a module for all machines. Also returns the constants that the versions share.
fn lower_versions(
    module: &Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<(Versions, ConstantsBlock)> {
    let mut pool = ConstantsPool::default();
    let mut first =
        lower(module, &options.target, options, &mut pool, observer).coded(Code::UnsupportedHlo)?;
    let mut others = Vec::new();
    for target in &options.variants {
        others.push(lower(module, target, options, &mut pool, observer).coded(Code::UnsupportedHlo)?);
    }
    for other in &others {
        let (ours, theirs) = (&mut first.assignment, &other.assignment);
        if ours.persistent_size != theirs.persistent_size {
            return Err(Error::internal("versions of the code keep different state"));
        }
        ours.temps_size = ours.temps_size.max(theirs.temps_size);
        ours.worker_scratch_size = ours.worker_scratch_size.max(theirs.worker_scratch_size);
    }
    if others.iter().any(|other| other.counters != first.counters) {
        return Err(Error::internal("versions of the code count different things"));
    }
    let counters = counters::describe(module, &first.counters);
    Ok((Versions { first, others, counters }, pool.finish()))
}

/// Generates the object. Each chunk of the constants that it embeds is dropped as soon as it is written.
fn generate(
    versions: Versions,
    options: &BackOptions,
    embedded: Option<ConstantsBlock>,
    observer: &mut dyn Observer,
) -> Result<MachineCode> {
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
        .chain(others.iter().zip(&options.variants))
        .map(|(lowered, target)| Version { program: &lowered.program, target })
        .collect();
    let ConstantsBlock { size, chunks } = embedded.unwrap_or_default();
    let output = codegen::compile_versions_with(&versions, &code_options, size, chunks)?;
    observer.ended("codegen", &|| {
        let kept = match options.cache {
            Some(_) => format!(", {} of {} units from the cache", output.cached_units, output.units),
            None => String::new(),
        };
        format!(
            "{} bytes of object code, {} bytes of stack at most{kept}",
            output.object.len(),
            output.stack_bytes
        )
    });
    if options.llvm_ir || options.assembly {
        observer.code(output.llvm_ir.as_deref(), output.assembly.as_deref());
    }
    let kernels = first.program.functions.values().map(|f| f.name.clone()).collect();
    let Lowered { plan, assignment, counters: counted, .. } = first;
    let variants = others.into_iter().map(|lowered| lowered.plan).collect();
    Ok(MachineCode { plan, assignment, kernels, counters, counted, variants, output })
}

/// A module's code for one machine.
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
        let version =
            if options.variants.is_empty() { String::new() } else { format!("version for {}\n", target.cpu) };
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
        return Err(Error::internal(format!("no kernel can have the defect {defect:?}")));
    }
    nest::dedup(&mut program);
    observer.ended("kernel", &|| program.to_string());
    observer.ended("regions", &|| kernel::regions::to_text(&regions));
    Ok(Lowered { plan, assignment, program, counters })
}
