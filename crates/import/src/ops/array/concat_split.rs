//! Joins and splits of arrays.

use crate::lists::whole_ops::{pack_lists, unpack_lists};
use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many, rule_values};
use crate::values::value::Value;
use bounded::{Size, list};
use hlo::InstructionId;
use support::{Code, Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("Concat", |cx| concat(cx, 0)).types("T", ALL),
    rule("ConcatV2", concat_v2).types("T", ALL),
    rule_values("Pack", pack_values).types("T", ALL_AND_VARIANTS),
    rule_values("Unpack", unpack_values).types("T", ALL_AND_VARIANTS),
    rule_many("Split", split).types("T", ALL),
    rule_many("SplitV", split_v).types("T", ALL),
];

/// `ConcatV2(x0, x1, ..., axis)`.
fn concat_v2(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let last = cx.inputs().len().saturating_sub(1);
    concat(cx, last)
}

/// Concatenates all inputs except the axis.
fn concat(cx: &mut NodeContext<'_, '_>, axis_input: usize) -> Result<InstructionId> {
    let axis = cx.constant_i64(axis_input)?;
    let mut inputs = Vec::new();
    for k in (0..cx.inputs().len()).filter(|&k| k != axis_input) {
        let x = cx.input(k)?;
        // Scalars are concatenated as vectors of one element.
        let x = if cx.rank(x) == 0 { cx.reshape(x, &[1])? } else { x };
        inputs.push(x);
    }
    let first = *inputs.first().ok_or_else(|| cx.invalid("expected at least one input"))?;
    let sizes = cx.sizes(first);
    let axis = cx.dimension(axis, sizes.len())?;
    for &input in &inputs {
        let other = cx.sizes(input);
        let fits = other.len() == sizes.len() && (0..sizes.len()).all(|d| d == axis || other[d] == sizes[d]);
        cx.check(fits, || {
            format!(
                "the shapes differ in dimensions other than {axis}: {} vs. {}",
                list(&sizes),
                list(&other)
            )
        })?;
    }
    cx.concatenate(&inputs, axis)
}

/// `Pack` of arrays, or of tensor lists.
fn pack_values(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    match cx.inputs().first() {
        Some(Value::List(_)) => pack_lists(cx),
        _ => Ok(vec![Value::Array(pack(cx)?)]),
    }
}

/// `Unpack` of an array, or of a vector of tensor lists.
fn unpack_values(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    match cx.inputs().first() {
        Some(Value::List(_)) => unpack_lists(cx),
        _ => Ok(unpack(cx)?.into_iter().map(Value::Array).collect()),
    }
}

/// `Pack(x0, x1, ...)`: stacks the inputs along a new dimension.
fn pack(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let inputs = cx.inputs_from(0)?;
    let first = *inputs.first().ok_or_else(|| cx.invalid("expected at least one input"))?;
    let sizes = cx.sizes(first);
    let axis = cx.attributes().int_or("axis", 0)?;
    let axis = cx.dimension(axis, sizes.len() + 1)?;
    let mut parts = Vec::new();
    for input in inputs {
        let other = cx.sizes(input);
        cx.check(other == sizes, || {
            format!("the inputs have different shapes: {} vs. {}", list(&sizes), list(&other))
        })?;
        let mut own = cx.all_sizes(input)?;
        own.insert(axis, Size::known(1));
        parts.push(cx.reshape_to(input, &own)?);
    }
    cx.concatenate(&parts, axis)
}

/// `Unpack(x)`: one output for each index of a dimension.
fn unpack(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let axis = cx.attributes().int_or("axis", 0)?;
    let axis = cx.dimension(axis, cx.rank(x))?;
    let x = cx.with_needed_size(x, axis, cx.node().output_types.len() as i64)?;
    let mut sizes = cx.sizes(x);
    let count = sizes.remove(axis);
    check_outputs(cx, count)?;
    (0..count)
        .map(|i| {
            let part = cx.slice_in(x, axis, i, i + 1)?;
            if cx.is_bounded(part) {
                let mut remaining = cx.all_sizes(part)?;
                remaining.remove(axis);
                return cx.reshape_to(part, &remaining);
            }
            cx.reshape(part, &sizes)
        })
        .collect()
}

/// Checks that the size of a dimension to be split is known.
fn check_known(cx: &NodeContext<'_, '_>, x: InstructionId, axis: usize) -> Result<()> {
    if cx.array(x).dimensions[axis].is_dynamic {
        Err(Error::unsupported(format!(
            "cannot split dimension {axis}, whose size is data-dependent; slice it instead"
        ))
        .coded(Code::BoundedSize))
    } else {
        Ok(())
    }
}

/// Checks the number of parts against the node's outputs.
fn check_outputs(cx: &NodeContext<'_, '_>, count: i64) -> Result<()> {
    let outputs = cx.node().output_types.len();
    cx.check(usize::try_from(count) == Ok(outputs), || {
        format!("the node has {outputs} outputs, but the tensor has {count} parts")
    })
}

/// `Split(axis, x)` into parts of equal size.
fn split(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let axis = cx.constant_i64(0)?;
    let x = cx.input(1)?;
    let sizes = cx.sizes(x);
    let axis = cx.dimension(axis, sizes.len())?;
    let count = cx.node().output_types.len() as i64;
    if cx.array(x).dimensions[axis].is_dynamic && count > 0 {
        return split_bounded(cx, x, axis, count);
    }
    cx.check(count > 0 && sizes[axis] % count == 0, || {
        format!("dimension {axis} of {} does not divide evenly into {count} parts", list(&sizes))
    })?;
    let size = sizes[axis] / count;
    (0..count).map(|i| cx.slice_in(x, axis, i * size, (i + 1) * size)).collect()
}

/// Splits a dimension of data-dependent size into parts of equal size. A run in which they would
/// not be equal fails, unless the size is known to be a multiple.
pub(crate) fn split_bounded(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axis: usize,
    count: i64,
) -> Result<Vec<InstructionId>> {
    let message = format!("dimension {axis} does not divide evenly into {count} parts");
    let whole = cx.all_sizes(x)?[axis];
    let Some(length) = cx.size_quotient(whole, count)? else {
        return Err(Error::unsupported(format!("the size of the parts of dimension {axis} is unknown"))
            .coded(Code::BoundedSize));
    };
    let all = cx.size_sum(Size::known(0), length, count)?;
    let difference = all.and_then(|all| cx.known_difference(all, whole));
    cx.check(difference.is_none_or(|difference| difference == 0), || message.clone())?;
    let length_value = cx.size_value(length)?;
    if difference.is_none() {
        let all = cx.mul_scalar(length_value, count as f64)?;
        let whole = cx.size_value(whole)?;
        let is_even = cx.compare(hlo::ComparisonDirection::Eq, all, whole)?;
        let node = cx.node().name.clone();
        cx.assert(is_even, format!("node '{node}': {message}"))?;
    }
    (0..count)
        .map(|k| {
            let begin = cx.mul_scalar(length_value, k as f64)?;
            cx.take(x, axis, begin, 1, length)
        })
        .collect()
}

/// `SplitV(x, sizes, axis)`. One size may be -1, which means the rest.
fn split_v(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let mut parts = cx.constant_i64s(1)?;
    let axis = cx.constant_i64(2)?;
    let axis = cx.dimension(axis, cx.rank(x))?;
    check_outputs(cx, parts.len() as i64)?;
    let known = parts.iter().filter(|&&size| size != -1).try_fold(0i64, |sum, &size| sum.checked_add(size));
    let x = match known {
        Some(size) if !parts.contains(&-1) => cx.with_needed_size(x, axis, size)?,
        _ => x,
    };
    check_known(cx, x, axis)?;
    let sizes = cx.sizes(x);
    let rest = known.map(|known| sizes[axis] - known);
    if let (Some(rest), Some(open)) = (rest, parts.iter_mut().find(|size| **size == -1)) {
        *open = rest;
    }
    let sum = parts.iter().try_fold(0i64, |sum, &size| sum.checked_add(size));
    cx.check(parts.iter().all(|&size| size >= 0) && sum == Some(sizes[axis]), || {
        format!(
            "the sizes {} of the parts do not add up to dimension {axis} of {}",
            list(&parts),
            list(&sizes)
        )
    })?;
    let mut start = 0;
    parts
        .into_iter()
        .map(|size| {
            let part = cx.slice_in(x, axis, start, start + size)?;
            start += size;
            Ok(part)
        })
        .collect()
}
