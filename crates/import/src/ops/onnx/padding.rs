//! Padding.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::array::pad::pad_at_run_time;
use crate::ops::onnx::operands::{dimensions, integers, optional, place, required};
use bounded::{Size, list};
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[rule("OnnxPad", pad)];

/// Positions before the beginning and beyond the end of an axis, mapped into it.
fn source(position: i64, size: i64, mode: &str) -> i64 {
    match mode {
        "edge" => position.clamp(0, size - 1),
        "wrap" => position.rem_euclid(size),
        _ if size == 1 => 0,
        _ => {
            let period = 2 * (size - 1);
            let within = position.rem_euclid(period);
            if within < size { within } else { period - within }
        }
    }
}

fn pad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = required(cx, 0)?;
    let rank = cx.rank(x);
    let attribute = if cx.attributes().has("paddings") { "paddings" } else { "pads" };
    if let Some(padded) = padded_at_run_time(cx, x, attribute)? {
        return Ok(padded);
    }
    let pads = integers(cx, attribute, 1)?.ok_or_else(|| cx.invalid("the pads are missing"))?;
    let axes = match place(cx, 3)? {
        Some(place) => {
            let axes = cx.constant_i64s(place)?;
            dimensions(cx, &axes, rank)?
        }
        None => (0..rank).collect(),
    };
    cx.check(pads.len() == 2 * axes.len(), || format!("{} pads do not fit {} axes", pads.len(), axes.len()))?;
    cx.check(pads.iter().all(|pad| pad.abs() < 1 << 40), || format!("pads {} are too large", list(&pads)))?;
    let mut padding = vec![(0, 0, 0); rank];
    for (k, &axis) in axes.iter().enumerate() {
        padding[axis] = (pads[k], pads[k + axes.len()], 0);
    }
    let sizes = cx.sizes(x);
    let fits = padding.iter().zip(&sizes).all(|(pad, size)| size + pad.0 + pad.1 >= 0);
    cx.check(fits, || format!("pads {} crop more than there is of {}", list(&pads), list(&sizes)))?;
    let mode = cx.text_or("mode", "constant")?;
    if mode == "constant" {
        let value = match optional(cx, 2)? {
            Some(value) => cx.reshape(value, &[])?,
            None => {
                let (element_type, value) = (cx.element_type(x), cx.attributes().float_or("value", 0.0)?);
                cx.scalar(element_type, f64::from(value))
            }
        };
        return cx.pad(x, value, &padding);
    }
    cx.check(matches!(mode, "reflect" | "edge" | "wrap"), || format!("mode '{mode}' does not exist"))?;
    for (axis, &(low, high, _)) in padding.iter().enumerate().filter(|(_, pad)| (pad.0, pad.1) != (0, 0)) {
        let size = sizes[axis];
        if cx.array(x).dimensions[axis].is_dynamic {
            x = repeated_beyond(cx, x, axis, [low, high], mode)?;
            continue;
        }
        let total = size + low + high;
        cx.check(size > 0 || total == 0, || format!("dimension {axis} has no elements to repeat"))?;
        cx.check(total < 1 << 28, || format!("a dimension of {total} elements is too long"))?;
        let positions: Vec<i64> = (-low..size + high).map(|position| source(position, size, mode)).collect();
        let positions = cx.integers(PrimitiveType::S64, &positions)?;
        x = cx.gather_along(x, positions, axis as i64, 0)?;
    }
    Ok(x)
}

/// Pads all dimensions with a value, if the numbers are only known at run time.
fn padded_at_run_time(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    attribute: &str,
) -> Result<Option<InstructionId>> {
    let (Some(input), None, false) = (place(cx, 1)?, place(cx, 3)?, cx.attributes().has(attribute)) else {
        return Ok(None);
    };
    let (numbers, rank) = (cx.input(input)?, cx.rank(x));
    let is_static = cx.fold(numbers).is_some() || cx.is_bounded(numbers);
    if is_static || cx.sizes(numbers) != [2 * rank as i64] || cx.text_or("mode", "constant")? != "constant" {
        return Ok(None);
    }
    let value = match optional(cx, 2)? {
        Some(value) => cx.reshape(value, &[])?,
        None => {
            let element_type = cx.element_type(x);
            cx.scalar(element_type, 0.0)
        }
    };
    pad_at_run_time(cx, x, value, &|dimension, end| Some((input, end * rank + dimension))).map(Some)
}

/// Pads a dimension of open size with its own elements.
fn repeated_beyond(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axis: usize,
    [low, high]: [i64; 2],
    mode: &str,
) -> Result<InstructionId> {
    let size = cx.all_sizes(x)?[axis];
    let total = cx.size_sum(size, Size::known(1), low + high)?.filter(|total| total.bound < 1 << 28);
    let total = total.ok_or_else(|| cx.invalid(format!("pads {low} and {high} of dimension {axis}")))?;
    let own = cx.size_value(size)?;
    let ones = [total.bound];
    let spread = |cx: &mut NodeContext<'_, '_>, scalar| cx.broadcast(scalar, &ones, &[]);
    let one = cx.s32(1)?;
    let last = cx.sub(own, one)?;
    let (own, last) = (spread(cx, own)?, spread(cx, last)?);
    let position = cx.iota(PrimitiveType::S32, &ones, 0)?;
    let position = cx.add_scalar(position, -low as f64)?;
    // The remainder of a division that rounds down.
    let modulo = |cx: &mut NodeContext<'_, '_>, a, b| {
        let rest = cx.op(Op::Remainder {}, &[a, b])?;
        let rest = cx.add(rest, b)?;
        cx.op(Op::Remainder {}, &[rest, b])
    };
    let zero = cx.splat_like(position, 0.0)?;
    let source = match mode {
        "edge" => cx.op(Op::Clamp {}, &[zero, position, last])?,
        "wrap" => modulo(cx, position, own)?,
        _ => {
            let period = cx.add(last, last)?;
            let ones = cx.splat_like(period, 1.0)?;
            let period = cx.op(Op::Maximum {}, &[period, ones])?;
            let within = modulo(cx, position, period)?;
            let mirrored = cx.sub(period, within)?;
            let source = cx.op(Op::Minimum {}, &[within, mirrored])?;
            // A single element is its own image.
            cx.op(Op::Minimum {}, &[source, last])?
        }
    };
    let source = cx.bounded(source, &[total.size])?;
    cx.gather_along(x, source, axis as i64, 0)
}
