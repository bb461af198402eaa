//! Progress of steps while they run: the results of each step, and a progress bar on a terminal.

use crate::files::outputs;
use crate::report::bar::Bar;
use runner::summary;
use shape::Literal;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};
use support::Result;

/// Interval at which the bar is redrawn. Drawing more often would cost as much as short steps.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Progress of running steps.
pub(crate) struct Steps {
    bar: Bar,
    count: u64,
    /// True if the lines of every step are printed. If they share a terminal with the bar, only the
    /// last step's are.
    prints_all: bool,
    begin: Instant,
    first: Duration,
    last_draw: Duration,
    last: String,
}

impl Steps {
    /// Starts the display for `count` steps of a program. There is no bar for a single step, with
    /// `quiet`, or if standard error is not a terminal.
    pub(crate) fn new(name: &str, count: u64, quiet: bool) -> Self {
        let bar = Bar::new(name, quiet || count == 1);
        Self {
            count,
            prints_all: bar.is_hidden() || !std::io::stdout().is_terminal(),
            bar,
            begin: Instant::now(),
            first: Duration::ZERO,
            last_draw: Duration::ZERO,
            last: String::new(),
        }
    }

    /// Reports the end of a step with these lines of results.
    pub(crate) fn ended(&mut self, step: u64, lines: &str) -> Result<()> {
        let now = self.begin.elapsed();
        if step == 0 {
            self.first = now;
        }
        if self.prints_all {
            outputs::print(lines)?;
        } else {
            lines.clone_into(&mut self.last);
        }
        if !self.bar.is_hidden() && (now >= self.last_draw + REDRAW_INTERVAL || step == 0) {
            self.last_draw = now;
            let message = self.message(step, lines);
            self.bar.doing(&message, step + 1, self.count);
        }
        Ok(())
    }

    /// Message of the bar: steps per second, and the first number of the step.
    fn message(&self, step: u64, lines: &str) -> String {
        let rate = self.rate(step + 1).map(|rate| format!("{rate:.0} steps/s")).unwrap_or_default();
        let prefix = format!("step {step}  ");
        match lines.lines().find_map(|line| line.strip_prefix(&prefix)) {
            Some(number) => format!("{rate}  {number}"),
            None => rate,
        }
    }

    /// Steps per second after the first step, which compiles.
    fn rate(&self, done: u64) -> Option<f64> {
        let rest = (self.begin.elapsed() - self.first).as_secs_f64();
        (done > 1).then(|| (done - 1) as f64 / rest.max(1e-9))
    }

    /// Removes the bar and prints the remaining lines. Returns the steps per second if there were
    /// several steps.
    pub(crate) fn finish(self) -> Result<Option<f64>> {
        let rate = self.rate(self.count);
        self.bar.finish();
        outputs::print(&self.last)?;
        Ok(rate)
    }
}

/// Lines with the results of a step. If there are several steps, each number is on a line that
/// names the step.
pub(crate) fn step_lines<'r>(
    results: impl IntoIterator<Item = (&'r str, &'r Literal)>,
    step: u64,
    steps: u64,
) -> String {
    let mut text = String::new();
    for (name, array) in results {
        let shape = array.array_shape();
        let _ = match (steps > 1, shape.rank()) {
            (true, 0) => {
                let number = summary::number(array.scalar_at(0), shape.element_type);
                writeln!(text, "step {step}  {name}: {number}")
            }
            (true, _) => write!(text, "step {step}  {name}: {}", summary::describe(array)),
            (false, _) => write!(text, "{name}: {}", summary::describe(array)),
        };
    }
    text
}
