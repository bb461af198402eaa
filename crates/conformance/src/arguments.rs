//! Command lines of both runners: `--name VALUE` and `--name=VALUE`, switches, and the rest in order.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A command line that is taken apart flag by flag.
pub struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    /// Over these words, the program's name left out.
    pub fn new(words: impl IntoIterator<Item = String>) -> Self {
        Self { words: words.into_iter().collect() }
    }

    /// Takes a switch out; whether it was there.
    pub fn switch(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// Takes a flag and its value out.
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
        text.parse().map(Some).map_err(|_| format!("{name} {text}: not a value of its kind"))
    }

    /// Takes a flag out as often as it is there.
    pub fn values<T: FromStr>(&mut self, name: &str) -> Result<Vec<T>, String> {
        let mut all = Vec::new();
        while let Some(value) = self.value(name)? {
            all.push(value);
        }
        Ok(all)
    }

    /// What is left; an error if that holds another flag.
    pub fn rest(self) -> Result<Vec<String>, String> {
        match self.words.iter().find(|word| word.starts_with('-')) {
            Some(flag) => Err(format!("unknown flag {flag}")),
            None => Ok(self.words),
        }
    }
}

/// The conformance runner's command line.
pub struct RunOptions {
    /// Where the cases are.
    pub directories: Vec<PathBuf>,
    /// Use the reference interpreter instead of machine code.
    pub evaluator: bool,
    /// An op's name, or a regular expression over case names.
    pub only: Option<String>,
    /// Run that many, spread over all.
    pub sample: Option<usize>,
    /// Child processes at a time.
    pub jobs: usize,
    /// Where to write the results.
    pub csv: Option<PathBuf>,
    /// Where to write how many cases of each op passed.
    pub counts: Option<PathBuf>,
    /// The CPU to compile for.
    pub target_cpu: Option<String>,
    /// The longest a case may take.
    pub time_limit: Duration,
    /// Succeed although cases are unsupported.
    pub allow_unsupported: bool,
    /// A file of cases that are known to fail, each with the reason.
    pub known: Option<PathBuf>,
    /// Print every failure and the reasons, grouped.
    pub verbose: bool,
    /// Be a child process of a run.
    pub worker: bool,
}

impl RunOptions {
    /// The runner's help.
    pub const HELP: &str = "\
Runs recorded cases through the compiler and compares with TensorFlow's and XLA's answers.

    conformance DIR... [flags]

    --evaluator          interpret the HLO instead of compiling it
    --only REGEX|OP      only cases with this TensorFlow op or a name that matches
    --sample N           only N cases, spread over all
    --jobs N             child processes at a time (default: one for each CPU)
    --csv FILE           write a line for each case
    --counts FILE        write a line for each op: `op,passed,cases`
    --target-cpu CPU     compile for this CPU (default: the one that runs)
    --timeout SECONDS    the longest a case may take (default 60)
    --allow-unsupported  exit 0 if all failures are ops that the compiler says it can't do
    --known FILE         exit 0 although these cases fail (a TOML list of cases and reasons), 1 if one of them passes
    --verbose            every failure, and the reasons grouped

Last line: `N passed, M failed, K skipped`. Unsupported counts as failed; skipped are the cases that --only
and --sample left out. Cases that XLA itself refuses are extras, counted in a line of their own.
Exit status: 0 if nothing failed, 1 if something did, 2 if nothing could be run.
";

    /// From the words after the program's name.
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
            target_cpu: arguments.value("--target-cpu")?,
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
        assert_eq!(parse("a --sample x").err().unwrap(), "--sample x: not a value of its kind");
        assert!(parse("a --timeout -1").is_err());
    }
}
