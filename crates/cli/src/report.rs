//! What `-v` prints: a time for each stage, and what it made.

use compiler::Observer;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Collects the stages' times; with `details` also prints what each made.
pub(crate) struct Report {
    last: Instant,
    stages: Vec<(String, Duration)>,
    details: bool,
}

impl Report {
    pub(crate) fn new(details: bool) -> Self {
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

impl Observer for Report {
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String) {
        self.stages.push((stage.to_owned(), self.last.elapsed()));
        let wanted = ["import", "fusion", "plan", "buffers", "codegen"];
        if self.details && wanted.contains(&stage) {
            let _ = writeln!(std::io::stderr(), "== after {stage}\n{}", detail().trim_end());
        }
        self.last = Instant::now();
    }
}
