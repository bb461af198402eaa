//! `// test: run`: the entry runs on the literals of the `// input:` lines, one for each parameter; its result stands
//! below the arrow. Inputs are parameters, never constants: a folded test would test the evaluator alone.

use super::{Outcome, parse_input};
use crate::case::{Case, LineError};
use hlo::Module;
use hlo::text::{literal_to_text, parse_literal};
use shape::Literal;
use support::{Error, Result};

/// Runs a module's entry.
type Runtime = fn(&Module, &[Literal]) -> Result<Literal>;

/// What runs a module, by name. All must give the same result.
const RUNTIMES: &[(&str, Runtime)] = &[("evaluator", evaluator::evaluate)];

/// Reads, runs, prints the result.
pub(super) fn run(case: &Case) -> Outcome {
    let module = match parse_input(case) {
        Ok(module) => module,
        Err(errors) => return errors,
    };
    match results(case, &module) {
        Ok(text) => Outcome::Text { text, unless_expected: None },
        Err(error) => Outcome::Errors(vec![LineError::from_message(error.message())]),
    }
}

fn results(case: &Case, module: &Module) -> Result<String> {
    hlo::verify(module)?;
    let mut inputs = Vec::new();
    for (i, line) in case.input.lines().enumerate() {
        let Some(input) = line.strip_prefix("// input: ") else { continue };
        let input =
            parse_literal(input).map_err(|error| error.context(format_args!("input of line {}", i + 1)))?;
        inputs.push(input);
    }
    let wanted = module.entry_computation().program_shape().parameters;
    if !inputs.iter().map(Literal::shape).eq(wanted.iter().cloned()) {
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        return Err(Error::invalid(format!("the inputs must be {}", wanted.join(", "))));
    }
    let mut first: Option<String> = None;
    for (name, runtime) in RUNTIMES {
        let result = runtime(module, &inputs).map_err(|error| error.context(name))?;
        let text = literal_to_text(&result) + "\n";
        match &first {
            Some(expected) if *expected != text => {
                return Err(Error::internal(format!("{name} gives {text} where others give {expected}")));
            }
            Some(_) => {}
            None => first = Some(text),
        }
    }
    first.ok_or_else(|| Error::internal("nothing runs a module"))
}
