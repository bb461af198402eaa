//! Transposes an operand once if several dots read it along its rows.

use crate::pass::{Changed, Pass};
use crate::while_loop::operand_layout::{may_transpose_operand, replace_matrix, transposed_matrix};
use hlo::{Computation, InstructionId, Module, Op};
use shape::ArrayShape;
use std::collections::BTreeMap;
use support::Result;

/// `dot(x, w), dot(y, w) => dot(x, t), dot(y, t)` with `t = transpose(w)`, if the rows of w run
/// along the summands. Dots read the right operand along its columns, so each would pack w for
/// itself. Unchanged are dots with many rows, which pack w in any case, and dots with few rows and
/// a large w. Exact for every input.
pub struct DotOperandLayout;

/// Dots with more rows than this use packed panels regardless of the layout of their right operand.
const MANY_ROWS: i64 = 128;

impl Pass for DotOperandLayout {
    fn name(&self) -> &'static str {
        "dot-operand-layout"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let mut dots: BTreeMap<InstructionId, Vec<InstructionId>> = BTreeMap::new();
            let computation = &module[id];
            for dot in computation.post_order().into_iter().filter(|&dot| is_transposable(computation, dot)) {
                dots.entry(computation[dot].operands()[1]).or_default().push(dot);
            }
            dots.retain(|_, dots| dots.len() > 1);
            if dots.is_empty() {
                continue;
            }
            let computation = module.computation_mut(id);
            for dots in dots.into_values() {
                // The matrix may be a dot that has just been replaced.
                let right = transposed_matrix(computation, computation[dots[0]].operands()[1]);
                dots.into_iter().for_each(|dot| replace_matrix(computation, dot, right));
            }
            crate::simplify::dce::sweep(computation);
            changed = true;
        }
        Ok(changed.into())
    }
}

fn is_transposable(computation: &Computation, id: InstructionId) -> bool {
    let Op::Dot { dot_dimension_numbers: numbers } = computation[id].op() else { return false };
    let sizes = |id: InstructionId| {
        computation[id].shape().as_array().filter(|a| a.is_static()).map(ArrayShape::sizes)
    };
    let Some(left) = sizes(computation[id].operands()[0]) else { return false };
    let summed = |d: &usize| numbers.lhs_contracting_dims.contains(d) || numbers.lhs_batch_dims.contains(d);
    let rows: i64 = (0..left.len()).filter(|d| !summed(d)).map(|d| left[d]).product();
    (2..=MANY_ROWS).contains(&rows) && may_transpose_operand(computation, id)
}
