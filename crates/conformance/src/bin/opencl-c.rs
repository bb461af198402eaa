//! Compiles recorded cases to OpenCL C and has a compiler check the text.

use conformance::arguments::{self, Arguments};
use conformance::case::read_case;
use conformance::engine;
use conformance::select::{find, narrowed};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const HELP: &str = "\
Compiles recorded cases to OpenCL C, and has a compiler check the text. Warnings fail, too.

    opencl-c DIR... --compiler COMMAND [flags]

    --compiler COMMAND   compiler with its flags, such as 'clang -x cl -cl-std=CL1.2 -fsyntax-only -Wall'
    --only REGEX|OP      only cases with this TensorFlow op or a matching name
    --sample N           only N cases, spread over all

Last line: `N passed, M failed, K rejected`. The importer or the lowering rejects cases, which do not count as failed.
";

fn main() -> ExitCode {
    arguments::main("opencl-c", HELP, run)
}

fn run(words: Vec<String>) -> Result<bool, String> {
    let mut arguments = Arguments::new(words);
    let compiler: String = arguments.value("--compiler")?.ok_or("expected --compiler COMMAND")?;
    let compiler: Vec<&str> = compiler.split_whitespace().collect();
    let only: Option<String> = arguments.value("--only")?;
    let count: Option<usize> = arguments.value("--sample")?;
    let directories: Vec<PathBuf> = arguments.rest()?.into_iter().map(PathBuf::from).collect();
    let cases = find(&directories).and_then(|cases| narrowed(cases, only.as_deref(), count));
    let cases = cases.map_err(|e| e.to_string())?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (next, totals) = (AtomicUsize::new(0), Mutex::new((0, 0, Vec::new())));
    let work = |worker: usize| {
        let file = folder.path().join(format!("kernels{worker}.cl"));
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = read_case(&case.path).and_then(|case| engine::opencl_c(&case));
            let checked = text.as_ref().ok().map(|text| check(text, &file, &compiler));
            let mut totals = totals.lock().expect("no thread panics while it holds the lock");
            match (text, checked) {
                (Err(error), _) if error.kind() == support::ErrorKind::Internal => {
                    totals.2.push(format!("{}: {error}", case.name));
                }
                (Err(_), _) => totals.1 += 1,
                (Ok(_), Some(Err(message))) => totals.2.push(format!("{}: {message}", case.name)),
                _ => totals.0 += 1,
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|worker| drop(scope.spawn(move || work(worker)))));
    let (passed, rejected, mut failures) = totals.into_inner().map_err(|_| "a thread panicked".to_owned())?;
    failures.sort();
    failures.iter().for_each(|line| println!("failed: {line}"));
    println!("{passed} passed, {} failed, {rejected} rejected", failures.len());
    Ok(failures.is_empty() && passed > 0)
}

/// Runs the compiler. Returns its first lines if it prints any.
fn check(text: &str, file: &Path, compiler: &[&str]) -> Result<(), String> {
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let (program, flags) = compiler.split_first().ok_or("no compiler")?;
    let run = Command::new(program).args(flags).arg(file).output().map_err(|e| format!("{program}: {e}"))?;
    if run.status.success() && run.stderr.is_empty() && run.stdout.is_empty() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&run.stderr);
    Err(text.lines().filter(|line| !line.trim().is_empty()).take(4).collect::<Vec<_>>().join(" | "))
}
