//! Reductions along axes that are known at compile time.

use super::activations::operand;
use super::arithmetic::{multiplied, multiplied_once};
use super::fixed_point::Multiplier;
use super::operands::Quantization;
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::math::reductions::{axes, keep_dims};
use ::composite::Expression;
use hlo::InstructionId;
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("TFLiteMean", |cx| sum(cx, true)),
    rule("TFLiteReduceProd", product),
    rule("TFLiteSum", |cx| sum(cx, false)),
];

/// Upper bound of the bytes whose sum fits 32 bits.
const MOST_BYTES: i64 = 1 << 23;

/// The sum, or the mean: the multiplier divided by the count, with as many bits as fit.
fn sum(cx: &mut NodeContext<'_, '_>, is_mean: bool) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let sizes = cx.sizes(x);
    let axes = axes(cx, sizes.len())?;
    let count: i64 = axes.iter().map(|&d| sizes[d]).product();
    let mut multiplier = Multiplier::of(from.scale() / to.scale());
    if is_mean && count > 0 {
        let bits = count.ilog2() as i32;
        let shift = bits.min(32).min(31 + multiplier.shift);
        let factor = (i64::from(multiplier.factor) << shift) / count;
        multiplier = Multiplier { factor: factor as i32, shift: multiplier.shift - shift };
    }
    let [low, high] = to.limits().map(|limit| limit as f64);
    let zero = (from.zero_point() * count) as f64;
    // Sums of few bytes fit 32 bits.
    let sums = if count <= MOST_BYTES && from.element_type.byte_size() == 1 {
        PrimitiveType::S32
    } else {
        PrimitiveType::S64
    };
    let reduced = cx.composite_one(&[x], |_, operands| {
        let x = operands[0].convert(sums);
        let sum = if axes.is_empty() { x } else { x.sum(&axes) };
        let scaled = multiplied(sum.convert(PrimitiveType::S64) - zero, multiplier) + to.zero_point() as f64;
        scaled.max(low).min(high).convert(to.element_type)
    })?;
    keep_dims(cx, reduced, &sizes, &axes)
}

/// The product, scaled after each factor.
fn product(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let sizes = cx.sizes(x);
    let axes = axes(cx, sizes.len())?;
    let count: i64 = axes.iter().map(|&d| sizes[d]).product();
    if count == 0 {
        return Err(cx.invalid("a product of no elements has no quantized value"));
    }
    let reduced = cx.composite_one(&[x], |_, operands| {
        let factors = flattened(operands[0].convert(PrimitiveType::S64), &axes) - from.zero_point() as f64;
        scaled_product(factors, &from, &to, count)
    })?;
    let kept: Vec<i64> = (0..sizes.len()).filter(|d| !axes.contains(d)).map(|d| sizes[d]).collect();
    let reduced = cx.reshape(reduced, &kept)?;
    keep_dims(cx, reduced, &sizes, &axes)
}

/// Moves these dimensions to the front and merges them, and merges the other ones.
fn flattened<'f>(x: Expression<'f>, axes: &[usize]) -> Expression<'f> {
    let sizes = x.sizes();
    let others: Vec<usize> = (0..sizes.len()).filter(|d| !axes.contains(d)).collect();
    let size = |dimensions: &[usize]| dimensions.iter().map(|&d| sizes[d]).product::<i64>();
    x.transpose(&[axes, &others].concat()).reshape(&[size(axes), size(&others)])
}

/// The product of rows of factors, from the first to the last.
fn scaled_product<'f>(
    factors: Expression<'f>,
    from: &Quantization,
    to: &Quantization,
    count: i64,
) -> Expression<'f> {
    let [low, high] = to.limits().map(|limit| limit as f64);
    let multiplier = Multiplier::of(from.scale() / to.scale().powf(1.0 / count as f64));
    let first = factors.slice_in(0, 0, 1);
    let function = factors.function();
    let product = function.for_loop(count - 1, &[first, factors], |_, index, state| {
        let factor = state[1].dynamic_slice_in(0, index + 1.0);
        vec![multiplied_once(state[0] * factor, multiplier), state[1]]
    })[0];
    let scaled = multiplied_once(product, multiplier) + to.zero_point() as f64;
    scaled.max(low).min(high).convert(to.element_type)
}
