//! The oracle runner: runs whole programs through `tfcompile`, the C++ compiler, and the machine,
//! and compares them with recorded answers.

use conformance::arguments::Arguments;
use conformance::oracle::{Tools, checks, run};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Maximum number of threads of a pool.
const MOST_THREADS: usize = 256;

const HELP: &str = "\
Compiles recorded graphs with tfcompile, links programs with them, runs these, and compares with TensorFlow's answers.

    oracle DIR [NAME...] [flags]     run only checks whose name contains a NAME

    --tool FILE       test this tfcompile (default target/release/tfcompile)
    --cxx NAME        use this C++ compiler (default g++)
    --include DIR     include headers from DIR (default: the tool writes its own)
    --models DIR      run the models whose graphs are in DIR (default: skip models)
    --work DIR        build in DIR (default: a temporary directory, removed on success)
    --flag FLAG       pass FLAG to the tool, such as --flag=--target_cpu=native; repeatable
    --build           use the tool's `build` command instead of the original's command line
    --c-source COMMAND   build C source and compile it with COMMAND, such as 'gcc -std=c11 -O2 -march=native'
    --cxx-flag FLAG   pass FLAG to the C++ compiler; repeatable
    --nm NAME         list symbols with this command (default nm)
    --run COMMAND     run programs with COMMAND, such as --run='qemu-aarch64 -L /usr/aarch64-linux-gnu'
    --undefined NAME  allow undefined symbols with this prefix; repeatable
    --threads N       also run with a pool of N threads, and require identical bits; repeatable
    --limit SECONDS   limit the time of a compilation, and of a program with all its cases (default 600)
    --jobs N          run N checks in parallel (default: one per CPU)

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

/// Splits a command line at spaces.
fn words(line: String) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Parses and deduplicates numbers of threads.
fn threads(texts: &[String]) -> Result<Vec<usize>, String> {
    let number = |text: &String| {
        let number = text.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n));
        number.ok_or_else(|| format!("--threads {text}: expected a number from 1 to {MOST_THREADS}"))
    };
    Ok(texts.iter().map(number).collect::<Result<BTreeSet<usize>, _>>()?.into_iter().collect())
}

fn run_all(mut arguments: Arguments) -> Result<bool, String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.value("--jobs")?.unwrap_or(cpus);
    let include: Option<PathBuf> = arguments.value("--include")?;
    let models: Option<PathBuf> = arguments.value("--models")?;
    let work_flag: Option<PathBuf> = arguments.value("--work")?;
    let defaults = Tools::default();
    let tool: PathBuf = arguments.value("--tool")?.unwrap_or(defaults.tool);
    let absolute = |path: PathBuf| std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()));
    let mut tools = Tools {
        tool: absolute(tool)?,
        cxx: arguments.value("--cxx")?.unwrap_or(defaults.cxx),
        include: PathBuf::new(),
        flags: arguments.values("--flag")?,
        build: arguments.switch("--build"),
        c_source: arguments.value::<String>("--c-source")?.map_or_else(Vec::new, words),
        cxx_flags: arguments.values("--cxx-flag")?,
        nm: arguments.value("--nm")?.unwrap_or(defaults.nm),
        run: arguments.value::<String>("--run")?.map_or_else(Vec::new, words),
        undefined: arguments.values("--undefined")?,
        threads: threads(&arguments.values("--threads")?)?,
        limit: arguments.value("--limit")?.map_or(defaults.limit, Duration::from_secs),
    };
    let rest = arguments.rest()?;
    let (root, names) = rest.split_first().ok_or("expected a directory")?;
    let mut checks = checks(&absolute(root.into())?, models.as_deref())?;
    checks.retain(|check| names.is_empty() || names.iter().any(|name| check.name.contains(name)));
    if checks.is_empty() {
        return Err(format!("no check in {root}"));
    }
    let temporary = std::env::temp_dir().join(format!("tfcompile-oracle-{}", std::process::id()));
    let work = absolute(work_flag.clone().unwrap_or(temporary))?;
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
                println!("ok      {name}: {remark}, {seconds:.1} s in total");
            }
            Err(reason) => {
                failed += 1;
                println!("FAILED  {name}: {reason}");
            }
        }
    });
    if work_flag.is_none() {
        if failed == 0 {
            std::fs::remove_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
        } else {
            println!("kept for inspection: {}", work.display());
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}
