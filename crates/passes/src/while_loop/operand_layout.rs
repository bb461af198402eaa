//! Transposes an operand once if products in a loop read it in every iteration.

use super::Loop;
use super::outside::invariant_instructions;
use crate::pass::{Changed, Pass};
use hlo::{Computation, DotDimensionNumbers, InstructionId, Module, Op};
use shape::{ArrayShape, PrimitiveType, Shape};
use std::collections::BTreeMap;
use support::Result;

/// `dot(x, w) => dot(x, transpose(w))` in loops, if w is loop-invariant and its rows run along the
/// summands, because products read the right operand along its columns. The transpose is
/// loop-invariant, too, so `while-loop-invariant-code-motion` hoists it; without that pass, this
/// one gains nothing. A large w that is multiplied with few rows is left unchanged: reading it
/// dominates, and reading along its rows is as fast. Exact for every input.
pub struct WhileLoopDotOperandLayout;

impl Pass for WhileLoopDotOperandLayout {
    fn name(&self) -> &'static str {
        "while-loop-dot-operand-layout"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(while_loop) = Loop::at(module, site) else { continue };
            let invariants = while_loop.invariants(module);
            let invariant = invariant_instructions(&module[while_loop.body], &invariants);
            let body = &module[while_loop.body];
            let is_transposable = |&id: &InstructionId| {
                !invariant.contains(&id)
                    && may_transpose_operand(body, id)
                    && invariant.contains(&body[id].operands()[1])
            };
            let dots: Vec<InstructionId> = body.post_order().into_iter().filter(is_transposable).collect();
            if dots.is_empty() {
                continue;
            }
            let while_loop = while_loop.exclusive(module);
            let body = module.computation_mut(while_loop.body);
            let mut matrices = BTreeMap::new();
            for dot in dots {
                let matrix = body[dot].operands()[1];
                let right = *matrices.entry(matrix).or_insert_with(|| transposed_matrix(body, matrix));
                replace_matrix(body, dot, right);
            }
            crate::simplify::dce::sweep(body);
            changed = true;
        }
        Ok(changed.into())
    }
}

/// True if an instruction is a product with a matrix, not constant, that sums over the last
/// dimension of the matrix and would gain from a summed first dimension.
pub(crate) fn may_transpose_operand(body: &Computation, id: InstructionId) -> bool {
    let Op::Dot { dot_dimension_numbers: numbers } = body[id].op() else { return false };
    let right = body[id].operands()[1];
    let Some(shape) = body[right].shape().as_array() else { return false };
    let is_plain = numbers.rhs_batch_dims.is_empty()
        && shape.rank() > 1
        && shape.is_static()
        && numbers.rhs_contracting_dims == [shape.rank() - 1];
    // A right operand without other dimensions gains nothing.
    is_plain
        && shape.size(shape.rank() - 1) > 1
        && shape.element_count() > shape.size(shape.rank() - 1)
        && !matches!(body[right].op(), Op::Constant { .. })
        && !is_read_along_rows(body, id)
}

/// True if a product of a few rows with a matrix that exceeds a core's own cache sums along the
/// rows of both.
fn is_read_along_rows(body: &Computation, dot: InstructionId) -> bool {
    const FEW_ROWS: i64 = 4;
    const MANY_SUMMANDS: i64 = 128;
    const LARGE_BYTES: u64 = 1 << 20;
    let Op::Dot { dot_dimension_numbers: numbers } = body[dot].op() else { return false };
    let array = |k: usize| body[body[dot].operands()[k]].shape().as_array();
    let (Some(left), Some(right)) = (array(0), array(1)) else { return false };
    let rank = left.rank();
    let is_plain =
        numbers.lhs_batch_dims.is_empty() && rank > 0 && numbers.lhs_contracting_dims == [rank - 1];
    is_plain
        && matches!(left.element_type, PrimitiveType::F32 | PrimitiveType::F64)
        && left.is_static()
        && left.size(rank - 1) >= MANY_SUMMANDS
        && left.element_count() / left.size(rank - 1).max(1) <= FEW_ROWS
        && right.byte_size() > LARGE_BYTES
}

/// The matrix with its last dimension moved to the front.
pub(crate) fn transposed_matrix(body: &mut Computation, matrix: InstructionId) -> InstructionId {
    let array = body[matrix].shape().expect_array().clone();
    let rank = array.rank();
    let dimensions: Vec<usize> = std::iter::once(rank - 1).chain(0..rank - 1).collect();
    let sizes: Vec<i64> = dimensions.iter().map(|&d| array.size(d)).collect();
    let shape = Shape::from(ArrayShape::new(array.element_type, &sizes));
    let metadata = body[matrix].metadata().clone();
    body.add("", Op::Transpose { dimensions }, shape, &[matrix], metadata)
}

/// Makes a product read the result of [`transposed_matrix`] of its right operand.
pub(crate) fn replace_matrix(body: &mut Computation, dot: InstructionId, right: InstructionId) {
    let Op::Dot { dot_dimension_numbers: numbers } = body[dot].op().clone() else { return };
    let left = body[dot].operands()[0];
    let (shape, metadata) = (body[dot].shape().clone(), body[dot].metadata().clone());
    let dot_dimension_numbers = DotDimensionNumbers { rhs_contracting_dims: vec![0], ..numbers };
    let new = body.add("", Op::Dot { dot_dimension_numbers }, shape, &[left, right], metadata);
    body.replace_all_uses(dot, new);
}
