//! What `-v` prints: a time for each stage, and what it made.

use crate::report::Reporter;
use compiler::Observer;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Collects the stages' times; prints what stages made while they go by.
pub(crate) struct StageTimes {
    last: Instant,
    stages: Vec<(String, Duration)>,
    details: Vec<String>,
}

impl StageTimes {
    /// A report that prints what the stages of these names made.
    pub(crate) fn new(details: &[&str]) -> Self {
        let details = details.iter().map(|stage| (*stage).to_owned()).collect();
        Self { last: Instant::now(), stages: Vec::new(), details }
    }

    /// The table, to standard error.
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
        if self.details.iter().any(|wanted| wanted == stage) {
            let _ = writeln!(std::io::stderr(), "== after {stage}\n{}", detail().trim_end());
        }
        self.last = Instant::now();
    }
}

impl Reporter for StageTimes {
    fn note(&mut self, text: &str) {
        // Nobody is left to tell if standard error is closed.
        let _ = writeln!(std::io::stderr(), "note: {text}");
    }
}
