//! Progress of a compilation: a line on a terminal while it runs, and the stages' times after it
//! with `-v`.

use crate::args::model::ModelArgs;
use crate::report::Reporter;
use crate::report::bar::Bar;
use crate::report::stage_times::StageTimes;
use compiler::Observer;

/// Progress line on the terminal, and the stages' times.
pub(crate) struct Progress {
    bar: Bar,
    report: StageTimes,
    verbose: bool,
    quiet: bool,
}

impl Progress {
    /// Starts the display for the compilation of a program. It is hidden if a flag says so, or if
    /// standard error is not a terminal.
    pub(crate) fn new(flags: &ModelArgs, name: &str) -> Self {
        let mut bar = Bar::new(name, flags.hides_progress());
        bar.doing("reading", 0, 0);
        let stages: &[&str] = if flags.verbose {
            &["sizes", "plan", "regions", "codegen", "codegen with counters", "code of sizes"]
        } else {
            &[]
        };
        Self { bar, report: StageTimes::new(stages), verbose: flags.verbose, quiet: flags.quiet }
    }

    /// Prints a note for the user unless `--quiet` is given.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.bar.note(text);
        }
    }

    /// Removes the line, and prints the stages' times if requested.
    pub(crate) fn finish(&self) {
        self.bar.finish();
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
            self.bar.doing(next, 0, 0);
        }
        self.report.ended(stage, detail);
    }
}

impl Reporter for Progress {
    fn note(&mut self, text: &str) {
        Self::note(self, text);
    }

    fn doing(&mut self, text: &str, done: usize, total: usize) {
        self.bar.doing(text, done as u64, total as u64);
    }

    fn compiled(&mut self) {
        self.finish();
    }
}
