//! `// test: pass=NAME`: runs one or several passes (`pass=NAME,NAME`). The module must remain
//! valid and keep its meaning: the same bits, or within the relative error of a line
//! `// rounds: 1e-6` for passes that change the rounding.

use super::{Outcome, parse_input};
use crate::case::{Case, LineError};
use crate::oracle;

/// Runs passes and prints the module.
pub(super) fn run(case: &Case) -> Outcome {
    let before = match parse_input(case) {
        Ok(module) => module,
        Err(errors) => return errors,
    };
    match tolerance(case).and_then(|tolerance| rewritten(&case.argument, &before, tolerance)) {
        Ok(text) => Outcome::Text { text, unless_expected: None },
        Err(message) => Outcome::Errors(vec![LineError { line: 1, message }]),
    }
}

/// Returns the relative error that the case permits.
fn tolerance(case: &Case) -> Result<Option<f64>, String> {
    let mut stated = case.input.lines().filter_map(|line| line.strip_prefix("// rounds: "));
    let parse =
        |text: &str| text.trim().parse().map_err(|_| format!("expected a relative error, got '{text}'"));
    stated.next().map(parse).transpose()
}

fn rewritten(names: &str, before: &hlo::Module, tolerance: Option<f64>) -> Result<String, String> {
    hlo::verify(before).map_err(|error| error.to_string())?;
    let mut module = before.clone();
    for name in names.split(',') {
        let pass = passes::by_name(name).ok_or_else(|| format!("unknown pass '{name}'"))?;
        oracle::run_pass(&*pass, &mut module)?;
    }
    for seed in 0..3 {
        match tolerance {
            None => oracle::same_answers(before, &module, seed)?,
            Some(tolerance) => oracle::close_answers(before, &module, seed, tolerance)?,
        }
    }
    Ok(module.to_text())
}
