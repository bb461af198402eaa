//! Sequences.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::Size;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{PrimitiveType, Scalar};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Range", range).types("Tidx", REAL),
    rule("LinSpace", lin_space).types("T", FLOATS).types("Tidx", INDICES),
];

/// `Range(start, limit, delta)`: `start, start + delta, ...` before `limit`.
fn range(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    if let Some(range) = bounded_range(cx)? {
        return Ok(range);
    }
    let mut bounds = Vec::new();
    for k in 0..3 {
        let literal = cx.constant(k)?;
        let count = literal.array_shape().element_count();
        cx.check(count == 1, || format!("input {k}: expected a scalar, got {count} elements"))?;
        bounds.push(literal.scalar_at(0));
    }
    let (start_input, delta_input) = (cx.input(0)?, cx.input(2)?);
    let element_type = cx.element_type(start_input);
    let size = if element_type.is_integer() {
        integer_count(cx, &bounds)?
    } else {
        float_count(cx, &bounds, element_type)?
    };
    let (start, delta) = (cx.reshape(start_input, &[])?, cx.reshape(delta_input, &[])?);
    let steps = cx.iota(element_type, &[size], 0)?;
    let (start, delta) = (cx.broadcast(start, &[size], &[])?, cx.broadcast(delta, &[size], &[])?);
    let offsets = cx.mul(delta, steps)?;
    cx.add(start, offsets)
}

/// Returns a range of integers with run-time inputs whose length is bounded, such as `Range(0, n,
/// 1)`.
fn bounded_range(cx: &mut NodeContext<'_, '_>) -> Result<Option<InstructionId>> {
    let inputs = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let element_type = cx.element_type(inputs[0]);
    let is_known = inputs.iter().all(|&id| cx.fold(id).is_some());
    if !is_known && element_type.is_floating_point() {
        return range_of_whole_floats(cx, inputs);
    }
    if is_known || !matches!(element_type, PrimitiveType::S32 | PrimitiveType::S64) {
        return Ok(None);
    }
    let delta = cx.constant_i64(2)?;
    range_of_integers(cx, inputs, delta)
}

/// Returns a range of floats that are integers: converted ones, or whole constants.
fn range_of_whole_floats(
    cx: &mut NodeContext<'_, '_>,
    inputs: [InstructionId; 3],
) -> Result<Option<InstructionId>> {
    let element_type = cx.element_type(inputs[0]);
    let largest = if element_type == PrimitiveType::F64 { 1i64 << 31 } else { 1 << 24 };
    let mut whole = Vec::new();
    for id in inputs {
        let id = cx.reshape(id, &[])?;
        let instruction = &cx.scope().computation()[id];
        let converted = matches!(instruction.op(), Op::Convert {}).then(|| instruction.operands()[0]);
        let converted = converted.filter(|&id| cx.element_type(id).is_signed_integer());
        let integer = match (cx.fold(id), converted) {
            (Some(known), _) => {
                let value =
                    known.scalar_at(0).as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 1e9);
                value.map(|value| cx.scalar(PrimitiveType::S64, value))
            }
            (None, Some(integer)) => Some(cx.convert(integer, PrimitiveType::S64)?),
            (None, None) => None,
        };
        let Some(integer) = integer else { return Ok(None) };
        let range = cx.size_range(Size { bound: 0, size: Some(integer) });
        let is_exact = |end: Option<i64>| end.is_some_and(|end| end.abs() < largest);
        if !is_exact(range.low) || !is_exact(range.high) {
            return Ok(None);
        }
        whole.push(integer);
    }
    let Some(delta) = cx.fold(whole[2]).and_then(|delta| delta.scalar_at(0).as_i64()) else {
        return Ok(None);
    };
    let range = range_of_integers(cx, [whole[0], whole[1], whole[2]], delta)?;
    range.map(|range| cx.convert(range, element_type)).transpose()
}

/// Returns a range of integers with a known step.
fn range_of_integers(
    cx: &mut NodeContext<'_, '_>,
    inputs: [InstructionId; 3],
    delta: i64,
) -> Result<Option<InstructionId>> {
    let element_type = cx.element_type(inputs[0]);
    cx.check(delta != 0, || "delta must not be 0".to_owned())?;
    let [start, limit] = [cx.reshape(inputs[0], &[])?, cx.reshape(inputs[1], &[])?];
    let step = delta.unsigned_abs();
    let (first, last) = if delta > 0 { (start, limit) } else { (limit, start) };
    let ends = cx.linear_element(last, 0).zip(cx.linear_element(first, 0));
    let known = ends.filter(|(last, first)| last.base == first.base);
    if let Some(span) = known.and_then(|(last, first)| last.offset.checked_sub(first.offset)) {
        let size = span.max(0).unsigned_abs().div_ceil(step) as i64;
        let steps = cx.iota(element_type, &[size], 0)?;
        let offsets = cx.mul_scalar(steps, delta as f64)?;
        let start = cx.broadcast(start, &[size], &[])?;
        return Ok(Some(cx.add(start, offsets)?));
    }
    let span = cx.largest_difference(last, first);
    let Some(bound) = span.map(|span| span.max(0) as u64).filter(|&span| span < i32::MAX as u64) else {
        let unknown = if cx.fold(limit).is_none() { 1 } else { 0 };
        return Err(cx.not_constant(unknown, inputs[unknown]));
    };
    let bound = bound.div_ceil(step) as i64;
    let span = cx.sub(last, first)?;
    let span = cx.add_scalar(span, (step - 1) as f64)?;
    let step = cx.splat_like(span, step as f64)?;
    let count = cx.div(span, step)?;
    let none = cx.splat_like(count, 0.0)?;
    let count = cx.op(Op::Maximum {}, &[count, none])?;
    let count = cx.convert(count, PrimitiveType::S32)?;
    let steps = cx.iota(element_type, &[bound], 0)?;
    let offsets = cx.mul_scalar(steps, delta as f64)?;
    let start = cx.broadcast(start, &[bound], &[])?;
    let values = cx.add(start, offsets)?;
    Ok(Some(cx.bounded(values, &[Some(count)])?))
}

fn integer_count(cx: &NodeContext<'_, '_>, bounds: &[Scalar]) -> Result<i64> {
    let value = |scalar: &Scalar| match *scalar {
        Scalar::Unsigned(value) => i128::from(value),
        other => i128::from(other.as_i64().unwrap_or_default()),
    };
    let (start, limit, delta) = (value(&bounds[0]), value(&bounds[1]), value(&bounds[2]));
    cx.check(delta != 0, || "delta must not be 0".to_owned())?;
    cx.check(start == limit || (start < limit) == (delta > 0), || {
        format!("steps of {delta} do not lead from {start} to {limit}")
    })?;
    let count = (limit - start).unsigned_abs().div_ceil(delta.unsigned_abs());
    i64::try_from(count).map_err(|_| cx.invalid("the range has too many elements"))
}

/// Rounds the quotient as the type's own arithmetic does.
fn float_count(cx: &NodeContext<'_, '_>, bounds: &[Scalar], element_type: PrimitiveType) -> Result<i64> {
    let value = |scalar: &Scalar| scalar.as_f64().unwrap_or(f64::NAN);
    let (start, limit, delta) = (value(&bounds[0]), value(&bounds[1]), value(&bounds[2]));
    cx.check(delta != 0.0, || "delta must not be 0".to_owned())?;
    cx.check(start == limit || (start < limit) == (delta > 0.0), || {
        format!("steps of {delta} do not lead from {start} to {limit}")
    })?;
    let count = match element_type {
        PrimitiveType::F64 => ((limit - start) / delta).abs().ceil(),
        _ => f64::from((((limit as f32) - (start as f32)) / (delta as f32)).abs().ceil()),
    };
    // NaN and infinity fail the comparison.
    cx.check(count < 9e15, || format!("the range has too many elements: {count}"))?;
    Ok(count as i64)
}

/// `LinSpace(start, stop, num)`: `num` values in equal steps, the last of which is exactly `stop`.
fn lin_space(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let num = cx.constant_i64(2)?;
    cx.check(num > 0, || format!("num: expected a positive number, got {num}"))?;
    let (start, stop) = (cx.input(0)?, cx.input(1)?);
    let (start, stop) = (cx.reshape(start, &[])?, cx.reshape(stop, &[])?);
    let element_type = cx.element_type(start);
    let difference = cx.sub(stop, start)?;
    let steps = cx.scalar(element_type, (num - 1).max(1) as f64);
    let step = cx.div(difference, steps)?;
    let positions = cx.iota(element_type, &[num], 0)?;
    let (step, start) = (cx.broadcast(step, &[num], &[])?, cx.broadcast(start, &[num], &[])?);
    let offsets = cx.mul(positions, step)?;
    let values = cx.add(offsets, start)?;
    if num == 1 {
        return Ok(values);
    }
    let index = cx.iota(PrimitiveType::S64, &[num], 0)?;
    let is_last = cx.compare_scalar(ComparisonDirection::Eq, index, (num - 1) as f64)?;
    let stop = cx.broadcast(stop, &[num], &[])?;
    cx.select(is_last, stop, values)
}
