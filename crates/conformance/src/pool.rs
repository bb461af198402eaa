//! A pool of child processes that run cases, connected by pipes. A child that dies or hangs fails
//! its case and is replaced.

use crate::worker::Outcome;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Number of lines of a dead child's standard error quoted in the reason.
const QUOTED_LINES: usize = 3;
/// Maximum length of a line of the protocol.
const LINE_LIMIT: u64 = 1 << 20;

/// Settings for running cases.
pub struct Pool {
    /// Command of the child, which reads paths and answers with [`Outcome::to_line`].
    pub command: Vec<OsString>,
    /// Number of children.
    pub jobs: usize,
    /// Time limit per case.
    pub time_limit: Duration,
}

impl Pool {
    /// Runs all cases. Calls `done` with each one's position, outcome, and time, in order of
    /// completion.
    pub fn run(&self, cases: &[PathBuf], mut done: impl FnMut(usize, Outcome, Duration)) {
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, cases.len().max(1)) {
                let (next, sender) = (&next, sender.clone());
                scope.spawn(move || {
                    let mut child = None;
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(index) else { return };
                        let start = Instant::now();
                        let outcome = self.run_in(&mut child, case);
                        if sender.send((index, outcome, start.elapsed())).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            receiver.into_iter().for_each(|(index, outcome, time)| done(index, outcome, time));
        });
    }

    /// Runs one case in the child, starting one if necessary. Leaves `None` if the child cannot be
    /// reused.
    fn run_in(&self, slot: &mut Option<Worker>, case: &Path) -> Outcome {
        let mut worker = match slot.take().map_or_else(|| Worker::start(&self.command), Ok) {
            Ok(worker) => worker,
            Err(error) => return Outcome::Crashed(format!("cannot start a worker: {error}")),
        };
        match worker.ask(case, self.time_limit) {
            Ok(outcome) => {
                *slot = Some(worker);
                outcome
            }
            Err(outcome) => outcome,
        }
    }
}

/// A running child, killed on drop.
struct Worker {
    child: Child,
    answers: Receiver<String>,
    errors: Arc<Mutex<VecDeque<String>>>,
    errors_thread: Option<std::thread::JoinHandle<()>>,
}

impl Worker {
    fn start(command: &[OsString]) -> std::io::Result<Self> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().expect("piped above");
        let stderr = child.stderr.take().expect("piped above");
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            each_line(stdout, |line| sender.send(line).is_ok());
        });
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        let last_lines = Arc::clone(&errors);
        let errors_thread = std::thread::spawn(move || {
            each_line(stderr, |line| {
                let mut last_lines = last_lines.lock().expect("no thread panics while holding the lock");
                if last_lines.len() == QUOTED_LINES {
                    last_lines.pop_front();
                }
                last_lines.push_back(line);
                true
            });
        });
        Ok(Self { child, answers, errors, errors_thread: Some(errors_thread) })
    }

    /// Runs a case. An error is an outcome too, after which this child must not be used again.
    fn ask(&mut self, case: &Path, time_limit: Duration) -> Result<Outcome, Outcome> {
        let mut line = case.as_os_str().as_encoded_bytes().to_vec();
        line.push(b'\n');
        let stdin = self.child.stdin.as_mut().expect("piped at the start");
        // A failed write means that the child is dead; the missing answer below reports it.
        let _ = stdin.write_all(&line).and_then(|()| stdin.flush());
        match self.answers.recv_timeout(time_limit) {
            Ok(answer) => Outcome::from_line(&answer)
                .ok_or_else(|| Outcome::Crashed(format!("the worker answered {answer:?}"))),
            Err(RecvTimeoutError::Timeout) => {
                Err(Outcome::Crashed(format!("no answer within {} s", time_limit.as_secs_f32())))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
                if let Some(thread) = self.errors_thread.take() {
                    let _ = thread.join();
                }
                let quoted = self.errors.lock().expect("no thread panics while holding the lock");
                let quoted: Vec<&str> = quoted.iter().map(String::as_str).collect();
                let separator = if quoted.is_empty() { "" } else { ": " };
                Err(Outcome::Crashed(format!("the worker died, {status}{separator}{}", quoted.join(" | "))))
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only if the child has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls `take` with each line until it returns false or the pipe ends.
fn each_line(pipe: impl Read, mut take: impl FnMut(String) -> bool) {
    let mut reader = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(LINE_LIMIT).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                if !take(String::from_utf8_lossy(&line).trim_end().to_owned()) {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell worker that behaves as the case's name indicates.
    const SCRIPT: &str = r#"
        while read -r case; do
            case $case in
                pass) echo '{"outcome":"passed","reason":""}' ;;
                wrong) echo '{"outcome":"wrong","reason":"off by one"}' ;;
                abort) echo 'LLVM ERROR: out of registers' >&2; kill -ABRT $$ ;;
                exit) exit 3 ;;
                hang) sleep 100 >/dev/null 2>&1 & wait ;;
                babble) echo 'hello there' ;;
            esac
        done"#;

    fn run(names: &[&str], jobs: usize) -> Vec<Outcome> {
        let command = ["sh", "-c", SCRIPT].map(OsString::from).to_vec();
        let pool = Pool { command, jobs, time_limit: Duration::from_millis(700) };
        let cases: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        let mut outcomes = vec![None; cases.len()];
        pool.run(&cases, |index, outcome, _| {
            assert!(outcomes[index].replace(outcome).is_none(), "one answer per case");
        });
        outcomes.into_iter().map(|outcome| outcome.expect("an answer per case")).collect()
    }

    #[test]
    fn a_case_that_crashes_hangs_or_babbles_costs_only_itself() {
        for jobs in [1, 3] {
            let names = ["pass", "abort", "pass", "hang", "wrong", "exit", "pass", "babble", "pass"];
            let outcomes = run(&names, jobs);
            for (name, outcome) in names.iter().zip(&outcomes) {
                let reason = outcome.reason();
                let right = match *name {
                    "pass" => *outcome == Outcome::Passed,
                    "wrong" => *outcome == Outcome::Wrong("off by one".to_owned()),
                    "abort" => reason.contains("signal: 6") && reason.contains("out of registers"),
                    "exit" => reason.contains("exit status: 3"),
                    "hang" => reason.contains("no answer within 0.7 s"),
                    _ => reason.contains("hello there"),
                };
                assert!(right, "{name}: {outcome:?}");
            }
        }
    }

    #[test]
    fn a_worker_that_cannot_start_fails_every_case() {
        let pool =
            Pool { command: vec!["/no/such/program".into()], jobs: 2, time_limit: Duration::from_secs(1) };
        let mut count = 0;
        pool.run(&["a".into(), "b".into(), "c".into()], |_, outcome, _| {
            assert!(matches!(outcome, Outcome::Crashed(_)));
            count += 1;
        });
        assert_eq!(count, 3);
    }
}
