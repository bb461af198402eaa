//! `cargo run --release -p fuzz-graphs -- --seed N --count M`: checks the graphs of `M` seeds.
//!
//! Graphs are checked in child processes, so that a crash affects only one graph. Its seed is
//! printed like that of any other failure. The exit status is 1 if any graph fails.

use clap::Parser;
use fuzz_graphs::firings::Firings;
use fuzz_graphs::named::{self, Report};
use fuzz_graphs::subject::{self, Kind};
use fuzz_graphs::{Outcome, translation};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Compile random graphs and compare their results with the evaluator
#[derive(Clone, Debug, Parser)]
#[command(name = "fuzz-graphs")]
struct Flags {
    /// First seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of seeds
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Number of graphs to check in parallel
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Kind of graphs: hlo, programs, quantized, tf, all of these, files (edited file tests), or
    /// sizes (named dimensions)
    #[arg(long, default_value = "all")]
    kind: String,
    /// Seconds after which a graph counts as stuck
    #[arg(long, default_value_t = 120)]
    timeout: u64,
    /// Run the passes one by one and compare what the evaluator computes before and after each,
    /// instead of compiling the graph
    #[arg(long)]
    passes: bool,
    /// File for the number of changes of each pass and of applications of each rule, as JSON
    #[arg(long, value_name = "FILE", requires = "passes")]
    report: Option<PathBuf>,
    /// Print the graph of the seed without checking it
    #[arg(long)]
    print: bool,
    /// Answer seeds from standard input (for child processes)
    #[arg(long, hide = true)]
    worker: bool,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let Some(kind) = Kind::parse(&flags.kind) else {
        eprintln!(
            "fuzz-graphs: unknown kind '{}'; expected hlo, programs, quantized, tf, all, files, or sizes",
            flags.kind
        );
        return ExitCode::from(2);
    };
    if flags.print {
        if kind == Kind::Sizes {
            println!("{}", named::text(flags.seed).unwrap_or_else(|outcome| format!("{outcome:?}")));
            return ExitCode::SUCCESS;
        }
        match subject::subject(kind, flags.seed) {
            Ok(subject) => println!("// {:?}\n{}", subject.setup, subject.module),
            Err(outcome) => println!("{outcome:?}"),
        }
        return ExitCode::SUCCESS;
    }
    if flags.worker {
        work(kind, flags.passes);
        return ExitCode::SUCCESS;
    }
    supervise(&flags)
}

/// Answers each seed with one line: the outcome, then what happened on the way, after tabs.
fn work(kind: Kind, passes: bool) {
    std::panic::set_hook(Box::new(|_| {}));
    for line in std::io::stdin().lock().lines() {
        let Some(seed) = line.ok().and_then(|line| line.trim().parse().ok()) else { return };
        let Report { outcome, notes } =
            if passes { translation::run(kind, seed) } else { subject::report(kind, seed) };
        let mut answer = match outcome {
            Outcome::Clean { undecided, elements } => format!("clean {undecided} {elements}"),
            Outcome::Refused(why) => format!("refused {}", escape(&why)),
            Outcome::Failed(why) => format!("failed {}", escape(&why)),
        };
        notes.iter().for_each(|note| answer += &format!("\t{}", escape(note)));
        let mut out = std::io::stdout().lock();
        let written = writeln!(out, "{answer}").and_then(|()| out.flush());
        if written.is_err() {
            return;
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', " ")
}

fn unescape(text: &str) -> String {
    let parts: Vec<String> = text.split("\\\\").map(|part| part.replace("\\n", "\n")).collect();
    parts.join("\\")
}

/// A child process and the channel of its answers.
struct Worker {
    child: Child,
    seeds: ChildStdin,
    answers: Receiver<String>,
}

impl Worker {
    fn start(flags: &Flags) -> std::io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--worker", "--kind", &flags.kind])
            .args(flags.passes.then_some("--passes"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let seeds = child.stdin.take().expect("the child has a pipe");
        let out = child.stdout.take().expect("the child has a pipe");
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, seeds, answers })
    }

    /// Returns the answer for a seed, or the reason why there is none.
    fn ask(&mut self, seed: u64, timeout: Duration) -> Result<String, String> {
        writeln!(self.seeds, "{seed}").map_err(|error| format!("crashed: {error}"))?;
        self.answers.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => "stuck".to_owned(),
            RecvTimeoutError::Disconnected => match self.child.wait() {
                Ok(status) => format!("crashed: {status}"),
                Err(error) => format!("crashed: {error}"),
            },
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The child may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Default)]
struct Tally {
    clean: u64,
    elements: u64,
    undecided: u64,
    refused: BTreeMap<String, u64>,
    notes: BTreeMap<String, u64>,
    failed: Vec<u64>,
}

impl Tally {
    fn take(&mut self, seed: u64, answer: Result<String, String>) {
        let answer = answer.unwrap_or_else(|why| format!("failed {why}"));
        let mut parts = answer.split('\t');
        let answer = parts.next().unwrap_or_default().to_owned();
        for note in parts {
            *self.notes.entry(reason(note)).or_default() += 1;
        }
        let (word, rest) = answer.split_once(' ').unwrap_or((&answer, ""));
        match word {
            "clean" => {
                let mut numbers = rest.split(' ').map(|n| n.parse().unwrap_or(0));
                self.clean += 1;
                self.undecided += numbers.next().unwrap_or(0);
                self.elements += numbers.next().unwrap_or(0);
            }
            "refused" => {
                *self.refused.entry(reason(rest)).or_default() += 1;
            }
            _ => {
                self.failed.push(seed);
                println!("seed {seed}: {}\n", unescape(rest));
            }
        }
    }

    fn checked_count(&self) -> u64 {
        self.clean + self.refused.values().sum::<u64>() + self.failed.len() as u64
    }
}

/// Returns the beginning of a message without its numbers.
fn reason(message: &str) -> String {
    let line = unescape(message).lines().take(2).collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_ascii_digit()).take(130).collect()
}

fn supervise(flags: &Flags) -> ExitCode {
    let (next, tally) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let begin = Instant::now();
    let timeout = Duration::from_secs(flags.timeout);
    std::thread::scope(|scope| {
        for _ in 0..flags.jobs.max(1) {
            scope.spawn(|| {
                let mut worker = None;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= flags.count {
                        return;
                    }
                    let seed = flags.seed.wrapping_add(number);
                    let answer = match worker.take().map_or_else(|| Worker::start(flags), Ok) {
                        Ok(mut started) => {
                            let answer = started.ask(seed, timeout);
                            // Restarting the process from time to time frees the memory leaked by
                            // generated code.
                            if answer.is_ok() && number % 500 != 499 {
                                worker = Some(started);
                            }
                            answer
                        }
                        Err(error) => {
                            next.store(flags.count, Ordering::Relaxed);
                            Err(format!("cannot start a process: {error}"))
                        }
                    };
                    let mut tally = tally.lock().expect("no thread panics with the lock");
                    tally.take(seed, answer);
                    if tally.checked_count().is_multiple_of(1000) {
                        let rate = tally.checked_count() as f64 / begin.elapsed().as_secs_f64() * 60.0;
                        eprintln!(
                            "{} graphs, {} failed, {rate:.0} a minute",
                            tally.checked_count(),
                            tally.failed.len()
                        );
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().expect("all threads have ended");
    if flags.passes {
        let firings = Firings::new(&tally.notes);
        print!("{}", firings.to_text());
        if let Some(path) = &flags.report
            && let Err(error) = std::fs::write(path, firings.to_json())
        {
            eprintln!("fuzz-graphs: cannot write {}: {error}", path.display());
            return ExitCode::from(2);
        }
    } else {
        for (note, count) in &tally.notes {
            println!("{count}: {note}");
        }
    }
    for (reason, count) in &tally.refused {
        println!("refused {count}: {reason}");
    }
    println!(
        "seeds {}..{}: {} clean, {} refused, {} failed {:?}; {} elements, {} of them undecided; {:.0} s",
        flags.seed,
        flags.seed.wrapping_add(flags.count),
        tally.clean,
        tally.refused.values().sum::<u64>(),
        tally.failed.len(),
        tally.failed,
        tally.elements,
        tally.undecided,
        begin.elapsed().as_secs_f64()
    );
    if tally.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
