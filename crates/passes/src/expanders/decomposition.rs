//! Decompositions that XLA's client libraries, and JAX for accelerators, express as custom calls of
//! the compiler.

use super::expand::expand_all;
use crate::pass::{Changed, Pass};
use composite::linear_algebra::Decomposition;
use hlo::{Module, Op};
use support::Result;

/// `custom-call(...)` of a [`Decomposition`] `=>` its loops. Exact except for rounding. A call
/// whose operands or results do not match the decomposition is left unchanged.
pub struct DecompositionExpander;

impl Pass for DecompositionExpander {
    fn name(&self) -> &'static str {
        "decomposition-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        expand_all(
            module,
            "decomposition",
            |op, operands, results| decomposition(op).is_some_and(|which| which.fits(operands, results)),
            |op, results, operands| {
                decomposition(op).map_or_else(Vec::new, |which| which.results(results, operands))
            },
        )
    }
}

fn decomposition(op: &Op) -> Option<Decomposition> {
    let Op::CustomCall { custom_call_target, backend_config, .. } = op else { return None };
    Decomposition::of(custom_call_target, backend_config)
}
