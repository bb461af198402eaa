//! What is told of steps while they run: a line of results for each, a bar where somebody looks.

use crate::files::outputs;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use runner::summary;
use shape::Literal;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};
use support::Result;

/// How often the bar is drawn anew: more would cost what short steps take.
const DRAWN: Duration = Duration::from_millis(100);

/// Steps on their way.
pub(crate) struct Steps {
    bar: ProgressBar,
    count: u64,
    /// Whether every step has its lines; where bar and lines would meet on one terminal, only the last one has.
    tells_all: bool,
    begin: Instant,
    first: Duration,
    drawn: Duration,
    last: String,
}

impl Steps {
    /// Begins to count so many steps. There is no bar if there is one step, nobody looks, or only results are wanted.
    pub(crate) fn new(count: u64, quiet: bool) -> Self {
        let bar = if quiet || count == 1 {
            ProgressBar::hidden()
        } else {
            // Draws nothing where standard error is no terminal.
            ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::stderr())
        };
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {msg}  {eta} left") {
            bar.set_style(style);
        }
        Self {
            count,
            tells_all: bar.is_hidden() || !std::io::stdout().is_terminal(),
            bar,
            begin: Instant::now(),
            first: Duration::ZERO,
            drawn: Duration::ZERO,
            last: String::new(),
        }
    }

    /// A step has ended with these lines of results.
    pub(crate) fn ended(&mut self, step: u64, lines: &str) -> Result<()> {
        let now = self.begin.elapsed();
        if step == 0 {
            self.first = now;
        }
        if self.tells_all {
            outputs::print(lines)?;
        } else {
            lines.clone_into(&mut self.last);
        }
        if !self.bar.is_hidden() && (now >= self.drawn + DRAWN || step == 0) {
            self.drawn = now;
            self.bar.set_position(step + 1);
            self.bar.set_message(self.message(step, lines));
        }
        Ok(())
    }

    /// Steps in a second, and the first number of the step.
    fn message(&self, step: u64, lines: &str) -> String {
        let rate = self.rate(step + 1).map(|rate| format!("{rate:.0} steps/s")).unwrap_or_default();
        let prefix = format!("step {step}  ");
        match lines.lines().find_map(|line| line.strip_prefix(&prefix)) {
            Some(number) => format!("{rate}  {number}"),
            None => rate,
        }
    }

    /// Steps in a second behind the first one, which compiles.
    fn rate(&self, done: u64) -> Option<f64> {
        let rest = (self.begin.elapsed() - self.first).as_secs_f64();
        (done > 1).then(|| (done - 1) as f64 / rest.max(1e-9))
    }

    /// Takes the bar away and prints what is left to print; steps in a second, if there were several.
    pub(crate) fn finish(self) -> Result<Option<f64>> {
        let rate = self.rate(self.count);
        self.bar.finish_and_clear();
        outputs::print(&self.last)?;
        Ok(rate)
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// What is fetched in a step: numbers in a line of their own, where there are several steps.
pub(crate) fn told<'r>(
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
