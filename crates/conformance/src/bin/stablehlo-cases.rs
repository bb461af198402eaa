//! Runs self-checking StableHLO programs, such as those of StableHLO's own repository.

use conformance::arguments::Arguments;
use conformance::programs::Run;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use support::ErrorKind;

const HELP: &str = "\
    stablehlo-cases [--evaluator] [--tolerance X] [-v] FILE...

Runs the program of each file (its function main, or every function without arguments), compiled
or, with --evaluator, evaluated, and verifies the program's checks. Lines of // ----- separate a
file into independent parts. If NAME.npz exists next to NAME.mlir, NAME.mlirbc, or NAME.jax, its
arrays in0, in1, ... are the program's arguments and out0, out1, ... its expected results, within
--tolerance (default 1e-5) of the largest element. Prints failures and a summary. Exits with status
1 if a program fails.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() || words.iter().any(|word| word == "--help") {
        print!("{HELP}");
        return ExitCode::from(if words.is_empty() { 2 } else { 0 });
    }
    match run_all(words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("stablehlo-cases: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(words: Vec<String>) -> Result<bool, String> {
    let mut arguments = Arguments::new(words);
    let evaluates = arguments.switch("--evaluator");
    let verbose = arguments.switch("-v");
    let run = Run { evaluates, tolerance: arguments.value("--tolerance")?.unwrap_or(1e-5) };
    let mut counts = BTreeMap::<&str, usize>::new();
    for path in arguments.rest()? {
        for outcome in run.file(Path::new(&path)) {
            let (kind, message) = match &outcome.result {
                Ok(()) => ("passed", String::new()),
                Err(error) if error.kind() == ErrorKind::Unsupported => ("unsupported", error.to_string()),
                Err(error) => ("failed", error.to_string()),
            };
            *counts.entry(kind).or_default() += 1;
            if verbose || kind != "passed" {
                println!("{kind} {} {message}", outcome.name);
            }
        }
    }
    let sum: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    println!("{}", sum.join(", "));
    Ok(counts.keys().all(|kind| *kind == "passed"))
}
