//! Command lines of both runners: `--name VALUE` and `--name=VALUE`, switches, and positional words
//! in order.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

/// Runs a tool on the words of the command line, or prints its help. The exit status is 1 if `run`
/// returns false, and 2 if it returns a message or there are no words.
pub fn main(name: &str, help: &str, run: impl FnOnce(Vec<String>) -> Result<bool, String>) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() || words.iter().any(|word| word == "--help") {
        print!("{help}");
        return ExitCode::from(if words.is_empty() { 2 } else { 0 });
    }
    match run(words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{name}: {message}");
            ExitCode::from(2)
        }
    }
}

/// A command line from which flags are removed one by one.
pub struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    /// Creates a command line from words without the program's name.
    pub fn new(words: impl IntoIterator<Item = String>) -> Self {
        Self { words: words.into_iter().collect() }
    }

    /// Removes a switch. Returns true if it was present.
    pub fn switch(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// Removes a flag and its value.
    pub fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        let Some(at) = self.words.iter().position(|word| {
            word == name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
        }) else {
            return Ok(None);
        };
        let word = self.words.remove(at);
        let text = match word.split_once('=') {
            Some((_, text)) => text.to_owned(),
            None if at < self.words.len() => self.words.remove(at),
            None => return Err(format!("{name} needs a value")),
        };
        text.parse().map(Some).map_err(|_| format!("{name} {text}: invalid value"))
    }

    /// Removes all occurrences of a flag.
    pub fn values<T: FromStr>(&mut self, name: &str) -> Result<Vec<T>, String> {
        let mut all = Vec::new();
        while let Some(value) = self.value(name)? {
            all.push(value);
        }
        Ok(all)
    }

    /// Returns the remaining words, or an error if a flag is among them.
    pub fn rest(self) -> Result<Vec<String>, String> {
        match self.words.iter().find(|word| word.starts_with('-')) {
            Some(flag) => Err(format!("unknown flag {flag}")),
            None => Ok(self.words),
        }
    }
}

/// Command line of the conformance runner.
pub struct RunOptions {
    /// Directories of cases.
    pub directories: Vec<PathBuf>,
    /// Use the reference interpreter instead of machine code.
    pub evaluator: bool,
    /// Name of an op, or a regular expression over case names.
    pub only: Option<String>,
    /// Number of cases to run, spread over all.
    pub sample: Option<usize>,
    /// Number of child processes.
    pub jobs: usize,
    /// File for the results.
    pub csv: Option<PathBuf>,
    /// File for the number of passed cases per op.
    pub counts: Option<PathBuf>,
    /// Compile C source with this command instead of generating an object.
    pub c_source: Option<String>,
    /// Write C source without vectors.
    pub plain_c: bool,
    /// The CPU to compile for.
    pub target_cpu: Option<String>,
    /// The kind of GPU to run on: `cuda` or `opencl`, which may have a form of code: `opencl:c`.
    pub device: Option<String>,
    /// The target to run as modules for the web: `wasm32`.
    pub web: Option<String>,
    /// The command that runs JavaScript. Default: Node.
    pub javascript: Option<String>,
    /// Time limit per case.
    pub time_limit: Duration,
    /// Succeed even if cases are unsupported.
    pub allow_unsupported: bool,
    /// A file of known failures with reasons.
    pub known: Option<PathBuf>,
    /// Print every failure, and the reasons in groups.
    pub verbose: bool,
    /// Act as a child process of a run.
    pub worker: bool,
}

impl RunOptions {
    /// Help text of the runner.
    pub const HELP: &str = "\
Runs recorded cases through the compiler, and compares the results with TensorFlow's and XLA's answers.

    conformance DIR... [flags]

    --evaluator          interpret the HLO instead of compiling it
    --only REGEX|OP      run only cases with this TensorFlow op or a matching name
    --sample N           run only N cases, spread over all
    --jobs N             run N child processes in parallel (default: one per CPU)
    --csv FILE           write one line per case
    --counts FILE        write one line per op: `op,passed,cases`
    --target-cpu CPU     compile for this CPU (default: the host's)
    --c-source COMMAND   write C source and compile it with COMMAND, such as 'gcc -std=c11 -O1 -march=native'
    --plain-c            write C source without vectors
    --device KIND        run on a GPU: cuda, opencl, opencl:spirv, or opencl:c
    --web TARGET         run in Node: wasm32, wasm32-relaxed, or wasm32-threads
    --javascript COMMAND run --web with COMMAND, such as 'deno run --allow-read --allow-write'
    --timeout SECONDS    limit the time of a case (default 60)
    --allow-unsupported  exit 0 if all failures are unsupported ops
    --known FILE         exit 0 if exactly these cases fail (a TOML list of cases and reasons)
    --verbose            print every failure, and the reasons in groups

Last line: `N passed, M failed, K skipped`. Unsupported cases count as failed. Cases excluded by --only or
--sample count as skipped. Cases that XLA itself rejects are extras, counted on a separate line.
Exit status: 0 if nothing failed, 1 if something did, 2 if nothing could be run.
";

    /// Parses the words after the program's name.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Arguments::new(words);
        let all_cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let seconds: f64 = arguments.value("--timeout")?.unwrap_or(60.0);
        Ok(Self {
            evaluator: arguments.switch("--evaluator"),
            only: arguments.value("--only")?,
            sample: arguments.value("--sample")?,
            jobs: arguments.value("--jobs")?.unwrap_or(all_cpus).max(1),
            csv: arguments.value("--csv")?,
            counts: arguments.value("--counts")?,
            c_source: arguments.value("--c-source")?,
            plain_c: arguments.switch("--plain-c"),
            target_cpu: arguments.value("--target-cpu")?,
            device: arguments.value("--device")?,
            web: arguments.value("--web")?,
            javascript: arguments.value("--javascript")?,
            time_limit: Duration::try_from_secs_f64(seconds).map_err(|e| format!("--timeout: {e}"))?,
            allow_unsupported: arguments.switch("--allow-unsupported"),
            known: arguments.value("--known")?,
            verbose: arguments.switch("--verbose"),
            worker: arguments.switch("--worker"),
            directories: arguments.rest()?.into_iter().map(PathBuf::from).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<RunOptions, String> {
        RunOptions::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_stand_anywhere_and_take_both_forms() {
        let options = parse("a --only=Add|Sub --sample 12 b --evaluator --timeout 1.5").unwrap();
        assert_eq!(options.directories, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!((options.only.as_deref(), options.sample), (Some("Add|Sub"), Some(12)));
        assert!(options.evaluator && !options.verbose);
        assert_eq!(options.time_limit, Duration::from_millis(1500));
    }

    #[test]
    fn a_wrong_flag_is_named() {
        assert_eq!(parse("a --smaple 3").err().unwrap(), "unknown flag --smaple");
        assert_eq!(parse("a --sample").err().unwrap(), "--sample needs a value");
        assert_eq!(parse("a --sample x").err().unwrap(), "--sample x: invalid value");
        assert!(parse("a --timeout -1").is_err());
    }
}
