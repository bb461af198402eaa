//! Directives: the operations that test files apply to their text, one module each. Add new ones to
//! [`ALL`].

mod buffers;
mod kernel;
mod parse;
mod pass;
mod plan;
mod run;
mod verify;

use crate::case::{Case, LineError};

/// Outcome of a directive.
pub enum Outcome {
    /// A text to compare with the expected output below the arrow, or with `unless_expected` if
    /// there is none.
    Text {
        /// The text.
        text: String,
        /// Expected text in a file without an arrow; `None` if the arrow is mandatory.
        unless_expected: Option<String>,
    },
    /// Errors to compare with those announced by comments. An empty list is success.
    Errors(Vec<LineError>),
}

/// A directive.
pub struct Directive {
    /// Name in the first line of a file.
    pub name: &'static str,
    /// The operation.
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

/// Parses the module of a file that does not test the parser. A parse error becomes the outcome.
pub fn parse_input(case: &Case) -> Result<hlo::Module, Outcome> {
    hlo::parse(&case.input).map_err(|error| Outcome::Errors(vec![LineError::from_message(error.message())]))
}
