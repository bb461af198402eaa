//! Runs TensorFlow Lite models with recorded answers.

use conformance::arguments::{self, Arguments};
use conformance::{known_failures, models};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
    tflite-cases [--evaluator] [--known FILE] [--step N] ARCHIVE|FOLDER...

Runs every N-th case (default: all) of archives as in tests/tflite, compiled or, with --evaluator,
evaluated. Prints failures and a summary. Exits with status 1 if a case fails that --known does not
list, or if one passes that it lists.
";

fn main() -> ExitCode {
    arguments::main("tflite-cases", HELP, run)
}

fn run(words: Vec<String>) -> Result<bool, String> {
    let mut arguments = Arguments::new(words);
    let evaluates = arguments.switch("--evaluator");
    let step = arguments.value("--step")?.unwrap_or(1usize).max(1);
    let known: Option<PathBuf> = arguments.value("--known")?;
    let known = known.map_or(Ok(BTreeMap::new()), |path| known_failures::read(&path))?;
    let paths: Vec<PathBuf> = arguments.rest()?.into_iter().map(PathBuf::from).collect();
    let report = models::run(&paths, evaluates, step, &known).map_err(|e| e.to_string())?;
    report.failures.iter().for_each(|failure| println!("failed {failure}"));
    println!(
        "{} passed, {} known failures, {} failed",
        report.passed,
        report.known.len(),
        report.failures.len()
    );
    Ok(report.failures.is_empty())
}
