//! `tfcompile bench`: compiles a model in this process and measures its speed.

use crate::args::feeds::FeedArgs;
use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::files::outputs;
use crate::program::arguments::Arguments;
use crate::program::in_process::Program;
use crate::report::bar::Bar;
use crate::report::text::print_json;
use clap::Args;
use runner::{BenchOptions, Fill};
use support::{Error, Result};
use terminal::Screen;

/// `tfcompile bench`.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    feeds: FeedArgs,
    /// Approximate duration of each measurement in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
    /// Numbers of threads to measure with, joined by commas
    #[arg(long, value_name = "LIST", default_value = "1", value_delimiter = ',')]
    threads: Vec<u32>,
    /// Also measure each kernel separately
    #[arg(long)]
    kernels: bool,
    /// Skip the measurement of the machine's peak, which takes a second
    #[arg(long)]
    no_peak: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures a model on the given arrays, which are random by default.
pub(crate) fn run(arguments: &Bench, xla: &XlaFlags) -> Result<()> {
    let options = options(arguments)?;
    let mut arrays = Vec::new();
    let program = Program::compile(&arguments.model, xla, |signature, initial| {
        arrays = Arguments::read(&arguments.feeds, signature, initial, Some(Fill::Random))?.inputs.first;
        Ok(())
    })?
    .optimized()?;
    let model = &arguments.model;
    let mut bar = Bar::new(&model.stem(), model.hides_progress());
    let report = runner::bench(&program.compiled, &arrays, &program.target, &options, &mut bar.watch())?;
    bar.finish();
    if arguments.json {
        return print_json("bench", &model.model.display().to_string(), report.to_json());
    }
    outputs::print(&report.to_text(&Screen::stdout()))
}

fn options(arguments: &Bench) -> Result<BenchOptions> {
    if !(arguments.seconds.is_finite() && (0.001..=3600.0).contains(&arguments.seconds)) {
        return Err(Error::invalid(format!(
            "--seconds {}: expected a number from 0.001 to 3600",
            arguments.seconds
        )));
    }
    if let Some(count) = arguments.threads.iter().find(|count| !(1..=1024).contains(*count)) {
        return Err(Error::invalid(format!("--threads {count}: expected numbers from 1 to 1024")));
    }
    Ok(BenchOptions {
        seconds: arguments.seconds,
        threads: arguments.threads.iter().map(|&count| count as usize).collect(),
        kernels: arguments.kernels,
        peak: !arguments.no_peak,
    })
}
