//! Quantized arithmetic with ranges: each array of integers comes with the numbers of the least and
//! the largest integer of its type.
//!
//! Scales and zero points follow from the ranges as in TensorFlow's kernels, in the same precision.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use crate::ops::linalg::products::matrices;
use crate::ops::nn::convolution::{ConvAttributes, convolve};
use crate::ops::nn::pooling::PoolWindows;
use ::composite::Expression;
use bounded::{Reducer, list};
use hlo::quantization::integer_range;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;
use tf::DataType;

const BYTES: &[DataType] = &[DataType::Quint8, DataType::Qint8];
const UNSIGNED: &[DataType] = &[DataType::Quint8];
const SUMS: &[DataType] = &[DataType::Qint32];
const RESULTS: &[DataType] = &[DataType::Quint8, DataType::Qint8, DataType::Qint32];

pub(crate) const RULES: &[Rule] = &[
    rule_many("QuantizedMatMul", |cx| product(cx, matrices))
        .types("T1", BYTES)
        .types("T2", BYTES)
        .types("Toutput", SUMS),
    rule_many("QuantizedConv2D", |cx| {
        product(cx, |cx, input, filter| {
            let attributes = ConvAttributes::of_node(cx, 4)?;
            convolve(cx, input, filter, &attributes)
        })
    })
    .types("Tinput", BYTES)
    .types("Tfilter", BYTES)
    .types("out_type", SUMS),
    rule_many("QuantizedBiasAdd", bias_add)
        .types("T1", UNSIGNED)
        .types("T2", UNSIGNED)
        .types("out_type", SUMS),
    rule_many("QuantizedRelu", |cx| clamp(cx, None)).types("Tinput", RESULTS).types("out_type", RESULTS),
    rule_many("QuantizedRelu6", |cx| clamp(cx, Some(6.0)))
        .types("Tinput", RESULTS)
        .types("out_type", RESULTS),
    rule_many("QuantizedMaxPool", max_pool).types("T", BYTES),
    rule_many("RequantizationRange", used_range).types("Tinput", SUMS),
    rule_many("Requantize", requantize).types("Tinput", SUMS).types("out_type", UNSIGNED),
    rule_many("QuantizeDownAndShrinkRange", shrink).types("Tinput", SUMS).types("out_type", UNSIGNED),
];

/// Returns inputs that must be scalars.
fn scalars<const N: usize>(
    cx: &mut NodeContext<'_, '_>,
    positions: [usize; N],
) -> Result<Vec<InstructionId>> {
    let mut scalars = Vec::new();
    for k in positions {
        let id = cx.input(k)?;
        let sizes = cx.sizes(id);
        cx.check(sizes.is_empty(), || {
            format!("input {k}: expected one end of a range, got shape {}", list(&sizes))
        })?;
        scalars.push(id);
    }
    Ok(scalars)
}

fn steps(element_type: PrimitiveType) -> f64 {
    2f64.powi(element_type.bit_width() as i32)
}

fn least(element_type: PrimitiveType) -> f64 {
    integer_range(element_type)[0] as f64
}

fn round<'f>(x: Expression<'f>) -> Expression<'f> {
    x.function().op(Op::RoundNearestAfz {}, &[x], None)
}

/// The integer of a number in a range, as `f64`, without limits.
fn unclamped<'f>(
    number: f64,
    [low, high]: [Expression<'f>; 2],
    element_type: PrimitiveType,
) -> Expression<'f> {
    let count = steps(element_type);
    let width = (high - low).convert(PrimitiveType::F64) * (count / (count - 1.0));
    let scale = width.splat(count) / width;
    let from_low = round(scale * number) - round(low.convert(PrimitiveType::F64) * scale);
    let is_empty = low.equal(high);
    is_empty.select(from_low.splat(0.0), from_low + least(element_type))
}

/// The distance of two neighboring integers.
fn level<'f>([low, high]: [Expression<'f>; 2], element_type: PrimitiveType) -> Expression<'f> {
    (high - low) / (steps(element_type) - 1.0)
}

/// Subtracts the integer of 0, as `s32`.
fn centered(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    range: [InstructionId; 2],
) -> Result<InstructionId> {
    let element_type = cx.element_type(x);
    let zero = cx.composite_one(&range, |_, ends| {
        unclamped(0.0, [ends[0], ends[1]], element_type).convert(PrimitiveType::S32)
    })?;
    let (wide, sizes) = (cx.convert(x, PrimitiveType::S32)?, cx.sizes(x));
    let zeros = cx.broadcast(zero, &sizes, &[])?;
    cx.sub(wide, zeros)
}

/// Multiplies integers less their zero points. The range is that of the product of two steps.
fn product(
    cx: &mut NodeContext<'_, '_>,
    multiply: impl Fn(&mut NodeContext<'_, '_>, InstructionId, InstructionId) -> Result<InstructionId>,
) -> Result<Vec<InstructionId>> {
    let (left, right) = (cx.input(0)?, cx.input(1)?);
    let ranges = scalars(cx, [2, 3, 4, 5])?;
    let types = [cx.element_type(left), cx.element_type(right)];
    let left = centered(cx, left, [ranges[0], ranges[1]])?;
    let right = centered(cx, right, [ranges[2], ranges[3]])?;
    let sums = multiply(cx, left, right)?;
    let mut results = vec![sums];
    results.extend(cx.composite(&ranges, |_, ends| {
        let step = level([ends[0], ends[1]], types[0]) * level([ends[2], ends[3]], types[1]);
        integer_range(PrimitiveType::S32).map(|end| step * (end as f64)).to_vec()
    })?);
    Ok(results)
}

/// The numbers of integers in a range.
fn numbers<'f>(x: Expression<'f>, [low, high]: [Expression<'f>; 2]) -> Expression<'f> {
    let element_type = x.element_type();
    let step = level_of_steps([low, high], element_type);
    let rounded = low.equal(high).select(low, round(low / step) * step);
    let first = rounded - step * least(element_type);
    let [step, first] = [step, first].map(|e| e.broadcast(&x.sizes(), &[]));
    first + x.convert(PrimitiveType::F32) * step
}

/// The distance of two neighboring integers, divided in `f64`.
fn level_of_steps<'f>([low, high]: [Expression<'f>; 2], element_type: PrimitiveType) -> Expression<'f> {
    ((high - low).convert(PrimitiveType::F64) / (steps(element_type) - 1.0)).convert(PrimitiveType::F32)
}

/// The integers of numbers in a range.
pub(crate) fn integers<'f>(
    x: Expression<'f>,
    [low, high]: [Expression<'f>; 2],
    element_type: PrimitiveType,
) -> Expression<'f> {
    let width = (high - low).convert(PrimitiveType::F64);
    let scale = (width.splat(steps(element_type) - 1.0) / width).convert(PrimitiveType::F32);
    let scale = low.equal(high).select(scale.splat(0.0), scale);
    let first = round(low * scale) - least(element_type);
    let [scale, first] = [scale, first].map(|e| e.broadcast(&x.sizes(), &[]));
    let [least, most] = integer_range(element_type).map(|end| end as f64);
    // The largest `f32` below 2^31.
    let most = if element_type == PrimitiveType::S32 { 2_147_483_520.0 } else { most };
    let moved = (round(x * scale) - first).max(least).min(most);
    moved.convert(PrimitiveType::S32).convert(element_type)
}

/// `QuantizedBiasAdd`: adds numbers, in a range of `2^17` times the largest end.
fn bias_add(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (x, bias) = (cx.input(0)?, cx.input(1)?);
    let (sizes, bias_sizes) = (cx.sizes(x), cx.sizes(bias));
    cx.check(!sizes.is_empty() && bias_sizes == sizes[sizes.len() - 1..], || {
        format!("expected a bias for each feature of {}, got shape {}", list(&sizes), list(&bias_sizes))
    })?;
    let mut operands = vec![x, bias];
    operands.extend(scalars(cx, [2, 3, 4, 5])?);
    cx.composite(&operands, |_, operands| {
        let &[x, bias, low, high, bias_low, bias_high] = operands else { return Vec::new() };
        let largest = high.max(-low).max(bias_high).max(-bias_low) * 131_072.0;
        let range = [-largest, largest];
        // Each operand is rounded to the new range, in which 0 is 0.
        let addend = integers(numbers(bias, [bias_low, bias_high]), range, PrimitiveType::S32);
        let sum = integers(numbers(x, [low, high]), range, PrimitiveType::S32)
            + addend.broadcast(&sizes, &[sizes.len() - 1]);
        vec![sum, range[0], range[1]]
    })
}

/// `QuantizedRelu` and `QuantizedRelu6`: limits integers to those of 0 and of another number.
fn clamp(cx: &mut NodeContext<'_, '_>, most: Option<f64>) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let ends = scalars(cx, [1, 2])?;
    let limited = cx.composite_one(&[x, ends[0], ends[1]], |_, operands| {
        let &[x, low, high] = operands else { return operands[0] };
        let element_type = x.element_type();
        let [first, last] = integer_range(element_type).map(|end| end as f64);
        let limit = |number: f64| {
            let integer = unclamped(number, [low, high], element_type).max(first).min(last);
            integer.convert(element_type).broadcast(&x.sizes(), &[])
        };
        let positive = x.max(limit(0.0));
        most.map_or(positive, |most| positive.min(limit(most)))
    })?;
    Ok(vec![limited, ends[0], ends[1]])
}

fn max_pool(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let ends = scalars(cx, [1, 2])?;
    let sizes = cx.sizes(x);
    cx.check_rank("the input", &sizes, 4)?;
    let pool = PoolWindows::of_node(cx, &sizes, cx.inputs().len())?;
    Ok(vec![cx.reduce_window(x, Reducer::Maximum, pool.window)?, ends[0], ends[1]])
}

/// Returns the least and the largest number, as a range that contains 0.
fn used_range(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let ends = scalars(cx, [1, 2])?;
    let all: Vec<usize> = (0..cx.rank(x)).collect();
    let least = cx.reduce(x, Reducer::Minimum, &all)?;
    let most = cx.reduce(x, Reducer::Maximum, &all)?;
    cx.composite(&[least, most, ends[0], ends[1]], |_, operands| {
        let &[least, most, low, high] = operands else { return Vec::new() };
        let [least, most] = [least, most].map(|integer| {
            let element_type = PrimitiveType::S32;
            let count = steps(element_type);
            let width = (high - low).convert(PrimitiveType::F64) * (count / (count - 1.0));
            let scale = width / count;
            let single = scale.convert(PrimitiveType::F32);
            let first = round(low / single) * single;
            let from_least = integer.convert(PrimitiveType::F64) - self::least(element_type);
            let number = first.convert(PrimitiveType::F64) + from_least * scale;
            low.equal(high).select(low, number.convert(PrimitiveType::F32))
        });
        vec![least.min(0.0), most]
    })
}

/// Rounds 32-bit integers of one range to the bytes of another one, in TensorFlow's fixed-point
/// arithmetic with 16 fractional bits.
fn moved(cx: &mut NodeContext<'_, '_>, to: [InstructionId; 2]) -> Result<Vec<InstructionId>> {
    const ONE: f64 = 65_536.0;
    const MOST: f64 = 255.0;
    let x = cx.input(0)?;
    let ends = scalars(cx, [1, 2])?;
    let output = cx.output_type(0)?;
    let integers = cx.composite_one(&[x, ends[0], ends[1], to[0], to[1]], |_, operands| {
        let &[x, low, high, new_low, new_high] = operands else { return operands[0] };
        let sizes = x.sizes();
        let [width, new_width] = [high - low, new_high - new_low].map(|e| e.convert(PrimitiveType::F64));
        let is_empty = new_width.equal(0.0);
        let fixed = |e: Expression<'_>| {
            let fixed = e.convert(PrimitiveType::S64);
            is_empty.select(fixed.splat(0.0), fixed).broadcast(&sizes, &[]).id()
        };
        let inverse = (new_width.splat(MOST) / new_width).convert(PrimitiveType::F32);
        let [scale, offset, new_offset] = [
            fixed(width * (MOST * ONE) / new_width),
            fixed((low + high) * 0.5 * inverse * ONE),
            fixed(new_low.convert(PrimitiveType::F64) * (MOST * ONE) / new_width),
        ]
        .map(|id| x.function().expression(id));
        let product = (x.convert(PrimitiveType::S64) * scale).shift_right_arithmetic(32.0);
        let rounded = (product + offset - new_offset + ONE / 2.0).shift_right_arithmetic(16.0);
        rounded.max(0.0).min(MOST).convert(output)
    })?;
    Ok(vec![integers, to[0], to[1]])
}

fn requantize(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let to = scalars(cx, [3, 4])?;
    moved(cx, [to[0], to[1]])
}

fn shrink(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let to = used_range(cx)?;
    moved(cx, [to[0], to[1]])
}
