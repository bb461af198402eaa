//! Runs self-checking StableHLO programs, such as those of StableHLO's own repository.

use conformance::arguments::Arguments;
use conformance::programs::{Outcome, Run};
use conformance::symbolic::{self, Agreement};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use support::ErrorKind;

const HELP: &str = "\
    stablehlo-cases [--evaluator] [--fixed] [--tolerance X] [-v] FILE...

Runs the program of each file (its function main, or every function without arguments), compiled
or, with --evaluator, evaluated, and verifies the program's checks. Lines of // ----- separate a
file into independent parts. If NAME.npz exists next to NAME.mlir, NAME.mlirbc, or NAME.jax, its
arrays in0, in1, ... are the program's arguments and out0, out1, ... its expected results, within
--tolerance (default 1e-5) of the largest element. Artifacts of jax.export with symbolic sizes
(scripts/jax_symbolic.py) are compiled once and run at each recorded size. With --fixed, each run is
also compared with a program for its sizes, the numbers K/size/NAME of run K, and runs with the same
bits are counted. Prints failures and a summary. Exits with status 1 if a program fails.
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
    let fixed = arguments.switch("--fixed");
    let verbose = arguments.switch("-v");
    let run = Run { evaluates, tolerance: arguments.value("--tolerance")?.unwrap_or(1e-5) };
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut agreement = Agreement::default();
    for path in arguments.rest()? {
        let path = Path::new(&path);
        let outcomes = if symbolic::runs(path) == 0 {
            run.file(path)
        } else {
            let result = run.symbolic(path, fixed).map(|own| {
                agreement.runs += own.runs;
                agreement.same_bits += own.same_bits;
            });
            vec![Outcome { name: path.display().to_string(), result }]
        };
        for outcome in outcomes {
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
    if fixed {
        println!("{} of {} runs have the bits of fixed sizes", agreement.same_bits, agreement.runs);
    }
    Ok(counts.keys().all(|kind| *kind == "passed"))
}
