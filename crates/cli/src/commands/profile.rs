//! `tfcompile profile`: runs a model in this process and writes a page with the time of each
//! kernel.

mod session;

use crate::args::feeds::FeedArgs;
use crate::args::model::ModelArgs;
use crate::args::session::SessionArgs;
use crate::args::xla_flags::XlaFlags;
use crate::files::outputs;
use crate::files::outputs::Output;
use crate::program::arguments::Arguments;
use crate::program::in_process::Program;
use clap::Args;
use runner::{Fill, ProfileOptions};
use std::fmt::Write as _;
use std::path::PathBuf;
use support::Result;
use trace::Report;

/// Number of kernels listed on standard output.
const NAMED: usize = 10;

/// `tfcompile profile`.
#[derive(Args, Debug)]
pub(crate) struct Profile {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) feeds: FeedArgs,
    /// Number of runs to measure, or of steps of a session
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: u64,
    /// Number of threads [default: 1; with --session-config the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Skip the measurement of the machine's peak, which takes a second
    #[arg(long)]
    pub(crate) no_peak: bool,
    /// HTML page to write [default: NAME.profile.html]
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
}

impl Profile {
    /// Number of threads with its noun, for the report.
    pub(crate) fn thread_count_text(&self) -> String {
        match self.threads.unwrap_or(1) {
            1 => "1 thread".to_owned(),
            count => format!("{count} threads"),
        }
    }

    /// Path of the page.
    fn page(&self) -> PathBuf {
        let default = || {
            let stem = self.model.model.file_stem().unwrap_or_default().to_string_lossy();
            PathBuf::from(format!("{stem}.profile.html"))
        };
        self.output.clone().unwrap_or_else(default)
    }
}

/// Profiles a model on the given arrays, which are random by default.
pub(crate) fn run(arguments: &Profile, xla: &XlaFlags) -> Result<()> {
    if arguments.session.level.is_given() {
        return session::run(arguments, xla);
    }
    // A device's driver measures its kernels.
    let is_profiled = arguments.model.device_kind()?.is_none();
    let xla = XlaFlags { is_profiled, ..xla.clone() };
    let mut arrays = Vec::new();
    let program = Program::compile(&arguments.model, &xla, |signature, initial| {
        arrays = Arguments::read(&arguments.feeds, signature, initial, Some(Fill::Random))?.inputs.first;
        Ok(())
    })?;
    let options = ProfileOptions {
        title: arguments.model.model.display().to_string(),
        steps: arguments.steps,
        threads: arguments.threads.unwrap_or(1) as usize,
        peak: !arguments.no_peak,
    };
    let report = runner::profile(&program.compiled, &arrays, &program.target, &options)?;
    write(arguments, &report)?;
    summary(arguments, report, "")
}

/// Writes the page.
pub(crate) fn write(arguments: &Profile, report: &Report) -> Result<()> {
    outputs::write(&[Output { path: arguments.page(), parts: vec![trace::html(report).into_bytes().into()] }])
}

/// Prints the slowest kernels, then `more`.
pub(crate) fn summary(arguments: &Profile, mut report: Report, more: &str) -> Result<()> {
    report.kernels.sort_by(|a, b| b.duration.total_cmp(&a.duration));
    let whole: f64 = report.kernels.iter().map(|kernel| kernel.duration).sum();
    let mut text = format!("{}\n", report.subtitle);
    for kernel in report.kernels.iter().take(NAMED) {
        let share = 100.0 * kernel.duration / whole;
        let _ = writeln!(
            text,
            "{share:5.1}%  {:10.2} us  {} {} {}",
            kernel.duration / 1e3,
            kernel.kind,
            kernel.name,
            kernel.node
        );
    }
    text.push_str(more);
    let _ = writeln!(text, "wrote {}", arguments.page().display());
    outputs::print(&text)
}
