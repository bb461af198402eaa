//! Sums and products of all elements up to each one.

use crate::context::NodeContext;
use crate::data_types::*;
use crate::rule::{Rule, rule};
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Cumsum", |cx| scan(cx, Op::Add {}, 0.0)).types("T", NUMBERS).types("Tidx", INDICES),
    rule("Cumprod", |cx| scan(cx, Op::Multiply {}, 1.0)).types("T", NUMBERS).types("Tidx", INDICES),
];

/// `result[i] = x[0] op ... op x[i]` along an axis; with `exclusive` without `x[i]`, with `reverse` from the end.
///
/// Elements are combined with those 1, 2, 4, ... before them, so that few steps do for a long axis. Narrow floating point
/// is summed in 32 bits.
fn scan(cx: &mut NodeContext<'_, '_>, op: Op, neutral: f64) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let axis = cx.constant_i64(1)?;
    let axis = cx.dimension(axis, cx.rank(x))?;
    let (exclusive, reverse) =
        (cx.node.attributes.bool_or("exclusive", false)?, cx.node.attributes.bool_or("reverse", false)?);
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
    let mut distance = 1;
    while distance < size {
        let before = moved(cx, sums, axis, distance, neutral)?;
        sums = cx.op(op.clone(), &[before, sums])?;
        distance *= 2;
    }
    if reverse {
        sums = cx.reverse(sums, vec![axis])?;
    }
    cx.convert(sums, element_type)
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
