//! A model compiled for this process, as `run`, `bench` and `verify` begin.

use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::program::model::Read;
use crate::program::model::read;
use crate::report::dump::{Dumper, Watch};
use crate::report::progress::Progress;
use compiler::{BackOptions, Compiled, NoObserver, Source};
use runner::Signature;
use shape::Literal;
use std::collections::BTreeMap;
use support::{Code, Error, Result};
use target::Target;

/// The values of variables that a model comes with, by the name of the variable's node.
pub(crate) type Initial = BTreeMap<String, Literal>;

/// A model and its code.
pub(crate) struct Program {
    /// As it was imported.
    pub(crate) imported: hlo::Module,
    pub(crate) signature: Signature,
    pub(crate) target: Target,
    pub(crate) compiled: Compiled,
    /// Statements of the program about its own values.
    pub(crate) checks: Vec<stablehlo::Check>,
}

impl Program {
    /// Imports a model and compiles it for this machine's processor, or the one that the flags name. `check` sees the
    /// signature, and the values of variables that the model comes with, before anything is compiled.
    pub(crate) fn compile(
        flags: &ModelArgs,
        xla: &XlaFlags,
        check: impl FnOnce(&Signature, &Initial) -> Result<()> + Send,
    ) -> Result<Self> {
        let target = target(flags)?;
        let name = flags.model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !flags.quiet {
            xla.warn();
        }
        let mut progress = Progress::new(flags, &name);
        let mut dumper = Dumper::new(xla);
        let Read { input, initial } = read(flags, &xla.disabled_passes, &mut progress, &mut dumper)?;
        let program = compiler::guarded(|| {
            let checks = match &input.source {
                Source::Hlo(program) => program.checks.clone(),
                Source::Graph { .. } => Vec::new(),
            };
            let program = input.source.import(&mut Watch::new(&mut progress, &mut dumper))?;
            let signature = Signature::of(&program);
            check(&signature, &initial)?;
            let options = xla.options(BackOptions {
                plan: flags.plan_options()?,
                ..compiler::in_process_options(target.clone())
            });
            let mut watch = Watch::new(&mut progress, &mut dumper);
            let compiled = compiler::compile_module(program.module.clone(), &options, &mut watch)?;
            if let Some(note) = crate::program::autotune::ignored(&compiled.code.plan.ignored_choices) {
                progress.note(&note);
            }
            Ok(Self { imported: program.module, signature, target, compiled, checks })
        })?;
        dumper.finish()?;
        progress.finish();
        Ok(program)
    }
}

/// The machine to compile for; an error if its code cannot run here.
fn target(flags: &ModelArgs) -> Result<Target> {
    let (target, host) = (flags.target("native")?, compiler::host("native")?);
    let foreign = target.triple.architecture != host.triple.architecture
        || target.triple.object_format != host.triple.object_format;
    if foreign {
        return Err(Error::invalid(format!(
            "code for {} does not run on this machine, which is {}; leave the target out",
            target.triple.as_str(),
            host.triple.as_str()
        ))
        .coded(Code::Target));
    }
    let lacks = |has: bool, host: bool| has && !host;
    if target.vector_bytes > host.vector_bytes
        || lacks(target.has_fma, host.has_fma)
        || lacks(target.has_f16_conversion, host.has_f16_conversion)
        || lacks(target.has_rounding, host.has_rounding)
        || lacks(target.has_float_parts, host.has_float_parts)
    {
        return Err(Error::invalid(format!(
            "this machine lacks instructions of '{}'; leave the processor out",
            target.cpu
        ))
        .coded(Code::Target));
    }
    Ok(target)
}

/// Makes code of a kernel for a target.
pub(crate) fn compile_kernel(
    module: hlo::Module,
    target: &Target,
    plan: compiler::PlanOptions,
) -> Result<compiler::Executable> {
    let options = BackOptions { plan, ..compiler::in_process_options(target.clone()) };
    compiler::Executable::load(&compiler::compile_optimized(module, &options, &mut NoObserver)?)
}
