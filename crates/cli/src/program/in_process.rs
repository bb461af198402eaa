//! Compilation of a model for this process, for `run`, `bench`, `profile`, and `verify`.

use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::program::model::Read;
use crate::program::model::read;
use crate::report::dump::{Dumper, Watch};
use crate::report::progress::Progress;
use compiler::{BackOptions, Compiled, CountedCode, Device, DeviceOptions, NoObserver, Source};
use runner::Signature;
use shape::Literal;
use std::collections::BTreeMap;
use support::{Code, Error, Result};
use target::Target;

/// Values of variables that a model contains, by the names of the variables' nodes.
pub(crate) type Initial = BTreeMap<String, Literal>;

/// Extent of a compilation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Extent {
    /// The code, which may be made of pieces for a few sizes.
    Code,
    /// The code of the module.
    Module,
    /// The code of the module, with and without counters.
    Counted,
}

/// A model and its code.
pub(crate) struct Program {
    /// Module before any pass.
    pub(crate) imported: hlo::Module,
    pub(crate) signature: Signature,
    pub(crate) target: Target,
    /// Options with which its kernels are compiled one by one.
    pub(crate) back: BackOptions,
    pub(crate) compiled: Compiled,
    /// The code with counters, if it was asked for.
    pub(crate) counted: Option<CountedCode>,
    /// Options of the passes that `compiled.module` has not been through, if its code is that of
    /// other modules.
    unoptimized: Option<BackOptions>,
    /// Checks of values that the program itself contains.
    pub(crate) checks: Vec<stablehlo::Check>,
}

impl Program {
    /// Imports a model and compiles it for this machine's processor, or for the one that the flags
    /// name. Calls `check` with the signature and the model's values of variables before compiling.
    pub(crate) fn compile(
        flags: &ModelArgs,
        xla: &XlaFlags,
        check: impl FnOnce(&Signature, &Initial) -> Result<()> + Send,
    ) -> Result<Self> {
        Self::compile_for(flags, runnable(flags)?, xla, Extent::Code, check)
    }

    /// Like [`Program::compile`], for a machine that may be another one.
    pub(crate) fn compile_for(
        flags: &ModelArgs,
        target: Target,
        xla: &XlaFlags,
        extent: Extent,
        check: impl FnOnce(&Signature, &Initial) -> Result<()> + Send,
    ) -> Result<Self> {
        let device = open_device(flags)?;
        let name = flags.stem();
        if !flags.quiet {
            xla.warn();
        }
        let mut progress = Progress::new(flags, &name);
        let mut dumper = Dumper::new(xla);
        let Read { input, initial, .. } = read(flags, &xla.disabled_passes, &mut progress, &mut dumper)?;
        let program = compiler::guarded(|| {
            let checks = match &input.source {
                Source::Hlo(program) => program.checks.clone(),
                Source::Graph { .. } => Vec::new(),
            };
            let mut watch = Watch::new(&mut progress, &mut dumper);
            let back =
                BackOptions { plan: flags.plan_options()?, ..compiler::in_process_options(target.clone()) };
            let back = match device {
                Some(device) => flags.with_forms(back.on_device(device)?)?,
                None => back,
            };
            let options = xla.options(back.clone());
            // What looks at the module has code for the largest sizes alone, as profiles have.
            let is_profiled = options.is_profiled || extent != Extent::Code;
            let of_import = BackOptions { is_profiled, ..options.clone() };
            let program = input.source.import_code(&of_import, &mut watch)?;
            let signature = Signature::of(&program);
            check(&signature, &initial)?;
            let mut watch = Watch::new(&mut progress, &mut dumper);
            let imported = program.module.clone();
            let unoptimized = compiler::has_several_modules(&program, &options).then(|| options.clone());
            let (compiled, counted) = match extent {
                Extent::Code | Extent::Module => {
                    (compiler::compile_program(program, &options, &mut watch)?, None)
                }
                Extent::Counted => {
                    let (compiled, counted) =
                        compiler::compile_with_counters(program.module, &options, &mut watch)?;
                    (compiled, Some(counted))
                }
            };
            if let Some(note) = crate::program::autotune::ignored(&compiled.code.plan.ignored_choices) {
                progress.note(&note);
            }
            Ok(Self { imported, signature, target, back, compiled, counted, unoptimized, checks })
        })?;
        dumper.finish()?;
        progress.finish();
        Ok(program)
    }

    /// Optimizes the module for all sizes, for commands that look at its kernels.
    pub(crate) fn optimized(mut self) -> Result<Self> {
        if let Some(options) = self.unoptimized.take() {
            let module = &mut self.compiled.module;
            compiler::guarded(|| compiler::optimize(module, &options, &mut NoObserver))?;
        }
        Ok(self)
    }
}

/// Opens the GPU that the flags name, if they name one.
fn open_device(flags: &ModelArgs) -> Result<Option<Device>> {
    let Some(kind) = flags.device_kind()? else { return Ok(None) };
    Device::open(&DeviceOptions::new(kind, 0)).map(Some)
}

/// Machine to compile for. Returns an error if its code cannot run here.
pub(crate) fn runnable(flags: &ModelArgs) -> Result<Target> {
    if flags.device_kind()?.is_some() {
        return compiler::host("native");
    }
    let (target, host) = (flags.target("native")?, compiler::host("native")?);
    let foreign = target.triple.architecture != host.triple.architecture
        || target.triple.object_format != host.triple.object_format;
    if foreign {
        return Err(Error::invalid(format!(
            "code for {} cannot run on this machine, which is {}; remove the target flags",
            target.triple.as_str(),
            host.triple.as_str()
        ))
        .coded(Code::Target));
    }
    let is_missing = |has: bool, host: bool| has && !host;
    if target.vector_bytes > host.vector_bytes
        || is_missing(target.has_fma, host.has_fma)
        || is_missing(target.has_f16_conversion, host.has_f16_conversion)
        || is_missing(target.has_bf16_products, host.has_bf16_products)
        || is_missing(target.has_tile_products, host.has_tile_products)
        || is_missing(target.has_rounding, host.has_rounding)
        || is_missing(target.has_float_parts, host.has_float_parts)
    {
        return Err(Error::invalid(format!(
            "this machine does not support all instructions of '{}'; remove --target-cpu and --target-features",
            target.cpu
        ))
        .coded(Code::Target));
    }
    Ok(target)
}

/// Compiles a kernel for a target.
pub(crate) fn compile_kernel(
    module: hlo::Module,
    back: &BackOptions,
    plan: compiler::PlanOptions,
) -> Result<compiler::Executable> {
    let options = BackOptions { plan, ..back.clone() };
    compiler::Executable::load(&compiler::compile_optimized(module, &options, &mut NoObserver)?)
}
