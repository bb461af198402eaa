//! Sums, products and logarithms of sums of exponentials of all elements up to each one.

use crate::context::NodeContext;
use crate::data_types::*;
use crate::rule::{Rule, rule};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Cumsum", |cx| {
        let x = cx.input(0)?;
        scan(cx, x, 0.0, |cx, a, b| cx.add(a, b))
    })
    .types("T", NUMBERS)
    .types("Tidx", INDICES),
    rule("Cumprod", |cx| {
        let x = cx.input(0)?;
        scan(cx, x, 1.0, |cx, a, b| cx.mul(a, b))
    })
    .types("T", NUMBERS)
    .types("Tidx", INDICES),
    rule("CumulativeLogsumexp", cumulative_log_sum_exp).types("T", FLOATS).types("Tidx", INDICES),
];

/// What joins the results of two stretches, the first one first.
type Combine = fn(&mut NodeContext<'_, '_>, InstructionId, InstructionId) -> Result<InstructionId>;

/// `CumulativeLogsumexp(x)`: `log` of the sum of `exp` of the elements so far. NaN adds nothing, as in TensorFlow and XLA.
fn cumulative_log_sum_exp(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let is_nan = cx.compare(ComparisonDirection::Ne, x, x)?;
    let nothing = cx.splat_like(x, f64::NEG_INFINITY)?;
    let numbers = cx.select(is_nan, nothing, x)?;
    scan(cx, numbers, f64::NEG_INFINITY, log_add_exp)
}

/// `log(exp(a) + exp(b))`, without overflow.
fn log_add_exp(cx: &mut NodeContext<'_, '_>, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
    let (larger, smaller) = (cx.op(Op::Maximum {}, &[a, b])?, cx.op(Op::Minimum {}, &[a, b])?);
    let distance = cx.sub(smaller, larger)?;
    // Equal infinities have no difference.
    let is_equal = cx.compare(ComparisonDirection::Eq, a, b)?;
    let zero = cx.splat_like(a, 0.0)?;
    let distance = cx.select(is_equal, zero, distance)?;
    let share = cx.op(Op::Exp {}, &[distance])?;
    let more = cx.op(Op::Log1p {}, &[share])?;
    cx.add(larger, more)
}

/// `result[i] = x[0] op ... op x[i]` along an axis; with `exclusive` without `x[i]`, with `reverse` from the end.
///
/// Elements are combined with those 1, 2, 4, ... before them, so that few steps do for a long axis. Narrow floating point
/// is summed in 32 bits.
fn scan(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    neutral: f64,
    combine: Combine,
) -> Result<InstructionId> {
    let axis = cx.constant_i64(1)?;
    let axis = cx.dimension(axis, cx.rank(x))?;
    let (exclusive, reverse) =
        (cx.node.attributes.bool_or("exclusive", false)?, cx.node.attributes.bool_or("reverse", false)?);
    if cx.is_bounded(x) {
        // What is not there adds nothing, wherever it comes to lie.
        let bounded = cx.split(x)?;
        let element_type = cx.element_type(x);
        let nothing = cx.scalar(element_type, neutral);
        let whole = cx.masked(&bounded, &[axis], nothing)?;
        let sums = scan(cx, whole, neutral, combine)?;
        return cx.bounded(sums, &bounded.sizes);
    }
    let (element_type, size) = (cx.element_type(x), cx.sizes(x)[axis]);
    if cx.sizes(x).contains(&0) {
        return Ok(x);
    }
    let wide = match element_type {
        PrimitiveType::F16 | PrimitiveType::Bf16 => PrimitiveType::F32,
        other => other,
    };
    let mut sums = cx.convert(x, wide)?;
    if reverse {
        sums = cx.reverse(sums, vec![axis])?;
    }
    if exclusive {
        sums = moved(cx, sums, axis, 1, neutral)?;
    }
    sums = running(cx, sums, (axis, size), neutral, combine)?;
    if reverse {
        sums = cx.reverse(sums, vec![axis])?;
    }
    cx.convert(sums, element_type)
}

/// What the elements up to each one along an axis of `size` combine to.
fn running(
    cx: &mut NodeContext<'_, '_>,
    mut sums: InstructionId,
    (axis, size): (usize, i64),
    neutral: f64,
    combine: Combine,
) -> Result<InstructionId> {
    let mut distance = 1;
    while distance < size {
        let before = moved(cx, sums, axis, distance, neutral)?;
        sums = combine(cx, before, sums)?;
        distance *= 2;
    }
    Ok(sums)
}

/// `x[0] + ... + x[i]` along an axis, in the type of `x`.
pub(crate) fn running_sum(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axis: usize,
) -> Result<InstructionId> {
    let size = cx.sizes(x)[axis];
    running(cx, x, (axis, size), 0.0, |cx, a, b| cx.add(a, b))
}

/// The elements moved towards the end of an axis, the neutral one in front.
fn moved(
    cx: &mut NodeContext<'_, '_>,
    id: InstructionId,
    axis: usize,
    distance: i64,
    neutral: f64,
) -> Result<InstructionId> {
    let size = cx.sizes(id)[axis];
    let kept = cx.slice_in(id, axis, 0, size - distance)?;
    let element_type = cx.element_type(id);
    let neutral = cx.scalar(element_type, neutral);
    let mut padding = vec![(0, 0, 0); cx.rank(id)];
    padding[axis].0 = distance;
    cx.pad(kept, neutral, &padding)
}
