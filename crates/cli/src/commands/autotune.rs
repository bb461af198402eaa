//! `tfcompile autotune`: measures the fastest algorithm for each kernel of a model.

use crate::args::model::ModelArgs;
use crate::args::tuning::{AutotuneArgs, DEFAULT_FILE};
use crate::args::xla_flags::XlaFlags;
use crate::files::outputs;
use crate::files::outputs::Output;
use crate::program::autotune;
use crate::program::model::{Read, read};
use crate::report::Reporter as _;
use crate::report::dump::Dumper;
use crate::report::progress::Progress;
use crate::report::text::print_json;
use clap::Args;
use compiler::BackOptions;
use std::path::PathBuf;
use support::{Code, Error, Result};
use terminal::Screen;

/// `tfcompile autotune`.
#[derive(Args, Debug)]
pub(crate) struct Autotune {
    #[command(flatten)]
    model: ModelArgs,
    /// File of the choices, which `build --tuning` reads. Choices already in it are kept and not
    /// measured again
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    output: PathBuf,
    /// Upper bound on the seconds spent measuring; the planner decides for the remaining kernels
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    seconds: f64,
    /// Print the measurements as JSON
    #[arg(long)]
    json: bool,
}

/// Measures the kernels of a model, and adds the fastest algorithms to a file.
pub(crate) fn run(arguments: &Autotune, xla: &XlaFlags) -> Result<()> {
    let model = &arguments.model;
    if model.tuning.file().is_some() {
        return Err(Error::invalid(
            "--tuning is for commands that use choices: name the file to read and write with --output",
        )
        .coded(Code::CommandLine));
    }
    let seconds = arguments.seconds;
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err(Error::invalid(format!("--seconds {seconds}: expected a number from 0 to 86400")));
    }
    if !model.quiet {
        xla.warn();
    }
    let flags = AutotuneArgs { autotune: Some(arguments.output.clone()), autotune_seconds: seconds };
    let back = xla.options(BackOptions {
        devices: model.devices()?,
        plan: model.plan_options()?,
        ..BackOptions::new(model.target("native")?, "tuned")
    });
    let mut progress = Progress::new(model, &model.stem());
    let mut dumper = Dumper::new(xla);
    let Read { input, .. } = read(model, &xla.disabled_passes, &mut progress, &mut dumper)?;
    let mut doing = |text: &str, done, total| progress.doing(text, done, total);
    let tuning = autotune::measure(&flags, &input, &back, &mut doing)?;
    let tuning = tuning.ok_or_else(|| Error::internal("autotuning without a file"))?;
    dumper.finish()?;
    progress.finish();
    let table = tuning.table()?.into_bytes();
    outputs::write(&[Output { path: arguments.output.clone(), parts: vec![table.into()] }])?;
    if arguments.json {
        return print_json("autotune", &model.model.display().to_string(), tuning.to_json());
    }
    if model.quiet {
        return Ok(());
    }
    let screen = Screen::stdout();
    let report = tuning.report(&screen, model.verbose);
    outputs::print(&format!("{}{report}wrote {}\n", tuning.kernels(&screen), arguments.output.display()))
}
