//! Integers of all widths, signed and unsigned.

use super::undefined;
use crate::element::normalize;
use hlo::Op;
use nest::{
    BinaryOp, Constant, ConvertOp, FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, UnaryOp,
    ValueId,
};
use shape::PrimitiveType;
use support::Result;
use target::Target;

/// Emits a function of one integer.
pub(super) fn unary(
    b: &mut FunctionBuilder,
    op: &Op,
    element_type: PrimitiveType,
    x: ValueId,
) -> Result<ValueId> {
    let ty = b.ty(x);
    let zero = b.integer(ty, 0);
    let value = match op {
        Op::Abs {} if element_type.is_unsigned_integer() => x,
        Op::Abs {} => {
            let negated = b.sub(zero, x);
            let is_negative = b.compare(Predicate::Less, x, zero);
            b.select(is_negative, negated, x)
        }
        Op::Negate {} => b.sub(zero, x),
        Op::Not {} => b.unary(UnaryOp::Not, x),
        Op::Sign {} => {
            let one = b.integer(ty, 1);
            let is_zero = b.compare(Predicate::Equal, x, zero);
            if element_type.is_unsigned_integer() {
                b.select(is_zero, zero, one)
            } else {
                let minus = b.integer(ty, -1);
                let is_negative = b.compare(Predicate::Less, x, zero);
                let sign = b.select(is_negative, minus, one);
                b.select(is_zero, zero, sign)
            }
        }
        Op::PopulationCount {} => {
            let bits = low_bits(b, element_type, x);
            b.unary(UnaryOp::PopulationCount, bits)
        }
        Op::CountLeadingZeros {} => {
            let bits = low_bits(b, element_type, x);
            let zeros = b.unary(UnaryOp::CountLeadingZeros, bits);
            let unused = ty.scalar.byte_size() as i64 * 8 - i64::from(element_type.bit_width());
            let unused = b.integer(ty, unused);
            b.sub(zeros, unused)
        }
        Op::Real {} => x,
        Op::Imag {} => zero,
        _ => return Err(undefined(op, element_type)),
    };
    Ok(normalize(b, element_type, value))
}

/// Returns only the bits of the type, without the sign extension of types narrower than a byte.
fn low_bits(b: &mut FunctionBuilder, element_type: PrimitiveType, x: ValueId) -> ValueId {
    if element_type.bit_width() >= 8 {
        return x;
    }
    let mask = b.integer(b.ty(x), (1 << element_type.bit_width()) - 1);
    b.and(x, mask)
}

/// Emits a function of two integers.
pub(super) fn binary(
    b: &mut FunctionBuilder,
    target: &Target,
    op: &Op,
    element_type: PrimitiveType,
    x: ValueId,
    y: ValueId,
) -> Result<ValueId> {
    let is_signed = element_type.is_signed_integer();
    let value = match op {
        Op::Add {} => b.add(x, y),
        Op::Subtract {} => b.sub(x, y),
        Op::Multiply {} => b.mul(x, y),
        Op::And {} => b.and(x, y),
        Op::Or {} => b.or(x, y),
        Op::Xor {} => b.binary(BinaryOp::Xor, x, y),
        Op::Divide {} => divide(b, target, is_signed, x, y),
        Op::Remainder {} => remainder(b, target, is_signed, x, y),
        Op::Maximum {} => {
            let above = b.compare(if is_signed { Predicate::Greater } else { Predicate::Above }, x, y);
            b.select(above, x, y)
        }
        Op::Minimum {} => {
            let below = b.compare(if is_signed { Predicate::Less } else { Predicate::Below }, x, y);
            b.select(below, x, y)
        }
        Op::Power {} => power(b, element_type, x, y)?,
        Op::ShiftLeft {} => {
            let zero = b.integer(b.ty(x), 0);
            shift(b, element_type, BinaryOp::ShiftLeft, x, y, zero)
        }
        Op::ShiftRightLogical {} => {
            let zero = b.integer(b.ty(x), 0);
            let bits = low_bits(b, element_type, x);
            shift(b, element_type, BinaryOp::ShiftRightLogical, bits, y, zero)
        }
        Op::ShiftRightArithmetic {} => {
            // An unsigned operand is shifted like the signed number with the same bits. Longer
            // distances, and negative ones, leave the sign, as the longest one does.
            let signed = sign_extended(b, element_type, x);
            let longest = b.ty(x).scalar.byte_size() as i64 * 8 - 1;
            let distance = if has_known_distance(b, y, longest) {
                y
            } else {
                let longest = b.integer(b.ty(x), longest);
                let is_within = b.compare(Predicate::Below, y, longest);
                b.select(is_within, y, longest)
            };
            b.binary(BinaryOp::ShiftRightArithmetic, signed, distance)
        }
        _ => return Err(undefined(op, element_type)),
    };
    Ok(normalize(b, element_type, value))
}

fn sign_extended(b: &mut FunctionBuilder, element_type: PrimitiveType, x: ValueId) -> ValueId {
    match element_type {
        PrimitiveType::U1 => normalize(b, PrimitiveType::S1, x),
        PrimitiveType::U2 => normalize(b, PrimitiveType::S2, x),
        PrimitiveType::U4 => normalize(b, PrimitiveType::S4, x),
        _ => x,
    }
}

/// Shifts by a distance. Distances of at least the width, or negative ones, give `beyond`.
fn shift(
    b: &mut FunctionBuilder,
    element_type: PrimitiveType,
    op: BinaryOp,
    x: ValueId,
    distance: ValueId,
    beyond: ValueId,
) -> ValueId {
    if has_known_distance(b, distance, i64::from(element_type.bit_width()) - 1) {
        return b.binary(op, x, distance);
    }
    let width = b.integer(b.ty(x), i64::from(element_type.bit_width()));
    let is_within = b.compare(Predicate::Below, distance, width);
    let zero = b.integer(b.ty(x), 0);
    let safe = b.select(is_within, distance, zero);
    let shifted = b.binary(op, x, safe);
    b.select(is_within, shifted, beyond)
}

/// True for a constant distance of at most `longest` bits.
fn has_known_distance(b: &FunctionBuilder, distance: ValueId, longest: i64) -> bool {
    matches!(b.known_constant(distance), Some(Constant::Integer(bits)) if (0..=longest).contains(&bits))
}

/// A divisor that never traps: 1 instead of 0, and instead of -1 if the quotient would overflow.
/// The quotient then wraps to the dividend.
struct Divisor {
    is_zero: ValueId,
    safe: ValueId,
}

fn safe_divisor(b: &mut FunctionBuilder, is_signed: bool, x: ValueId, y: ValueId) -> Divisor {
    let ty = b.ty(x);
    let (zero, one) = (b.integer(ty, 0), b.integer(ty, 1));
    let is_zero = b.compare(Predicate::Equal, y, zero);
    let mut unsafe_divisor = is_zero;
    if is_signed {
        let least = b.integer(ty, i64::MIN >> (64 - 8 * ty.scalar.byte_size()));
        let minus_one = b.integer(ty, -1);
        let is_least = b.compare(Predicate::Equal, x, least);
        let is_minus_one = b.compare(Predicate::Equal, y, minus_one);
        let overflows = b.and(is_least, is_minus_one);
        unsafe_divisor = b.or(is_zero, overflows);
    }
    Divisor { is_zero, safe: b.select(unsafe_divisor, one, y) }
}

/// The quotient, truncated toward zero. Division by 0 gives -1 (all ones); the smallest number
/// divided by -1 is itself.
fn divide(b: &mut FunctionBuilder, target: &Target, is_signed: bool, x: ValueId, y: ValueId) -> ValueId {
    let divisor = safe_divisor(b, is_signed, x, y);
    let quotient = quotient(b, target, is_signed, x, &divisor);
    let ones = b.integer(b.ty(x), -1);
    b.select(divisor.is_zero, ones, quotient)
}

/// The remainder with the dividend's sign. The remainder by 0 is the dividend.
fn remainder(b: &mut FunctionBuilder, target: &Target, is_signed: bool, x: ValueId, y: ValueId) -> ValueId {
    let divisor = safe_divisor(b, is_signed, x, y);
    let rest = if divides_floats(b, target, y) {
        let quotient = quotient(b, target, is_signed, x, &divisor);
        let product = b.mul(quotient, divisor.safe);
        b.sub(x, product)
    } else {
        let op = if is_signed { BinaryOp::RemainderSigned } else { BinaryOp::RemainderUnsigned };
        b.binary(op, x, divisor.safe)
    };
    b.select(divisor.is_zero, x, rest)
}

/// The quotient by a safe divisor.
///
/// Processors divide vectors of floats, not of integers. The quotient of a float with more bits
/// than the integers is the same when truncated: if it is not whole, it is at least `1 / y` away
/// from the next integer, and rounding moves it by less.
fn quotient(
    b: &mut FunctionBuilder,
    target: &Target,
    is_signed: bool,
    x: ValueId,
    divisor: &Divisor,
) -> ValueId {
    let y = divisor.safe;
    if !divides_floats(b, target, y) {
        return b.binary(if is_signed { BinaryOp::DivideSigned } else { BinaryOp::DivideUnsigned }, x, y);
    }
    let scalar = b.ty(x).scalar;
    let is_word = scalar == ScalarType::I32;
    let float = if is_word { ScalarType::F64 } else { ScalarType::F32 };
    let extend = if is_signed { ConvertOp::SignExtend } else { ConvertOp::ZeroExtend };
    // Narrower numbers, also unsigned ones, are signed words.
    let (to_float, truncate) = if is_signed || !is_word {
        (ConvertOp::SignedToFloat, ConvertOp::FloatToSigned)
    } else {
        (ConvertOp::UnsignedToFloat, ConvertOp::FloatToUnsigned)
    };
    let [x, y] = [x, y].map(|value| {
        let word = if is_word { value } else { b.convert(extend, value, ScalarType::I32) };
        b.convert(to_float, word, float)
    });
    let quotient = b.binary(BinaryOp::Divide, x, y);
    let word = b.convert(truncate, quotient, ScalarType::I32);
    if is_word { word } else { b.convert(ConvertOp::Truncate, word, scalar) }
}

/// True if vectors of these numbers are divided as floats: if they have up to 32 bits, the divisor
/// is not a constant, whose reciprocal is multiplied, and the target has vectors of such floats.
fn divides_floats(b: &FunctionBuilder, target: &Target, divisor: ValueId) -> bool {
    let ty = b.ty(divisor);
    let has_floats = match ty.scalar {
        ScalarType::I8 | ScalarType::I16 => target.has_f32,
        ScalarType::I32 => target.has_f64 && target.pointer_bytes == 8,
        _ => false,
    };
    ty.lanes > 1 && has_floats && b.known_constant(divisor).is_none()
}

/// The power by repeated squaring, wrapping. Negative exponents give the powers of 1 and -1, and 0
/// for other bases.
fn power(b: &mut FunctionBuilder, element_type: PrimitiveType, x: ValueId, y: ValueId) -> Result<ValueId> {
    let ty = b.ty(x);
    let (zero, one) = (b.integer(ty, 0), b.integer(ty, 1));
    let (begin, end) = (b.index(0), b.index(i64::from(element_type.bit_width())));
    let results = b.for_carrying(begin, end, 1, &[one, x, y], |b, _, carried| {
        let [result, square, rest] = carried[..] else { unreachable!("expected three carried values") };
        let low = b.and(rest, one);
        let is_odd = b.compare(Predicate::NotEqual, low, zero);
        let product = b.mul(result, square);
        Ok(vec![
            b.select(is_odd, product, result),
            b.mul(square, square),
            b.binary(BinaryOp::ShiftRightLogical, rest, one),
        ])
    })?;
    if element_type.is_unsigned_integer() {
        return Ok(results[0]);
    }
    let minus_one = b.integer(ty, -1);
    let low = b.and(y, one);
    let is_odd = b.compare(Predicate::NotEqual, low, zero);
    let alternating = b.select(is_odd, minus_one, one);
    let is_minus_one = b.compare(Predicate::Equal, x, minus_one);
    let is_one = b.compare(Predicate::Equal, x, one);
    let unit = b.select(is_one, one, zero);
    let reciprocal = b.select(is_minus_one, alternating, unit);
    let is_negative = b.compare(Predicate::Less, y, zero);
    Ok(b.select(is_negative, reciprocal, results[0]))
}

/// Converts an integer to another integer type, wrapping.
pub(super) fn resize(b: &mut FunctionBuilder, from: PrimitiveType, to: ScalarType, x: ValueId) -> ValueId {
    let have = b.ty(x).scalar;
    if have.byte_size() >= to.byte_size() {
        return b.convert(ConvertOp::Truncate, x, to);
    }
    let op = if from.is_signed_integer() { ConvertOp::SignExtend } else { ConvertOp::ZeroExtend };
    b.convert(op, x, to)
}
