//! `tfcompile run`: compiles a model in this process, runs it on the given arrays, and prints and
//! writes its results.

mod session;

use crate::args::feeds::FeedArgs;
use crate::args::model::ModelArgs;
use crate::args::session::SessionArgs;
use crate::args::trace::TraceArgs;
use crate::args::xla_flags::XlaFlags;
use crate::files::{outputs, state};
use crate::program::arguments::Arguments;
use crate::program::in_process::Program;
use crate::report::steps::{Steps, step_lines};
use clap::Args;
use compiler::{Executable, Session};
use hlo::{Origin, Output, Role};
use runner::{Inputs, Signature, summary};
use shape::Literal;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::{Code, Coded as _, Error, Result};

/// `tfcompile run`.
#[derive(Args, Debug)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) feeds: FeedArgs,
    /// Number of runs; variables keep their values between runs [default: the number of batches,
    /// else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,
    /// Number of threads; the results do not depend on it [default: 1; with --session-config the
    /// number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Write the results of the last run and the variables after it to a NumPy archive
    #[arg(long, value_name = "FILE.npz")]
    pub(crate) out: Option<PathBuf>,
    /// Write all variables after the last run under their names in the graph: to a .npz or
    /// .safetensors file, else to a TensorFlow checkpoint with this prefix
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Number to fetch for the test images of --mnist after the last step [default: the node
    /// `accuracy`]
    #[arg(long, value_name = "NODE[:K]", requires = "mnist")]
    pub(crate) accuracy: Option<String>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// Compiles a model in this process, runs it and prints its results.
pub(crate) fn run(arguments: &Run, xla: &XlaFlags) -> Result<()> {
    check_outputs(arguments)?;
    if arguments.session.level.is_given() {
        return session::run(arguments, xla);
    }
    let mut given = None;
    let program = Program::compile(&arguments.model, xla, |signature, initial| {
        given = Some(Arguments::read(&arguments.feeds, signature, initial, None).coded(Code::GivenArray)?);
        Ok(())
    })?;
    let Arguments { inputs, notes } =
        given.ok_or_else(|| Error::internal("the compilation did not read the arguments"))?;
    if !arguments.model.quiet {
        // If standard error is closed, there is nowhere to report that.
        notes.iter().for_each(|note| drop(writeln!(std::io::stderr(), "note: {note}")));
    }
    let executable = Executable::load(&program.compiled)?;
    let mut session = executable.session(&inputs.first)?;
    session.set_threads(arguments.threads.unwrap_or(1) as usize)?;
    let steps = arguments.steps.or(inputs.batch_count()).unwrap_or(1);
    let time = run_steps(
        &mut session,
        &program.signature,
        &inputs,
        steps,
        &arguments.model.stem(),
        arguments.model.quiet,
    )?;
    let profile =
        runner::hlo_profile(executable.counters(), session.profile_counters(), steps, time.as_secs_f64());
    let _ = std::io::stderr().write_all(profile.as_bytes());
    let results = session.results()?;
    let mut text = String::new();
    for (result, array) in named_results(&program.signature, &results) {
        if result.origin == Origin::Variable {
            let _ = write!(text, "variable {}: {}", result.label(), summary::describe(array));
        }
    }
    let mut files = Vec::new();
    if let Some(path) = &arguments.save {
        files.extend(state::outputs(path, &variables(&program.signature, &inputs, &results))?);
    }
    if let Some(path) = &arguments.out {
        let named = named_results(&program.signature, &results);
        let archive = state::archive(named.map(|(result, array)| (result.label(), array.clone())))?;
        files.push(outputs::Output { path: path.clone(), parts: vec![archive.into()] });
    }
    outputs::write(&files)?;
    outputs::print(&text)?;
    let compared = results.get(program.signature.interface.fetches().len()..).unwrap_or(&[]);
    let checks = program.checks.iter().zip(compared.chunks_exact(2));
    checks.into_iter().try_for_each(|(check, pair)| {
        let checked = check.verify(&pair[0], &pair[1]).coded(Code::CheckFailed);
        checked.map_err(|error| error.context(arguments.model.model.display()))
    })
}

/// Rejects output files that cannot be written before any step runs, because the state of the steps
/// would be lost.
fn check_outputs(arguments: &Run) -> Result<()> {
    for path in [&arguments.save, &arguments.out].into_iter().flatten() {
        let (Some(_), Some(directory)) = (path.file_name(), path.parent()) else {
            return Err(
                Error::invalid(format!("'{}' does not name a file", path.display())).coded(Code::WriteFile)
            );
        };
        if !directory.as_os_str().is_empty() && !directory.is_dir() {
            return Err(Error::invalid(format!(
                "cannot write '{}': there is no directory '{}'; create it first",
                path.display(),
                directory.display()
            ))
            .coded(Code::WriteFile));
        }
    }
    Ok(())
}

/// Runs `steps` times and prints the fetches. Returns the total time of the runs.
fn run_steps(
    session: &mut Session<'_>,
    signature: &Signature,
    inputs: &Inputs,
    steps: u64,
    name: &str,
    quiet: bool,
) -> Result<Duration> {
    let mut time = Duration::ZERO;
    let mut progress = Steps::new(name, steps, quiet);
    let fetches = signature.interface.fetches();
    for step in 0..steps {
        if step > 0 {
            for (argument, batch) in inputs.at(step) {
                session.set_argument(argument, batch)?;
            }
        }
        let start = Instant::now();
        session.run()?;
        time += start.elapsed();
        let arrays = (0..fetches.len()).map(|k| session.result(k)).collect::<Result<Vec<_>>>()?;
        let names: Vec<String> = fetches.iter().map(Output::label).collect();
        progress.ended(step, &step_lines(names.iter().map(String::as_str).zip(&arrays), step, steps))?;
    }
    progress.finish()?;
    Ok(time)
}

/// Results of a run with their arrays, except those that only checks compare.
fn named_results<'a>(
    signature: &'a Signature,
    arrays: &'a [Literal],
) -> impl Iterator<Item = (&'a Output, &'a Literal)> {
    let all = signature.interface.results().iter().zip(arrays);
    all.filter(|(result, _)| result.origin != Origin::Check)
}

/// All variables after the last run by their names in the graph: the written values, or else the
/// given ones.
fn variables(signature: &Signature, inputs: &Inputs, results: &[Literal]) -> BTreeMap<String, Literal> {
    let given = signature.arguments().iter().zip(&inputs.first);
    let given = given.filter(|(argument, _)| argument.role == Role::Variable);
    let written = signature.interface.results().iter().zip(results);
    let written = written.filter(|(result, _)| result.origin == Origin::Variable);
    let all = given.map(|(argument, array)| (&argument.id, array));
    let all = all.chain(written.map(|(result, array)| (&result.id, array)));
    all.map(|(id, array)| (id.short(), array.clone())).collect()
}
