//! Rounding to integral values, with one instruction where the target has one, and with arithmetic
//! elsewhere.
//!
//! NaN stays NaN. Infinities and integral numbers are unchanged. A zero result has the operand's
//! sign.

use nest::{BinaryOp, FunctionBuilder, Predicate, ScalarType, UnaryOp, ValueId};
use support::Result;
use target::Target;

/// True if the target rounds floats of this type by instructions.
fn rounds(b: &FunctionBuilder, target: &Target, x: ValueId) -> bool {
    target.has_rounding && (target.has_f64 || b.ty(x).scalar == ScalarType::F32)
}

/// Largest integral value that is not greater than the operand.
pub fn floor(b: &mut FunctionBuilder, target: &Target, x: ValueId) -> Result<ValueId> {
    if rounds(b, target, x) {
        return Ok(b.unary(UnaryOp::Floor, x));
    }
    let nearest = nearest_even(b, x);
    let is_above = b.compare(Predicate::Greater, nearest, x);
    let one = b.float(b.ty(x), 1.0);
    let below = b.sub(nearest, one);
    let floor = b.select(is_above, below, nearest);
    Ok(with_sign_of(b, floor, x))
}

/// Smallest integral value that is not less than the operand.
pub fn ceil(b: &mut FunctionBuilder, target: &Target, x: ValueId) -> Result<ValueId> {
    if rounds(b, target, x) {
        return Ok(b.unary(UnaryOp::Ceil, x));
    }
    let nearest = nearest_even(b, x);
    let is_below = b.compare(Predicate::Less, nearest, x);
    let one = b.float(b.ty(x), 1.0);
    let above = b.add(nearest, one);
    let ceil = b.select(is_below, above, nearest);
    Ok(with_sign_of(b, ceil, x))
}

/// Nearest integral value toward zero.
pub fn trunc(b: &mut FunctionBuilder, target: &Target, x: ValueId) -> Result<ValueId> {
    if rounds(b, target, x) {
        return Ok(b.unary(UnaryOp::Truncate, x));
    }
    let magnitude = b.unary(UnaryOp::Abs, x);
    let nearest = nearest_even(b, magnitude);
    let is_above = b.compare(Predicate::Greater, nearest, magnitude);
    let one = b.float(b.ty(x), 1.0);
    let below = b.sub(nearest, one);
    let truncated = b.select(is_above, below, nearest);
    Ok(with_sign_of(b, truncated, x))
}

/// Nearest integral value. Ties round to even.
pub fn round_even(b: &mut FunctionBuilder, target: &Target, x: ValueId) -> Result<ValueId> {
    if rounds(b, target, x) {
        return Ok(b.unary(UnaryOp::RoundEven, x));
    }
    let nearest = nearest_even(b, x);
    Ok(with_sign_of(b, nearest, x))
}

/// Adds `2^(mantissa bits)`, which leaves no bits for a fraction. Larger numbers and NaN are
/// unchanged.
fn nearest_even(b: &mut FunctionBuilder, x: ValueId) -> ValueId {
    let ty = b.ty(x);
    let limit = if ty.scalar == ScalarType::F32 { 2f64.powi(23) } else { 2f64.powi(52) };
    let limit = b.float(ty, limit);
    let magnitude = b.unary(UnaryOp::Abs, x);
    let sum = b.add(magnitude, limit);
    let rounded = b.sub(sum, limit);
    let rounded = with_sign_of(b, rounded, x);
    let has_fraction = b.compare(Predicate::Less, magnitude, limit);
    b.select(has_fraction, rounded, x)
}

fn with_sign_of(b: &mut FunctionBuilder, magnitude: ValueId, sign: ValueId) -> ValueId {
    let ty = b.ty(magnitude);
    let int = ty.with_scalar(if ty.scalar == ScalarType::F32 { ScalarType::I32 } else { ScalarType::I64 });
    let sign_bit = b.integer(int, i64::MIN >> (64 - 8 * ty.scalar.byte_size()));
    let magnitude = b.unary(UnaryOp::Abs, magnitude);
    let magnitude = b.bitcast(magnitude, int);
    let sign = b.bitcast(sign, int);
    let sign = b.binary(BinaryOp::And, sign, sign_bit);
    let signed = b.or(magnitude, sign);
    b.bitcast(signed, ty)
}
