//! Integers that stand for real numbers.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::onnx::convolution::requantized;
use crate::ops::onnx::operands::{optional, required};
use crate::ops::onnx::products::{integer_product, multiplied, quantized, spread_along};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxDequantizeLinear", dequantize_linear),
    rule_many("OnnxDynamicQuantizeLinear", dynamic_quantize_linear),
    rule("OnnxMsDequantizeLinear", dequantize_linear),
    rule("OnnxMsDynamicQuantizeMatMul", dynamic_quantize_mat_mul),
    rule("OnnxMsMatMulIntegerToFloat", mat_mul_integer_to_float),
    rule("OnnxMsMatMulNBits", mat_mul_n_bits),
    rule("OnnxMsQuantizeLinear", quantize_linear),
    rule("OnnxQLinearMatMul", qlinear_mat_mul),
    rule("OnnxQuantizeLinear", quantize_linear),
];

/// The scales or zero points of each element: one for all, one for each index of a dimension, or
/// one for each block along it.
fn parameter(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    sizes: &[i64],
    own: PrimitiveType,
) -> Result<InstructionId> {
    let x = cx.convert(x, own)?;
    let axis = cx.attributes().int_or("axis", 1)?;
    let block = cx.attributes().int_or("block_size", 0)?;
    let own_sizes = cx.sizes(x);
    if cx.checked_product(&own_sizes)? == 1 && block == 0 {
        return spread_along(cx, x, sizes, 0);
    }
    let axis = cx.dimension(axis, sizes.len())?;
    if block == 0 {
        return spread_along(cx, x, sizes, axis);
    }
    let fits = block > 0
        && own_sizes.len() == sizes.len()
        && (0..sizes.len())
            .all(|d| own_sizes[d] == if d == axis { (sizes[d] + block - 1) / block } else { sizes[d] });
    cx.check(fits, || {
        format!("scales {} in blocks of {block} do not fit {}", list(&own_sizes), list(sizes))
    })?;
    let mut wide = own_sizes.clone();
    wide.insert(axis + 1, block);
    let dimensions: Vec<usize> = (0..wide.len()).filter(|&d| d != axis + 1).collect();
    let spread = cx.broadcast(x, &wide, &dimensions)?;
    let mut whole = own_sizes;
    whole[axis] *= block;
    let spread = cx.reshape(spread, &whole)?;
    cx.slice_in(spread, axis, 0, sizes[axis])
}

/// The type in which real numbers are computed.
fn real_type(element_type: PrimitiveType) -> PrimitiveType {
    if element_type == PrimitiveType::F64 { PrimitiveType::F64 } else { PrimitiveType::F32 }
}

fn quantize_linear(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, scale) = (required(cx, 0)?, required(cx, 1)?);
    let element_type = cx.output_type(0)?;
    let (sizes, real) = (cx.sizes(x), real_type(cx.element_type(scale)));
    let x = cx.convert(x, real)?;
    let scale = parameter(cx, scale, &sizes, real)?;
    let mut steps = cx.div(x, scale)?;
    if !element_type.is_integer() {
        if cx.attributes().int_or("saturate", 1)? != 0 {
            let most = match element_type {
                PrimitiveType::F8e5m2 => 57344.0,
                _ => 448.0,
            };
            let (low, high) = (cx.splat_like(steps, -most)?, cx.splat_like(steps, most)?);
            steps = cx.op(Op::Clamp {}, &[low, steps, high])?;
        }
        return cx.convert(steps, element_type);
    }
    let zero_point = match optional(cx, 2)? {
        Some(zero_point) => Some(parameter(cx, zero_point, &sizes, real)?),
        None => None,
    };
    quantized(cx, steps, zero_point, element_type, 0)
}

fn dequantize_linear(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (mut x, scale) = (required(cx, 0)?, required(cx, 1)?);
    let (sizes, real) = (cx.sizes(x), real_type(cx.element_type(scale)));
    let mut zero_point = optional(cx, 2)?;
    if cx.element_type(x).bit_width() >= 32 {
        // Integers of 32 bits are subtracted as such.
        if let Some(zero) = zero_point.take() {
            let own = cx.element_type(x);
            let zero = parameter(cx, zero, &sizes, own)?;
            x = cx.sub(x, zero)?;
        }
    }
    let mut y = cx.convert(x, real)?;
    if let Some(zero) = zero_point {
        let is_zero = cx.fold(zero).is_some_and(|zero| zero.scalars().all(|zero| zero.as_f64() == Some(0.0)));
        if !is_zero {
            let zero = parameter(cx, zero, &sizes, real)?;
            y = cx.sub(y, zero)?;
        }
    }
    let scale = parameter(cx, scale, &sizes, real)?;
    let y = cx.mul(y, scale)?;
    let element_type = cx.output_type(0)?;
    cx.convert(y, element_type)
}

/// Bytes of an array, with the scale and the zero point that its range asks for.
pub(crate) fn bytes_of(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<[InstructionId; 3]> {
    let sizes = cx.sizes(x);
    let all: Vec<usize> = (0..sizes.len()).collect();
    let zero = cx.scalar(PrimitiveType::F32, 0.0);
    let least = cx.reduce(x, Reducer::Minimum, &all)?;
    let least = cx.op(Op::Minimum {}, &[least, zero])?;
    let most = cx.reduce(x, Reducer::Maximum, &all)?;
    let most = cx.op(Op::Maximum {}, &[most, zero])?;
    let range = cx.sub(most, least)?;
    let steps = cx.scalar(PrimitiveType::F32, 255.0);
    let scale = cx.div(range, steps)?;
    let is_empty = cx.compare_scalar(ComparisonDirection::Eq, range, 0.0)?;
    let one = cx.scalar(PrimitiveType::F32, 1.0);
    let scale = cx.select(is_empty, one, scale)?;
    let offset = cx.div(least, scale)?;
    let offset = cx.sub(zero, offset)?;
    let offset = cx.op(Op::Clamp {}, &[zero, offset, steps])?;
    let zero_point = cx.op(Op::RoundNearestEven {}, &[offset])?;
    let zero_point = cx.convert(zero_point, PrimitiveType::U8)?;
    let spread = cx.broadcast(scale, &sizes, &[])?;
    let counts = cx.div(x, spread)?;
    let bytes = quantized(cx, counts, Some(zero_point), PrimitiveType::U8, 0)?;
    Ok([bytes, scale, zero_point])
}

fn dynamic_quantize_linear(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    cx.check(cx.element_type(x) == PrimitiveType::F32, || "expected float32".to_owned())?;
    let count = cx.node().output_types.len();
    Ok(bytes_of(cx, x)?.into_iter().take(count).collect())
}

/// Inputs: a with scale and zero point, b with both, then those of the result.
fn qlinear_mat_mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut inputs = Vec::new();
    for k in 0..8 {
        inputs.push(required(cx, k)?);
    }
    let sums = integer_product(cx, [inputs[0], inputs[3]], [Some(inputs[2]), Some(inputs[5])])?;
    let (sizes, element_type) = (cx.sizes(sums), cx.output_type(0)?);
    let last = sizes.len().saturating_sub(1);
    requantized(cx, sums, [inputs[1], inputs[4], inputs[6]], inputs[7], element_type, &sizes, last)
}

/// Sums of products of integers as real numbers, with a bias.
pub(crate) fn real_product(
    cx: &mut NodeContext<'_, '_>,
    operands: [InstructionId; 2],
    zeros: [Option<InstructionId>; 2],
    [a_scale, b_scale]: [InstructionId; 2],
    bias: Option<InstructionId>,
) -> Result<InstructionId> {
    let sums = integer_product(cx, operands, zeros)?;
    let sizes = cx.sizes(sums);
    let a_scale = spread_along(cx, a_scale, &sizes, sizes.len().saturating_sub(2))?;
    let b_scale = spread_along(cx, b_scale, &sizes, sizes.len().saturating_sub(1))?;
    let real = cx.convert(sums, PrimitiveType::F32)?;
    let scale = cx.mul(a_scale, b_scale)?;
    let mut y = cx.mul(real, scale)?;
    if let Some(bias) = bias {
        let bias = cx.broadcast_to(bias, &sizes)?;
        y = cx.add(y, bias)?;
    }
    Ok(y)
}

/// Inputs: a, b, the scale of b, its zero point, and a bias. `a` is quantized by its own range.
fn dynamic_quantize_mat_mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, b, b_scale) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (b_zero, bias) = (optional(cx, 3)?, optional(cx, 4)?);
    let [a, a_scale, a_zero] = bytes_of(cx, a)?;
    real_product(cx, [a, b], [Some(a_zero), b_zero], [a_scale, b_scale], bias)
}

/// Inputs: a, b, the scales of both, their zero points, and a bias.
fn mat_mul_integer_to_float(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = [required(cx, 0)?, required(cx, 1)?];
    let scales = [required(cx, 2)?, required(cx, 3)?];
    let zeros = [optional(cx, 4)?, optional(cx, 5)?];
    let bias = optional(cx, 6)?;
    real_product(cx, operands, zeros, scales, bias)
}

/// Numbers of few bits from bytes in the last dimension, lowest bits first.
fn unpacked(cx: &mut NodeContext<'_, '_>, x: InstructionId, bits: i64) -> Result<InstructionId> {
    if bits == 8 {
        return Ok(x);
    }
    let sizes = cx.sizes(x);
    let per_byte = 8 / bits;
    let wide = [&sizes[..], &[per_byte]].concat();
    let dimensions: Vec<usize> = (0..sizes.len()).collect();
    let spread = cx.broadcast(x, &wide, &dimensions)?;
    let positions = cx.iota(PrimitiveType::U8, &wide, sizes.len())?;
    let shifts = cx.mul_scalar(positions, bits as f64)?;
    let shifted = cx.op(Op::ShiftRightLogical {}, &[spread, shifts])?;
    let mask = cx.splat_like(shifted, ((1 << bits) - 1) as f64)?;
    let numbers = cx.op(Op::And {}, &[shifted, mask])?;
    let mut whole = sizes;
    if let Some(last) = whole.last_mut() {
        *last *= per_byte;
    }
    cx.reshape(numbers, &whole)
}

/// Numbers of few bits from bytes in the last dimension, in a type that products widen in
/// registers. Centered ones are those of the bytes less half of their range.
fn stored(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    bits: i64,
    is_centered: bool,
) -> Result<InstructionId> {
    let element_type = match (bits == 8, is_centered) {
        (true, true) => PrimitiveType::S8,
        (true, false) => PrimitiveType::U8,
        (false, true) => PrimitiveType::S4,
        (false, false) => PrimitiveType::U4,
    };
    let middle = if is_centered { 1u8 << (bits - 1) } else { 0 };
    if let Some(packed) = cx.fold(x) {
        let mut sizes = cx.sizes(x);
        if let Some(last) = sizes.last_mut() {
            *last *= 8 / bits;
        }
        let number = |byte: u8, shift: i64| (byte >> shift & (u8::MAX >> (8 - bits))).wrapping_sub(middle);
        let of_byte = |&byte: &u8| (0..8).step_by(bits as usize).map(move |shift| number(byte, shift));
        let numbers: Vec<u8> = packed.bytes().iter().flat_map(of_byte).collect();
        let literal = Literal::from_bytes(ArrayShape::new(element_type, &sizes), numbers.into());
        let literal = literal.ok_or_else(|| Error::internal("unpacked numbers have another size"))?;
        return Ok(cx.literal(literal));
    }
    let numbers = unpacked(cx, x, bits)?;
    let middle = cx.splat_like(numbers, f64::from(middle))?;
    let numbers = cx.sub(numbers, middle)?;
    let wide = if is_centered { PrimitiveType::S8 } else { PrimitiveType::U8 };
    let numbers = cx.convert(numbers, wide)?;
    cx.convert(numbers, element_type)
}

/// The product with weights of few bits: (columns, blocks, packed bytes), with a scale and a zero
/// point for each block.
fn mat_mul_n_bits(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, b, scales) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let attributes = cx.attributes();
    let (depth, columns) = (attributes.int("K")?, attributes.int("N")?);
    let (bits, block) = (attributes.int_or("bits", 4)?, attributes.int("block_size")?);
    let order = optional(cx, 4)?;
    cx.check(order.is_none(), || "g_idx is not supported: reorder the rows".to_owned())?;
    let fits = matches!(bits, 2 | 4 | 8)
        && (1..1 << 31).contains(&depth)
        && (1..1 << 31).contains(&columns)
        && (1..1 << 31).contains(&block);
    cx.check(fits, || format!("K {depth}, N {columns}, bits {bits}, and block_size {block} are wrong"))?;
    let blocks = (depth + block - 1) / block;
    let count = |cx: &NodeContext<'_, '_>, id| cx.checked_product(&cx.sizes(id));
    let bytes = block * bits / 8;
    let sizes = [columns, blocks, bytes];
    let enough = count(cx, b)? == cx.checked_product(&sizes)?
        && count(cx, scales)? == columns * blocks
        && cx.sizes(a).last() == Some(&depth);
    cx.check(enough, || format!("the weights do not fit {columns} columns of {blocks} blocks"))?;
    let f32 = PrimitiveType::F32;
    let b = cx.reshape(b, &sizes)?;
    let zeros = optional(cx, 3)?;
    let numbers = stored(cx, b, bits, zeros.is_none())?;
    let numbers = cx.convert(numbers, f32)?;
    let (scales, whole) = (cx.reshape(scales, &[columns, blocks])?, [columns, blocks, block]);
    let scales = cx.convert(scales, f32)?;
    let of_blocks = cx.broadcast(scales, &whole, &[0, 1])?;
    let weights = cx.mul(numbers, of_blocks)?;
    let weights = cx.reshape(weights, &[columns, blocks * block])?;
    let weights = cx.transpose(weights, &[1, 0])?;
    let element_type = cx.element_type(a);
    let a = cx.convert(a, f32)?;
    let last = cx.rank(a) - 1;
    let a = cx.pad_end(a, last, blocks * block - depth)?;
    let mut y = multiplied(cx, a, weights)?;
    if let Some(zeros) = zeros {
        // The sum of each block times its zero point and scale.
        let zeros = if cx.element_type(zeros) == PrimitiveType::U8 {
            let row = (blocks * bits + 7) / 8;
            cx.check(count(cx, zeros)? == columns * row, || "the zero points do not fit".to_owned())?;
            let zeros = cx.reshape(zeros, &[columns, row])?;
            let zeros = unpacked(cx, zeros, bits)?;
            cx.slice_in(zeros, 1, 0, blocks)?
        } else {
            cx.check(count(cx, zeros)? == columns * blocks, || "the zero points do not fit".to_owned())?;
            cx.reshape(zeros, &[columns, blocks])?
        };
        let zeros = cx.convert(zeros, f32)?;
        let zeros = cx.mul(zeros, scales)?;
        let zeros = cx.transpose(zeros, &[1, 0])?;
        let split = [&cx.sizes(a)[..last], &[blocks, block]].concat();
        let sums = cx.reshape(a, &split)?;
        let sums = cx.reduce(sums, Reducer::Add, &[last + 1])?;
        let excess = multiplied(cx, sums, zeros)?;
        y = cx.sub(y, excess)?;
    }
    if let Some(bias) = optional(cx, 5)? {
        let (bias, sizes) = (cx.convert(bias, f32)?, cx.sizes(y));
        let bias = cx.broadcast_to(bias, &sizes)?;
        y = cx.add(y, bias)?;
    }
    cx.convert(y, element_type)
}
