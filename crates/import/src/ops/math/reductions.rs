//! Reductions along axes that are known at compile time.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{Reducer, Size, highest, lowest};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Sum", |cx| sum_or_product(cx, Reducer::Add)).types("T", NUMBERS_AND_QUANTIZED),
    rule("Prod", |cx| sum_or_product(cx, Reducer::Multiply)).types("T", NUMBERS_AND_QUANTIZED),
    rule("Mean", mean).types("T", NUMBERS_AND_QUANTIZED),
    rule("Max", |cx| extremum(cx, Reducer::Maximum)).types("T", REAL_AND_QUANTIZED),
    rule("Min", |cx| extremum(cx, Reducer::Minimum)).types("T", REAL_AND_QUANTIZED),
    rule("All", |cx| extremum(cx, Reducer::And)),
    rule("Any", |cx| extremum(cx, Reducer::Or)),
    rule("L2Loss", l2_loss).types("T", FLOATS),
    rule("ArgMax", |cx| arg_extremum(cx, Reducer::Maximum))
        .types("T", ORDERED)
        .types("output_type", ARG_OUTPUTS),
    rule("ArgMin", |cx| arg_extremum(cx, Reducer::Minimum))
        .types("T", ORDERED)
        .types("output_type", ARG_OUTPUTS),
];

const ARG_OUTPUTS: &[tf::DataType] =
    &[tf::DataType::Int32, tf::DataType::Int64, tf::DataType::Int16, tf::DataType::Uint16];

/// The type in which sums are accumulated: 32 bits for narrow types, as in XLA.
pub(crate) fn accumulation_type(element_type: PrimitiveType) -> PrimitiveType {
    match element_type {
        PrimitiveType::F16 | PrimitiveType::Bf16 => PrimitiveType::F32,
        PrimitiveType::S8 | PrimitiveType::S16 => PrimitiveType::S32,
        PrimitiveType::U8 | PrimitiveType::U16 => PrimitiveType::U32,
        other => other,
    }
}

/// Returns the axes of input 1 as dimension numbers, without duplicates, ascending.
pub(crate) fn axes(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<Vec<usize>> {
    let mut dimensions = Vec::new();
    for axis in cx.constant_i64s(1)? {
        let dimension = cx.dimension(axis, rank)?;
        cx.check(!dimensions.contains(&dimension), || format!("axis {axis} occurs twice"))?;
        dimensions.push(dimension);
    }
    dimensions.sort_unstable();
    Ok(dimensions)
}

/// With `keep_dims`, restores the reduced dimensions with size 1.
pub(crate) fn keep_dims(
    cx: &mut NodeContext<'_, '_>,
    reduced: InstructionId,
    sizes: &[i64],
    axes: &[usize],
) -> Result<InstructionId> {
    if !cx.attributes().bool_or("keep_dims", false)? {
        return Ok(reduced);
    }
    restored(cx, reduced, sizes, axes)
}

/// Restores reduced dimensions with size 1.
pub(crate) fn restored(
    cx: &mut NodeContext<'_, '_>,
    reduced: InstructionId,
    sizes: &[i64],
    axes: &[usize],
) -> Result<InstructionId> {
    let full_sizes: Vec<i64> =
        (0..sizes.len()).map(|d| if axes.contains(&d) { 1 } else { sizes[d] }).collect();
    if !cx.is_bounded(reduced) {
        return cx.reshape(reduced, &full_sizes);
    }
    let mut left = cx.all_sizes(reduced)?.into_iter();
    let full_sizes: Vec<Size> = (0..sizes.len())
        .map(|d| if axes.contains(&d) { Size::known(1) } else { left.next().unwrap_or(Size::known(1)) })
        .collect();
    cx.reshape_to(reduced, &full_sizes)
}

/// Sum or product, in 32 bits for narrow types.
fn sum_or_product(cx: &mut NodeContext<'_, '_>, reducer: Reducer) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let axes = axes(cx, sizes.len())?;
    if axes.is_empty() {
        return Ok(x);
    }
    let wide = cx.convert(x, accumulation_type(element_type))?;
    let reduced = cx.reduce(wide, reducer, &axes)?;
    let reduced = cx.convert(reduced, element_type)?;
    keep_dims(cx, reduced, &sizes, &axes)
}

/// The number of elements along some dimensions of an array, which may be open, in each element of
/// another one.
pub(crate) fn count_like(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axes: &[usize],
    like: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    if !axes.iter().any(|&d| cx.array(x).dimensions[d].is_dynamic) {
        let counted: Vec<i64> = axes.iter().map(|&d| sizes[d]).collect();
        let count = cx.checked_product(&counted)?;
        return cx.splat_like(like, count as f64);
    }
    let (count, element_type) = (cx.true_count(x, axes)?, cx.element_type(like));
    let (count, result) = (cx.convert(count, element_type)?, cx.sizes(like));
    cx.broadcast(count, &result, &[])
}

/// The sum divided by the count. Integer division truncates.
fn mean(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let axes = axes(cx, sizes.len())?;
    if axes.is_empty() {
        return Ok(x);
    }
    let wide = cx.convert(x, accumulation_type(element_type))?;
    let sum = cx.reduce(wide, Reducer::Add, &axes)?;
    let count = count_like(cx, x, &axes, sum)?;
    let mean = cx.div(sum, count)?;
    let mean = cx.convert(mean, element_type)?;
    keep_dims(cx, mean, &sizes, &axes)
}

/// Maximum, minimum, logical and, or logical or.
fn extremum(cx: &mut NodeContext<'_, '_>, reducer: Reducer) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let axes = axes(cx, sizes.len())?;
    if axes.is_empty() {
        return Ok(x);
    }
    let reduced = cx.reduce(x, reducer, &axes)?;
    keep_dims(cx, reduced, &sizes, &axes)
}

/// `L2Loss(x) = sum(x * x) / 2`. Narrow types are summed in float32.
fn l2_loss(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let element_type = cx.element_type(x);
    let wide = cx.convert(x, accumulation_type(element_type))?;
    let square = cx.mul(wide, wide)?;
    let axes: Vec<usize> = (0..cx.rank(x)).collect();
    let sum = cx.reduce(square, Reducer::Add, &axes)?;
    let sum = cx.convert(sum, element_type)?;
    let two = cx.splat_like(sum, 2.0)?;
    cx.div(sum, two)
}

/// Returns the first position of the largest (or smallest) element along an axis. NaN is skipped,
/// as in TensorFlow. If there is nothing else, the result is 0.
///
/// This takes two plain reductions: the extremum, then the smallest position that contains it.
fn arg_extremum(cx: &mut NodeContext<'_, '_>, reducer: Reducer) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let axis = cx.constant_i64(1)?;
    let axis = cx.dimension(axis, cx.rank(x))?;
    arg_extremum_along(cx, x, axis, reducer)
}

/// Like [`arg_extremum`], for any array and axis.
pub(crate) fn arg_extremum_along(
    cx: &mut NodeContext<'_, '_>,
    mut x: InstructionId,
    axis: usize,
    reducer: Reducer,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    cx.check(sizes[axis] > 0, || format!("axis {axis} is empty, so there is no position to return"))?;
    let index_type = cx.output_type(0)?;
    if cx.element_type(x) == PrimitiveType::Pred {
        x = cx.convert(x, PrimitiveType::U8)?;
    }
    let element_type = cx.element_type(x);
    if element_type.is_floating_point() {
        let is_nan = cx.compare(ComparisonDirection::Ne, x, x)?;
        let worst = if reducer == Reducer::Maximum { lowest(element_type) } else { highest(element_type) };
        let worst = cx.literal(worst);
        let worst = cx.broadcast(worst, &sizes, &[])?;
        x = cx.select(is_nan, worst, x)?;
    }
    let best = cx.reduce(x, reducer, &[axis])?;
    let others: Vec<usize> = (0..sizes.len()).filter(|&d| d != axis).collect();
    let best = cx.broadcast(best, &sizes, &others)?;
    let is_best = cx.compare(ComparisonDirection::Eq, x, best)?;
    let narrow = sizes[axis] <= i64::from(i32::MAX);
    let positions = cx.iota(if narrow { PrimitiveType::S32 } else { PrimitiveType::S64 }, &sizes, axis)?;
    let beyond = cx.splat_like(positions, sizes[axis] as f64)?;
    let candidates = cx.op(Op::Select {}, &[is_best, positions, beyond])?;
    let first = cx.reduce(candidates, Reducer::Minimum, &[axis])?;
    cx.convert(first, index_type)
}
