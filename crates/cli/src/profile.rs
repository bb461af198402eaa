//! `tfcompile profile`: runs a model in this process and writes a page about where its time goes.

use crate::given::GivenArgs;
use crate::in_process::Program;
use crate::model::ModelArgs;
use crate::outputs::{self, Output};
use crate::xla_flags::XlaFlags;
use clap::Args;
use runner::{Fill, ProfileOptions};
use std::fmt::Write as _;
use std::path::PathBuf;
use support::Result;

/// Kernels that are named on standard output.
const NAMED: usize = 10;

/// `tfcompile profile`.
#[derive(Args, Debug)]
pub(crate) struct Profile {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    given: GivenArgs,
    /// How many runs to count
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Threads that share the work
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Leave out the machine's peak, whose measurement takes a second
    #[arg(long)]
    no_peak: bool,
    /// The page [default: NAME.profile.html]
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
}

/// Profiles a model on given arrays, random ones by default.
pub(crate) fn run(arguments: &Profile, xla: &XlaFlags) -> Result<()> {
    let xla = XlaFlags { is_profiled: true, ..xla.clone() };
    let mut arrays = Vec::new();
    let program = Program::compile(&arguments.model, &xla, |signature, initial| {
        arrays = arguments.given.arrays(signature, initial, Some(Fill::Random))?;
        Ok(())
    })?;
    let model = &arguments.model.model;
    let options = ProfileOptions {
        title: model.display().to_string(),
        steps: arguments.steps,
        threads: arguments.threads as usize,
        peak: !arguments.no_peak,
    };
    let mut report = runner::profile(&program.compiled, &arrays, &program.target, &options)?;
    let named = || {
        let stem = model.file_stem().unwrap_or_default().to_string_lossy();
        PathBuf::from(format!("{stem}.profile.html"))
    };
    let path = arguments.output.clone().unwrap_or_else(named);
    outputs::write(&[Output { path: path.clone(), parts: vec![trace::html(&report).into_bytes().into()] }])?;
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
    let _ = writeln!(text, "wrote {}", path.display());
    outputs::print(&text)
}
