//! Output of `-v`: the time and the results of each stage.

use crate::report::Reporter;
use compiler::Observer;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Collects the stages' times, and prints the results of stages when they end.
pub(crate) struct StageTimes {
    last: Instant,
    stages: Vec<(String, Duration)>,
    details: Vec<String>,
}

impl StageTimes {
    /// Creates a report that prints the results of the stages with these names.
    pub(crate) fn new(details: &[&str]) -> Self {
        let details = details.iter().map(|stage| (*stage).to_owned()).collect();
        Self { last: Instant::now(), stages: Vec::new(), details }
    }

    /// Prints the table of times to standard error.
    pub(crate) fn print(&self) {
        let mut err = std::io::stderr().lock();
        let total: Duration = self.stages.iter().map(|(_, time)| *time).sum();
        for (stage, time) in self.stages.iter().map(|(s, t)| (s.as_str(), *t)).chain([("total", total)]) {
            let _ = writeln!(err, "{:>10.3} ms  {stage}", time.as_secs_f64() * 1e3);
        }
    }
}

impl Observer for StageTimes {
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String) {
        self.stages.push((stage.to_owned(), self.last.elapsed()));
        if self.details.iter().any(|name| name == stage) {
            let _ = writeln!(std::io::stderr(), "== after {stage}\n{}", detail().trim_end());
        }
        self.last = Instant::now();
    }
}

impl Reporter for StageTimes {
    fn note(&mut self, text: &str) {
        // If standard error is closed, there is nowhere to report that.
        let _ = writeln!(std::io::stderr(), "note: {text}");
    }
}
