//! `// test: pass=NAME`: one pass runs once, and the verifier after it; the whole module stands below the arrow.

use super::{Outcome, parse_input};
use crate::case::{Case, LineError};
use support::Result;

/// Reads, runs the pass, prints.
pub(super) fn run(case: &Case) -> Outcome {
    let mut module = match parse_input(case) {
        Ok(module) => module,
        Err(errors) => return errors,
    };
    match run_pass(&case.argument, &mut module) {
        Ok(()) => Outcome::Text { text: module.to_text(), unless_expected: None },
        Err(error) => Outcome::Errors(vec![LineError::from_message(error.message())]),
    }
}

/// The verifier runs before it too: a pass is tested on modules that it may get.
fn run_pass(name: &str, module: &mut hlo::Module) -> Result<()> {
    let pass = passes::by_name(name);
    let pass = pass.ok_or_else(|| support::Error::invalid(format!("there is no pass '{name}'")))?;
    hlo::verify(module).map_err(|error| error.context("before the pass"))?;
    let _ = pass.run(module)?;
    hlo::verify(module).map_err(|error| error.context("after the pass"))
}
