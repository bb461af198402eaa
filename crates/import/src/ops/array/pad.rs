//! Padding.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::list;
use hlo::InstructionId;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Pad", |cx| pad(cx, false)).types("T", ALL),
    rule("PadV2", |cx| pad(cx, true)).types("T", ALL),
    rule("MirrorPad", mirror_pad).types("T", ALL),
    rule("MirrorPadGrad", mirror_pad_grad).types("T", ALL),
];

/// Returns a pair (before, after) for each dimension, from input 1.
fn paddings(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<Vec<(i64, i64)>> {
    let literal = cx.constant(1)?;
    let sizes = literal.array_shape().sizes();
    // An empty array has no pairs.
    let is_matrix = sizes == [rank as i64, 2] || (rank == 0 && literal.array_shape().element_count() == 0);
    cx.check(is_matrix, || {
        format!(
            "paddings: expected a matrix [{rank}, 2] with a pair for each dimension, got shape {}",
            list(&sizes)
        )
    })?;
    let values = literal.to_i64s().ok_or_else(|| cx.invalid("paddings: expected integers"))?;
    cx.check(values.iter().all(|&value| value >= 0), || "paddings: expected numbers >= 0".to_owned())?;
    Ok(values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// Pads an array with 0 or the scalar at input 2.
fn pad(cx: &mut NodeContext<'_, '_>, has_value: bool) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (rank, element_type) = (cx.rank(x), cx.element_type(x));
    let padding: Vec<(i64, i64, i64)> =
        paddings(cx, rank)?.into_iter().map(|(low, high)| (low, high, 0)).collect();
    let value = if has_value {
        let value = cx.input(2)?;
        cx.reshape(value, &[])?
    } else {
        cx.scalar(element_type, 0.0)
    };
    cx.pad(x, value, &padding)
}

/// Returns 1 if the mirror image omits the element at the edge (`REFLECT`), or 0 if it repeats it
/// (`SYMMETRIC`).
fn excluded_edge(cx: &NodeContext<'_, '_>) -> Result<i64> {
    match cx.attributes().text("mode")? {
        "REFLECT" => Ok(1),
        "SYMMETRIC" => Ok(0),
        other => Err(cx.invalid(format!("mode: expected REFLECT or SYMMETRIC, got '{other}'"))),
    }
}

/// Pads the array with its mirror image at each end.
fn mirror_pad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let edge = excluded_edge(cx)?;
    for (dimension, (low, high)) in paddings(cx, sizes.len())?.into_iter().enumerate().rev() {
        let size = sizes[dimension];
        cx.check(low <= size - edge && high <= size - edge, || {
            format!(
                "dimension {dimension} of {} is too short to mirror {low} and {high} elements",
                list(&sizes)
            )
        })?;
        let mut parts = Vec::new();
        if low > 0 {
            let part = cx.slice_in(x, dimension, edge, edge + low)?;
            parts.push(cx.reverse(part, vec![dimension])?);
        }
        parts.push(x);
        if high > 0 {
            let part = cx.slice_in(x, dimension, size - edge - high, size - edge)?;
            parts.push(cx.reverse(part, vec![dimension])?);
        }
        x = cx.concatenate(&parts, dimension)?;
    }
    Ok(x)
}

/// The gradient of `MirrorPad`: the center, plus the mirrored edges added to the elements that they
/// copy.
fn mirror_pad_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut grad = cx.input(0)?;
    let sizes = cx.sizes(grad);
    let edge = excluded_edge(cx)?;
    let element_type = cx.element_type(grad);
    let zero = cx.scalar(element_type, 0.0);
    for (dimension, (low, high)) in paddings(cx, sizes.len())?.into_iter().enumerate().rev() {
        let size = sizes[dimension];
        let core_size = size - low - high;
        cx.check(low <= core_size - edge && high <= core_size - edge, || {
            format!("dimension {dimension} of {} is too short for paddings {low} and {high}", list(&sizes))
        })?;
        let mut sum = cx.slice_in(grad, dimension, low, size - high)?;
        for (start, limit, before) in [(0, low, edge), (size - high, size, core_size - high - edge)] {
            let part = cx.slice_in(grad, dimension, start, limit)?;
            let part = cx.reverse(part, vec![dimension])?;
            let mut padding = vec![(0, 0, 0); sizes.len()];
            padding[dimension] = (before, core_size - before - (limit - start), 0);
            let part = cx.pad(part, zero, &padding)?;
            sum = cx.add(sum, part)?;
        }
        grad = sum;
    }
    Ok(grad)
}
