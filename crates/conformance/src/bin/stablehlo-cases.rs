//! Runs StableHLO programs that check themselves, such as those of StableHLO's own repository.

use compiler::{Executable, NoObserver, host, in_process_options};
use conformance::arguments::Arguments;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use stablehlo::{Imported, import, import_each};
use support::{Error, ErrorKind, Result};

const HELP: &str = "\
    stablehlo-cases [--evaluator] [-v] FILE...

Runs the program of each file (its function main, or every function without arguments), compiled or, with --evaluator,
evaluated, and verifies the checks that it makes of its own values. Parts of a file between lines of // ----- are files of
their own. Prints what fails and a sum; exits with 1 if anything does.
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

fn run_all(words: Vec<String>) -> std::result::Result<bool, String> {
    let mut arguments = Arguments::new(words);
    let evaluates = arguments.switch("--evaluator");
    let verbose = arguments.switch("-v");
    let mut counts = BTreeMap::<&str, usize>::new();
    for path in arguments.rest()? {
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        for (part, text) in text.split("// -----").enumerate() {
            for (name, outcome) in run_part(text, evaluates) {
                let name = format!("{}:{part}{name}", Path::new(&path).display());
                let (kind, message) = match &outcome {
                    Ok(()) => ("passed", String::new()),
                    Err(error) if error.kind() == ErrorKind::Unsupported => ("unsupported", error.to_string()),
                    Err(error) => ("failed", error.to_string()),
                };
                *counts.entry(kind).or_default() += 1;
                if verbose || kind != "passed" {
                    println!("{kind} {name} {message}");
                }
            }
        }
    }
    let sum: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    println!("{}", sum.join(", "));
    Ok(counts.keys().all(|kind| *kind == "passed"))
}

/// The programs of a text, by name, with how they went.
fn run_part(text: &str, evaluates: bool) -> Vec<(String, Result<()>)> {
    let module = match mlir::parse(text) {
        Ok(module) => module,
        Err(error) => return vec![(String::new(), Err(error))],
    };
    if module.operations.is_empty() {
        return Vec::new();
    }
    if let Ok(main) = import(&module) {
        if main.arguments.is_empty() {
            return vec![(String::new(), run(main, evaluates))];
        }
    }
    match import_each(&module) {
        Err(error) => vec![(String::new(), Err(error))],
        Ok(programs) => programs
            .into_iter()
            .map(|(name, imported)| (format!(" @{name}"), imported.and_then(|program| run(program, evaluates))))
            .collect(),
    }
}

fn run(program: Imported, evaluates: bool) -> Result<()> {
    hlo::verify(&program.module).map_err(|e| Error::internal(e.to_string()))?;
    let results: Vec<Literal> = if evaluates {
        match evaluator::evaluate(&program.module, &[])? {
            Literal::Tuple(results) => results,
            array => vec![array],
        }
    } else {
        let options = in_process_options(host("native")?);
        let compiled = compiler::guarded(|| compiler::compile_module(program.module, &options, &mut NoObserver))?;
        Executable::load(&compiled)?.run(&[])?
    };
    let compared = &results[program.results.len()..];
    for (check, pair) in program.checks.iter().zip(compared.chunks_exact(2)) {
        check.verify(&pair[0], &pair[1])?;
    }
    Ok(())
}
