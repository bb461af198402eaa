//! Ops that keep one of several equal elements. Their results are of bounded size.
//!
//! Elements, or rows of them, are identified by keys: integers that are equal if the elements are.
//! Sorting by one column of keys after the other numbers the groups of equal ones. The first
//! element of each group represents it.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_many};
use bounded::Reducer;
use hlo::{
    ComparisonDirection, ComparisonType, ComputationBuilder, ComputationId, InstructionId, Op,
    ScatterDimensionNumbers,
};
use shape::PrimitiveType::{self, S32};
use shape::index::element_count;
use shape::{Scalar, Shape};
use std::collections::BTreeSet;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("Unique", |cx| unique(cx, false)).types("T", ALL).types("out_idx", INDICES),
    rule_many("UniqueV2", |cx| unique_v2(cx, false)).types("T", ALL).types("out_idx", INDICES),
    rule_many("UniqueWithCounts", |cx| unique(cx, true)).types("T", ALL).types("out_idx", INDICES),
    rule_many("UniqueWithCountsV2", |cx| unique_v2(cx, true)).types("T", ALL).types("out_idx", INDICES),
    rule_many("ListDiff", list_diff).types("T", INDICES).types("out_idx", INDICES),
];

/// `Unique(x)`: the distinct elements of a vector in order of first occurrence, the index of each
/// element among them, and optionally the number of occurrences of each. NaN differs from itself.
fn unique(cx: &mut NodeContext<'_, '_>, with_counts: bool) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let rank = cx.rank(x);
    cx.check(rank == 1, || format!("unique expects a 1D vector, but the input has rank {rank}"))?;
    distinct(cx, x, 0, with_counts)
}

/// `UniqueV2(x, axis)`: like `Unique`, for the slices along an axis. Without an axis, the input
/// must be a vector.
fn unique_v2(cx: &mut NodeContext<'_, '_>, with_counts: bool) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let rank = cx.rank(x);
    let axis = match cx.constant_i64s(1)?.as_slice() {
        [] => {
            cx.check(rank == 1, || format!("expected a vector if there is no axis, got rank {rank}"))?;
            0
        }
        &[axis] => cx.dimension(axis, rank)?,
        axes => return Err(cx.invalid(format!("axis: expected at most one element, got {}", axes.len()))),
    };
    distinct(cx, x, axis, with_counts)
}

fn distinct(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axis: usize,
    with_counts: bool,
) -> Result<Vec<InstructionId>> {
    let index_type = cx.output_type(1)?;
    let split = cx.split(x)?;
    let sizes = cx.sizes(x);
    let inside = (0..sizes.len()).any(|d| d != axis && split.sizes[d].is_some());
    cx.check(!inside, || "a dimension other than the axis has a data-dependent size".to_owned())?;
    let rows = sizes[axis];
    cx.s32(rows)?;
    if rows == 0 {
        let none = cx.splat(index_type, &[0], 0.0)?;
        return Ok(if with_counts { vec![x, none, none] } else { vec![x, none] });
    }
    let (keys, is_nan) = keys(cx, split.data, axis)?;
    let group = groups(cx, keys, rows)?;
    let row = cx.iota(S32, &[rows], 0)?;
    let first = scattered(cx, group, row, rows as f64, Reducer::Minimum)?;
    let mut stands_for = cx.gather_along(first, group, 0, 0)?;
    if let Some(is_nan) = is_nan {
        stands_for = cx.select(is_nan, row, stands_for)?;
    }
    let mut is_first = cx.compare(ComparisonDirection::Eq, stands_for, row)?;
    let mut ones = cx.splat_like(row, 1.0)?;
    if let Some(size) = split.sizes[axis] {
        let exists = cx.before(&[rows], 0, size)?;
        is_first = cx.op(Op::And {}, &[is_first, exists])?;
        ones = cx.convert(exists, S32)?;
    }
    let (_, before) = cx.ranks(is_first)?;
    let number = cx.gather_along(before, stands_for, 0, 0)?;
    let (positions, count) = cx.kept_positions(is_first)?;
    let elements = cx.gather_along(split.data, positions, axis as i64, 0)?;
    let mut true_sizes = vec![None; sizes.len()];
    true_sizes[axis] = Some(count);
    let elements = cx.bounded(elements, &true_sizes)?;
    let numbers = cx.convert(number, index_type)?;
    let mut results = vec![elements, cx.bounded(numbers, &[split.sizes[axis]])?];
    if with_counts {
        let counts = scattered(cx, number, ones, 0.0, Reducer::Add)?;
        let counts = cx.convert(counts, index_type)?;
        results.push(cx.bounded(counts, &[Some(count)])?);
    }
    Ok(results)
}

/// `result[index[i]] op= values[i]` for vectors of one length, starting from `initial`.
pub(crate) fn scattered(
    cx: &mut NodeContext<'_, '_>,
    index: InstructionId,
    values: InstructionId,
    initial: f64,
    reducer: Reducer,
) -> Result<InstructionId> {
    let into = cx.splat_like(values, initial)?;
    let to_apply = cx.reducer(reducer, S32)?;
    let scatter_dimension_numbers = ScatterDimensionNumbers::of_vector();
    let op =
        Op::Scatter { scatter_dimension_numbers, indices_are_sorted: false, unique_indices: false, to_apply };
    cx.op(op, &[into, index, values])
}

/// Returns keys `[columns, rows]` of the slices along an axis, and the rows that contain a NaN, if
/// the type has NaNs.
pub(crate) fn keys(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axis: usize,
) -> Result<(InstructionId, Option<InstructionId>)> {
    let sizes = cx.sizes(x);
    let columns: i64 = element_count(&sizes)
        .zip(Some(sizes[axis]))
        .map_or(0, |(all, rows)| if rows == 0 { 0 } else { all / rows });
    let mut order: Vec<usize> = (0..sizes.len()).filter(|&d| d != axis).collect();
    order.push(axis);
    let x = cx.transpose(x, &order)?;
    let x = cx.reshape(x, &[columns, sizes[axis]])?;
    let element_type = cx.element_type(x);
    let parts = match element_type {
        t if t.is_complex() => vec![cx.op(Op::Real {}, &[x])?, cx.op(Op::Imag {}, &[x])?],
        _ => vec![x],
    };
    let (mut keys, mut is_nan) = (Vec::new(), None);
    for part in parts {
        let element_type = cx.element_type(part);
        if !element_type.is_floating_point() {
            let key = match element_type.bit_width() {
                64 => element_type,
                32 if element_type == PrimitiveType::U32 => PrimitiveType::S64,
                _ => S32,
            };
            keys.push(cx.convert(part, key)?);
            continue;
        }
        let (wide, key) = match element_type {
            PrimitiveType::F64 => (PrimitiveType::F64, PrimitiveType::S64),
            _ => (PrimitiveType::F32, S32),
        };
        let part = cx.convert(part, wide)?;
        let nan = cx.compare(ComparisonDirection::Ne, part, part)?;
        let nan = cx.reduce(nan, Reducer::Or, &[0])?;
        is_nan = Some(match is_nan {
            Some(other) => cx.op(Op::Or {}, &[other, nan])?,
            None => nan,
        });
        // Positive and negative zero are equal.
        let zero = cx.splat_like(part, 0.0)?;
        let is_zero = cx.compare(ComparisonDirection::Eq, part, zero)?;
        let part = cx.select(is_zero, zero, part)?;
        let sizes = cx.sizes(part);
        let shape = Shape::array(key, &sizes);
        let bits = cx.op_shaped(&shape, Op::BitcastConvert {}, &[part])?;
        // The magnitude bits of negative numbers count backward.
        let is_negative = cx.compare_scalar(ComparisonDirection::Lt, bits, 0.0)?;
        let most = cx.literal(bounded::highest(key));
        let most = cx.broadcast(most, &sizes, &[])?;
        let backward = cx.op(Op::Xor {}, &[bits, most])?;
        keys.push(cx.select(is_negative, backward, bits)?);
    }
    Ok((cx.concatenate(&keys, 0)?, is_nan))
}

/// Returns the group number of each row. Rows with equal keys in all columns form a group.
pub(crate) fn groups(cx: &mut NodeContext<'_, '_>, keys: InstructionId, rows: i64) -> Result<InstructionId> {
    let columns = cx.sizes(keys)[0];
    let none = cx.splat(S32, &[rows], 0.0)?;
    match columns {
        0 => Ok(none),
        1 => {
            let keys = cx.reshape(keys, &[rows])?;
            refined(cx, none, keys)
        }
        columns => {
            let count =
                i32::try_from(columns).map_err(|_| cx.invalid("the slices have too many elements"))?;
            let carried = cx.counted_loop(count, &[none, keys], |cx, index, carried| {
                let column = cx.dynamic_row(carried[1], index)?;
                Ok(vec![refined(cx, carried[0], column)?, carried[1]])
            })?;
            Ok(carried[0])
        }
    }
}

/// Splits groups by another key: after sorting by both, a row that differs from its predecessor
/// begins a group.
fn refined(cx: &mut NodeContext<'_, '_>, group: InstructionId, keys: InstructionId) -> Result<InstructionId> {
    let rows = cx.sizes(group);
    let row = cx.iota(S32, &rows, 0)?;
    let to_apply = by_group_and_key(cx, cx.element_type(keys))?;
    let sorted = cx.op(Op::Sort { dimension: 0, is_stable: true, to_apply }, &[group, keys, row])?;
    let (group, keys, order) =
        (cx.tuple_element(sorted, 0)?, cx.tuple_element(sorted, 1)?, cx.tuple_element(sorted, 2)?);
    let mut begins = cx.compare_scalar(ComparisonDirection::Eq, row, 0.0)?;
    for sorted in [group, keys] {
        let element_type = cx.element_type(sorted);
        let zero = cx.literal(shape::Literal::from_scalars(
            shape::ArrayShape::new(element_type, &[]),
            [if element_type.is_signed_integer() { Scalar::Signed(0) } else { Scalar::Unsigned(0) }],
        ));
        let remaining = cx.slice_in(sorted, 0, 0, rows[0] - 1)?;
        let before = cx.pad(remaining, zero, &[(1, 0, 0)])?;
        let differs = cx.compare(ComparisonDirection::Ne, sorted, before)?;
        begins = cx.op(Op::Or {}, &[begins, differs])?;
    }
    let (_, before) = cx.ranks(begins)?;
    let begins = cx.convert(begins, S32)?;
    let number = cx.add(before, begins)?;
    let number = cx.add_scalar(number, -1.0)?;
    let zeros = cx.splat_like(number, 0.0)?;
    cx.replace_rows(zeros, order, number)
}

/// The comparator of a sort by an `s32`, then by a key. A third operand is carried along.
fn by_group_and_key(cx: &mut NodeContext<'_, '_>, key: PrimitiveType) -> Result<ComputationId> {
    let mut builder = ComputationBuilder::new(format!("by_group_and_key.{key}"));
    let [a, b] = ["a", "b"].map(|name| builder.parameter(name, Shape::scalar(S32)));
    let [x, y] = ["x", "y"].map(|name| builder.parameter(name, Shape::scalar(key)));
    let [_, _] = ["i", "j"].map(|name| builder.parameter(name, Shape::scalar(S32)));
    let compare = |direction| Op::Compare { direction, comparison_type: ComparisonType::Default };
    let module = cx.module();
    let less = builder.op(module, compare(ComparisonDirection::Lt), &[a, b])?;
    let same = builder.op(module, compare(ComparisonDirection::Eq), &[a, b])?;
    let key_less = builder.op(module, compare(ComparisonDirection::Lt), &[x, y])?;
    let both = builder.op(module, Op::And {}, &[same, key_less])?;
    let root = builder.op(module, Op::Or {}, &[less, both])?;
    Ok(cx.add_computation(builder.finish(root)))
}

/// `ListDiff(x, y)`: the elements of `x` that are not in `y`, and their positions. If both inputs
/// are known at compile time, so is the result. Otherwise it is of bounded size.
fn list_diff(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    for (name, id) in [("x", x), ("y", y)] {
        let rank = cx.rank(id);
        cx.check(rank == 1, || format!("{name}: expected a vector, got rank {rank}"))?;
    }
    if cx.is_bounded(x) || cx.is_bounded(y) || cx.fold(x).is_none() || cx.fold(y).is_none() {
        return difference(cx, x, y);
    }
    let (x, y) = (cx.constant_i64s(0)?, cx.constant_i64s(1)?);
    let dropped: BTreeSet<i64> = y.into_iter().collect();
    let remaining = (0i64..).zip(x).filter(|(_, value)| !dropped.contains(value));
    let (positions, values): (Vec<i64>, Vec<i64>) = remaining.unzip();
    let (value_type, index_type) = (cx.output_type(0)?, cx.output_type(1)?);
    Ok(vec![cx.integers(value_type, &values)?, cx.integers(index_type, &positions)?])
}

/// Like [`list_diff`], for run-time vectors: compares each element of `x` with each of `y`.
fn difference(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    y: InstructionId,
) -> Result<Vec<InstructionId>> {
    const MOST_PAIRS: i64 = 1 << 32;
    let index_type = cx.output_type(1)?;
    let sizes = [cx.sizes(x)[0], cx.sizes(y)[0]];
    cx.check(sizes[0].checked_mul(sizes[1]).is_some_and(|pairs| pairs <= MOST_PAIRS), || {
        format!("too many pairs to compare: {} by {} elements", sizes[0], sizes[1])
    })?;
    cx.s32(sizes[0])?;
    if sizes[0] == 0 {
        return Ok(vec![x, cx.splat(index_type, &[0], 0.0)?]);
    }
    let (of_x, of_y) = (cx.split(x)?, cx.split(y)?);
    let lhs = cx.broadcast(of_x.data, &sizes, &[0])?;
    let rhs = cx.broadcast(of_y.data, &sizes, &[1])?;
    let mut same = cx.compare(ComparisonDirection::Eq, lhs, rhs)?;
    if let Some(size) = of_y.sizes[0] {
        let exists = cx.before(&sizes, 1, size)?;
        same = cx.op(Op::And {}, &[same, exists])?;
    }
    let is_dropped = cx.reduce(same, Reducer::Or, &[1])?;
    let mut is_kept = cx.op(Op::Not {}, &[is_dropped])?;
    if let Some(size) = of_x.sizes[0] {
        let exists = cx.before(&sizes[..1], 0, size)?;
        is_kept = cx.op(Op::And {}, &[is_kept, exists])?;
    }
    let (positions, count) = cx.kept_positions(is_kept)?;
    let values = cx.gather_along(of_x.data, positions, 0, 0)?;
    let positions = cx.convert(positions, index_type)?;
    Ok(vec![cx.bounded(values, &[Some(count)])?, cx.bounded(positions, &[Some(count)])?])
}
