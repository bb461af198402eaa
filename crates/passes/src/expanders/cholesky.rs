//! Cholesky factors as loops over columns.

use super::expand::expand;
use crate::pass::{Changed, Pass};
use composite::linear_algebra::{as_stack, cholesky, of_stack};
use hlo::{Module, Op};
use support::Result;

/// `cholesky(a) =>` a loop that computes one column per iteration. Exact except for rounding.
pub struct CholeskyExpander;

impl Pass for CholeskyExpander {
    fn name(&self) -> &'static str {
        "cholesky-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        expand(
            module,
            "cholesky",
            |op, _| matches!(op, Op::Cholesky { .. }),
            |op, _, operands| {
                let lower = matches!(op, Op::Cholesky { lower: true });
                let sizes = operands[0].sizes();
                of_stack(cholesky(as_stack(operands[0]), lower), &sizes[..sizes.len() - 2])
            },
        )
    }
}
