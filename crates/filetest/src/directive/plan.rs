//! `// test: plan`, or `plan=CPU`: prints the strategy of each instruction with code, for an x86-64
//! processor.

use super::{Outcome, parse_input};
use crate::case::{Case, LineError};
use hlo::Module;
use plan::ModulePlan;
use support::Result;
use target::Target;

/// Plans and prints.
pub(super) fn run(case: &Case) -> Outcome {
    outcome(case, |module, plan, _| Ok(plan.to_text(module)))
}

/// Plans a valid module, and returns the text made by `make` or the error.
pub(super) fn outcome(
    case: &Case,
    make: impl Fn(&Module, &ModulePlan, &Target) -> Result<String>,
) -> Outcome {
    let module = match parse_input(case) {
        Ok(module) => module,
        Err(errors) => return errors,
    };
    let cpu = if case.argument.is_empty() { "x86-64-v3" } else { &case.argument };
    let text = || {
        hlo::verify(&module)?;
        let target = Target::new("x86_64-unknown-linux-gnu", cpu, "")?;
        let plan = plan::plan(&module, &target)?;
        make(&module, &plan, &target)
    };
    match text() {
        Ok(text) => Outcome::Text { text, unless_expected: None },
        Err(error) => Outcome::Errors(vec![LineError { line: 1, message: error.message().to_owned() }]),
    }
}
