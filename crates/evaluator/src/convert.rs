//! Conversions of numbers between element types, by value or by bits.

use crate::array::{array, check_array, from_bytes};
use crate::float::round_float;
use crate::integer::{range, wrap};
use shape::{Literal, PrimitiveType, Scalar, Shape};
use support::{Error, Result};

/// XLA's `convert`. Integers wrap. Conversion from floating point to integers saturates and maps
/// NaN to 0. Conversion to `pred` yields "not zero". A complex number converts to its real part.
pub(crate) fn convert(value: Scalar, to: PrimitiveType) -> Scalar {
    if to == PrimitiveType::Pred {
        return Scalar::Pred(match value {
            Scalar::Pred(value) => value,
            Scalar::Signed(value) => value != 0,
            Scalar::Unsigned(value) => value != 0,
            Scalar::Float(value) => value != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        });
    }
    match value {
        Scalar::Pred(value) => from_integer(value.into(), to),
        Scalar::Signed(value) => from_integer(value.into(), to),
        Scalar::Unsigned(value) => from_integer(value.into(), to),
        Scalar::Complex(re, im) if to.is_complex() => Scalar::Complex(re, im),
        Scalar::Float(value) | Scalar::Complex(value, _) => from_float(value, to),
    }
}

fn from_integer(value: i128, to: PrimitiveType) -> Scalar {
    if to.is_integer() {
        return wrap(to, value);
    }
    let part = to.real_part();
    // The conversion to `f64` rounds, too, so narrower types start from a value rounded to odd.
    let float = if part == PrimitiveType::F64 { value as f64 } else { round_float(part, to_odd(value)) };
    if to.is_complex() { Scalar::Complex(float, 0.0) } else { Scalar::Float(float) }
}

/// Rounds to 53 bits such that later rounding to 51 bits or fewer yields the same result as
/// rounding once: if bits are lost, the last retained bit is set.
fn to_odd(value: i128) -> f64 {
    let magnitude = value.unsigned_abs();
    let lost = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let mut retained = magnitude >> lost;
    if retained << lost != magnitude {
        retained |= 1;
    }
    let float = libm::ldexp(retained as f64, lost as i32);
    if value < 0 { -float } else { float }
}

fn from_float(value: f64, to: PrimitiveType) -> Scalar {
    if to.is_complex() {
        return Scalar::Complex(value, 0.0);
    }
    if to.is_floating_point() {
        return Scalar::Float(value);
    }
    let (least, greatest) = range(to);
    wrap(to, (value as i128).clamp(least, greatest))
}

/// XLA's `stochastic-convert` to signed integers: rounds away from zero if the fraction, as an
/// unsigned integer of the random number's width, exceeds the random number.
pub(crate) fn stochastic(
    value: Scalar,
    random: Scalar,
    random_type: Option<PrimitiveType>,
    to: PrimitiveType,
) -> Option<Scalar> {
    let (Scalar::Float(value), Scalar::Unsigned(random), Some(random_type)) = (value, random, random_type)
    else {
        return None;
    };
    if !to.is_signed_integer() {
        return None;
    }
    let (least, greatest) = range(to);
    if value <= least as f64 {
        return Some(wrap(to, least));
    }
    if value >= greatest as f64 {
        return Some(wrap(to, greatest));
    }
    let magnitude = value.abs();
    let fraction = libm::ldexp(magnitude - magnitude.floor(), random_type.bit_width() as i32);
    let rounded = magnitude.floor() as i128 + i128::from(random < fraction as u64);
    Some(wrap(to, if value < 0.0 { -rounded } else { rounded }))
}

/// XLA's `bitcast-convert`. If the widths differ, the last dimension of the operand or the result
/// indexes the parts, least significant first.
pub(crate) fn bitcast_convert(shape: &Shape, operand: &Literal) -> Result<Literal> {
    let result = array(shape)?;
    check_array(operand)?;
    let (from, to) = (operand.array_shape().element_type, result.element_type);
    let is_packed = |t: PrimitiveType| t.bit_width() as usize == t.byte_size() * 8;
    if is_packed(from) && is_packed(to) {
        return from_bytes(&result, operand.bytes().clone());
    }
    if from.bit_width() == to.bit_width() {
        return repack(&result, &bits_of(operand));
    }
    let bits = bits_of(operand);
    let width = result.element_count() as usize * to.bit_width() as usize;
    if bits.len() != width {
        return Err(Error::invalid(format!(
            "{result} needs {width} bits, but the operand has {}",
            bits.len()
        )));
    }
    repack(&result, &bits)
}

/// Returns the bits of all elements, least significant first.
fn bits_of(literal: &Literal) -> Vec<bool> {
    let element_type = literal.array_shape().element_type;
    let width = element_type.bit_width() as usize;
    let chunks = literal.bytes().chunks_exact(element_type.byte_size());
    chunks.flat_map(|chunk| (0..width).map(|bit| chunk[bit / 8] >> (bit % 8) & 1 == 1)).collect()
}

/// Creates elements from bits. An element narrower than a byte occupies one byte, extended by its
/// sign or zeros.
fn repack(result: &shape::ArrayShape, bits: &[bool]) -> Result<Literal> {
    let element_type = result.element_type;
    let (width, size) = (element_type.bit_width() as usize, element_type.byte_size());
    let mut data = Vec::with_capacity(result.byte_size() as usize);
    for chunk in bits.chunks_exact(width) {
        let fill = element_type.is_signed_integer() && chunk[width - 1];
        let bit = |i: usize| u8::from(*chunk.get(i).unwrap_or(&fill));
        data.extend((0..size).map(|byte| (0..8).fold(0, |value, i| value | bit(byte * 8 + i) << i)));
    }
    from_bytes(result, data)
}
