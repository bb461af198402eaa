//! Reads HLO texts from other sources, prints them, runs them, and compares the results with XLA's
//! answers.

use conformance::arguments::Arguments;
use conformance::hlo_texts::judge;
use conformance::pool::Pool;
use conformance::worker::Outcome;
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
    hlo-texts DIR [--print OUT] [--messages OUT] [--answers NPZ] [--failures FILE] [--jobs N] [--timeout SECONDS]

Reads each NAME.hlo in DIR, and each NAME.pb, a serialized HloModuleProto. With --print, writes it as OUT/NAME.hlo; with
--messages, as OUT/NAME.pb. With --answers, runs each text that has NPZ/NAME.npz (arguments in/0, in/1, ..., XLA's
results out/0, ...), compiled and evaluated, each in a child process. Prints counts per outcome with reasons, and the
largest error. With --failures, writes one line per text that does not agree. Exits with status 1 if a result differs or
a child crashes.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() || words.iter().any(|word| word == "--help") {
        print!("{HELP}");
        return ExitCode::from(if words.is_empty() { 2 } else { 0 });
    }
    let result = if words[0] == "--worker" { serve(&words[1..]) } else { judge_all(words) };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("hlo-texts: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Answers paths of texts. The directory of answers and the file for errors are on the command
/// line.
fn serve(words: &[String]) -> Result<bool, String> {
    let [answers, errors] = words else { return Err("expected --worker ANSWERS ERRORS".to_owned()) };
    let append = std::fs::OpenOptions::new().append(true).create(true).open(errors);
    let mut errors = append.map_err(|e| format!("{errors}: {e}"))?;
    for line in std::io::stdin().lock().lines() {
        let text = PathBuf::from(line.map_err(|e| e.to_string())?);
        let name = text.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (outcome, error) = judge(&text, &Path::new(answers).join(format!("{name}.npz")));
        writeln!(errors, "{error:e} {name}").map_err(|e| e.to_string())?;
        println!("{}", outcome.to_line());
    }
    Ok(true)
}

fn judge_all(words: Vec<String>) -> Result<bool, String> {
    let mut arguments = Arguments::new(words);
    let out: Option<PathBuf> = arguments.value("--print")?;
    let messages: Option<PathBuf> = arguments.value("--messages")?;
    let answers: Option<PathBuf> = arguments.value("--answers")?;
    let failures: Option<PathBuf> = arguments.value("--failures")?;
    let jobs: usize = arguments.value("--jobs")?.unwrap_or(1);
    let seconds: f64 = arguments.value("--timeout")?.unwrap_or(120.0);
    let [directory] = &arguments.rest()?[..] else {
        return Err("expected one directory of texts".to_owned());
    };
    let texts = texts_in(Path::new(directory))?;
    let mut report = Report::default();
    for (out, form) in [(out, Form::Text), (messages, Form::Message)] {
        let Some(out) = out else { continue };
        std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
        texts.iter().try_for_each(|text| write_again(text, &out, form, &mut report))?;
    }
    if let Some(answers) = answers {
        let limit = Duration::try_from_secs_f64(seconds).map_err(|e| format!("--timeout: {e}"))?;
        run(&texts, &answers, jobs, limit, &mut report)?;
    }
    report.print();
    if let Some(file) = failures {
        std::fs::write(&file, report.failures.join("")).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(!report.is_bad)
}

fn texts_in(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut texts: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    texts.retain(|path| path.extension().is_some_and(|extension| extension == "hlo" || extension == "pb"));
    texts.sort();
    Ok(texts)
}

/// Output format of a module.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Message,
}

impl Form {
    /// Returns a module's bytes and the extension of their file.
    fn write(self, module: &hlo::Module) -> support::Result<(Vec<u8>, &'static str)> {
        match self {
            Self::Text => Ok((module.to_text().into_bytes(), "hlo")),
            Self::Message => Ok((hlo::proto::to_hlo_module_proto_bytes(module)?, "pb")),
        }
    }
}

/// Reads a text or a message and writes it in the given form.
fn write_again(text: &Path, out: &Path, form: Form, report: &mut Report) -> Result<(), String> {
    let contents = std::fs::read(text).map_err(|e| format!("{}: {e}", text.display()))?;
    let module = if text.extension().is_some_and(|extension| extension == "pb") {
        hlo::proto::read_hlo_proto(&contents).map(|(module, _)| module)
    } else {
        hlo::parse(&String::from_utf8_lossy(&contents))
    };
    let module = match module {
        Ok(module) => module,
        Err(error) => {
            let message = error.message();
            report.count("not read", message.split_once(": ").map_or(message, |(_, rest)| rest), text);
            return Ok(());
        }
    };
    match form.write(&module) {
        Ok((bytes, extension)) => {
            report.count("written", "", text);
            let path = out.join(text.file_stem().unwrap_or_default()).with_extension(extension);
            std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))
        }
        Err(error) => {
            report.count("not written", error.message(), text);
            Ok(())
        }
    }
}

/// Runs the texts that have answers.
fn run(
    texts: &[PathBuf],
    answers: &Path,
    jobs: usize,
    time_limit: Duration,
    report: &mut Report,
) -> Result<(), String> {
    let has_answer = |text: &&PathBuf| {
        text.file_stem().is_some_and(|name| answers.join(name).with_extension("npz").is_file())
    };
    let texts: Vec<PathBuf> = texts.iter().filter(has_answer).cloned().collect();
    let errors = std::env::temp_dir().join(format!("hlo-texts-{}", std::process::id()));
    let tool = std::env::current_exe().map_err(|e| e.to_string())?;
    let command = vec![tool.into(), "--worker".into(), answers.into(), errors.clone().into()];
    Pool { command, jobs, time_limit }.run(&texts, |index, outcome, _| {
        report.is_bad |= matches!(outcome, Outcome::Wrong(_) | Outcome::Crashed(_));
        let word = if outcome == Outcome::Passed { "agrees" } else { outcome.word() };
        report.count(word, outcome.reason(), &texts[index]);
    });
    let error_lines = std::fs::read_to_string(&errors).unwrap_or_default();
    let lines = error_lines.lines().filter_map(|line| line.split_once(' '));
    let parse_line = |(error, name): (&str, &str)| Some((error.parse::<f64>().ok()?, name.to_owned()));
    report.largest = lines.filter_map(parse_line).max_by(|a, b| a.0.total_cmp(&b.0));
    // Best effort: any leftover is in the temporary folder.
    let _ = std::fs::remove_file(&errors);
    Ok(())
}

/// Counts per outcome and reason.
#[derive(Default)]
struct Report {
    counts: BTreeMap<&'static str, BTreeMap<String, usize>>,
    failures: Vec<String>,
    largest: Option<(f64, String)>,
    is_bad: bool,
}

impl Report {
    fn count(&mut self, word: &'static str, reason: &str, text: &Path) {
        *self.counts.entry(word).or_default().entry(kind_of(reason)).or_default() += 1;
        if !reason.is_empty() {
            let name = text.file_stem().unwrap_or_default().display();
            self.failures.push(format!("{word}\t{name}\t{reason}\n"));
        }
    }

    fn print(&self) {
        for (word, reasons) in &self.counts {
            println!("{:6} {word}", reasons.values().sum::<usize>());
            let mut rows: Vec<(&String, &usize)> =
                reasons.iter().filter(|(why, _)| !why.is_empty()).collect();
            rows.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
            rows.iter().for_each(|(reason, count)| println!("       {count:6} {reason}"));
        }
        if let Some((error, name)) = &self.largest {
            println!("largest error relative to the largest element: {error:.1e} ({name})");
        }
    }
}

/// Replaces the parts of a reason that are specific to a text: names, shapes, numbers.
fn kind_of(reason: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in reason.split_whitespace() {
        let is_own = word.contains(|c: char| c.is_ascii_digit() || "[]{}'%=".contains(c));
        let word = if is_own { "_".to_owned() } else { word.to_owned() };
        if !(is_own && words.last() == Some(&word)) {
            words.push(word);
        }
    }
    words.truncate(14);
    words.join(" ")
}
