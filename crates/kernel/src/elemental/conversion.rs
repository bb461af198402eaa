//! Conversions between all pairs of element types, by value and by bits.

use super::{integer, real};
use crate::element::{Element, decode, encode, memory_type, normalize, register_type};
use crate::narrow;
use hlo::Op;
use nest::{ConvertOp, FunctionBuilder, Predicate, ScalarType, UnaryOp, ValueId};
use shape::PrimitiveType;
use support::{Error, Result};
use target::Target;

/// XLA's `convert`. Integers wrap. Floats saturate to integers, with NaN as 0. Conversion to `pred`
/// compares with zero. A complex number becomes its real part.
pub fn convert(
    b: &mut FunctionBuilder,
    from: PrimitiveType,
    to: PrimitiveType,
    operand: Element,
) -> Result<Element> {
    if from == to {
        return Ok(operand);
    }
    let part = to.real_part();
    Ok(match operand {
        Element::Complex(re, im) if to.is_complex() => {
            let re = convert_real(b, from.real_part(), part, re);
            Element::Complex(re, convert_real(b, from.real_part(), part, im))
        }
        Element::Complex(re, im) if to == PrimitiveType::Pred => {
            let re = convert_real(b, from.real_part(), to, re);
            let im = convert_real(b, from.real_part(), to, im);
            Element::Real(b.or(re, im))
        }
        Element::Complex(value, _) | Element::Real(value) => {
            let value = convert_real(b, from.real_part(), part, value);
            if to.is_complex() {
                let zero = b.float(b.ty(value), 0.0);
                Element::Complex(value, zero)
            } else {
                Element::Real(value)
            }
        }
    })
}

fn convert_real(b: &mut FunctionBuilder, from: PrimitiveType, to: PrimitiveType, x: ValueId) -> ValueId {
    if from == to {
        return x;
    }
    let ty = b.ty(x);
    let register = ty.with_scalar(register_type(to));
    if to == PrimitiveType::Pred {
        let zero = if ty.scalar.is_float() { b.float(ty, 0.0) } else { b.integer(ty, 0) };
        return b.compare(Predicate::NotEqual, x, zero);
    }
    if from == PrimitiveType::Pred {
        if to.is_integer() {
            let value = b.convert(ConvertOp::ZeroExtend, x, register.scalar);
            return normalize(b, to, value);
        }
        // Formats of powers of two have no zero.
        let none = if narrow::is_from_f32(to) { f64::NAN } else { 0.0 };
        let (one, none) = (b.float(register, 1.0), b.float(register, none));
        return b.select(x, one, none);
    }
    match (from.is_integer(), to.is_integer()) {
        (true, true) => {
            let resized = integer::resize(b, from, register.scalar, x);
            normalize(b, to, resized)
        }
        (true, false) => integer_to_float(b, from, to, x),
        (false, true) => float_to_integer(b, to, x),
        (false, false) => float_to_float(b, from, to, x),
    }
}

fn integer_to_float(b: &mut FunctionBuilder, from: PrimitiveType, to: PrimitiveType, x: ValueId) -> ValueId {
    let is_narrow = to.byte_size() < 4;
    // Converting through F64 keeps the bits that decide ties in BF16. The largest number of other
    // narrow formats is below 2^24, and F32 has all integers up to that.
    let by_f64 = to == PrimitiveType::Bf16 && from.bit_width() >= 32;
    let over = if by_f64 { ScalarType::F64 } else { register_type(to) };
    let wide = if b.ty(x).scalar.byte_size() < 4 { integer::resize(b, from, ScalarType::I32, x) } else { x };
    let is_extended = b.ty(wide) != b.ty(x);
    let op = if from.is_signed_integer() || is_extended {
        ConvertOp::SignedToFloat
    } else {
        ConvertOp::UnsignedToFloat
    };
    let value = b.convert(op, wide, over);
    if !is_narrow {
        return value;
    }
    let value = if over == ScalarType::F64 { narrow::round_to_odd(b, value) } else { value };
    normalize(b, to, value)
}

fn float_to_integer(b: &mut FunctionBuilder, to: PrimitiveType, x: ValueId) -> ValueId {
    let register = register_type(to);
    if to.is_signed_integer() {
        let value = b.convert(ConvertOp::FloatToSigned, x, register);
        if to.bit_width() >= 8 {
            return value;
        }
        let greatest = (1i64 << (to.bit_width() - 1)) - 1;
        let raised = clip(b, value, -greatest - 1, Predicate::Less);
        return clip(b, raised, greatest, Predicate::Greater);
    }
    let value = b.convert(ConvertOp::FloatToUnsigned, x, register);
    if to.bit_width() >= 8 { value } else { clip(b, value, (1 << to.bit_width()) - 1, Predicate::Above) }
}

/// XLA's `stochastic-convert` to signed integers. It rounds away from zero if the fraction, as an
/// unsigned integer of the random number's width, exceeds the random number.
pub fn stochastic(
    b: &mut FunctionBuilder,
    target: &Target,
    from: PrimitiveType,
    to: PrimitiveType,
    x: ValueId,
    random: ValueId,
) -> Result<ValueId> {
    if !from.is_floating_point() || !to.is_signed_integer() {
        return Err(Error::unsupported(format!("stochastic-convert from {} to {}", from.name(), to.name())));
    }
    let (ty, bits) = (b.ty(x), b.ty(random));
    let magnitude = b.unary(UnaryOp::Abs, x);
    let whole = real::unary(b, target, &Op::Floor {}, magnitude)?;
    let fraction = b.sub(magnitude, whole);
    let scale = b.float(ty, 2f64.powi(from.bit_width() as i32));
    let fraction = b.mul(fraction, scale);
    let fraction = b.convert(ConvertOp::FloatToUnsigned, fraction, bits.scalar);
    let moves_on = b.compare(Predicate::Above, fraction, random);
    // Numbers beyond the limits are clamped to them.
    let end = 2f64.powi(to.bit_width() as i32 - 1);
    let (least, greatest) = (b.float(ty, -end), b.float(ty, end - 1.0));
    let is_above = b.compare(Predicate::Greater, x, least);
    let is_below = b.compare(Predicate::Less, x, greatest);
    let is_within = b.and(is_above, is_below);
    let moves_on = b.and(moves_on, is_within);
    let toward_zero = float_to_integer(b, to, x);
    let register = b.ty(toward_zero);
    let zero = b.float(ty, 0.0);
    let is_negative = b.compare(Predicate::Less, x, zero);
    let (down, up, none) = (b.integer(register, -1), b.integer(register, 1), b.integer(register, 0));
    let step = b.select(is_negative, down, up);
    let step = b.select(moves_on, step, none);
    Ok(b.add(toward_zero, step))
}

/// Returns the limit where the value is beyond it.
fn clip(b: &mut FunctionBuilder, value: ValueId, limit: i64, beyond: Predicate) -> ValueId {
    let limit = b.integer(b.ty(value), limit);
    let is_beyond = b.compare(beyond, value, limit);
    b.select(is_beyond, limit, value)
}

fn float_to_float(b: &mut FunctionBuilder, from: PrimitiveType, to: PrimitiveType, x: ValueId) -> ValueId {
    match (register_type(from), register_type(to)) {
        (ScalarType::F32, ScalarType::F64) => b.convert(ConvertOp::FloatExtend, x, ScalarType::F64),
        (ScalarType::F64, ScalarType::F32) if to == PrimitiveType::F32 || narrow::is_from_f32(to) => {
            let single = b.convert(ConvertOp::FloatTruncate, x, ScalarType::F32);
            normalize(b, to, single)
        }
        (ScalarType::F64, _) => {
            let odd = narrow::round_to_odd(b, x);
            normalize(b, to, odd)
        }
        _ => normalize(b, to, x),
    }
}

/// Returns the bits of an element as an integer of its size in memory.
pub fn bits_of(b: &mut FunctionBuilder, element_type: PrimitiveType, value: ValueId) -> ValueId {
    let encoded = encode(b, element_type, value);
    let ty = b.ty(encoded);
    match ty.scalar {
        ScalarType::F32 => b.bitcast(encoded, ty.with_scalar(ScalarType::I32)),
        ScalarType::F64 => b.bitcast(encoded, ty.with_scalar(ScalarType::I64)),
        _ => encoded,
    }
}

/// Returns the element with these bits, given as an integer of its size in memory.
pub fn from_bits(b: &mut FunctionBuilder, element_type: PrimitiveType, bits: ValueId) -> ValueId {
    let raw = b.ty(bits).with_scalar(memory_type(element_type));
    let raw = b.bitcast(bits, raw);
    decode(b, element_type, raw)
}
