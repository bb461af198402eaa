//! Triangular systems as loops over rows.

use super::expand::expand;
use crate::pass::{Changed, Pass};
use composite::linear_algebra::{Triangular, as_stack, of_stack, triangular_solve};
use hlo::{Module, Op};
use support::Result;

/// `triangular-solve(a, b) =>` a loop that computes one row of the solution per iteration. Exact
/// except for rounding.
pub struct TriangularSolveExpander;

impl Pass for TriangularSolveExpander {
    fn name(&self) -> &'static str {
        "triangular-solve-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        expand(
            module,
            "triangular_solve",
            |op, _| matches!(op, Op::TriangularSolve { .. }),
            |op, _, operands| match *op {
                Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } => {
                    let options = Triangular { left_side, lower, unit_diagonal, transpose_a };
                    let sizes = operands[1].sizes();
                    let x = triangular_solve(as_stack(operands[0]), as_stack(operands[1]), options);
                    of_stack(x, &sizes[..sizes.len() - 2])
                }
                _ => operands[1],
            },
        )
    }
}
