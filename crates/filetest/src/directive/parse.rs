//! `// test: parse`: the text is read and printed. Without an arrow it must print as it is written.

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
