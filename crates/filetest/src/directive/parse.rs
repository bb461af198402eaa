//! `// test: parse`: parses and prints the text. Without an arrow, the output must equal the input.

use super::{Outcome, parse_input};
use crate::case::Case;

/// Reads and prints.
pub(super) fn run(case: &Case) -> Outcome {
    match parse_input(case) {
        Ok(module) => Outcome::Text {
            text: module.to_text(),
            unless_expected: Some(case.input_without_header().to_owned()),
        },
        Err(errors) => errors,
    }
}
