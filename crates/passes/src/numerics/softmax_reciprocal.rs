//! Replaces divisions by the sum of a softmax by one division per row.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::Result;

/// Divides once per row of a softmax, as TensorFlow's own kernel does.
///
/// `x / broadcast(s) => x * broadcast(1 / s)`, where `s` is a sum of `exp(y - broadcast(max(y)))`
/// over the same elements. Such a sum is at least 1, or NaN, so its reciprocal neither overflows
/// nor underflows. Exact except for rounding: two roundings instead of one.
pub struct SoftmaxReciprocal;

impl Pass for SoftmaxReciprocal {
    fn name(&self) -> &'static str {
        "softmax-reciprocal"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            for instruction in module[id].post_order() {
                let Some(sum) = divisor(module, &module[id], instruction) else { continue };
                let product = rewrite(module.computation_mut(id), instruction, sum);
                module.computation_mut(id).replace_all_uses(instruction, product);
                changed = true;
            }
            if changed {
                crate::simplify::dce::sweep(module.computation_mut(id));
            }
        }
        Ok(changed.into())
    }
}

/// The sum by which an instruction divides, if it is that of a softmax.
fn divisor(module: &Module, computation: &Computation, id: InstructionId) -> Option<InstructionId> {
    let &[_, divisor] = computation[id].operands() else { return None };
    let shape = computation[id].shape().as_array()?;
    let is_wide = matches!(shape.element_type, PrimitiveType::F32 | PrimitiveType::F64);
    if !matches!(computation[id].op(), Op::Divide {}) || !is_wide || !shape.is_static() {
        return None;
    }
    let (sum, row_dimensions) = broadcast(computation, divisor)?;
    let (exponentials, dimensions, start) = reduction(module, computation, sum, &Op::Add {})?;
    if start != 0.0 || !keeps_dimensions(computation, exponentials, dimensions, row_dimensions) {
        return None;
    }
    let Op::Exp {} = computation[exponentials].op() else { return None };
    let shifted = computation[exponentials].operands()[0];
    let Op::Subtract {} = computation[shifted].op() else { return None };
    let &[array, shift] = computation[shifted].operands() else { return None };
    let (maximum, maximum_dimensions) = broadcast(computation, shift)?;
    let (input, reduced, start) = reduction(module, computation, maximum, &Op::Maximum {})?;
    let is_least = start == f64::NEG_INFINITY;
    let is_softmax =
        input == array && is_least && reduced == dimensions && maximum_dimensions == row_dimensions;
    is_softmax.then_some(sum)
}

/// The operand of a broadcast, and its dimensions in the result.
fn broadcast(computation: &Computation, id: InstructionId) -> Option<(InstructionId, &[usize])> {
    let Op::Broadcast { dimensions } = computation[id].op() else { return None };
    Some((computation[id].operands()[0], dimensions))
}

/// The array that a reduction by one op reduces, its dimensions, and its initial number.
fn reduction<'c>(
    module: &Module,
    computation: &'c Computation,
    id: InstructionId,
    op: &Op,
) -> Option<(InstructionId, &'c [usize], f64)> {
    let Op::Reduce { dimensions, to_apply } = computation[id].op() else { return None };
    let &[array, start] = computation[id].operands() else { return None };
    let applied = &module[*to_apply];
    let root = &applied[applied.root()];
    let is_op = root.op() == op
        && root.operands()[0] != root.operands()[1]
        && root.operands().iter().all(|&o| matches!(applied[o].op(), Op::Parameter { .. }));
    let Op::Constant { literal } = computation[start].op() else { return None };
    let Scalar::Float(start) = literal.scalar_at(0) else { return None };
    is_op.then_some((array, dimensions, start))
}

/// True if `row_dimensions` are the dimensions of an array that are not reduced, in order.
fn keeps_dimensions(
    computation: &Computation,
    array: InstructionId,
    reduced: &[usize],
    row_dimensions: &[usize],
) -> bool {
    let Some(shape) = computation[array].shape().as_array() else { return false };
    (0..shape.rank()).filter(|d| !reduced.contains(d)).eq(row_dimensions.iter().copied())
}

fn rewrite(computation: &mut Computation, id: InstructionId, sum: InstructionId) -> InstructionId {
    let metadata = computation[id].metadata().clone();
    let (dividend, divisor) = (computation[id].operands()[0], computation[id].operands()[1]);
    let whole = computation[id].shape().clone();
    let rows = computation[sum].shape().clone();
    let spread = computation[divisor].op().clone();
    let element_type = whole.expect_array().element_type;
    let literal = Literal::from_scalars(ArrayShape::new(element_type, &[]), vec![Scalar::Float(1.0)]);
    let one = Op::Constant { literal };
    let one = computation.add("", one, Shape::scalar(element_type), &[], metadata.clone());
    let ones = Op::Broadcast { dimensions: Vec::new() };
    let ones = computation.add("", ones, rows.clone(), &[one], metadata.clone());
    let reciprocal = computation.add("", Op::Divide {}, rows, &[ones, sum], metadata.clone());
    let factor = computation.add("", spread, whole.clone(), &[reciprocal], metadata.clone());
    computation.add("", Op::Multiply {}, whole, &[dividend, factor], metadata)
}
