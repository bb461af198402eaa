//! `// test: verify`: reports the verifier's errors, each on the line of its instruction.

use super::{Outcome, parse_input};
use crate::case::{Case, LineError};
use hlo::VerifyError;

/// Reads and verifies.
pub(super) fn run(case: &Case) -> Outcome {
    let module = match parse_input(case) {
        Ok(module) => module,
        Err(errors) => return errors,
    };
    let errors = hlo::verify_all(&module)
        .into_iter()
        .map(|error| LineError { line: line_of(&case.input, &error), message: error.message });
    Outcome::Errors(errors.collect())
}

/// Returns the line that defines the error's instruction, its computation, or the module.
fn line_of(input: &str, error: &VerifyError) -> usize {
    let mut computation = "";
    for (i, line) in input.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("").trim();
        let name = code.trim_start_matches("ENTRY ").trim_start_matches("ROOT ").trim_start_matches('%');
        let name = name.split([' ', '(']).next().unwrap_or("");
        if code.starts_with("HloModule") {
            if error.computation.is_empty() {
                return i + 1;
            }
        } else if code.ends_with('{') {
            computation = name;
            if computation == error.computation && error.instruction.is_empty() {
                return i + 1;
            }
        } else if computation == error.computation && name == error.instruction && code.contains('=') {
            return i + 1;
        }
    }
    1
}
