//! Compilation from HLO to object code.

use crate::{Observer, PassRun, Point, counters, device, pipeline_for};
use aot::ProfileCounter;
use buffers::{BufferAssignment, ConstantsBlock, ConstantsPool};
use codegen::{CodegenOptions, CompiledModule, Sanitizer, UnitCache, Version};
use hlo::Module;
use jit::Device;
use kernel::{Counter, EntryOptions};
use nest::Program;
use nest::launch::DeviceProgram;
use plan::ModulePlan;
use std::path::PathBuf;
use std::sync::Arc;
use support::{Code, Coded as _, Error, Result};
use target::Target;

/// Options of code generation.
#[derive(Clone, Debug)]
pub struct BackOptions {
    /// Target machine; with variants, the one of the lowest version.
    pub target: Target,
    /// Targets of further versions in the same object, in the order of the levels of x86-64. The
    /// entry selects a version when it first runs.
    pub variants: Vec<Target>,
    /// GPUs that run the program, all CUDA's or OpenCL alone; empty to run it on the target itself.
    /// The target then is the host's.
    pub devices: Vec<Target>,
    /// The open device on which the code will run in this process, one of `devices`.
    pub open_device: Option<Device>,
    /// NVIDIA's assembler. If it is given, the object has machine code for each architecture of
    /// `devices`, and PTX only for the first one.
    pub ptxas: Option<PathBuf>,
    /// Symbol of the entry function.
    pub entry_point: String,
    /// Names of passes to skip (`--xla_disable_hlo_passes`).
    pub disabled_passes: Vec<String>,
    /// Options of the plan.
    pub plan: plan::Options,
    /// True if the constants go into the object. Otherwise the caller of the code passes a block of
    /// constants.
    pub embed_constants: bool,
    /// True if the object must not reference any external symbol, not even `memcpy`.
    pub freestanding: bool,
    /// Sanitizer with which the code is instrumented.
    pub sanitize: Option<Sanitizer>,
    /// Cache of generated code.
    pub cache: Option<Arc<dyn UnitCache>>,
    /// True if the code counts the time of the program and of each instruction.
    pub is_profiled: bool,
    /// True if observers receive the LLVM IR.
    pub llvm_ir: bool,
    /// True if observers receive the assembly.
    pub assembly: bool,
    /// Defect to plant in the code, for tests of the sanitizers.
    #[cfg(debug_assertions)]
    pub planted: Option<nest::defects::Defect>,
}

impl BackOptions {
    /// Options with all passes, and with the constants in the object.
    pub fn new(target: Target, entry_point: impl Into<String>) -> Self {
        Self {
            target,
            variants: Vec::new(),
            devices: Vec::new(),
            open_device: None,
            ptxas: None,
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

    /// Text that identifies the generated code of a module. It omits options that do not affect the
    /// code.
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
        let all = std::iter::once(&self.target).chain(&self.variants).chain(&self.devices);
        let mut lines: Vec<String> = all.map(target_key).collect();
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

    /// Compiles for an open device, and runs the code there.
    pub fn on_device(self, device: Device) -> Result<Self> {
        let target = device::device_target(&device)?;
        Ok(Self { devices: vec![target], open_device: Some(device), ..self })
    }

    /// Targets of the kernels of all versions.
    pub fn targets(&self) -> Vec<Target> {
        if !self.devices.is_empty() {
            return self.devices.clone();
        }
        std::iter::once(&self.target).chain(&self.variants).cloned().collect()
    }
}

/// Text that identifies a target.
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
    /// Optimized HLO.
    pub module: Module,
    /// Options of the plan.
    pub plan_options: plan::Options,
    /// Constants of all versions.
    pub constants: ConstantsBlock,
    /// Generated code.
    pub code: MachineCode,
    /// The open device that runs the code; `None` for the processor.
    pub open_device: Option<Device>,
}

/// Code of a module, and its use of memory.
#[derive(Debug)]
pub struct MachineCode {
    /// Plan of the first version.
    pub plan: ModulePlan,
    /// Buffer assignment of the first version. Its sizes are large enough for every version.
    pub assignment: BufferAssignment,
    /// Names of the kernels, in the order of their code.
    pub kernels: Vec<String>,
    /// Counters of the code; empty unless it is profiled.
    pub counters: Vec<ProfileCounter>,
    /// Instructions that the counters measure.
    pub counted: Vec<Counter>,
    /// Plans of the other versions, in the order of `BackOptions::variants`.
    pub variants: Vec<ModulePlan>,
    /// Object file.
    pub output: CompiledModule,
    /// What the object contains if a device runs the program.
    pub device: Option<DeviceCode>,
}

/// A program of a device.
#[derive(Debug)]
pub struct DeviceCode {
    /// Kernels and the steps of the host.
    pub program: DeviceProgram,
    /// The program and its images in their binary form.
    pub binary: Vec<u8>,
}

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
    let (versions, constants) = lower_versions(&module, options, observer)?;
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

/// Versions of a module for all targets. The sizes of the first one's assignment are large enough
/// for all.
struct Versions {
    first: Lowered,
    others: Vec<Lowered>,
    counters: Vec<ProfileCounter>,
}

/// Lowers a module for all targets. Also returns the constants that the versions share.
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
        let (first, other) = (&mut first.assignment, &other.assignment);
        if first.persistent_size != other.persistent_size {
            return Err(Error::internal(
                "the versions of the code differ in the size of their persistent state",
            ));
        }
        first.temps_size = first.temps_size.max(other.temps_size);
        first.worker_scratch_size = first.worker_scratch_size.max(other.worker_scratch_size);
    }
    if others.iter().any(|other| other.counters != first.counters) {
        return Err(Error::internal("the versions of the code differ in their counters"));
    }
    let counters = counters::describe(module, &first.counters);
    Ok((Versions { first, others, counters }, pool.finish()))
}

/// Generates the object. Each chunk of embedded constants is dropped as soon as it is written.
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
    let variants = others.into_iter().map(|lowered| lowered.plan).collect();
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
        return Err(Error::internal(format!("found no kernel in which to plant the defect {defect:?}")));
    }
    nest::dedup(&mut program);
    observer.ended("kernel", &|| program.to_string());
    observer.ended("regions", &|| kernel::regions::to_text(&regions));
    Ok(Lowered { plan, assignment, program, counters })
}
