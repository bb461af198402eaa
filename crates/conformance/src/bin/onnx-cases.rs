//! Runs ONNX models with recorded answers.

use conformance::arguments::{self, Arguments};
use conformance::{known_failures, models};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
    onnx-cases [--evaluator] [--known FILE] [--step N] [--quiet] ARCHIVE|FOLDER...

Runs every N-th case (default: all) of archives as scripts/onnx/make_cases.py writes them, compiled
or, with --evaluator, evaluated. Inputs that state shapes become constants if the model needs them
so. Prints failures, the cases that --known lists by reason, and a summary. Exits with status 1 if a
case fails that --known does not list, or if one passes that it lists.
";

fn main() -> ExitCode {
    arguments::main("onnx-cases", HELP, run)
}

fn run(words: Vec<String>) -> Result<bool, String> {
    let mut arguments = Arguments::new(words);
    let evaluates = arguments.switch("--evaluator");
    let is_quiet = arguments.switch("--quiet");
    let step = arguments.value("--step")?.unwrap_or(1usize).max(1);
    let known: Option<PathBuf> = arguments.value("--known")?;
    let known = known.map_or(Ok(BTreeMap::new()), |path| known_failures::read(&path))?;
    let paths: Vec<PathBuf> = arguments.rest()?.into_iter().map(PathBuf::from).collect();
    let report = models::run(&paths, evaluates, step, &known).map_err(|e| e.to_string())?;
    report.failures.iter().for_each(|failure| println!("failed {failure}"));
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &report.known {
        *reasons.entry(known[name].as_str()).or_default() += 1;
    }
    if !is_quiet {
        let mut reasons: Vec<(&str, usize)> = reasons.into_iter().collect();
        reasons.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), *reason));
        reasons.iter().for_each(|(reason, count)| println!("known {count:4}: {reason}"));
    }
    let all = report.passed + report.known.len() + report.failures.len();
    println!(
        "{} of {all} passed ({} with inputs as constants), {} known failures, {} failed",
        report.passed,
        report.with_constants,
        report.known.len(),
        report.failures.len()
    );
    Ok(report.failures.is_empty())
}
