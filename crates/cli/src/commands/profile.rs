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
use crate::report::bar::Bar;
use crate::report::text::print_json;
use clap::Args;
use runner::{Fill, ProfileOptions};
use std::path::PathBuf;
use support::Result;
use terminal::{Column, Screen, Style, Table, percent, seconds};
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
    /// HTML page to write [default: NAME.profile.html, unless --json is given]
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Print the times of all kernels as JSON
    #[arg(long)]
    json: bool,
}

impl Profile {
    /// Number of threads with its noun, for the report.
    pub(crate) fn thread_count_text(&self) -> String {
        match self.threads.unwrap_or(1) {
            1 => "1 thread".to_owned(),
            count => format!("{count} threads"),
        }
    }

    /// Path of the page, if one is written.
    fn page(&self) -> Option<PathBuf> {
        let default = || PathBuf::from(format!("{}.profile.html", self.model.stem()));
        self.output.clone().or_else(|| (!self.json).then(default))
    }
}

/// Profiles a model on the given arrays, which are random by default.
pub(crate) fn run(arguments: &Profile, xla: &XlaFlags) -> Result<()> {
    if arguments.session.level.is_given() {
        return session::run(arguments, xla);
    }
    arguments.model.inference.refuse_sizes(compiler::PROFILE_HAS_ONE_SIZE)?;
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
    let mut bar = Bar::new(&arguments.model.stem(), arguments.model.hides_progress());
    let report = runner::profile(&program.compiled, &arrays, &program.target, &options, &mut bar.watch())?;
    bar.finish();
    write(arguments, &report, "")
}

/// Writes the page, and prints the slowest kernels, then `more`.
pub(crate) fn write(arguments: &Profile, report: &Report, more: &str) -> Result<()> {
    let page = arguments.page();
    if let Some(path) = &page {
        let parts = vec![trace::html(report).into_bytes().into()];
        outputs::write(&[Output { path: path.clone(), parts }])?;
    }
    if arguments.json {
        return print_json("profile", &arguments.model.model.display().to_string(), report.to_json());
    }
    let screen = Screen::stdout();
    let whole: f64 = report.kernels.iter().map(|kernel| kernel.duration).sum();
    let mut table = Table::new([
        Column::numbers("share"),
        Column::numbers("time"),
        Column::words("kind").optional(),
        Column::names("kernel").optional(),
        Column::names("node"),
    ]);
    for kernel in report.slowest().into_iter().take(NAMED) {
        table.row([
            percent(kernel.duration / whole),
            seconds(kernel.duration / 1e9),
            kernel.kind.clone(),
            kernel.name.clone(),
            kernel.node.clone(),
        ]);
    }
    let mut text = screen.paragraph(Style::Plain, &report.subtitle) + &table.render(&screen) + more;
    if let Some(path) = &page {
        text += &format!("wrote {}\n", path.display());
    }
    outputs::print(&text)
}
