//! Complex variants of functions whose HLO opcodes take only real numbers.

use crate::walk::Context;
use hlo::{ComparisonDirection, ComparisonType, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::Result;

/// Returns the operand's shape if its elements are complex.
fn complex_operand(context: &mut Context<'_, '_>) -> Result<Option<ArrayShape>> {
    let operand = context.operand(0)?;
    let array = context.array(operand)?;
    Ok(array.element_type.is_complex().then_some(array))
}

/// Broadcasts a number to a shape.
fn filled(context: &mut Context<'_, '_>, shape: &ArrayShape, number: Scalar) -> Result<InstructionId> {
    let literal = Literal::from_scalars(ArrayShape::new(shape.element_type, &[]), [number]);
    let scalar = context.op(Op::Constant { literal }, &[])?;
    context.spread(scalar, shape)
}

/// The principal cube root: `x` to the power of one third.
pub(super) fn cbrt(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operand = context.operand(0)?;
    let Some(shape) = complex_operand(context)? else { return context.emit(Op::Cbrt {}, &[operand]) };
    let third = filled(context, &shape, Scalar::Complex(1.0 / 3.0, 0.0))?;
    context.emit(Op::Power {}, &[operand, third])
}

/// Converts a complex number to a real one by taking its real part.
pub(super) fn convert(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operand = context.operand(0)?;
    let result = context.result_array(0)?;
    let Some(_) = complex_operand(context)?.filter(|_| !result.element_type.is_complex()) else {
        return context.emit(Op::Convert {}, &[operand]);
    };
    let real = context.op(Op::Real {}, &[operand])?;
    if result.element_type != PrimitiveType::Pred {
        return context.emit(Op::Convert {}, &[real]);
    }
    let shape = context.array(real)?;
    let zero = filled(context, &shape, Scalar::Float(0.0))?;
    let op = Op::Compare { direction: ComparisonDirection::Ne, comparison_type: ComparisonType::Default };
    context.emit(op, &[real, zero])
}

/// Complex numbers are compared by their real parts, and equal ones by their imaginary parts.
pub(super) fn maximum(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    larger(context, Op::Maximum {}, ComparisonDirection::Gt)
}

/// The minimum in the same order.
pub(super) fn minimum(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    larger(context, Op::Minimum {}, ComparisonDirection::Lt)
}

/// Selects the operand that comes first in a direction; for real numbers, a single opcode does
/// this.
fn larger(
    context: &mut Context<'_, '_>,
    op: Op,
    direction: ComparisonDirection,
) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    if complex_operand(context)?.is_none() {
        return context.emit(op, &operands);
    }
    let mut parts = |op: &Op| -> Result<Vec<InstructionId>> {
        operands.iter().map(|&operand| context.op(op.clone(), &[operand])).collect()
    };
    let (real, imaginary) = (parts(&Op::Real {})?, parts(&Op::Imag {})?);
    let compare = |direction| Op::Compare { direction, comparison_type: ComparisonType::Default };
    let by_real = context.op(compare(direction), &real)?;
    let are_equal = context.op(compare(ComparisonDirection::Eq), &real)?;
    let by_imaginary = context.op(compare(direction), &imaginary)?;
    let is_tie_winner = context.op(Op::And {}, &[are_equal, by_imaginary])?;
    let condition = context.op(Op::Or {}, &[by_real, is_tie_winner])?;
    let choices: Vec<InstructionId> = std::iter::once(condition).chain(operands).collect();
    context.emit(Op::Select {}, &choices)
}
