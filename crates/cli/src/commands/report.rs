//! `tfcompile report`: the figures of a model or an object as a page and as JSON, the difference
//! from an older one, and budgets.

use crate::args::feeds::FeedArgs;
use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::files::outputs;
use crate::files::outputs::Output;
use crate::program::arguments::Arguments;
use crate::program::in_process::{Extent, Program, compile_kernel, runnable};
use crate::report::bar::Bar;
use crate::report::text::json_text;
use ::report::{Budget, Diff, Finding, Report as Figures};
use clap::Args;
use compiler::Executable;
use hlo::{Origin, Role};
use runner::{Fill, ReportOptions, Subject, VerifyOptions};
use shape::Literal;
use std::path::{Path, PathBuf};
use support::{Code, Error, Result};
use terminal::Screen;

/// `tfcompile report`.
#[derive(Args, Debug)]
pub(crate) struct Report {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    feeds: FeedArgs,
    /// Also show what changed since OLD, a model, a compiled file, or a report written by --json
    #[arg(long, value_name = "OLD")]
    diff: Option<PathBuf>,
    /// HTML page to write [default: NAME.report.html, unless --json is given]
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Print the report as JSON, or the difference with --diff
    #[arg(long)]
    json: bool,
    /// Compare each layer and each result with the evaluator, which takes minutes for large models
    #[arg(long)]
    accuracy: bool,
    /// Fail if a figure is over its limit in this file
    #[arg(long, value_name = "FILE.toml")]
    budget: Option<PathBuf>,
    /// Write the lines of the budget as a JUnit report
    #[arg(long, value_name = "FILE.xml", requires = "budget")]
    junit: Option<PathBuf>,
    /// Print broken lines of the budget as annotations of GitHub's workflows
    #[arg(long, requires = "budget")]
    github: bool,
    /// Show modeled times instead of measuring
    #[arg(long)]
    no_time: bool,
    /// Approximate duration of each measurement in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Skip the measurement of the machine's peak, which takes a second
    #[arg(long)]
    no_peak: bool,
}

/// Why a report is not about pieces for a few sizes.
const NO_SIZES: &str =
    "a report is about the code of the largest size; --dim NAME=N reports on that of another";

/// Reports on a model or an object, then checks the budget.
pub(crate) fn run(arguments: &Report, xla: &XlaFlags) -> Result<()> {
    if !(arguments.seconds.is_finite() && (0.001..=3600.0).contains(&arguments.seconds)) {
        let seconds = arguments.seconds;
        return Err(Error::invalid(format!("--seconds {seconds}: expected a number from 0.001 to 3600")));
    }
    if arguments.model.device_kind()?.is_some() {
        return Err(Error::invalid(
            "report describes code for processors: remove --target, or measure the GPU with `tfcompile profile`",
        ));
    }
    arguments.model.inference.refuse_sizes(NO_SIZES)?;
    let budget = arguments.budget.as_deref().map(read_budget).transpose()?;
    let with_errors = arguments.accuracy || budget.as_ref().is_some_and(Budget::needs_errors);
    let old = match &arguments.diff {
        Some(path) => Some(figures(arguments, path, xla, with_errors)?),
        None => None,
    };
    let new = figures(arguments, &arguments.model.model, xla, with_errors)?;
    let findings = budget.as_ref().map(|budget| budget.check(&new)).unwrap_or_default();
    let page = arguments.output.clone().or_else(|| (!arguments.json).then(|| default_page(arguments)));
    let mut files = Vec::new();
    if let Some(path) = &page {
        let page = ::report::html(&new, old.as_ref()).into_bytes();
        files.push(Output { path: path.clone(), parts: vec![page.into()] });
    }
    if let (Some(path), Some(budget)) = (&arguments.junit, &budget) {
        let text = ::report::junit(&budget.file, &findings).into_bytes();
        files.push(Output { path: path.clone(), parts: vec![text.into()] });
    }
    outputs::write(&files)?;
    let diff = old.as_ref().map(|old| Diff::new(old, &new));
    let screen = Screen::stdout();
    let mut text = match (&diff, arguments.json) {
        (Some(diff), true) => json_text("diff", &new.name, serde_json::json!(diff)),
        (None, true) => new.to_json()?,
        (Some(diff), false) => format!("{}\n{}", new.to_text(&screen), diff.to_text(&screen)),
        (None, false) => new.to_text(&screen),
    };
    if let (Some(path), false) = (&page, arguments.json) {
        text.push_str(&format!("wrote {}\n", path.display()));
    }
    if let (Some(budget), true) = (&budget, arguments.github) {
        text.push_str(&::report::github(&budget.file, &findings));
    }
    outputs::print(&text)?;
    match &budget {
        Some(budget) => broken(budget, &findings),
        None => Ok(()),
    }
}

/// Fails if a line of the budget is broken.
fn broken(budget: &Budget, findings: &[Finding]) -> Result<()> {
    let broken: Vec<String> = findings
        .iter()
        .filter(|finding| !finding.passed)
        .map(|finding| format!("{}:{}: {}", budget.file, finding.line, finding.message))
        .collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(broken.join("\n")).coded(Code::Budget))
}

fn read_budget(path: &Path) -> Result<Budget> {
    let bytes = tf::source::read_other(path)?;
    let name = path.display().to_string();
    let text = std::str::from_utf8(&bytes);
    let text = text.map_err(|_| Error::invalid(format!("{name}: expected a budget in UTF-8")))?;
    Budget::parse(text, &name)
}

fn default_page(arguments: &Report) -> PathBuf {
    PathBuf::from(format!("{}.report.html", arguments.model.stem()))
}

/// The figures of a model, a compiled file, or a saved report.
fn figures(arguments: &Report, path: &Path, xla: &XlaFlags, with_errors: bool) -> Result<Figures> {
    let name = path.display().to_string();
    if path.is_file() {
        let bytes = tf::source::read_bytes(path)?;
        if is_saved_report(&bytes) {
            return Figures::parse(&bytes).map_err(|e| e.context(&name));
        }
        let is_object =
            |extension: &str| ["o", "obj", "a", "lib", "so", "dylib", "wasm"].contains(&extension);
        if path.extension().and_then(|extension| extension.to_str()).is_some_and(is_object) {
            let records = compiler::guarded(|| aot::read_metadata(&bytes)).map_err(|e| e.context(&name))?;
            let [record] = &records[..] else {
                return Err(Error::invalid(format!(
                    "{name} contains {} programs; report on one object at a time",
                    records.len()
                )));
            };
            return Ok(::report::of_metadata(&name, &record.metadata));
        }
    }
    let model = ModelArgs { model: path.to_owned(), ..arguments.model.clone() };
    of_model(arguments, &model, xla, with_errors)
}

/// True if a file is a saved report: models in JSON have no such schema.
fn is_saved_report(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(4096)];
    bytes.starts_with(b"{") && start.windows(::report::SCHEMA.len()).any(|w| w == ::report::SCHEMA.as_bytes())
}

/// Compiles a model, and measures it if its code runs on this machine.
fn of_model(arguments: &Report, model: &ModelArgs, xla: &XlaFlags, with_errors: bool) -> Result<Figures> {
    let foreign = runnable(model).err();
    let target = model.target("native")?;
    let xla = XlaFlags { is_profiled: false, ..xla.clone() };
    let extent = if foreign.is_some() || arguments.no_time { Extent::Module } else { Extent::Counted };
    let mut arrays: Vec<Literal> = Vec::new();
    let program = Program::compile_for(model, target, &xla, extent, |signature, initial| {
        arrays = Arguments::read(&arguments.feeds, signature, initial, Some(Fill::Random))?.inputs.first;
        Ok(())
    })?;
    compiler::guarded(move || {
        let compiled = &program.compiled;
        let name = model.model.display().to_string();
        let mut report = runner::report(&name, compiled, &program.signature.interface, &program.target);
        if let Some((_, argument, _)) = program.signature.interface.sizes().next() {
            let name = argument.name.clone().unwrap_or_else(|| argument.id.short());
            report.missing.push(format!(
                "The size '{name}' is a range: {NO_SIZES}. `build` may also make code for smaller ones"
            ));
        }
        if let Some(why) = foreign {
            report.missing.push(format!("Times are modeled and nothing is compared: {}", why.message()));
            return Ok(report);
        }
        if let Some(counted) = &program.counted {
            let options = ReportOptions {
                seconds: arguments.seconds,
                threads: arguments.threads as usize,
                peak: !arguments.no_peak,
            };
            let mut bar = Bar::new(&model.stem(), model.hides_progress());
            let watch = &mut bar.watch();
            let target = &program.target;
            runner::measure_report(&mut report, compiled, counted, &arrays, target, &options, watch)?;
        } else {
            report.missing.push("Times are modeled: remove --no-time to measure them".to_owned());
        }
        if !arguments.accuracy {
            report.missing.push("Layers were not compared with the evaluator: add --accuracy".to_owned());
        }
        if with_errors {
            compare(arguments, &program, &arrays, &mut report)?;
        }
        Ok(report)
    })
}

/// Compares the results with the evaluator's, and with `--accuracy` each layer.
fn compare(arguments: &Report, program: &Program, arrays: &[Literal], report: &mut Figures) -> Result<()> {
    let (interface, compiled) = (&program.signature.interface, &program.compiled);
    let imported = compiler::with_size_results(&program.imported)?;
    let outputs = interface.results().iter().filter(|result| result.origin != Origin::Check);
    let names: Vec<String> = outputs.map(hlo::Output::label).collect();
    runner::add_result_errors(report, &imported, &names, compiled, arrays)?;
    if arguments.accuracy {
        let executable = Executable::load(compiled)?;
        let compile = |module| compile_kernel(module, &program.back, compiled.plan_options.clone());
        let subject = Subject {
            imported: &imported,
            optimized: &compiled.module,
            results: &names,
            feeds: interface.arguments().iter().filter(|a| a.role == Role::Feed).count(),
            program: &executable,
            compile: &compile,
        };
        let options = VerifyOptions { small_program: 0, ..VerifyOptions::default() };
        runner::add_accuracy(report, &runner::verify_kernels(&subject, &options)?);
    }
    Ok(())
}
