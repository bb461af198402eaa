//! From HLO to object code.

use crate::{Observer, PassRun, Point, counters, pipeline_for};
use aot::ProfileCounter;
use buffers::{BufferAssignment, ConstantsPool};
use bytes::Bytes;
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
    /// The optimised HLO.
    pub module: Module,
    /// What the plan was allowed to do.
    pub plan_options: plan::Options,
    /// How the code of the first version looks.
    pub plan: ModulePlan,
    /// Where its values live. The sizes are those that every version is content with, and the constants are those of
    /// all versions.
    pub assignment: BufferAssignment,
    /// The names of its kernels, in the order of their code.
    pub kernels: Vec<String>,
    /// What the code counts; nothing unless it is profiled.
    pub counters: Vec<ProfileCounter>,
    /// The instructions that these are about.
    pub counted: Vec<Counter>,
    /// The other versions, in the order of `BackOptions::variants`.
    pub variants: Vec<CompiledVariant>,
    /// The object file.
    pub code: CompiledModule,
}

/// A version of a compiled module for another machine.
#[derive(Debug)]
pub struct CompiledVariant {
    /// How its code looks.
    pub plan: ModulePlan,
    /// Where its values live.
    pub assignment: BufferAssignment,
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
    let lowered = lower_versions(&module, options, observer)?;
    let constants = lowered.first.assignment.constants.clone();
    let made = generate(lowered, options, constants, observer)?;
    Ok(Compiled {
        module,
        plan_options: options.plan.clone(),
        plan: made.plan,
        assignment: made.assignment,
        kernels: made.kernels,
        counters: made.counters,
        counted: made.counted,
        variants: made.variants,
        code: made.code,
    })
}

/// What [`compile_object`] leaves of a module.
pub(crate) struct Made {
    pub(crate) plan: ModulePlan,
    pub(crate) assignment: BufferAssignment,
    pub(crate) kernels: Vec<String>,
    pub(crate) counters: Vec<ProfileCounter>,
    pub(crate) counted: Vec<Counter>,
    pub(crate) variants: Vec<CompiledVariant>,
    pub(crate) code: CompiledModule,
}

/// As [`compile_module`], and only the object holds the constants afterwards, if they are embedded: neither module, plan nor
/// assignment does, so that large ones are in memory once, or twice where they were packed.
pub(crate) fn compile_object(
    mut module: Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<Made> {
    optimize(&mut module, options, observer)?;
    let mut lowered = lower_versions(&module, options, observer)?;
    let constants = match options.embed_constants {
        false => lowered.first.assignment.constants.clone(),
        true => {
            drop(module);
            for version in std::iter::once(&mut lowered.first).chain(&mut lowered.others) {
                version.plan.drop_packed();
            }
            lowered.others.iter_mut().for_each(|version| version.assignment.constants.clear());
            std::mem::take(&mut lowered.first.assignment.constants)
        }
    };
    generate(lowered, options, constants, observer)
}

/// The versions of a module for all machines. The first one's assignment has the sizes and constants of all.
struct Versions {
    first: Lowered,
    others: Vec<Lowered>,
    counters: Vec<ProfileCounter>,
}

fn lower_versions(module: &Module, options: &BackOptions, observer: &mut dyn Observer) -> Result<Versions> {
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
    pool.give_to(&mut first.assignment);
    let counters = counters::describe(module, &first.counters);
    Ok(Versions { first, others, counters })
}

/// Makes the object. The constants' chunks are dropped one by one when they are in it.
fn generate(
    lowered: Versions,
    options: &BackOptions,
    constants: Vec<(u64, Bytes)>,
    observer: &mut dyn Observer,
) -> Result<Made> {
    let Versions { first, others, counters } = lowered;
    let (size, constants) = match options.embed_constants {
        true => (first.assignment.constants_size, constants),
        false => (0, Vec::new()),
    };
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
    let code = codegen::compile_versions_with(&versions, &code_options, size, constants)?;
    observer.ended("codegen", &|| {
        let kept = match options.cache {
            Some(_) => format!(", {} of {} units from the cache", code.cached_units, code.units),
            None => String::new(),
        };
        format!(
            "{} bytes of object code, {} bytes of stack at most{kept}",
            code.object.len(),
            code.stack_bytes
        )
    });
    if options.llvm_ir || options.assembly {
        observer.code(code.llvm_ir.as_deref(), code.assembly.as_deref());
    }
    let kernels = first.program.functions.values().map(|f| f.name.clone()).collect();
    let Lowered { plan, assignment, counters: counted, .. } = first;
    let variants =
        others.into_iter().map(|l| CompiledVariant { plan: l.plan, assignment: l.assignment }).collect();
    Ok(Made { plan, assignment, kernels, counters, counted, variants, code })
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
        let version = match options.variants.is_empty() {
            true => String::new(),
            false => format!("version for {}\n", target.cpu),
        };
        version + &plan.to_text(module)
    });
    let schedule = buffers::schedule(module, &plan);
    let assignment = buffers::assign_sharing(module, &plan, &schedule, pool)?;
    buffers::check(module, &plan, &schedule, &assignment)?;
    observer.ended("buffers", &|| assignment.to_text(module));
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
