//! Conversions between types.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("Cast", cast).types("SrcT", ALL).types("DstT", ALL),
    rule("Bitcast", bitcast).types("T", NUMBERS_AND_QUANTIZED).types("type", NUMBERS_AND_QUANTIZED),
    rule("ToBool", to_bool).types("T", ALL),
];

/// `Cast(x)`. To `bool`, it is `x != 0`. Complex numbers lose their imaginary part. Floats outside
/// the range of an integer type saturate, and NaN becomes 0, as in XLA. `Truncate` drops mantissa
/// bits instead of rounding.
fn cast(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = cx.input(0)?;
    let (from, to) = (cx.type_attribute("SrcT")?, cx.type_attribute("DstT")?);
    if from == to {
        return Ok(x);
    }
    if to == PrimitiveType::Pred {
        return cx.compare_scalar(ComparisonDirection::Ne, x, 0.0);
    }
    if from.is_complex() && !to.is_complex() {
        x = cx.op(Op::Real {}, &[x])?;
    } else if cx.attributes().bool_or("Truncate", false)? {
        x = truncate(cx, x, from, to)?;
    }
    cx.convert(x, to)
}

/// Returns the number of mantissa bits, without the implicit one.
fn mantissa_bits(element_type: PrimitiveType) -> Option<u32> {
    match element_type {
        PrimitiveType::F8e5m2 => Some(2),
        PrimitiveType::F8e4m3fn => Some(3),
        PrimitiveType::Bf16 => Some(7),
        PrimitiveType::F16 => Some(10),
        PrimitiveType::F32 => Some(23),
        PrimitiveType::F64 => Some(52),
        _ => None,
    }
}

/// Clears the mantissa bits that the narrower type does not have, so that the conversion cannot
/// round up.
fn truncate(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    from: PrimitiveType,
    to: PrimitiveType,
) -> Result<InstructionId> {
    let dropped = mantissa_bits(from).zip(mantissa_bits(to)).and_then(|(from, to)| from.checked_sub(to));
    let Some(dropped) = dropped.filter(|&bits| bits > 0) else {
        return Err(Error::unsupported(
            "Truncate requires a conversion from a floating-point type to a less precise one",
        ));
    };
    let bits = match from.bit_width() {
        8 => PrimitiveType::U8,
        16 => PrimitiveType::U16,
        32 => PrimitiveType::U32,
        _ => PrimitiveType::U64,
    };
    let shape = cx.array(x);
    let mask = Literal::from_scalars(ArrayShape::new(bits, &[]), [Scalar::Unsigned(u64::MAX << dropped)]);
    let mask = cx.literal(mask);
    let mask = cx.broadcast(mask, &shape.sizes(), &[])?;
    let raw = cx.op_shaped(&shape.with_element_type(bits).into(), Op::BitcastConvert {}, &[x])?;
    let masked = cx.op(Op::And {}, &[raw, mask])?;
    cx.op_shaped(&shape.into(), Op::BitcastConvert {}, &[masked])
}

/// Reinterprets the bytes as another type. A narrower type adds a last dimension, and a wider one
/// removes it.
fn bitcast(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (from, to) = (cx.type_attribute("T")?, cx.type_attribute("type")?);
    if from == to {
        return Ok(x);
    }
    if from.is_complex() || to.is_complex() {
        return complex_bitcast(cx, x, from, to);
    }
    bitcast_real(cx, x, to)
}

fn bitcast_real(cx: &mut NodeContext<'_, '_>, x: InstructionId, to: PrimitiveType) -> Result<InstructionId> {
    let mut sizes = cx.sizes(x);
    let (from_size, to_size) = (cx.element_type(x).byte_size(), to.byte_size());
    if to_size < from_size {
        sizes.push((from_size / to_size) as i64);
    } else if to_size > from_size {
        let ratio = (to_size / from_size) as i64;
        cx.check(sizes.pop() == Some(ratio), || {
            format!("the last dimension must be {ratio}, the number of input elements per output element")
        })?;
    }
    cx.op_shaped(&Shape::array(to, &sizes), Op::BitcastConvert {}, &[x])
}

/// Like [`bitcast`], for complex numbers, which consist of their two parts in order.
fn complex_bitcast(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    from: PrimitiveType,
    to: PrimitiveType,
) -> Result<InstructionId> {
    let mut parts = x;
    if from.is_complex() {
        let (re, im) = cx.parts(x)?;
        let mut sizes = cx.sizes(re);
        sizes.push(1);
        let (re, im) = (cx.reshape(re, &sizes)?, cx.reshape(im, &sizes)?);
        parts = cx.concatenate(&[re, im], sizes.len() - 1)?;
        if !to.is_complex() && to.byte_size() < from.byte_size() {
            // The bytes of the parts are the last dimension. Merge it with the pair.
            let mut sizes = cx.sizes(x);
            let bytes = bitcast_real(cx, parts, to)?;
            sizes.push((from.byte_size() / to.byte_size()) as i64);
            return cx.reshape(bytes, &sizes);
        }
    }
    if !to.is_complex() {
        return bitcast_real(cx, parts, to);
    }
    let part = to.real_part();
    let mut sizes = cx.sizes(x);
    if from.is_complex() {
        return Err(Error::unsupported(format!("a bitcast from {from} to {to} is not supported")));
    }
    let ratio = (to.byte_size() / from.byte_size()) as i64;
    if ratio == 1 {
        // The bits of a number are both parts.
        parts = bitcast_real(cx, x, part)?;
    } else {
        cx.check(ratio > 0 && sizes.pop() == Some(ratio), || {
            format!("the last dimension must be {ratio}, the number of input elements per output element")
        })?;
    }
    let mut pair = sizes.clone();
    pair.push(2);
    let mut split = pair.clone();
    if ratio > 2 {
        split.push(ratio / 2);
    }
    let paired = cx.reshape(parts, &split)?;
    let parts = if cx.element_type(paired) == part {
        paired
    } else {
        cx.op_shaped(&Shape::array(part, &pair), Op::BitcastConvert {}, &[paired])?
    };
    let last = pair.len() - 1;
    let (re, im) = (cx.slice_in(parts, last, 0, 1)?, cx.slice_in(parts, last, 1, 2)?);
    let (re, im) = (cx.reshape(re, &sizes)?, cx.reshape(im, &sizes)?);
    cx.op(Op::Complex {}, &[re, im])
}

/// `x != 0` for a scalar. For an array, true if it has elements.
fn to_bool(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    cx.truth(x)
}
