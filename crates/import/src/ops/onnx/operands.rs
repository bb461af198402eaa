//! The inputs of a node of an ONNX model, some of which may be left out, and its attributes.

use crate::node::context::NodeContext;
use bounded::list;
use hlo::InstructionId;
use shape::{Literal, PrimitiveType};
use support::Result;

/// The input of the node for an input of the file, unless it is left out.
pub(crate) fn place(cx: &NodeContext<'_, '_>, k: usize) -> Result<Option<usize>> {
    let places = cx.attributes().ints("operands")?;
    Ok(places.get(k).and_then(|&place| usize::try_from(place).ok()))
}

/// Number of inputs in the file.
pub(crate) fn count(cx: &NodeContext<'_, '_>) -> Result<usize> {
    Ok(cx.attributes().ints("operands")?.len())
}

/// An input that may be left out.
pub(crate) fn optional(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<Option<InstructionId>> {
    match place(cx, k)? {
        Some(place) => cx.input(place).map(Some),
        None => Ok(None),
    }
}

/// An input.
pub(crate) fn required(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<InstructionId> {
    optional(cx, k)?.ok_or_else(|| cx.invalid(format!("input {k} is missing")))
}

/// The input of the node for an input that must be there.
pub(crate) fn required_place(cx: &NodeContext<'_, '_>, k: usize) -> Result<usize> {
    place(cx, k)?.ok_or_else(|| cx.invalid(format!("input {k} is missing")))
}

/// Integers that older versions state as an attribute, and newer ones as an input.
pub(crate) fn integers(cx: &mut NodeContext<'_, '_>, attribute: &str, k: usize) -> Result<Option<Vec<i64>>> {
    if cx.attributes().has(attribute) {
        return cx.attributes().ints(attribute).map(Some);
    }
    match place(cx, k)? {
        Some(place) => cx.constant_i64s(place).map(Some),
        None => Ok(None),
    }
}

/// The value of an input that must be known when compiling, if it is there.
pub(crate) fn constant(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<Option<Literal>> {
    match place(cx, k)? {
        Some(place) => cx.constant(place).map(Some),
        None => Ok(None),
    }
}

/// The number of an input that must be known when compiling, if it is there.
pub(crate) fn number(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<Option<f64>> {
    let Some(literal) = constant(cx, k)? else { return Ok(None) };
    let count = literal.array_shape().element_count();
    cx.check(count == 1, || format!("input {k}: expected one number, got {count}"))?;
    let scalar = literal.scalar_at(0);
    Ok(scalar.as_f64())
}

/// The version of the ops.
pub(crate) fn opset(cx: &NodeContext<'_, '_>) -> Result<i64> {
    cx.attributes().int("opset")
}

/// A float attribute.
pub(crate) fn float(cx: &NodeContext<'_, '_>, name: &str, default: f32) -> Result<f64> {
    cx.attributes().float_or(name, default).map(f64::from)
}

/// An attribute that is 0 or another integer.
pub(crate) fn flag(cx: &NodeContext<'_, '_>, name: &str, default: bool) -> Result<bool> {
    Ok(cx.attributes().int_or(name, i64::from(default))? != 0)
}

/// Dimension numbers for axes, each once.
pub(crate) fn dimensions(cx: &NodeContext<'_, '_>, axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut dimensions = Vec::new();
    for &axis in axes {
        let dimension = cx.dimension(axis, rank)?;
        cx.check(!dimensions.contains(&dimension), || format!("axis {axis} occurs twice in {}", list(axes)))?;
        dimensions.push(dimension);
    }
    Ok(dimensions)
}

/// Indices from 0 on for indices of which negative ones count from the end.
pub(crate) fn wrapped(
    cx: &mut NodeContext<'_, '_>,
    indices: InstructionId,
    size: i64,
) -> Result<InstructionId> {
    let element_type = cx.element_type(indices);
    if element_type.is_unsigned_integer() {
        return Ok(indices);
    }
    let indices =
        if element_type.byte_size() < 4 { cx.convert(indices, PrimitiveType::S32)? } else { indices };
    if let Some(literal) = cx.fold(indices)
        && literal.to_i64s().is_some_and(|values| values.iter().all(|&value| value >= 0))
    {
        return Ok(indices);
    }
    let is_negative = cx.compare_scalar(hlo::ComparisonDirection::Lt, indices, 0.0)?;
    let from_end = cx.add_scalar(indices, size as f64)?;
    cx.select(is_negative, from_end, indices)
}
