//! Directives: what a test file does to its text. One file each; a new one is added to [`ALL`].

mod buffers;
mod kernel;
mod parse;
mod pass;
mod plan;
mod run;
mod verify;

use crate::case::{Case, LineError};

/// What a directive makes of a file.
pub enum Outcome {
    /// A text, to be compared with what stands below the arrow, or else with `unless_expected`.
    Text {
        /// The text.
        text: String,
        /// What the text must be in a file without an arrow; `None` if such a file is a mistake.
        unless_expected: Option<String>,
    },
    /// Errors, to be compared with those that the comments announce. None at all is success.
    Errors(Vec<LineError>),
}

/// A directive.
pub struct Directive {
    /// Its name in the first line of a file.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&Case) -> Outcome,
}

/// Every directive.
pub const ALL: &[Directive] = &[
    Directive { name: "buffers", run: buffers::run },
    Directive { name: "kernel", run: kernel::run },
    Directive { name: "parse", run: parse::run },
    Directive { name: "pass", run: pass::run },
    Directive { name: "plan", run: plan::run },
    Directive { name: "run", run: run::run },
    Directive { name: "verify", run: verify::run },
];

/// Reads the module of a file whose subject is not the parser: an error is one of the test.
pub fn parse_input(case: &Case) -> Result<hlo::Module, Outcome> {
    hlo::parse(&case.input).map_err(|error| Outcome::Errors(vec![LineError::from_message(error.message())]))
}
