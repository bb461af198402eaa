//! The conformance runner: runs recorded cases through the whole compiler in-process, many per
//! second.

use conformance::arguments::RunOptions;
use conformance::known_failures;
use conformance::pool::Pool;
use conformance::report::{Entry, Report};
use conformance::select::{Found, find, narrowed};
use conformance::web::JavaScript;
use conformance::worker::{Outcome, serve};
use conformance::{c_source, case::Case, engine};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Number of failures listed without `--verbose`.
const LISTED: usize = 10;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help") {
        print!("{}", RunOptions::HELP);
        return ExitCode::SUCCESS;
    }
    let result = RunOptions::parse(words)
        .and_then(|options| if options.worker { work(&options) } else { run(&options) });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("conformance: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs as a child process.
fn work(options: &RunOptions) -> Result<bool, String> {
    let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let served = if options.evaluator {
        serve(&engine::interpret, input, output)
    } else if let Some(kind) = &options.device {
        let (device, targets) = engine::open_device(kind).map_err(|e| e.to_string())?;
        serve(&|case: &Case| engine::compile_and_run_on(case, &device, &targets), input, output)
    } else if let Some(command) = &options.c_source {
        let compiler = c_source::Compiler::new(command, options.plain_c, options.target_cpu.as_deref());
        serve(&|case: &Case| engine::compile_c_and_run(case, &compiler), input, output)
    } else if let Some(target) = &options.web {
        let command = options.javascript.as_deref().unwrap_or(JavaScript::NODE);
        let engine = JavaScript::start(target, command).map_err(|e| e.to_string())?;
        serve(&|case: &Case| engine.compile_and_run(case), input, output)
    } else {
        let cpu = options.target_cpu.as_deref().unwrap_or("native");
        serve(&|case: &Case| engine::compile_and_run(case, cpu), input, output)
    };
    served.map(|()| true).map_err(|e| e.to_string())
}

/// Runs as the parent process. Returns true if the run succeeded.
fn run(options: &RunOptions) -> Result<bool, String> {
    let start = Instant::now();
    let cases = find(&options.directories).map_err(|e| e.to_string())?;
    let all = cases.len();
    let (cases, skipped) = select(cases, options)?;
    if all == 0 {
        return Err("no case files found; pass directories with .npz files (see --help)".to_owned());
    }
    if cases.is_empty() {
        return Err(format!("no case selected out of {all}"));
    }
    let paths: Vec<PathBuf> = cases.iter().map(|case| case.path.clone()).collect();
    let mut outcomes: Vec<Option<(Outcome, Duration)>> = vec![None; cases.len()];
    let pool = Pool { command: worker_command(options)?, jobs: options.jobs, time_limit: options.time_limit };
    pool.run(&paths, |index, outcome, time| outcomes[index] = Some((outcome, time)));
    let entries = cases.into_iter().zip(outcomes).map(|(case, outcome)| {
        let (outcome, time) = outcome.expect("the pool answers for every case");
        let (ops, extra, original_refuses) = match &case.metadata {
            Ok(metadata) => {
                (metadata.ops.keys().cloned().collect(), !metadata.xla_ok, !metadata.tfcompile_ok)
            }
            Err(_) => (Vec::new(), false, false),
        };
        Entry { name: case.name, ops, extra, original_refuses, outcome, time }
    });
    let report = Report { entries: entries.collect(), skipped };
    if let Some(csv) = &options.csv {
        std::fs::write(csv, report.csv()).map_err(|e| format!("{}: {e}", csv.display()))?;
    }
    if let Some(counts) = &options.counts {
        std::fs::write(counts, report.counts()).map_err(|e| format!("{}: {e}", counts.display()))?;
    }
    print!("{}", report.by_op());
    if options.verbose {
        print!("\n{}", report.by_reason());
    }
    print!("\n{}", report.failures(if options.verbose { usize::MAX } else { LISTED }));
    let seconds = start.elapsed().as_secs_f64();
    println!("{:.1} s, {:.0} cases per second", seconds, report.entries.len() as f64 / seconds);
    println!("{}", report.closing());
    let known = match &options.known {
        Some(path) => known_failures::read(path)?,
        None => BTreeMap::new(),
    };
    let verdict = report.verdict(&known, options.allow_unsupported);
    for case in &verdict.passes_now {
        eprintln!("conformance: {case} is listed as a known failure, but passes: remove it from the list");
    }
    for case in &verdict.unlisted {
        eprintln!("conformance: {case} fails and is not listed as a known failure");
    }
    Ok(verdict.is_good())
}

/// Returns the cases to run, and the ops of the counted cases that are excluded.
fn select(cases: Vec<Found>, options: &RunOptions) -> Result<(Vec<Found>, Vec<Vec<String>>), String> {
    let ops = |case: &Found| {
        let metadata = case.metadata.as_ref().ok().filter(|metadata| metadata.xla_ok)?;
        Some((case.name.clone(), metadata.ops.keys().cloned().collect()))
    };
    let mut excluded: BTreeMap<String, Vec<String>> = cases.iter().filter_map(ops).collect();
    let selected = narrowed(cases, options.only.as_deref(), options.sample).map_err(|e| e.to_string())?;
    for case in &selected {
        excluded.remove(&case.name);
    }
    Ok((selected, excluded.into_values().collect()))
}

/// Returns the command that runs this program as a child process.
fn worker_command(options: &RunOptions) -> Result<Vec<OsString>, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = vec![program.into_os_string(), "--worker".into()];
    if options.evaluator {
        command.push("--evaluator".into());
    }
    if let Some(cpu) = &options.target_cpu {
        command.extend(["--target-cpu".into(), cpu.into()]);
    }
    if let Some(c_source) = &options.c_source {
        command.extend(["--c-source".into(), c_source.into()]);
    }
    if options.plain_c {
        command.push("--plain-c".into());
    }
    if let Some(target) = &options.web {
        command.extend(["--web".into(), target.into()]);
    }
    if let Some(javascript) = &options.javascript {
        command.extend(["--javascript".into(), javascript.into()]);
    }
    if let Some(kind) = &options.device {
        command.extend(["--device".into(), kind.into()]);
    }
    Ok(command)
}
