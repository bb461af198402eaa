//! Comparisons by partial and total order.

use super::undefined;
use crate::element::Element;
use hlo::{ComparisonDirection, ComparisonType, Op};
use nest::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, ScalarType, ValueId};
use shape::PrimitiveType;
use support::Result;

/// Compares two elements of the same type. Returns a `Bool`.
pub fn compare(
    b: &mut FunctionBuilder,
    direction: ComparisonDirection,
    order: ComparisonType,
    element_type: PrimitiveType,
    lhs: Element,
    rhs: Element,
) -> Result<ValueId> {
    if element_type.is_complex() {
        let ((a, c), (d, e)) = (lhs.parts(), rhs.parts());
        return match direction {
            ComparisonDirection::Eq => {
                let (re, im) = (b.compare(Predicate::Equal, a, d), b.compare(Predicate::Equal, c, e));
                Ok(b.and(re, im))
            }
            ComparisonDirection::Ne => {
                let (re, im) = (b.compare(Predicate::NotEqual, a, d), b.compare(Predicate::NotEqual, c, e));
                Ok(b.or(re, im))
            }
            _ => Err(undefined(&Op::Compare { direction, comparison_type: order }, element_type)),
        };
    }
    let (mut x, mut y) = (lhs.real(), rhs.real());
    let mut is_unsigned = element_type.is_unsigned_integer();
    if element_type == PrimitiveType::Pred {
        x = b.convert(ConvertOp::ZeroExtend, x, ScalarType::I8);
        y = b.convert(ConvertOp::ZeroExtend, y, ScalarType::I8);
        is_unsigned = true;
    } else if element_type.is_floating_point() && order == ComparisonType::TotalOrder {
        x = total_order_key(b, x);
        y = total_order_key(b, y);
    }
    Ok(b.compare(predicate(direction, is_unsigned), x, y))
}

fn predicate(direction: ComparisonDirection, is_unsigned: bool) -> Predicate {
    match (direction, is_unsigned) {
        (ComparisonDirection::Eq, _) => Predicate::Equal,
        (ComparisonDirection::Ne, _) => Predicate::NotEqual,
        (ComparisonDirection::Ge, false) => Predicate::GreaterEqual,
        (ComparisonDirection::Ge, true) => Predicate::AboveEqual,
        (ComparisonDirection::Gt, false) => Predicate::Greater,
        (ComparisonDirection::Gt, true) => Predicate::Above,
        (ComparisonDirection::Le, false) => Predicate::LessEqual,
        (ComparisonDirection::Le, true) => Predicate::BelowEqual,
        (ComparisonDirection::Lt, false) => Predicate::Less,
        (ComparisonDirection::Lt, true) => Predicate::Below,
    }
}

/// Returns a signed integer that orders floats by IEEE's total order: the bits, with those below
/// the sign flipped for negative numbers.
pub fn total_order_key(b: &mut FunctionBuilder, x: ValueId) -> ValueId {
    let ty = b.ty(x);
    let int = ty.with_scalar(if ty.scalar == ScalarType::F64 { ScalarType::I64 } else { ScalarType::I32 });
    let bits = b.bitcast(x, int);
    let width = 8 * int.scalar.byte_size() as i64;
    let all = b.integer(int, width - 1);
    let one = b.integer(int, 1);
    let sign = b.binary(BinaryOp::ShiftRightArithmetic, bits, all);
    let flipped = b.binary(BinaryOp::ShiftRightLogical, sign, one);
    b.binary(BinaryOp::Xor, bits, flipped)
}
