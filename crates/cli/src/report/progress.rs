//! What a compilation shows while it runs, on a terminal, and after it, with `-v`.

use crate::args::model::ModelArgs;
use crate::report::Reporter;
use crate::report::stage_times::StageTimes;
use compiler::Observer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write as _;
use std::time::Duration;

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(120);

/// A line on the terminal that says what is being done, and a report.
pub(crate) struct Progress {
    bar: ProgressBar,
    report: StageTimes,
    verbose: bool,
    quiet: bool,
}

impl Progress {
    /// Begins to show the compilation of a program, unless the flags or the output say otherwise.
    pub(crate) fn new(flags: &ModelArgs, name: &str) -> Self {
        let hidden = flags.quiet || flags.verbose;
        let bar = if hidden {
            ProgressBar::hidden()
        } else {
            // Draws nothing where standard error is no terminal.
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.set_message("reading");
        if !hidden {
            bar.enable_steady_tick(TICK);
        }
        let stages: &[&str] = if flags.verbose { &["plan", "regions", "codegen"] } else { &[] };
        Self { bar, report: StageTimes::new(stages), verbose: flags.verbose, quiet: flags.quiet }
    }

    /// Says something that the user may want to know, unless only results are to be printed.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            // Nobody is left to tell if standard error is closed.
            self.bar.suspend(|| drop(writeln!(std::io::stderr(), "note: {text}")));
        }
    }

    /// Takes the line away, and prints the table of times if asked for.
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
            "import" => Some("optimising"),
            "plan" => Some("assigning buffers"),
            "kernel" => Some("generating code"),
            "codegen" => Some("writing"),
            // A pass, behind which there is another one.
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
