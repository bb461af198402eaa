//! The oracle runner: whole programs through `tfcompile`, the C++ compiler and the machine, judged by recorded answers.

use conformance::arguments::Arguments;
use conformance::oracle::{Tools, checks, run};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// No pool has more threads.
const MOST_THREADS: usize = 256;

const HELP: &str = "\
Compiles recorded graphs with tfcompile, links programs around them, runs them and compares with TensorFlow's answers.

    oracle DIR [NAME...] [flags]     only checks whose name contains one of NAME

    --tool FILE       the tfcompile under test (default target/release/tfcompile)
    --cxx NAME        the C++ compiler (default g++)
    --include DIR     where headers include from (default: the tool writes its own)
    --models DIR      where the models' graphs were made; without it they are left out
    --work DIR        where to build (default: a temporary directory, removed when all is well)
    --flag FLAG       another flag for the tool, such as --flag=--target_cpu=native; may be given several times
    --build           use the tool's `build` command; without, the original's command line
    --cxx-flag FLAG   another flag for the C++ compiler; may be given several times
    --nm NAME         the command that lists symbols (default nm)
    --run COMMAND     runs programs, such as --run='qemu-aarch64 -L /usr/aarch64-linux-gnu'
    --undefined NAME  how symbols begin that objects may need beyond memcpy's kind; may be given several times
    --threads N       also with a pool of N threads, whose bits have to be one thread's; may be given several times
    --limit SECONDS   the longest that a compilation, or a program with all its cases, may take (default 600)
    --jobs N          checks at a time (default: one for each CPU)

Last line: `N passed, M failed`.
Exit status: 0 if nothing failed, 1 if something did, 2 if nothing could be run.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() || words.iter().any(|word| word == "--help") {
        print!("{HELP}");
        return ExitCode::from(if words.is_empty() { 2 } else { 0 });
    }
    match run_all(Arguments::new(words)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("oracle: {message}");
            ExitCode::from(2)
        }
    }
}

/// A command line's words; blanks part them.
fn words(line: String) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Numbers of threads, each once.
fn threads(given: &[String]) -> Result<Vec<usize>, String> {
    let number = |text: &String| {
        let number = text.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n));
        number.ok_or_else(|| format!("--threads {text}: not a number from 1 to {MOST_THREADS}"))
    };
    Ok(given.iter().map(number).collect::<Result<BTreeSet<usize>, _>>()?.into_iter().collect())
}

fn run_all(mut arguments: Arguments) -> Result<bool, String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.value("--jobs")?.unwrap_or(cpus);
    let include: Option<PathBuf> = arguments.value("--include")?;
    let models: Option<PathBuf> = arguments.value("--models")?;
    let given: Option<PathBuf> = arguments.value("--work")?;
    let defaults = Tools::default();
    let tool: PathBuf = arguments.value("--tool")?.unwrap_or(defaults.tool);
    let absolute = |path: PathBuf| std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()));
    let mut tools = Tools {
        tool: absolute(tool)?,
        cxx: arguments.value("--cxx")?.unwrap_or(defaults.cxx),
        include: PathBuf::new(),
        flags: arguments.values("--flag")?,
        build: arguments.switch("--build"),
        cxx_flags: arguments.values("--cxx-flag")?,
        nm: arguments.value("--nm")?.unwrap_or(defaults.nm),
        run: arguments.value::<String>("--run")?.map_or_else(Vec::new, words),
        undefined: arguments.values("--undefined")?,
        threads: threads(&arguments.values("--threads")?)?,
        limit: arguments.value("--limit")?.map_or(defaults.limit, Duration::from_secs),
    };
    let rest = arguments.rest()?;
    let (root, names) = rest.split_first().ok_or("no directory given")?;
    let mut checks = checks(&absolute(root.into())?, models.as_deref())?;
    checks.retain(|check| names.is_empty() || names.iter().any(|name| check.name.contains(name)));
    if checks.is_empty() {
        return Err(format!("no check in {root}"));
    }
    let temporary = std::env::temp_dir().join(format!("tfcompile-oracle-{}", std::process::id()));
    let work = absolute(given.clone().unwrap_or(temporary))?;
    match include {
        Some(include) => tools.include = absolute(include)?,
        None => tools.write_headers(&work)?,
    }
    let (mut passed, mut failed) = (0, 0);
    run(&checks, &tools, &work, jobs, |index, result, seconds| {
        let name = &checks[index].name;
        match result {
            Ok(remark) => {
                passed += 1;
                println!("ok      {name}: {remark}, {seconds:.1} s in all");
            }
            Err(reason) => {
                failed += 1;
                println!("FAILED  {name}: {reason}");
            }
        }
    });
    if given.is_none() {
        if failed == 0 {
            std::fs::remove_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
        } else {
            println!("left for inspection: {}", work.display());
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}
