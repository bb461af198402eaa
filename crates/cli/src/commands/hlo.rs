//! `tfcompile hlo`: prints a model as HLO or in a format derived from HLO.

use crate::args::feeds::FeedArgs;
use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::files::hlo_formats::{Format, StageName, Surroundings, render};
use crate::files::outputs;
use crate::program::arguments::Arguments;
use crate::program::model::Read;
use crate::program::model::read;
use crate::report::dump::{Dumper, Watch};
use crate::report::progress::Progress;
use clap::Args;
use compiler::BackOptions;
use runner::Signature;
use stablehlo::Version;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use support::{Error, Result};

/// `tfcompile hlo`.
#[derive(Args, Debug)]
pub(crate) struct Hlo {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    feeds: FeedArgs,
    /// Stage of compilation to print
    #[arg(long, value_enum, value_name = "STAGE", default_value = "import")]
    stage: StageName,
    /// Format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// File to write to [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Version of StableHLO to write; a program that needs a newer version is an error
    #[arg(long, value_name = "VERSION", default_value_t = Version::default())]
    stablehlo_version: Version,
}

/// Imports a model, compiles it up to the stage, and writes it.
pub(crate) fn run(arguments: &Hlo, xla: &XlaFlags) -> Result<()> {
    let format = arguments.format;
    let has_values = arguments.feeds.is_given();
    if has_values && format != Format::Snapshot {
        return Err(Error::invalid(
            "only snapshots hold arguments: add --format=snapshot, or remove --feed, --var, --variables, and --random",
        ));
    }
    if format.is_binary() && arguments.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Error::invalid(
            "cannot write a binary format to a terminal: write to a file with -o FILE, or to a pipe",
        ));
    }
    let model = &arguments.model;
    if !model.quiet {
        xla.warn();
    }
    let name = model.stem();
    let mut progress = Progress::new(model, &name);
    let mut dumper = Dumper::new(xla);
    let Read { input, initial, .. } = read(model, &xla.disabled_passes, &mut progress, &mut dumper)?;
    let options = xla
        .options(BackOptions { plan: model.plan_options()?, ..BackOptions::new(model.target("")?, "entry") });
    let bytes = compiler::guarded(|| {
        let mut watch = Watch::new(&mut progress, &mut dumper);
        let program = input.source.without_checks()?.import_whole(&mut watch)?;
        let values = if has_values {
            Arguments::read(&arguments.feeds, &Signature::of(&program), &initial, None)?.inputs.first
        } else {
            Vec::new()
        };
        let with = Surroundings {
            is_scheduled: arguments.stage == StageName::Scheduled,
            arguments: values,
            result_names: program.interface.result_names(),
            stablehlo_version: arguments.stablehlo_version,
        };
        let module = compiler::at_stage(program.module, arguments.stage.stage(), &options, &mut watch)?;
        render(&module, format, &with)
    })?;
    dumper.finish()?;
    progress.finish();
    match &arguments.output {
        Some(path) => outputs::write_all(&[(path, &bytes)]),
        None => {
            let mut out = std::io::stdout().lock();
            let written = out.write_all(&bytes).and_then(|()| out.flush());
            written.map_err(|e| Error::invalid(format!("cannot write to standard output: {e}")))
        }
    }
}
