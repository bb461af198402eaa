//! `// test: pass=NAME`: a pass (or several, `pass=NAME,NAME`) rewrites the module, which must stay valid and keep its
//! meaning.

use super::{Outcome, parse_input};
use crate::case::{Case, LineError};
use crate::oracle;

/// Runs passes and prints the module.
pub(super) fn run(case: &Case) -> Outcome {
    let before = match parse_input(case) {
        Ok(module) => module,
        Err(errors) => return errors,
    };
    match rewritten(&case.argument, &before) {
        Ok(text) => Outcome::Text { text, unless_expected: None },
        Err(message) => Outcome::Errors(vec![LineError { line: 1, message }]),
    }
}

fn rewritten(names: &str, before: &hlo::Module) -> Result<String, String> {
    hlo::verify(before).map_err(|error| error.to_string())?;
    let mut module = before.clone();
    for name in names.split(',') {
        let pass = passes::by_name(name).ok_or_else(|| format!("unknown pass '{name}'"))?;
        oracle::run_pass(&*pass, &mut module)?;
    }
    for seed in 0..3 {
        oracle::same_answers(before, &module, seed)?;
    }
    Ok(module.to_text())
}
