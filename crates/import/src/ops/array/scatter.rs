//! Scatters. Updates with indices out of range are dropped, as in XLA.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::values::value::Value;
use bounded::{Indices, Reducer, bounds, list, run_time};
use hlo::{ComparisonDirection, InstructionId};
use shape::PrimitiveType;
use shape::index::element_count;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("ScatterNd", scatter_nd).types("T", ALL).types("Tindices", INDICES),
    rule("TensorScatterUpdate", |cx| tensor_scatter(cx, Reducer::Replace)).types("T", ALL),
    rule("TensorScatterAdd", |cx| tensor_scatter(cx, Reducer::Add)).types("T", ALL),
    rule("TensorScatterSub", |cx| tensor_scatter(cx, Reducer::Subtract)).types("T", ALL),
    rule("TensorScatterMax", |cx| tensor_scatter(cx, Reducer::Maximum)).types("T", ALL),
    rule("TensorScatterMin", |cx| tensor_scatter(cx, Reducer::Minimum)).types("T", ALL),
    rule_values("ResourceScatterUpdate", |cx| resource_scatter(cx, Reducer::Replace, false))
        .types("dtype", ALL)
        .effect(),
    rule_values("ResourceScatterAdd", |cx| resource_scatter(cx, Reducer::Add, false))
        .types("dtype", NUMBERS_AND_QUANTIZED)
        .effect(),
    rule_values("ResourceScatterSub", |cx| resource_scatter(cx, Reducer::Subtract, false))
        .types("dtype", NUMBERS_AND_QUANTIZED)
        .effect(),
    rule_values("ResourceScatterMul", |cx| resource_scatter(cx, Reducer::Multiply, false))
        .types("dtype", NUMBERS_AND_QUANTIZED)
        .effect(),
    rule_values("ResourceScatterDiv", |cx| resource_scatter(cx, Reducer::Divide, false))
        .types("dtype", NUMBERS_AND_QUANTIZED)
        .effect(),
    rule_values("ResourceScatterMax", |cx| resource_scatter(cx, Reducer::Maximum, false))
        .types("dtype", REAL_AND_QUANTIZED)
        .effect(),
    rule_values("ResourceScatterMin", |cx| resource_scatter(cx, Reducer::Minimum, false))
        .types("dtype", REAL_AND_QUANTIZED)
        .effect(),
    rule_values("ResourceScatterNdUpdate", |cx| resource_scatter(cx, Reducer::Replace, true))
        .types("T", ALL)
        .effect(),
    rule_values("ResourceScatterNdAdd", |cx| resource_scatter(cx, Reducer::Add, true))
        .types("T", ALL)
        .effect(),
    rule_values("ResourceScatterNdSub", |cx| resource_scatter(cx, Reducer::Subtract, true))
        .types("T", ALL)
        .effect(),
    rule_values("ScatterUpdate", |cx| resource_scatter(cx, Reducer::Replace, false))
        .types("T", ALL)
        .types("Tindices", INDICES)
        .effect(),
    rule_values("ScatterAdd", |cx| resource_scatter(cx, Reducer::Add, false))
        .types("T", NUMBERS)
        .types("Tindices", INDICES)
        .effect(),
    rule_values("ScatterSub", |cx| resource_scatter(cx, Reducer::Subtract, false))
        .types("T", NUMBERS)
        .types("Tindices", INDICES)
        .effect(),
    rule_values("ScatterMul", |cx| resource_scatter(cx, Reducer::Multiply, false))
        .types("T", NUMBERS)
        .types("Tindices", INDICES)
        .effect(),
    rule_values("ScatterDiv", |cx| resource_scatter(cx, Reducer::Divide, false))
        .types("T", NUMBERS)
        .types("Tindices", INDICES)
        .effect(),
    rule_values("ScatterMax", |cx| resource_scatter(cx, Reducer::Maximum, false))
        .types("T", REAL)
        .types("Tindices", INDICES)
        .effect(),
    rule_values("ScatterMin", |cx| resource_scatter(cx, Reducer::Minimum, false))
        .types("T", REAL)
        .types("Tindices", INDICES)
        .effect(),
    rule_values("ScatterNdUpdate", |cx| resource_scatter(cx, Reducer::Replace, true))
        .types("T", ALL)
        .types("Tindices", INDICES)
        .effect(),
    rule_values("ScatterNdAdd", |cx| resource_scatter(cx, Reducer::Add, true))
        .types("T", NUMBERS)
        .types("Tindices", INDICES)
        .effect(),
    rule_values("ScatterNdSub", |cx| resource_scatter(cx, Reducer::Subtract, true))
        .types("T", NUMBERS)
        .types("Tindices", INDICES)
        .effect(),
    rule("UnsortedSegmentSum", |cx| unsorted_segment(cx, Reducer::Add)).types("T", NUMBERS_AND_QUANTIZED),
    rule("UnsortedSegmentProd", |cx| unsorted_segment(cx, Reducer::Multiply))
        .types("T", NUMBERS_AND_QUANTIZED),
    rule("UnsortedSegmentMax", |cx| unsorted_segment(cx, Reducer::Maximum)).types("T", REAL),
    rule("UnsortedSegmentMin", |cx| unsorted_segment(cx, Reducer::Minimum)).types("T", REAL),
    // Sorted ids make no difference.
    rule("SegmentSumV2", |cx| unsorted_segment(cx, Reducer::Add)).types("T", NUMBERS_AND_QUANTIZED),
    rule("SegmentProdV2", |cx| unsorted_segment(cx, Reducer::Multiply)).types("T", NUMBERS_AND_QUANTIZED),
    rule("SegmentMaxV2", |cx| unsorted_segment(cx, Reducer::Maximum)).types("T", REAL),
    rule("SegmentMinV2", |cx| unsorted_segment(cx, Reducer::Minimum)).types("T", REAL),
    rule("SegmentSum", |cx| known_segments(cx, Reducer::Add)).types("T", NUMBERS),
    rule("SegmentProd", |cx| known_segments(cx, Reducer::Multiply)).types("T", NUMBERS),
    rule("SegmentMax", |cx| known_segments(cx, Reducer::Maximum)).types("T", REAL),
    rule("SegmentMin", |cx| known_segments(cx, Reducer::Minimum)).types("T", REAL),
];

/// `ScatterNd(indices, updates, shape)`: adds updates to an array of zeros.
fn scatter_nd(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (indices, updates) = (cx.input(0)?, cx.input(1)?);
    let sizes = cx.bounded_sizes(2)?;
    let element_type = cx.element_type(updates);
    let zeros = cx.splat(element_type, &bounds(&sizes), 0.0)?;
    let zeros = cx.bounded(zeros, &run_time(&sizes))?;
    let [indices, updates] = cx.settled_updates(zeros, [indices, updates], Indices::Vectors)?;
    cx.scatter(zeros, indices, updates, Indices::Vectors, Reducer::Add)
}

/// `TensorScatter*(x, indices, updates)`.
fn tensor_scatter(cx: &mut NodeContext<'_, '_>, reducer: Reducer) -> Result<InstructionId> {
    let (x, indices, updates) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let [indices, updates] = cx.settled_updates(x, [indices, updates], Indices::Vectors)?;
    cx.scatter(x, indices, updates, Indices::Vectors, reducer)
}

/// Updates rows of a variable.
fn resource_scatter(cx: &mut NodeContext<'_, '_>, reducer: Reducer, vectors: bool) -> Result<Vec<Value>> {
    let variable = cx.variable(0)?;
    let (indices, updates) = (cx.input(1)?, cx.input(2)?);
    let value = cx.read_variable(variable);
    let kind = if vectors { Indices::Vectors } else { Indices::Scalars };
    let updated = cx.scatter(value, indices, updates, kind, reducer)?;
    cx.assign_variable(variable, updated)
}

/// `UnsortedSegment*(data, segment_ids, num_segments)`. Empty segments contain the reduction's
/// identity. Rows with negative ids are dropped.
fn unsorted_segment(cx: &mut NodeContext<'_, '_>, reducer: Reducer) -> Result<InstructionId> {
    let (data, ids) = (cx.input(0)?, cx.input(1)?);
    let segments = cx.bounded_element(2, 0)?;
    let count = segments.bound;
    let (sizes, id_sizes) = (cx.sizes(data), cx.sizes(ids));
    cx.check(count >= 0 && sizes.starts_with(&id_sizes), || {
        format!(
            "expected the data's shape {1} to begin with the segment ids' shape {0}, and num_segments >= 0, got {count}",
            list(&id_sizes),
            list(&sizes)
        )
    })?;
    let element_type = cx.element_type(data);
    let neutral = match (reducer, element_type.is_floating_point()) {
        // TensorFlow's segments start at the lowest finite number.
        (Reducer::Maximum | Reducer::Minimum, true) => finite_limit(element_type, reducer),
        _ => reducer.neutral(element_type),
    };
    let neutral = cx.literal(neutral);
    let result = [&[count][..], &sizes[id_sizes.len()..]].concat();
    let start = cx.broadcast(neutral, &result, &[])?;
    // The rows of a segment are as large as those of the data.
    let rows = cx.split(data)?.sizes.split_off(id_sizes.len());
    let start = cx.bounded(start, &[&[segments.size], &rows[..]].concat())?;
    cx.scatter(start, ids, data, Indices::Scalars, reducer)
}

/// The lowest or the largest finite number of a floating-point type.
pub(crate) fn finite_limit(element_type: PrimitiveType, reducer: Reducer) -> shape::Literal {
    let largest = match element_type {
        PrimitiveType::F16 => 65504.0,
        PrimitiveType::Bf16 => f64::from(f32::from_bits(0x7f7f_0000)),
        PrimitiveType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    bounded::scalar_literal(element_type, if reducer == Reducer::Maximum { -largest } else { largest })
}

/// `SegmentSum(data, segment_ids)` and similar ops: combines rows of equal ids. Ids without rows
/// yield 0, or 1 for products. The ids must be known at compile time, because the last one
/// determines the result's shape.
fn known_segments(cx: &mut NodeContext<'_, '_>, reducer: Reducer) -> Result<InstructionId> {
    let (data, ids) = (cx.input(0)?, cx.input(1)?);
    let known = cx.constant_i64s(1)?;
    let (sizes, id_sizes) = (cx.sizes(data), cx.sizes(ids));
    let ascends = known.is_sorted() && known.first().is_none_or(|&id| id >= 0);
    cx.check(ascends && id_sizes.len() == 1 && sizes.first() == id_sizes.first(), || {
        format!(
            "segment_ids: expected a vector of sorted numbers >= 0, one for each row of the data {}, got shape {}",
            list(&sizes),
            list(&id_sizes)
        )
    })?;
    let count = known.last().map_or(0, |&last| last.saturating_add(1));
    let result = [&[count][..], &sizes[1..]].concat();
    cx.check(element_count(&result).is_some(), || format!("the result is too large: {}", list(&result)))?;
    let element_type = cx.element_type(data);
    let neutral = cx.literal(reducer.neutral(element_type));
    let start = cx.broadcast(neutral, &result, &[])?;
    let combined = cx.scatter(start, ids, data, Indices::Scalars, reducer)?;
    if matches!(reducer, Reducer::Add | Reducer::Multiply) || result.contains(&0) {
        return Ok(combined);
    }
    // The maximum and the minimum of no rows are 0.
    let empty = cx.splat(PrimitiveType::S32, &[count], 0.0)?;
    let ones = cx.splat(PrimitiveType::S32, &id_sizes, 1.0)?;
    let filled = cx.scatter(empty, ids, ones, Indices::Scalars, Reducer::Replace)?;
    let filled = cx.compare_scalar(ComparisonDirection::Ne, filled, 0.0)?;
    let filled = cx.broadcast(filled, &result, &[0])?;
    let zero = cx.splat_like(combined, 0.0)?;
    cx.select(filled, combined, zero)
}
