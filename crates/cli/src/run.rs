//! `tfcompile run`: compiles a model in this process, runs it on given arrays, prints and writes what it makes.

use crate::given::{self, GivenArgs};
use crate::in_process::Program;
use crate::model::ModelArgs;
use crate::outputs;
use clap::Args;
use compiler::Executable;
use runner::{Role, summary};
use std::fmt::Write as _;
use std::path::PathBuf;
use support::Result;

/// `tfcompile run`.
#[derive(Args, Debug)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    given: GivenArgs,
    /// How many times to run; variables keep their values from run to run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Threads that share the work; the results never depend on them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Write the results of the last run, and the variables after it, to a NumPy archive
    #[arg(long, value_name = "FILE.npz")]
    out: Option<PathBuf>,
}

/// Compiles a model in this process, runs it and prints its results.
pub(crate) fn run(arguments: &Run) -> Result<()> {
    let mut arrays = Vec::new();
    let program = Program::compile(&arguments.model, |signature, initial| {
        arrays = arguments.given.arrays(signature, initial, None)?;
        Ok(())
    })?;
    let executable = Executable::load(&program.compiled)?;
    let mut session = executable.session(&arrays)?;
    session.set_threads(arguments.threads as usize)?;
    for _ in 0..arguments.steps {
        session.run()?;
    }
    let results = session.results()?;

    let mut text = String::new();
    for (result, array) in program.signature.results.iter().zip(&results) {
        let variable = if result.role == Role::Variable { "variable " } else { "" };
        let _ = write!(text, "{variable}{}: {}", result.name, summary::describe(array));
    }
    if let Some(path) = &arguments.out {
        let names = program.signature.results.iter().map(|result| result.name.clone());
        let archive = given::archive(names.zip(results))?;
        outputs::write_all(&[(path, &archive)])?;
    }
    outputs::print(&text)
}
