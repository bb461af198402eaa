//! What products in loops read again and again is laid out for them once.

use super::Loop;
use super::outside::invariant_instructions;
use crate::pass::{Changed, Pass};
use hlo::{Computation, DotDimensionNumbers, InstructionId, Module, Op};
use shape::{ArrayShape, PrimitiveType, Shape};
use std::collections::BTreeMap;
use support::Result;

/// `dot(x, w) => dot(x, transpose(w))` in loops, where w is the same in every iteration and its rows run along the summands:
/// products read the right operand along its columns. The transpose is the same in every iteration, too, so
/// `while-loop-invariant-code-motion` moves it out; without that, this gains nothing. A large w that few rows are multiplied
/// with stays as it is: reading it takes the time, and along its rows that is as fast. Exact for every input.
pub struct WhileLoopDotOperandLayout;

impl Pass for WhileLoopDotOperandLayout {
    fn name(&self) -> &'static str {
        "while-loop-dot-operand-layout"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(found) = Loop::at(module, site) else { continue };
            let kept = found.invariants(module);
            let invariant = invariant_instructions(&module[found.body], &kept);
            let body = &module[found.body];
            let is_turned = |&id: &InstructionId| {
                !invariant.contains(&id)
                    && may_be_turned(body, id)
                    && invariant.contains(&body[id].operands()[1])
            };
            let dots: Vec<InstructionId> = body.post_order().into_iter().filter(is_turned).collect();
            if dots.is_empty() {
                continue;
            }
            let found = found.exclusive(module);
            let body = module.computation_mut(found.body);
            let mut matrices = BTreeMap::new();
            for dot in dots {
                let matrix = body[dot].operands()[1];
                let right = *matrices.entry(matrix).or_insert_with(|| turned(body, matrix));
                turn(body, dot, right);
            }
            crate::simplify::dce::sweep(body);
            changed = true;
        }
        Ok(changed.into())
    }
}

/// Whether an instruction is a product with a matrix, no constant, whose last dimension is summed over, and would gain if it
/// were the first.
pub(crate) fn may_be_turned(body: &Computation, id: InstructionId) -> bool {
    let Op::Dot { dot_dimension_numbers: numbers } = body[id].op() else { return false };
    let right = body[id].operands()[1];
    let Some(shape) = body[right].shape().as_array() else { return false };
    let is_plain = numbers.rhs_batch_dims.is_empty()
        && shape.rank() > 1
        && shape.is_static()
        && numbers.rhs_contracting_dims == [shape.rank() - 1];
    // A right operand without dimensions has no summands to count.
    is_plain
        && shape.size(shape.rank() - 1) > 1
        && shape.element_count() > shape.size(shape.rank() - 1)
        && !matches!(body[right].op(), Op::Constant { .. })
        && !is_read_along_rows(body, id)
}

/// Whether a product of a few rows with a matrix that no core's own cache holds sums along the rows of both.
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

/// A matrix with its last dimension in front.
pub(crate) fn turned(body: &mut Computation, matrix: InstructionId) -> InstructionId {
    let array = body[matrix].shape().expect_array().clone();
    let rank = array.rank();
    let dimensions: Vec<usize> = std::iter::once(rank - 1).chain(0..rank - 1).collect();
    let sizes: Vec<i64> = dimensions.iter().map(|&d| array.size(d)).collect();
    let shape = Shape::from(ArrayShape::new(array.element_type, &sizes));
    let metadata = body[matrix].metadata().clone();
    body.add("", Op::Transpose { dimensions }, shape, &[matrix], metadata)
}

/// Makes a product read the matrix that [`turned`] made of its right operand.
pub(crate) fn turn(body: &mut Computation, dot: InstructionId, right: InstructionId) {
    let Op::Dot { dot_dimension_numbers: numbers } = body[dot].op().clone() else { return };
    let left = body[dot].operands()[0];
    let (shape, metadata) = (body[dot].shape().clone(), body[dot].metadata().clone());
    let dot_dimension_numbers = DotDimensionNumbers { rhs_contracting_dims: vec![0], ..numbers };
    let new = body.add("", Op::Dot { dot_dimension_numbers }, shape, &[left, right], metadata);
    body.replace_all_uses(dot, new);
}
