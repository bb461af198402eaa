//! Floating-point numbers: `F32`, which also computes the narrower types, and `F64`.

use crate::math;
use hlo::Op;
use nest::{BinaryOp, Constant, FunctionBuilder, Predicate, ScalarType, Type, UnaryOp, ValueId};
use shape::PrimitiveType;
use support::{Error, Result};
use target::Target;

/// Emits a function of one number. The result is not yet rounded to a narrower type.
pub(super) fn unary(b: &mut FunctionBuilder, target: &Target, op: &Op, x: ValueId) -> Result<ValueId> {
    match op {
        Op::Abs {} => Ok(b.unary(UnaryOp::Abs, x)),
        Op::Negate {} => Ok(b.unary(UnaryOp::Negate, x)),
        Op::Sqrt {} => Ok(b.unary(UnaryOp::Sqrt, x)),
        Op::Rsqrt {} => math::rsqrt(b, target, x),
        Op::Sign {} => Ok(sign(b, x)),
        Op::IsFinite {} => {
            let magnitude = b.unary(UnaryOp::Abs, x);
            let infinity = b.float(b.ty(x), f64::INFINITY);
            Ok(b.compare(Predicate::Less, magnitude, infinity))
        }
        Op::Real {} => Ok(x),
        Op::Imag {} => Ok(b.float(b.ty(x), 0.0)),
        Op::Floor {} => math::floor(b, target, x),
        Op::Ceil {} => math::ceil(b, target, x),
        Op::RoundNearestEven {} => math::round_even(b, target, x),
        Op::RoundNearestAfz {} => round_away_from_zero(b, target, x),
        Op::Acos {} => math::acos(b, target, x),
        Op::Acosh {} => math::acosh(b, target, x),
        Op::Asin {} => math::asin(b, target, x),
        Op::Asinh {} => math::asinh(b, target, x),
        Op::Atanh {} => math::atanh(b, target, x),
        Op::Cbrt {} => math::cbrt(b, target, x),
        Op::Cos {} => math::cos(b, target, x),
        Op::Cosh {} => math::cosh(b, target, x),
        Op::Erf {} => math::erf(b, target, x),
        Op::Exp {} => math::exp(b, target, x),
        Op::Expm1 {} => math::expm1(b, target, x),
        Op::Log {} => math::log(b, target, x),
        Op::Log1p {} => math::log1p(b, target, x),
        Op::Logistic {} => math::logistic(b, target, x),
        Op::Sin {} => math::sin(b, target, x),
        Op::Sinh {} => math::sinh(b, target, x),
        Op::Tan {} => math::tan(b, target, x),
        Op::Tanh {} => math::tanh(b, target, x),
        _ => Err(Error::unsupported(format!("opcode {} of floating-point numbers", op.opcode().name()))),
    }
}

/// Emits a function of two numbers. The result is not yet rounded to a narrower type.
pub(super) fn binary(
    b: &mut FunctionBuilder,
    target: &Target,
    op: &Op,
    x: ValueId,
    y: ValueId,
) -> Result<ValueId> {
    match op {
        Op::Add {} => Ok(b.add(x, y)),
        Op::Subtract {} => Ok(b.sub(x, y)),
        Op::Multiply {} => Ok(b.mul(x, y)),
        Op::Divide {} => Ok(b.binary(BinaryOp::Divide, x, y)),
        Op::Maximum {} => Ok(maximum(b, x, y)),
        Op::Minimum {} => Ok(minimum(b, x, y)),
        Op::Remainder {} => math::fmod(b, target, x, y),
        Op::Power {} => math::pow(b, target, x, y),
        Op::Atan2 {} => math::atan2(b, target, x, y),
        _ => Err(Error::unsupported(format!("opcode {} of floating-point numbers", op.opcode().name()))),
    }
}

/// Returns the larger number, or NaN if either is NaN.
pub fn maximum(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    extremum(b, Predicate::Greater, x, y)
}

/// Returns the smaller number, or NaN if either is NaN.
pub fn minimum(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    extremum(b, Predicate::Less, x, y)
}

/// A comparison with NaN is false and selects the second operand, so a constant other than NaN
/// comes first.
fn extremum(b: &mut FunctionBuilder, better: Predicate, x: ValueId, y: ValueId) -> ValueId {
    let (first, second) = if is_number(b, x) { (x, y) } else { (y, x) };
    let is_better = b.compare(better, first, second);
    let chosen = b.select(is_better, first, second);
    if is_number(b, first) {
        return chosen;
    }
    let is_nan = b.compare(Predicate::NotEqual, first, first);
    b.select(is_nan, first, chosen)
}

/// True if a value is known not to be NaN.
fn is_number(b: &FunctionBuilder, x: ValueId) -> bool {
    match (b.known_constant(x), b.ty(x).scalar) {
        (Some(Constant::FloatBits(bits)), ScalarType::F32) => !f32::from_bits(bits as u32).is_nan(),
        (Some(Constant::FloatBits(bits)), ScalarType::F64) => !f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// Returns -1, 1, or the operand itself if it is zero or NaN.
fn sign(b: &mut FunctionBuilder, x: ValueId) -> ValueId {
    let ty = b.ty(x);
    let (zero, one, minus_one) = (b.float(ty, 0.0), b.float(ty, 1.0), b.float(ty, -1.0));
    let is_positive = b.compare(Predicate::Greater, x, zero);
    let is_negative = b.compare(Predicate::Less, x, zero);
    let not_positive = b.select(is_negative, minus_one, x);
    b.select(is_positive, one, not_positive)
}

/// Adds the number just below one half, with the operand's sign, and truncates: ties round away
/// from zero.
fn round_away_from_zero(b: &mut FunctionBuilder, target: &Target, x: ValueId) -> Result<ValueId> {
    let ty = b.ty(x);
    let below_half = match ty.scalar {
        ScalarType::F32 => f64::from(f32::from_bits(0x3eff_ffff)),
        _ => f64::from_bits(0x3fdf_ffff_ffff_ffff),
    };
    let half = b.float(ty, below_half);
    let half = copy_sign(b, half, x);
    let sum = b.add(x, half);
    let rounded = math::trunc(b, target, sum)?;
    Ok(copy_sign(b, rounded, x))
}

/// Returns the magnitude of one number with the sign of another.
pub(super) fn copy_sign(b: &mut FunctionBuilder, magnitude: ValueId, sign: ValueId) -> ValueId {
    let ty = b.ty(magnitude);
    let bits = ty.with_scalar(if ty.scalar == ScalarType::F32 { ScalarType::I32 } else { ScalarType::I64 });
    let sign_bit = b.integer(bits, i64::MIN >> (64 - 8 * ty.scalar.byte_size()));
    let magnitude = b.unary(UnaryOp::Abs, magnitude);
    let magnitude = b.bitcast(magnitude, bits);
    let sign = b.bitcast(sign, bits);
    let sign = b.and(sign, sign_bit);
    let signed = b.or(magnitude, sign);
    b.bitcast(signed, ty)
}

/// Returns `rounded`, except for numbers that are subnormal in a type that is computed in `F32`.
/// These are rounded to multiples of the type's smallest subnormal. The smallest normal number is
/// `2^least`, and `digits` is the type's precision.
fn round_subnormal(
    b: &mut FunctionBuilder,
    x: ValueId,
    rounded: ValueId,
    int: Type,
    least: i32,
    digits: i32,
) -> ValueId {
    let ty = b.ty(x);
    let size = b.unary(UnaryOp::Abs, x);
    let smallest = b.float(ty, 2f64.powi(least));
    let is_subnormal = b.compare(Predicate::Less, size, smallest);
    // The last digit of this `F32` number is the smallest subnormal.
    let shift = b.float(ty, 2f64.powi(least - digits + 23));
    let sum = b.add(size, shift);
    let near = b.sub(sum, shift);
    let near = copy_sign(b, near, x);
    let near = b.bitcast(near, int);
    b.select(is_subnormal, near, rounded)
}

/// XLA's `reduce-precision`. The mantissa rounds to nearest even. Numbers outside the range of the
/// exponent become infinity or zero; the narrow format has no subnormals.
pub(super) fn reduce_precision(
    b: &mut FunctionBuilder,
    element_type: PrimitiveType,
    exponent_bits: u32,
    mantissa_bits: u32,
    x: ValueId,
) -> ValueId {
    let source = element_type.float_format().expect("expected a floating-point operand of reduce-precision");
    let ty = b.ty(x);
    let (width, register_mantissa, register_bias) = match ty.scalar {
        ScalarType::F64 => (64u32, 52u32, 1023i64),
        _ => (32, 23, 127),
    };
    let int = ty.with_scalar(if width == 64 { ScalarType::I64 } else { ScalarType::I32 });
    let original = b.bitcast(x, int);
    let mut bits = original;
    if mantissa_bits < source.mantissa_bits {
        let dropped = register_mantissa - mantissa_bits;
        let shift = b.integer(int, i64::from(dropped));
        let one = b.integer(int, 1);
        let last = b.binary(BinaryOp::ShiftRightLogical, bits, shift);
        let odd = b.and(last, one);
        let half = b.integer(int, (1i64 << (dropped - 1)) - 1);
        let sum = b.add(bits, half);
        let sum = b.add(sum, odd);
        let mask = b.integer(int, -1i64 << dropped);
        bits = b.and(sum, mask);
    }
    if source.exponent_bits < 8 && mantissa_bits < source.mantissa_bits {
        bits = round_subnormal(b, x, bits, int, source.least_exponent(), mantissa_bits as i32);
    }
    let exponent_mask = b.integer(int, ((1i64 << (width - 1 - register_mantissa)) - 1) << register_mantissa);
    let sign_bit = b.integer(int, i64::MIN >> (64 - width));
    let sign = b.and(original, sign_bit);
    let infinity = b.or(sign, exponent_mask);
    if exponent_bits < source.exponent_bits {
        let bias = (1i64 << (exponent_bits.max(1) - 1)) - 1;
        let exponent = b.and(bits, exponent_mask);
        let highest = b.integer(int, (register_bias + bias) << register_mantissa);
        let lowest = b.integer(int, (register_bias - bias) << register_mantissa);
        let overflows = b.compare(Predicate::Above, exponent, highest);
        let underflows = b.compare(Predicate::BelowEqual, exponent, lowest);
        bits = b.select(overflows, infinity, bits);
        bits = b.select(underflows, sign, bits);
    }
    // A format without mantissa bits has no NaN.
    let kept = if mantissa_bits > 0 { original } else { infinity };
    let is_nan = b.compare(Predicate::NotEqual, x, x);
    let bits = b.select(is_nan, kept, bits);
    b.bitcast(bits, ty)
}
