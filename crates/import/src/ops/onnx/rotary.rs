//! Rotations of pairs of features by angles that follow from positions.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::onnx::attention::{joined_heads, split_heads};
use crate::ops::onnx::operands::{flag, optional, required};
use bounded::list;
use hlo::InstructionId;
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] =
    &[rule("OnnxMsRotaryEmbedding", ms_rotary_embedding), rule("OnnxRotaryEmbedding", rotary_embedding)];

/// Rotates arrays (batch, heads, positions, features) by cosines and sines (batch or 1, positions,
/// angles). Features beyond twice the angles stay.
pub(crate) fn rotated(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    [cos, sin]: [InstructionId; 2],
    interleaved: bool,
) -> Result<InstructionId> {
    let (sizes, angle_sizes) = (cx.sizes(x), cx.sizes(cos));
    let (features, angles) = (sizes[3], angle_sizes.last().copied().unwrap_or(0));
    let fits = angle_sizes.len() == 3
        && angle_sizes[1] == sizes[2]
        && (angle_sizes[0] == sizes[0] || angle_sizes[0] == 1)
        && cx.sizes(sin) == angle_sizes
        && 2 * angles <= features;
    cx.check(fits, || format!("angles {} do not fit {}", list(&angle_sizes), list(&sizes)))?;
    let element_type = cx.element_type(x);
    let half = [sizes[0], sizes[1], sizes[2], angles];
    let mut factors = Vec::new();
    for factor in [cos, sin] {
        let factor = cx.convert(factor, element_type)?;
        let factor = cx.reshape(factor, &[angle_sizes[0], 1, sizes[2], angles])?;
        factors.push(cx.broadcast_to(factor, &half)?);
    }
    let turned = cx.slice_in(x, 3, 0, 2 * angles)?;
    let rest = cx.slice_in(x, 3, 2 * angles, features)?;
    let pairs = if interleaved {
        let pairs = cx.reshape(turned, &[half[0], half[1], half[2], angles, 2])?;
        let mut parts = Vec::new();
        for k in 0..2 {
            let part = cx.slice_in(pairs, 4, k, k + 1)?;
            parts.push(cx.reshape(part, &half)?);
        }
        parts
    } else {
        vec![cx.slice_in(turned, 3, 0, angles)?, cx.slice_in(turned, 3, angles, 2 * angles)?]
    };
    let (a, b) = (cx.mul(factors[0], pairs[0])?, cx.mul(factors[1], pairs[1])?);
    let real = cx.sub(a, b)?;
    let (a, b) = (cx.mul(factors[1], pairs[0])?, cx.mul(factors[0], pairs[1])?);
    let imaginary = cx.add(a, b)?;
    let turned = if interleaved {
        let column = [half[0], half[1], half[2], angles, 1];
        let (real, imaginary) = (cx.reshape(real, &column)?, cx.reshape(imaginary, &column)?);
        let pairs = cx.concatenate(&[real, imaginary], 4)?;
        cx.reshape(pairs, &[half[0], half[1], half[2], 2 * angles])?
    } else {
        cx.concatenate(&[real, imaginary], 3)?
    };
    if 2 * angles == features { Ok(turned) } else { cx.concatenate(&[turned, rest], 3) }
}

/// Rows of a table of angles at positions (batch, positions).
pub(crate) fn angles_at(
    cx: &mut NodeContext<'_, '_>,
    tables: [InstructionId; 2],
    positions: InstructionId,
) -> Result<[InstructionId; 2]> {
    let rank = cx.rank(positions);
    cx.check(cx.rank(tables[0]) == 2 && cx.rank(tables[1]) == 2 && rank == 2, || {
        "expected tables and positions of two dimensions".to_owned()
    })?;
    Ok([cx.gather_along(tables[0], positions, 0, 0)?, cx.gather_along(tables[1], positions, 0, 0)?])
}

/// Cuts a table of angles to the number that the node states.
fn cut(cx: &mut NodeContext<'_, '_>, table: InstructionId, angles: i64) -> Result<InstructionId> {
    let sizes = cx.sizes(table);
    let own = sizes.last().copied().unwrap_or(0);
    cx.check(!sizes.is_empty() && (angles == 0 || angles <= own), || {
        format!("a table of {own} angles, but {angles} are needed")
    })?;
    if angles == 0 || angles == own { Ok(table) } else { cx.slice_in(table, sizes.len() - 1, 0, angles) }
}

/// Inputs: x, tables of cosines and sines, and positions.
fn rotary_embedding(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, cos, sin) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let positions = optional(cx, 3)?;
    apply(cx, x, [cos, sin], positions)
}

/// Inputs: x, positions or the first one, and tables of cosines and sines.
fn ms_rotary_embedding(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, positions, cos, sin) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?, required(cx, 3)?);
    let sizes = cx.sizes(x);
    let positions = if cx.rank(positions) == 1 {
        cx.check(matches!(sizes.len(), 3 | 4) && cx.sizes(positions) == [1], || {
            "positions: expected one number, or one for each position".to_owned()
        })?;
        let length = if sizes.len() == 3 { sizes[1] } else { sizes[2] };
        let all = [sizes[0], length];
        let first = cx.convert(positions, PrimitiveType::S64)?;
        let first = cx.reshape(first, &[])?;
        let first = cx.broadcast(first, &all, &[])?;
        let steps = cx.iota(PrimitiveType::S64, &all, 1)?;
        cx.add(first, steps)?
    } else {
        positions
    };
    apply(cx, x, [cos, sin], Some(positions))
}

fn apply(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    tables: [InstructionId; 2],
    positions: Option<InstructionId>,
) -> Result<InstructionId> {
    let angles = cx.attributes().int_or("rotary_embedding_dim", 0)? / 2;
    let tables = [cut(cx, tables[0], angles)?, cut(cx, tables[1], angles)?];
    let mut heads = cx.attributes().int_or("num_heads", 0)?;
    let sizes = cx.sizes(x);
    if heads == 0 && sizes.len() == 3 {
        // The tables state the size of a head.
        let size = 2 * cx.sizes(tables[0]).last().copied().unwrap_or(0);
        heads = if size > 0 { sizes[2] / size } else { 0 };
    }
    let split = split_heads(cx, x, heads)?;
    let factors = match positions {
        Some(positions) => angles_at(cx, tables, positions)?,
        None => tables,
    };
    let interleaved = flag(cx, "interleaved", false)?;
    let y = rotated(cx, split, factors, interleaved)?;
    if sizes.len() == 4 { Ok(y) } else { joined_heads(cx, y) }
}
