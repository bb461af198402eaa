//! Quantization to few steps, and dequantization.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::array::scatter::finite_limit;
use crate::ops::quantized::ranges::integers;
use bounded::{Reducer, highest, list, lowest};
use hlo::quantization::integer_range as integer_range_of;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{Literal, PrimitiveType, Scalar};
use support::{Error, Result};
use tf::DataType;

pub(crate) const RULES: &[Rule] = &[
    rule("QuantizeAndDequantizeV2", quantize_and_dequantize).types("T", FLOATS),
    rule("QuantizeAndDequantizeV3", quantize_and_dequantize).types("T", FLOATS),
    rule("QuantizeAndDequantizeV4", quantize_and_dequantize).types("T", FLOATS),
    rule_many("QuantizeAndDequantizeV4Grad", quantize_and_dequantize_gradient).types("T", FLOATS),
    rule_many("QuantizeV2", quantize).types("T", QUANTIZED),
    rule("Dequantize", dequantize)
        .types("T", QUANTIZED)
        .types("dtype", &[DataType::Float, DataType::Bfloat16]),
    rule("XlaDequantize", xla_dequantize),
];

const QUANTIZED: &[DataType] =
    &[DataType::Qint8, DataType::Quint8, DataType::Qint16, DataType::Quint16, DataType::Qint32];

/// The range of the values and its steps. The fields are scalars, or have one element for each
/// slice along an axis.
struct Steps {
    low: InstructionId,
    high: InstructionId,
    scale: InstructionId,
    inverse: InstructionId,
}

/// `QuantizeAndDequantize(x, min, max)`: `round(clamp(x) * scale) / scale`. The scale maps the
/// range, given or computed, to the integers of the given number of bits, such that 0 remains 0.
fn quantize_and_dequantize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let attributes = &cx.attributes();
    let is_given = attributes.bool_or("range_given", cx.node().op.ends_with("V3"))?;
    let axis = slice_axis(cx, x)?;
    let half_up = match cx.text_or("round_mode", "HALF_TO_EVEN")? {
        "HALF_TO_EVEN" => false,
        "HALF_UP" => true,
        other => {
            return Err(cx.invalid(format!("round_mode: expected HALF_TO_EVEN or HALF_UP, got '{other}'")));
        }
    };
    let (low, high) = if is_given {
        (cx.input(1)?, cx.input(2)?)
    } else {
        let dimensions: Vec<usize> = (0..cx.rank(x)).filter(|&d| Some(d) != axis).collect();
        (cx.reduce(x, Reducer::Minimum, &dimensions)?, cx.reduce(x, Reducer::Maximum, &dimensions)?)
    };
    check_range(cx, x, low, high, axis)?;
    let steps = steps(cx, low, high)?;
    let wide = |cx: &mut NodeContext<'_, '_>, id| over_slices(cx, id, x, axis);
    let (scale, inverse) = (wide(cx, steps.scale)?, wide(cx, steps.inverse)?);
    let mut inside = x;
    if is_given {
        let (low, high) = (wide(cx, steps.low)?, wide(cx, steps.high)?);
        inside = cx.op(Op::Clamp {}, &[low, x, high])?;
    }
    let scaled = cx.mul(inside, scale)?;
    let mut rounded = if half_up {
        let raised = cx.add_scalar(scaled, 0.5)?;
        cx.op(Op::Floor {}, &[raised])?
    } else {
        cx.op(Op::RoundNearestEven {}, &[scaled])?
    };
    if is_given && let Some(storage) = storage(cx, steps.inverse)? {
        // Integers, which contractions can multiply.
        rounded = cx.convert(rounded, storage)?;
        rounded = cx.convert(rounded, PrimitiveType::F32)?;
    }
    cx.mul(rounded, inverse)
}

/// Returns the type of the integers of numbers in `float32`, if their range is known when compiling
/// and not empty.
fn storage(cx: &mut NodeContext<'_, '_>, inverse: InstructionId) -> Result<Option<PrimitiveType>> {
    let (least, most) = integer_range(cx, inverse)?;
    let mut numbers = |id| cx.fold(id)?.to_vec::<f32>();
    let Some(((least, most), steps)) = numbers(least).zip(numbers(most)).zip(numbers(inverse)) else {
        return Ok(None);
    };
    let is_regular = steps.iter().all(|step| step.is_normal());
    let holds = |&element_type: &PrimitiveType| {
        let [low, high] = integer_range_of(element_type).map(|end| end as f32);
        is_regular && least.iter().all(|&end| low <= end) && most.iter().all(|&end| end <= high)
    };
    let types = [PrimitiveType::S8, PrimitiveType::U8, PrimitiveType::S16, PrimitiveType::U16];
    Ok(types.into_iter().find(holds))
}

/// Returns the dimension whose slices have their own ranges, or `None` if there is one range for
/// the whole array.
fn slice_axis(cx: &NodeContext<'_, '_>, x: InstructionId) -> Result<Option<usize>> {
    let axis = cx.attributes().int_or("axis", -1)?;
    if axis == -1 {
        return Ok(None);
    }
    let rank = cx.rank(x);
    cx.check((0..rank as i64).contains(&axis), || {
        format!("axis: expected -1 or one of the {rank} dimensions, got {axis}")
    })?;
    Ok(Some(axis as usize))
}

fn check_range(
    cx: &NodeContext<'_, '_>,
    x: InstructionId,
    low: InstructionId,
    high: InstructionId,
    axis: Option<usize>,
) -> Result<()> {
    let sizes = cx.sizes(x);
    let expected: Vec<i64> = axis.map(|axis| sizes[axis]).into_iter().collect();
    let (low, high) = (cx.sizes(low), cx.sizes(high));
    cx.check(low == expected && high == expected, || {
        format!("the range: expected shape {}, got {} and {}", list(&expected), list(&low), list(&high))
    })
}

/// Broadcasts a number for each slice along an axis, or one for all, to the shape of another array.
fn over_slices(
    cx: &mut NodeContext<'_, '_>,
    id: InstructionId,
    like: InstructionId,
    axis: Option<usize>,
) -> Result<InstructionId> {
    let sizes = cx.sizes(like);
    let dimensions: Vec<usize> = axis.into_iter().collect();
    cx.broadcast(id, &sizes, &dimensions)
}

/// Returns the steps of a range. One side of the range is widened such that its ends correspond to
/// those of the integers.
fn steps(cx: &mut NodeContext<'_, '_>, low: InstructionId, high: InstructionId) -> Result<Steps> {
    let (least, most) = integer_range(cx, low)?;
    let element_type = cx.element_type(low);
    let unlimited = cx.literal(finite_limit(element_type, Reducer::Minimum));
    let sizes = cx.sizes(low);
    let unlimited = cx.broadcast(unlimited, &sizes, &[])?;
    let side = |cx: &mut NodeContext<'_, '_>, integer: InstructionId, end: InstructionId| {
        let product = cx.mul(integer, end)?;
        let counts = cx.compare_scalar(ComparisonDirection::Gt, product, 0.0)?;
        let ratio = cx.div(integer, end)?;
        cx.select(counts, ratio, unlimited)
    };
    let (from_low, from_high) = (side(cx, least, low)?, side(cx, most, high)?);
    let by_low = cx.compare(ComparisonDirection::Lt, from_low, from_high)?;
    let scale = cx.select(by_low, from_low, from_high)?;
    let (low_step, high_step) = (cx.div(low, least)?, cx.div(high, most)?);
    let inverse = cx.select(by_low, low_step, high_step)?;
    let (new_low, new_high) = (cx.mul(least, inverse)?, cx.mul(most, inverse)?);
    Ok(Steps {
        low: cx.select(by_low, low, new_low)?,
        high: cx.select(by_low, new_high, high)?,
        scale,
        inverse,
    })
}

/// Returns the smallest and the largest integer with the node's number of bits, in the shape of an
/// array.
fn integer_range(
    cx: &mut NodeContext<'_, '_>,
    like: InstructionId,
) -> Result<(InstructionId, InstructionId)> {
    let attributes = &cx.attributes();
    let is_signed = attributes.bool_or("signed_input", true)?;
    let narrow = if attributes.bool_or("narrow_range", false)? { 1.0 } else { 0.0 };
    let known = match cx.node().op.as_str() {
        "QuantizeAndDequantizeV3" => {
            cx.input(3).map(|bits| cx.fold(bits))?.and_then(|l| l.scalar_at(0).as_i64())
        }
        _ => Some(attributes.int_or("num_bits", 8)?),
    };
    if let Some(bits) = known {
        let most = if is_signed { 61 } else { 62 };
        cx.check((1..=most).contains(&bits), || format!("num_bits: expected 1 to {most}, got {bits}"))?;
        // Use the number as the type represents it: narrow types round 2^bits - 1.
        let element_type = cx.element_type(like);
        let power = 2f64.powi((bits - i64::from(is_signed)) as i32);
        let power = rounded(element_type, power);
        let least = if is_signed { -power + narrow } else { 0.0 };
        return Ok((cx.splat_like(like, least)?, cx.splat_like(like, power - 1.0)?));
    }
    let (element_type, sizes) = (cx.element_type(like), cx.sizes(like));
    let bits = cx.input(3)?;
    let rank = cx.rank(bits);
    cx.check(rank == 0, || format!("num_bits: expected a scalar, got rank {rank}"))?;
    let bits = cx.add_scalar(bits, if is_signed { -1.0 } else { 0.0 })?;
    let bits = cx.convert(bits, element_type)?;
    let two = cx.scalar(element_type, 2.0);
    let power = cx.op(Op::Power {}, &[two, bits])?;
    let power = cx.broadcast(power, &sizes, &[])?;
    let most = cx.add_scalar(power, -1.0)?;
    let least = if is_signed {
        let negative = cx.neg(power)?;
        cx.add_scalar(negative, narrow)?
    } else {
        cx.splat_like(like, 0.0)?
    };
    Ok((least, most))
}

/// Rounds a number to a floating-point type.
fn rounded(element_type: PrimitiveType, value: f64) -> f64 {
    let literal = bounded::scalar_literal(element_type, value);
    match literal.scalar_at(0) {
        Scalar::Float(value) => value,
        _ => value,
    }
}

/// The gradient of `QuantizeAndDequantizeV4`: the incoming gradient within the range, and 0
/// elsewhere. The gradient of the range is 0.
fn quantize_and_dequantize_gradient(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (gradient, x, low, high) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?);
    let axis = slice_axis(cx, x)?;
    check_range(cx, x, low, high, axis)?;
    let sizes = (cx.sizes(gradient), cx.sizes(x));
    cx.check(sizes.0 == sizes.1, || {
        format!("gradients and input have different shapes: {} and {}", list(&sizes.0), list(&sizes.1))
    })?;
    let (low_wide, high_wide) = (over_slices(cx, low, x, axis)?, over_slices(cx, high, x, axis)?);
    let above = cx.compare(ComparisonDirection::Ge, x, low_wide)?;
    let below = cx.compare(ComparisonDirection::Le, x, high_wide)?;
    let inside = cx.op(Op::And {}, &[above, below])?;
    let zero = cx.splat_like(x, 0.0)?;
    Ok(vec![cx.select(inside, gradient, zero)?, cx.splat_like(low, 0.0)?, cx.splat_like(high, 0.0)?])
}

/// `Dequantize(x, min, max)`: maps integers back to the range that they represent.
///
/// `MIN_COMBINED` maps the type's smallest integer to `min` and its largest to `max`. `MIN_FIRST`
/// does so in steps, one of which is 0. `SCALED` only multiplies.
fn dequantize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, low, high) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let axis = slice_axis(cx, x)?;
    let element_type = cx.element_type(x);
    let limit = |literal: Literal| literal.scalar_at(0).as_i64().map_or(0.0, |value| value as f64);
    let (least, most) = (limit(lowest(element_type)), limit(highest(element_type)));
    check_range(cx, x, low, high, axis)?;
    if let Some([scale, zero_point]) = known_steps(cx, [low, high], [least, most])? {
        let numbers = cx.convert(x, PrimitiveType::F32)?;
        let [scale, zero_point] = [scale, zero_point].map(|id| over_slices(cx, id, x, axis));
        let centered = cx.sub(numbers, zero_point?)?;
        let values = cx.mul(centered, scale?)?;
        let output_type = cx.output_type(0)?;
        return cx.convert(values, output_type);
    }
    let (low, high) = (over_slices(cx, low, x, axis)?, over_slices(cx, high, x, axis)?);
    let numbers = cx.convert(x, PrimitiveType::F32)?;
    let range = cx.sub(high, low)?;
    let values = match cx.text_or("mode", "MIN_COMBINED")? {
        "MIN_COMBINED" => {
            let steps = cx.splat_like(range, most - least)?;
            let scale = cx.div(range, steps)?;
            let from_zero =
                cx.add_scalar(numbers, if least < 0.0 { (most - least + 1.0) / 2.0 } else { 0.0 })?;
            let scaled = cx.mul(from_zero, scale)?;
            cx.add(scaled, low)?
        }
        "SCALED" => {
            let narrow = if cx.attributes().bool_or("narrow_range", false)? { 1.0 } else { 0.0 };
            let most_wide = cx.splat_like(high, most)?;
            let mut scale = cx.div(high, most_wide)?;
            if least < 0.0 {
                let least_wide = cx.splat_like(low, least + narrow)?;
                let other = cx.div(low, least_wide)?;
                scale = cx.op(Op::Maximum {}, &[other, scale])?;
            }
            cx.mul(numbers, scale)?
        }
        "MIN_FIRST" if axis.is_none() => min_first(cx, numbers, low, range, least, most)?,
        mode => {
            return Err(Error::unsupported(format!(
                "mode {mode} with axis {axis:?} is not supported; expected MIN_COMBINED or SCALED, or MIN_FIRST without an axis"
            )));
        }
    };
    let output_type = cx.output_type(0)?;
    cx.convert(values, output_type)
}

/// Returns the scales and the zero points of `Dequantize` as constants, if the range is known when
/// compiling and one of its steps is 0. `MIN_FIRST` makes it one; otherwise, the ends are multiples
/// of the scale except for roundings.
fn known_steps(
    cx: &mut NodeContext<'_, '_>,
    range: [InstructionId; 2],
    [least, most]: [f64; 2],
) -> Result<Option<[InstructionId; 2]>> {
    let mode = cx.text_or("mode", "MIN_COMBINED")?;
    let [low, high] = range.map(|id| cx.fold(id).and_then(|literal| literal.to_vec::<f32>()));
    let (Some(low), Some(high)) = (low, high) else { return Ok(None) };
    let is_min_first = mode == "MIN_FIRST";
    if !is_min_first && mode != "MIN_COMBINED" {
        return Ok(None);
    }
    let (mut scales, mut zero_points) = (Vec::new(), Vec::new());
    for (&low, &high) in low.iter().zip(&high) {
        let scale = (high - low) / (most - least) as f32;
        let below = f64::from(low) / f64::from(scale);
        let is_step = is_min_first || (below - below.round()).abs() <= 1e-6 * below.abs();
        let zero_point = least - below.round();
        if !(scale.is_normal() && scale > 0.0 && is_step && zero_point.abs() < 2f64.powi(24)) {
            return Ok(None);
        }
        scales.push(scale);
        zero_points.push(zero_point as f32);
    }
    let sizes = cx.sizes(range[0]);
    let constants = [scales, zero_points].map(|numbers| cx.literal(Literal::from_elements(&sizes, &numbers)));
    Ok(Some(constants))
}

/// `(round(low / step) * step - least * step) + x * step`. One of the steps is 0.
fn min_first(
    cx: &mut NodeContext<'_, '_>,
    numbers: InstructionId,
    low: InstructionId,
    range: InstructionId,
    least: f64,
    most: f64,
) -> Result<InstructionId> {
    let count = cx.splat_like(range, most - least)?;
    let step = cx.div(range, count)?;
    let first = cx.div(low, step)?;
    let first = cx.op(Op::RoundNearestAfz {}, &[first])?;
    let first = cx.mul(first, step)?;
    let below = cx.mul_scalar(step, least)?;
    let of_zero = cx.sub(first, below)?;
    let scaled = cx.mul(numbers, step)?;
    let values = cx.add(of_zero, scaled)?;
    // An empty range has no step.
    let is_empty = cx.compare_scalar(ComparisonDirection::Eq, range, 0.0)?;
    cx.select(is_empty, low, values)
}

/// `XlaDequantize(x)`: unpacks four unsigned bytes from each element, from the highest to the
/// lowest bits, along the last dimension, and maps them to the range in bfloat16.
/// `transpose_output` reverses the dimensions.
fn xla_dequantize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let attributes = &cx.attributes();
    let (low, high) = (attributes.float("min_range")?, attributes.float("max_range")?);
    let mode = cx.text_or("mode", "MIN_COMBINED")?;
    let (element_type, sizes) = (cx.element_type(x), cx.sizes(x));
    cx.check(mode == "MIN_COMBINED" && element_type == PrimitiveType::U32 && !sizes.is_empty(), || {
        format!(
            "expected mode MIN_COMBINED and a uint32 array, got {mode} and {element_type}{}",
            list(&sizes)
        )
    })?;
    let spread = [&sizes[..], &[4]].concat();
    let all: Vec<usize> = (0..sizes.len()).collect();
    let wide = cx.broadcast(x, &spread, &all)?;
    let byte = cx.iota(PrimitiveType::U32, &spread, sizes.len())?;
    let last = cx.splat_like(byte, 3.0)?;
    let shift = cx.sub(last, byte)?;
    let shift = cx.mul_scalar(shift, 8.0)?;
    let moved = cx.op(Op::ShiftRightLogical {}, &[wide, shift])?;
    let mask = cx.splat_like(moved, 255.0)?;
    let bytes = cx.op(Op::And {}, &[moved, mask])?;
    let mut joined = sizes.clone();
    if let Some(last) = joined.last_mut() {
        *last = last.saturating_mul(4);
    }
    let bytes = cx.reshape(bytes, &joined)?;
    let numbers = cx.convert(bytes, PrimitiveType::Bf16)?;
    let narrow = |value: f64| rounded(PrimitiveType::Bf16, value);
    let (low, high) = (narrow(f64::from(low)), narrow(f64::from(high)));
    let scale = narrow(narrow(high - low) / 255.0);
    let scaled = cx.mul_scalar(numbers, scale)?;
    let values = cx.add_scalar(scaled, low)?;
    if !cx.attributes().bool_or("transpose_output", false)? {
        return Ok(values);
    }
    let reversed: Vec<usize> = (0..sizes.len()).rev().collect();
    cx.transpose(values, &reversed)
}

/// `QuantizeV2(x, min, max)`: converts floats to integers of a type. Also returns the range that
/// these represent: the given one, widened to contain 0 and to satisfy `ensure_minimum_range`.
fn quantize(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (x, low, high) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let axis = slice_axis(cx, x)?;
    check_range(cx, x, low, high, axis)?;
    let target = cx.output_type(0)?;
    let limit = |literal: Literal| literal.scalar_at(0).as_i64().map_or(0.0, |value| value as f64);
    let (least, most) = (limit(lowest(target)), limit(highest(target)));
    let (low, high) = ensured_range(cx, low, high)?;
    let half_away = match cx.text_or("round_mode", "HALF_AWAY_FROM_ZERO")? {
        "HALF_AWAY_FROM_ZERO" => Op::RoundNearestAfz {},
        "HALF_TO_EVEN" => Op::RoundNearestEven {},
        other => {
            return Err(cx.invalid(format!(
                "round_mode: expected HALF_AWAY_FROM_ZERO or HALF_TO_EVEN, got '{other}'"
            )));
        }
    };
    match cx.text_or("mode", "MIN_COMBINED")? {
        "MIN_COMBINED" => {
            let steps = cx.splat_like(low, most - least)?;
            let range = cx.sub(high, low)?;
            let scale = cx.div(steps, range)?;
            let wide = |cx: &mut NodeContext<'_, '_>, id| over_slices(cx, id, x, axis);
            let (wide_low, wide_high, scale) = (wide(cx, low)?, wide(cx, high)?, wide(cx, scale)?);
            let inside = cx.op(Op::Clamp {}, &[wide_low, x, wide_high])?;
            let from_low = cx.sub(inside, wide_low)?;
            let scaled = cx.mul(from_low, scale)?;
            let rounded = if least < 0.0 {
                let centered = cx.add_scalar(scaled, -(most - least + 1.0) / 2.0)?;
                cx.op(Op::RoundNearestAfz {}, &[centered])?
            } else {
                let raised = cx.add_scalar(scaled, 0.5)?;
                cx.op(Op::Floor {}, &[raised])?
            };
            Ok(vec![cx.convert(rounded, target)?, low, high])
        }
        "SCALED" => {
            let narrow = if cx.attributes().bool_or("narrow_range", false)? { 1.0 } else { 0.0 };
            let (least, most) = (cx.splat_like(low, least + narrow)?, cx.splat_like(low, most)?);
            let unlimited = cx.splat_like(low, f64::from(f32::MAX))?;
            let side = |cx: &mut NodeContext<'_, '_>, integer, end| {
                let product = cx.mul(integer, end)?;
                let counts = cx.compare_scalar(ComparisonDirection::Gt, product, 0.0)?;
                let ratio = cx.div(integer, end)?;
                cx.select(counts, ratio, unlimited)
            };
            let (from_low, from_high) = (side(cx, least, low)?, side(cx, most, high)?);
            let scale = cx.op(Op::Minimum {}, &[from_low, from_high])?;
            let (low, high) = (cx.div(least, scale)?, cx.div(most, scale)?);
            let wide = |cx: &mut NodeContext<'_, '_>, id| over_slices(cx, id, x, axis);
            let (wide_low, wide_high, scale) = (wide(cx, low)?, wide(cx, high)?, wide(cx, scale)?);
            let inside = cx.op(Op::Clamp {}, &[wide_low, x, wide_high])?;
            let scaled = cx.mul(inside, scale)?;
            let rounded = cx.op(half_away, &[scaled])?;
            Ok(vec![cx.convert(rounded, target)?, low, high])
        }
        // TensorFlow fails on such slices.
        "MIN_FIRST" if axis.is_none() => {
            let rounded = cx.composite_one(&[x, low, high], |_, operands| {
                integers(operands[0], [operands[1], operands[2]], target)
            })?;
            Ok(vec![rounded, low, high])
        }
        mode => Err(Error::unsupported(format!(
            "mode {mode} with axis {axis:?} is not supported; expected MIN_COMBINED or SCALED, or MIN_FIRST without an axis"
        ))),
    }
}

/// Widens the range to contain 0 and to have the minimum width.
fn ensured_range(
    cx: &mut NodeContext<'_, '_>,
    low: InstructionId,
    high: InstructionId,
) -> Result<(InstructionId, InstructionId)> {
    let least = cx.attributes().float_or("ensure_minimum_range", 0.01)?;
    let (size, other) = (cx.op(Op::Abs {}, &[low])?, cx.op(Op::Abs {}, &[high])?);
    let size = cx.op(Op::Maximum {}, &[size, other])?;
    let (zero, one) = (cx.splat_like(low, 0.0)?, cx.splat_like(low, 1.0)?);
    let size = cx.op(Op::Maximum {}, &[size, one])?;
    let width = cx.mul_scalar(size, least.into())?;
    let low = cx.op(Op::Minimum {}, &[zero, low])?;
    let above = cx.add(low, width)?;
    let high = cx.op(Op::Maximum {}, &[high, above])?;
    Ok((low, cx.op(Op::Maximum {}, &[high, zero])?))
}
