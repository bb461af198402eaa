//! Progress of a compilation: a line on a terminal while it runs, and the stages' times after it
//! with `-v`.

use crate::args::model::ModelArgs;
use crate::report::Reporter;
use crate::report::stage_times::StageTimes;
use compiler::Observer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Interval at which the line is redrawn.
const TICK: Duration = Duration::from_millis(120);

/// Progress line on the terminal, and the stages' times.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The thread that redraws the line ends when this is dropped.
    _ticker: Option<Sender<()>>,
    report: StageTimes,
    verbose: bool,
    quiet: bool,
}

/// Starts a thread that redraws the line, if the system allows another thread. `indicatif`'s own
/// panics if it does not.
fn start_ticker(bar: &ProgressBar) -> Option<Sender<()>> {
    let (sender, dropped) = channel::<()>();
    let bar = bar.clone();
    let redraw = move || {
        while dropped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) && !bar.is_finished() {
            bar.tick();
        }
    };
    std::thread::Builder::new().spawn(redraw).ok().map(|_| sender)
}

impl Progress {
    /// Starts the display for the compilation of a program. It is hidden if a flag says so, or if
    /// standard error is not a terminal.
    pub(crate) fn new(flags: &ModelArgs, name: &str) -> Self {
        let hidden = flags.quiet || flags.verbose;
        let bar = if hidden {
            ProgressBar::hidden()
        } else {
            // Draws nothing unless standard error is a terminal.
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.set_message("reading");
        let ticker = if bar.is_hidden() { None } else { start_ticker(&bar) };
        let stages: &[&str] =
            if flags.verbose { &["sizes", "plan", "regions", "codegen", "code of sizes"] } else { &[] };
        Self {
            bar,
            _ticker: ticker,
            report: StageTimes::new(stages),
            verbose: flags.verbose,
            quiet: flags.quiet,
        }
    }

    /// Prints a note for the user unless `--quiet` is given.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            // If standard error is closed, there is nowhere to report that.
            self.bar.suspend(|| drop(writeln!(std::io::stderr(), "note: {text}")));
        }
    }

    /// Removes the line, and prints the stages' times if requested.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
        if self.verbose {
            self.report.print();
        }
    }
}

impl Observer for Progress {
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String) {
        let next = match stage {
            "read" | "prepare" => Some("importing"),
            "import" => Some("optimizing"),
            "plan" => Some("assigning buffers"),
            "kernel" => Some("generating code"),
            "codegen" => Some("writing"),
            // A stage that does not change the message, such as a pass.
            _ => None,
        };
        if let Some(next) = next {
            self.bar.set_message(next);
        }
        self.report.ended(stage, detail);
    }
}

impl Reporter for Progress {
    fn note(&mut self, text: &str) {
        Self::note(self, text);
    }

    fn doing(&mut self, text: &str) {
        self.bar.set_message(text.to_owned());
    }

    fn compiled(&mut self) {
        self.finish();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
