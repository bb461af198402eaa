//! Decompositions that XLA's client libraries, and JAX for accelerators, leave to custom calls of the compiler's own.

use super::expand::expand_all;
use crate::pass::{Changed, Pass};
use composite::linear_algebra::Decomposition;
use hlo::{Module, Op};
use support::Result;

/// `custom-call(...)` of a [`Decomposition`] `=>` its loops. Exact but for rounding; what has other operands or results than a
/// decomposition has stays.
pub struct DecompositionExpander;

impl Pass for DecompositionExpander {
    fn name(&self) -> &'static str {
        "decomposition-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        expand_all(
            module,
            "decomposition",
            |op, operands, results| of(op).is_some_and(|which| which.fits(operands, results)),
            |op, results, operands| of(op).map_or_else(Vec::new, |which| which.results(results, operands)),
        )
    }
}

fn of(op: &Op) -> Option<Decomposition> {
    let Op::CustomCall { custom_call_target, backend_config, .. } = op else { return None };
    Decomposition::of(custom_call_target, backend_config)
}
