//! Ops that change shapes, or return them.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::array::arrays::reshaped;
use crate::ops::array::concat_split::split_bounded;
use crate::ops::onnx::operands::{dimensions, flag, integers, optional, required, required_place};
use bounded::{Size, list};
use hlo::{ComparisonDirection, InstructionId};
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxExpand", expand),
    rule("OnnxEyeLike", eye_like),
    rule("OnnxFlatten", flatten),
    rule("OnnxMoveAxis", move_axis),
    rule("OnnxReshape", reshape),
    rule_many("OnnxSplit", split),
    rule("OnnxSqueeze", squeeze),
    rule("OnnxTile", tile),
    rule("OnnxTranspose", transpose),
    rule("OnnxTrilu", trilu),
    rule("OnnxMsTrilu", trilu),
    rule("OnnxUnsqueeze", unsqueeze),
];

/// Checks sizes, whose product must not overflow.
fn checked(cx: &NodeContext<'_, '_>, sizes: &[i64]) -> Result<()> {
    cx.checked_product(sizes)?;
    cx.check(sizes.iter().all(|&size| size >= 0), || format!("{} is not a valid shape", list(sizes)))
}

fn expand(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let place = required_place(cx, 1)?;
    let requested = cx.bounded_sizes(place)?;
    let own = cx.all_sizes(x)?;
    let rank = own.len().max(requested.len());
    let at =
        |sizes: &[Size], d: usize| (d + sizes.len()).checked_sub(rank).map_or(Size::known(1), |d| sizes[d]);
    let is_one = |size: &Size| size.bound == 1 && size.size.is_none();
    let sizes: Vec<Size> = (0..rank)
        .map(|d| match (at(&own, d), at(&requested, d)) {
            (own, requested) if is_one(&requested) => own,
            (own, requested) if is_one(&own) => requested,
            (own, _) => own,
        })
        .collect();
    let (own_bounds, wanted) = (bounded::bounds(&own), bounded::bounds(&requested));
    cx.broadcast_sizes(&own_bounds, &wanted)?;
    checked(cx, &bounded::bounds(&sizes))?;
    if sizes.iter().all(|size| size.size.is_none()) {
        return cx.broadcast_to(x, &bounded::bounds(&sizes));
    }
    cx.broadcast_to_bounded(x, &sizes)
}

fn eye_like(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.output_type(0)?);
    cx.check_rank("the input", &sizes, 2)?;
    let offset = cx.attributes().int_or("k", 0)?;
    let difference = position_difference(cx, &sizes, offset)?;
    let is_one = cx.compare_scalar(ComparisonDirection::Eq, difference, 0.0)?;
    cx.convert(is_one, element_type)
}

/// Column less row less `offset`, for the last two dimensions.
fn position_difference(cx: &mut NodeContext<'_, '_>, sizes: &[i64], offset: i64) -> Result<InstructionId> {
    let rank = sizes.len();
    let row = cx.iota(PrimitiveType::S64, sizes, rank - 2)?;
    let column = cx.iota(PrimitiveType::S64, sizes, rank - 1)?;
    let difference = cx.sub(column, row)?;
    let offset = cx.literal(shape::Literal::scalar(offset));
    let offset = cx.broadcast(offset, sizes, &[])?;
    cx.sub(difference, offset)
}

fn trilu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    cx.check(sizes.len() >= 2, || format!("expected two or more dimensions, got {}", list(&sizes)))?;
    let upper = flag(cx, "upper", true)?;
    let zero = cx.splat_like(x, 0.0)?;
    let direction = if upper { ComparisonDirection::Ge } else { ComparisonDirection::Le };
    let rank = sizes.len();
    let row = cx.iota(PrimitiveType::S64, &sizes, rank - 2)?;
    let column = cx.iota(PrimitiveType::S64, &sizes, rank - 1)?;
    let mut difference = cx.sub(column, row)?;
    if let Some(offset) = optional(cx, 1)? {
        let offset = cx.reshape(offset, &[])?;
        let offset = cx.convert(offset, PrimitiveType::S64)?;
        let offset = cx.broadcast(offset, &sizes, &[])?;
        difference = cx.sub(difference, offset)?;
    }
    let is_kept = cx.compare_scalar(direction, difference, 0.0)?;
    cx.select(is_kept, x, zero)
}

fn flatten(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let rank = sizes.len() as i64;
    let axis = cx.attributes().int_or("axis", 1)?;
    let axis = if axis < 0 { axis + rank } else { axis };
    cx.check((0..=rank).contains(&axis), || format!("axis {axis} is out of range for {}", list(&sizes)))?;
    flattened(cx, x, axis as usize)
}

/// An array as a matrix, whose columns are the dimensions from `axis` on.
pub(crate) fn flattened(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axis: usize,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let (rows, columns) = sizes.split_at(axis);
    let result = [cx.checked_product(rows)?, cx.checked_product(columns)?];
    if !cx.is_bounded(x) {
        return cx.reshape(x, &result);
    }
    let rank = sizes.len();
    let mut sizes = Vec::new();
    for part in [0..axis, axis..rank] {
        let part: Vec<usize> = part.collect();
        let is_bounded = part.iter().any(|&d| cx.array(x).dimensions[d].is_dynamic);
        let bound = result[sizes.len()];
        let size = if is_bounded { Some(cx.true_count(x, &part)?) } else { None };
        sizes.push(Size { bound, size });
    }
    cx.reshape_to(x, &sizes)
}

/// Moves the first dimension to another position. This op is no operator of ONNX: loops use it.
fn move_axis(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let rank = cx.rank(x);
    let axis = cx.attributes().int("axis")?;
    let axis = cx.dimension(axis, rank)?;
    let mut permutation: Vec<usize> = (1..rank).collect();
    permutation.insert(axis, 0);
    cx.transpose(x, &permutation)
}

fn reshape(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let mut requested = if cx.attributes().has("shape") {
        cx.attributes().ints("shape")?.into_iter().map(Size::known).collect()
    } else {
        let place = required_place(cx, 1)?;
        cx.bounded_i64s(place)?
    };
    if !flag(cx, "allowzero", false)? {
        let own = cx.all_sizes(x)?;
        for (d, size) in requested.iter_mut().enumerate() {
            if size.bound == 0 && size.size.is_none() {
                *size = *own.get(d).ok_or_else(|| {
                    cx.invalid(format!("size {d} is that of the input, which has {} dimensions", own.len()))
                })?;
            }
        }
    }
    reshaped(cx, x, requested)
}

fn split(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    let axis = cx.attributes().int_or("axis", 0)?;
    let axis = cx.dimension(axis, cx.rank(x))?;
    let count = cx.node().output_types.len() as i64;
    let stated = integers(cx, "split", 1)?;
    let is_open = cx.array(x).dimensions[axis].is_dynamic;
    let x = match &stated {
        Some(parts) => {
            let whole = parts.iter().try_fold(0i64, |sum, &part| sum.checked_add(part));
            cx.with_needed_size(x, axis, whole.ok_or_else(|| cx.invalid("the parts are too large"))?)?
        }
        None if is_open && cx.attributes().int_or("num_outputs", count)? == count && count > 0 => {
            return split_bounded(cx, x, axis, count);
        }
        None => x,
    };
    let sizes = cx.sizes(x);
    let parts = match stated {
        Some(parts) => parts,
        None => {
            let count = cx.attributes().int_or("num_outputs", count)?;
            cx.check(count > 0, || format!("num_outputs: expected a positive number, got {count}"))?;
            let part = (sizes[axis] + count - 1) / count;
            (0..count).map(|k| (sizes[axis] - k * part).clamp(0, part)).collect()
        }
    };
    let total = parts.iter().try_fold(0i64, |sum, &part| sum.checked_add(part).filter(|_| part >= 0));
    cx.check(total == Some(sizes[axis]) && parts.len() as i64 >= count, || {
        format!("parts of sizes {} do not fit {count} outputs of {} elements", list(&parts), sizes[axis])
    })?;
    let mut start = 0;
    let mut results = Vec::new();
    for &part in parts.iter().take(count as usize) {
        results.push(cx.slice_in(x, axis, start, start + part)?);
        start += part;
    }
    Ok(results)
}

fn squeeze(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let axes = match integers(cx, "axes", 1)? {
        Some(axes) => dimensions(cx, &axes, sizes.len())?,
        None => {
            (0..sizes.len()).filter(|&d| sizes[d] == 1 && !cx.array(x).dimensions[d].is_dynamic).collect()
        }
    };
    let is_one = axes.iter().all(|&d| sizes[d] == 1);
    cx.check(is_one, || format!("dimensions {axes:?} of {} do not all have size 1", list(&sizes)))?;
    let all = cx.all_sizes(x)?;
    let kept: Vec<Size> = (0..all.len()).filter(|d| !axes.contains(d)).map(|d| all[d]).collect();
    resized(cx, x, &kept)
}

/// Reshapes an array, whose sizes may be open.
pub(crate) fn resized(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    sizes: &[Size],
) -> Result<InstructionId> {
    if cx.is_bounded(x) { cx.reshape_to(x, sizes) } else { cx.reshape(x, &bounded::bounds(sizes)) }
}

fn unsqueeze(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let axes = integers(cx, "axes", 1)?.ok_or_else(|| cx.invalid("the axes are missing"))?;
    let mut rest = cx.all_sizes(x)?.into_iter();
    let rank = rest.len() + axes.len();
    let axes = dimensions(cx, &axes, rank)?;
    let sizes: Vec<Size> = (0..rank)
        .map(|d| if axes.contains(&d) { Size::known(1) } else { rest.next().unwrap_or(Size::known(1)) })
        .collect();
    resized(cx, x, &sizes)
}

fn tile(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let place = required_place(cx, 1)?;
    let multiples = cx.bounded_sizes(place)?;
    let rank = cx.rank(x);
    cx.check(multiples.len() == rank, || format!("expected {rank} repeats, got {}", multiples.len()))?;
    if cx.is_bounded(x) || multiples.iter().any(|multiple| multiple.size.is_some()) {
        return cx.tile_bounded(x, &multiples);
    }
    let (sizes, multiples) = (cx.sizes(x), bounded::bounds(&multiples));
    let wide: Vec<i64> =
        sizes.iter().zip(&multiples).flat_map(|(&size, &multiple)| [multiple, size]).collect();
    let result = sizes.iter().zip(&multiples).map(|(&size, &multiple)| {
        size.checked_mul(multiple).ok_or_else(|| Error::invalid("the result is too large"))
    });
    let result = result.collect::<Result<Vec<i64>>>()?;
    checked(cx, &result)?;
    let dimensions: Vec<usize> = (0..rank).map(|d| 2 * d + 1).collect();
    let repeated = cx.broadcast(x, &wide, &dimensions)?;
    cx.reshape(repeated, &result)
}

fn transpose(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let rank = cx.rank(x);
    let permutation = cx.attributes().ints_or("perm", (0..rank as i64).rev().collect())?;
    cx.check(permutation.len() == rank, || {
        format!("perm {} does not fit an array of {rank} dimensions", list(&permutation))
    })?;
    let permutation = dimensions(cx, &permutation, rank)?;
    cx.transpose(x, &permutation)
}
