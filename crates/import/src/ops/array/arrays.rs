//! Ops that rearrange and repeat elements.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{Reducer, SameCount, Size, bounds, list};
use hlo::custom_call::ASSERT;
use hlo::{ComparisonDirection, InstructionId, Op, ScatterDimensionNumbers};
use shape::PrimitiveType;
use shape::index::element_count;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Reshape", reshape).types("T", ALL).types("Tshape", INDICES),
    rule("ExpandDims", expand_dims).types("T", ALL),
    rule("Squeeze", squeeze).types("T", ALL),
    rule("Transpose", |cx| transpose(cx, false)).types("T", ALL),
    rule("ConjugateTranspose", |cx| transpose(cx, true)).types("T", ALL),
    rule("InvertPermutation", invert_permutation).types("T", INDICES),
    rule("Reverse", reverse).types("T", ALL),
    rule("ReverseV2", reverse_v2).types("T", ALL),
    rule("Tile", tile).types("T", ALL),
    rule("BroadcastTo", broadcast_to).types("T", ALL),
    rule("OneHot", one_hot).types("T", ALL),
    rule("Roll", roll).types("T", ALL),
    rule("Diag", diag).types("T", ALL),
    rule("DiagPart", diag_part).types("T", ALL),
];

/// `Reshape(x, sizes)`. One size may be -1.
fn reshape(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let requested = cx.bounded_i64s(1)?;
    reshaped(cx, x, requested)
}

/// Changes the dimensions of an array. One size may be -1.
pub(crate) fn reshaped(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    requested: Vec<Size>,
) -> Result<InstructionId> {
    if cx.is_bounded(x) || requested.iter().any(|size| size.size.is_some()) {
        return reshaped_bounded(cx, x, requested);
    }
    let mut sizes = bounds(&requested);
    let actual = cx.sizes(x);
    let count = element_count(&actual).unwrap_or(i64::MAX);
    let unknown: Vec<usize> = (0..sizes.len()).filter(|&d| sizes[d] == -1).collect();
    let known: Vec<i64> = sizes.iter().copied().filter(|&size| size != -1).collect();
    let error = |cx: &NodeContext<'_, '_>, requested: &[i64]| {
        cx.invalid(format!(
            "Input to reshape is a tensor with {count} values (shape {}), which cannot have the shape {}",
            list(&actual),
            list(requested)
        ))
    };
    if unknown.len() > 1 || known.iter().any(|&size| size < 0) {
        return Err(error(cx, &sizes));
    }
    if let [dimension] = unknown.as_slice() {
        let product = element_count(&known).ok_or_else(|| error(cx, &sizes))?;
        let size = if product == 0 { 0 } else { count / product };
        sizes[*dimension] = size;
    }
    if element_count(&sizes) != Some(count) {
        return Err(error(cx, &sizes));
    }
    cx.reshape(x, &sizes)
}

/// Changes the dimensions of an array of bounded size. A run fails if the numbers of elements
/// differ.
fn reshaped_bounded(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    requested: Vec<Size>,
) -> Result<InstructionId> {
    let own = cx.all_sizes(x)?;
    let sizes = cx.resolved_sizes(x, requested)?;
    match cx.same_count(&own, &sizes)? {
        SameCount::Always => {}
        SameCount::If(is_same) => {
            cx.fail_unless(ASSERT, is_same, "the numbers of elements before and after differ")?;
        }
        SameCount::OneSizeAtMost => {
            return Err(cx.invalid(format!(
                "a tensor of the shape {}, where a named dimension has a range, cannot have the shape {}: with at most \
                 one size it has as many elements",
                list(&bounds(&own)),
                list(&bounds(&sizes))
            )));
        }
    }
    cx.reshape_to(x, &sizes)
}

/// Inserts a dimension of size 1 before the one that input 1 names.
fn expand_dims(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let mut sizes = cx.sizes(x);
    let axis = cx.constant_i64(1)?;
    let axis = cx.dimension(axis, sizes.len() + 1)?;
    if cx.is_bounded(x) {
        let mut sizes = cx.all_sizes(x)?;
        sizes.insert(axis, Size::known(1));
        return cx.reshape_to(x, &sizes);
    }
    sizes.insert(axis, 1);
    cx.reshape(x, &sizes)
}

/// Removes dimensions of size 1: the named ones, or all.
fn squeeze(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let axes = cx.attributes().ints_or("squeeze_dims", Vec::new())?;
    let mut dropped = Vec::new();
    for axis in axes {
        let dimension = cx.dimension(axis, sizes.len())?;
        cx.check(sizes[dimension] == 1, || {
            format!("cannot squeeze dimension {axis} of shape {}: its size is not 1", list(&sizes))
        })?;
        dropped.push(dimension);
    }
    let known = cx.array(x).dimensions;
    if dropped.is_empty() {
        // A bounded dimension is only removed by name, because its size may be 0.
        dropped = (0..sizes.len()).filter(|&d| sizes[d] == 1 && !known[d].is_dynamic).collect();
    }
    if cx.is_bounded(x) {
        let all = cx.all_sizes(x)?;
        let remaining: Vec<Size> = (0..all.len()).filter(|d| !dropped.contains(d)).map(|d| all[d]).collect();
        return cx.reshape_to(x, &remaining);
    }
    let remaining: Vec<i64> = (0..sizes.len()).filter(|d| !dropped.contains(d)).map(|d| sizes[d]).collect();
    cx.reshape(x, &remaining)
}

/// Returns a permutation given as a vector of integers.
fn permutation(cx: &NodeContext<'_, '_>, values: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut dimensions = Vec::new();
    for &value in values {
        let dimension = cx.dimension(value, rank)?;
        cx.check(!dimensions.contains(&dimension), || format!("{} is not a permutation", list(values)))?;
        dimensions.push(dimension);
    }
    cx.check(dimensions.len() == rank, || {
        format!("expected a permutation of {rank} dimensions, got {}", list(values))
    })?;
    Ok(dimensions)
}

/// `Transpose(x, perm)`: result dimension `d` is dimension `perm[d]` of `x`.
fn transpose(cx: &mut NodeContext<'_, '_>, conjugate: bool) -> Result<InstructionId> {
    let mut x = cx.input(0)?;
    let values = cx.constant_i64s(1)?;
    let permutation = permutation(cx, &values, cx.rank(x))?;
    if conjugate {
        x = cx.conjugate(x)?;
    }
    cx.transpose(x, &permutation)
}

/// `y[x[i]] = i`.
fn invert_permutation(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let shape = cx.array(x);
    cx.check(shape.rank() == 1, || format!("expected a vector, got shape {}", list(&shape.sizes())))?;
    if let Some(values) = cx.fold(x).and_then(|literal| literal.to_i64s()) {
        let mut inverse = vec![None; values.len()];
        for (i, &value) in values.iter().enumerate() {
            let slot = usize::try_from(value).ok().and_then(|value| inverse.get_mut(value));
            match slot {
                Some(slot @ None) => *slot = Some(i as i64),
                _ => return Err(cx.invalid(format!("{} is not a permutation", list(&values)))),
            }
        }
        let inverse: Vec<i64> = inverse.into_iter().flatten().collect();
        return cx.integers(shape.element_type, &inverse);
    }
    let positions = cx.iota(shape.element_type, &shape.sizes(), 0)?;
    let zeros = cx.splat_like(x, 0.0)?;
    let to_apply = cx.reducer(Reducer::Replace, shape.element_type)?;
    let scatter_dimension_numbers = ScatterDimensionNumbers::of_vector();
    let op =
        Op::Scatter { scatter_dimension_numbers, indices_are_sorted: false, unique_indices: false, to_apply };
    cx.op(op, &[zeros, x, positions])
}

/// `Reverse(x, dims)`, with a truth value for each dimension.
fn reverse(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let flags = cx.constant_i64s(1)?;
    let rank = cx.rank(x);
    cx.check(flags.len() == rank, || {
        format!("expected a truth value for each of the {rank} dimensions, got {}", flags.len())
    })?;
    let dimensions = (0..rank).filter(|&d| flags[d] != 0).collect();
    cx.reverse(x, dimensions)
}

/// `ReverseV2(x, axis)`.
fn reverse_v2(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let rank = cx.rank(x);
    let mut dimensions = Vec::new();
    for axis in cx.constant_i64s(1)? {
        let dimension = cx.dimension(axis, rank)?;
        cx.check(!dimensions.contains(&dimension), || format!("axis {axis} occurs twice"))?;
        dimensions.push(dimension);
    }
    dimensions.sort_unstable();
    cx.reverse(x, dimensions)
}

/// `Tile(x, multiples)`: repeats the whole array along each dimension.
fn tile(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let requested = cx.bounded_sizes(1)?;
    let multiples = bounds(&requested);
    cx.check(multiples.len() == sizes.len(), || {
        format!("expected a multiple for each dimension of {}, got {}", list(&sizes), list(&multiples))
    })?;
    if multiples.iter().all(|&multiple| multiple == 1) {
        return Ok(x);
    }
    if cx.is_bounded(x) || requested.iter().any(|multiple| multiple.size.is_some()) {
        return cx.tile_bounded(x, &requested);
    }
    // [m0, s0, m1, s1, ...] has the elements in the right order, so only the multiples need to be
    // merged.
    let (mut split, mut merged, mut dimensions) = (Vec::new(), Vec::new(), Vec::new());
    for (&size, &multiple) in sizes.iter().zip(&multiples) {
        if multiple != 1 {
            split.push(multiple);
        }
        dimensions.push(split.len());
        split.push(size);
        merged.push(size.checked_mul(multiple).ok_or_else(|| cx.invalid("the result is too large"))?);
    }
    let repeated = cx.broadcast(x, &split, &dimensions)?;
    cx.reshape(repeated, &merged)
}

/// `BroadcastTo(x, sizes)`.
fn broadcast_to(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let requested = cx.bounded_sizes(1)?;
    if cx.is_bounded(x) || requested.iter().any(|size| size.size.is_some()) {
        return cx.broadcast_to_bounded(x, &requested);
    }
    cx.broadcast_to(x, &bounds(&requested))
}

/// `OneHot(indices, depth, on, off)`: a new dimension of size `depth`. An index out of range sets
/// no element.
fn one_hot(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (indices, on, off) = (cx.input(0)?, cx.input(2)?, cx.input(3)?);
    let depth = cx.constant_i64(1)?;
    cx.check(depth >= 0, || format!("depth: expected a number >= 0, got {depth}"))?;
    let shape = cx.array(indices);
    let axis = cx.attributes().int_or("axis", -1)?;
    cx.check(axis >= -1, || format!("axis: expected -1 or a dimension, got {axis}"))?;
    let axis = cx.dimension(axis, shape.rank() + 1)?;
    let mut sizes = shape.sizes();
    sizes.insert(axis, depth);
    let others: Vec<usize> = (0..sizes.len()).filter(|&d| d != axis).collect();
    // An iota of the index type would wrap around if the depth exceeds it.
    let index_type = match shape.element_type {
        PrimitiveType::U8 | PrimitiveType::S8 | PrimitiveType::S16 => PrimitiveType::S32,
        other => other,
    };
    let positions = cx.iota(index_type, &sizes, axis)?;
    let indices = cx.convert(indices, index_type)?;
    let indices = cx.broadcast(indices, &sizes, &others)?;
    let is_on = cx.compare(ComparisonDirection::Eq, indices, positions)?;
    let (on, off) = (cx.broadcast_to(on, &sizes)?, cx.broadcast_to(off, &sizes)?);
    cx.select(is_on, on, off)
}

/// `Roll(x, shift, axis)`: element `i` moves to `(i + shift) mod size`.
fn roll(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let axes = cx.constant_i64s(2)?;
    let shifts = cx.input(1)?;
    let count = element_count(&cx.sizes(shifts)).unwrap_or(i64::MAX);
    cx.check(axes.len() as i64 == count, || {
        format!("expected one shift for each axis, got {} axes and {count} shifts", axes.len())
    })?;
    let shifts = cx.reshape(shifts, &[count])?;
    for (i, &axis) in axes.iter().enumerate() {
        let axis = cx.dimension(axis, sizes.len())?;
        let size = sizes[axis];
        if sizes.contains(&0) {
            return Ok(x);
        }
        if cx.array(x).dimensions[axis].is_dynamic {
            x = roll_bounded(cx, x, shifts, i as i64, axis)?;
            continue;
        }
        let Some(shift) = cx.constant_element(1, i)? else {
            x = roll_at_run_time(cx, x, shifts, i as i64, axis)?;
            continue;
        };
        let cut = size - shift.rem_euclid(size);
        if cut < size {
            let (tail, head) = (cx.slice_in(x, axis, cut, size)?, cx.slice_in(x, axis, 0, cut)?);
            x = cx.concatenate(&[tail, head], axis)?;
        }
    }
    Ok(x)
}

/// Rolls along a dimension of bounded size: each element is gathered from its old position.
fn roll_bounded(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    shifts: InstructionId,
    position: i64,
    axis: usize,
) -> Result<InstructionId> {
    let (bound, size) = (cx.sizes(x)[axis], cx.true_size(x, axis)?);
    let one = cx.s32(1)?;
    let size = cx.op(Op::Maximum {}, &[size, one])?;
    let start = start_of_roll(cx, shifts, position, size)?;
    let places = cx.iota(PrimitiveType::S32, &[bound], 0)?;
    let (start, size) = (cx.broadcast(start, &[bound], &[])?, cx.broadcast(size, &[bound], &[])?);
    let places = cx.add(places, start)?;
    let places = cx.op(Op::Remainder {}, &[places, size])?;
    let whole = cx.split(x)?;
    let rolled = cx.gather_along(whole.data, places, axis as i64, 0)?;
    cx.bounded(rolled, &whole.sizes)
}

/// Returns the position, from 1 to `size`, of the element that a roll moves to the front:
/// `size - (shift mod size)` with a remainder that is not negative.
fn start_of_roll(
    cx: &mut NodeContext<'_, '_>,
    shifts: InstructionId,
    position: i64,
    size: InstructionId,
) -> Result<InstructionId> {
    let shift = cx.slice_in(shifts, 0, position, position + 1)?;
    let shift = cx.reshape(shift, &[])?;
    // Shifts of 64 bits may be larger than any size.
    let shift_type = cx.element_type(shift);
    let modulus = cx.convert(size, shift_type)?;
    let remainder = cx.op(Op::Remainder {}, &[shift, modulus])?;
    let remainder = cx.convert(remainder, PrimitiveType::S32)?;
    let positive = cx.add(remainder, size)?;
    let remainder = cx.op(Op::Remainder {}, &[positive, size])?;
    cx.sub(size, remainder)
}

/// Rolls by a run-time shift. Two concatenated copies contain every rolled array as a slice.
fn roll_at_run_time(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    shifts: InstructionId,
    position: i64,
    axis: usize,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let (size, zero) = (cx.s32(sizes[axis])?, cx.s32(0)?);
    let start = start_of_roll(cx, shifts, position, size)?;
    let twice = cx.concatenate(&[x, x], axis)?;
    let mut operands = vec![twice];
    operands.extend((0..sizes.len()).map(|d| if d == axis { start } else { zero }));
    cx.op(Op::DynamicSlice { dynamic_slice_sizes: sizes }, &operands)
}

/// `Diag(x)`: an array with twice the dimensions. It equals `x` where both halves of the index
/// agree, and 0 elsewhere.
fn diag(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let count = element_count(&sizes).unwrap_or(i64::MAX);
    let flat = cx.reshape(x, &[count])?;
    let square = [count, count];
    let columns = cx.broadcast(flat, &square, &[1])?;
    let (i, j) = (cx.iota(PrimitiveType::S32, &square, 0)?, cx.iota(PrimitiveType::S32, &square, 1)?);
    let on_diagonal = cx.compare(ComparisonDirection::Eq, i, j)?;
    let zero = cx.splat_like(columns, 0.0)?;
    let matrix = cx.select(on_diagonal, columns, zero)?;
    cx.reshape(matrix, &[sizes.clone(), sizes].concat())
}

/// `DiagPart(x)`: the elements whose index consists of two equal halves.
fn diag_part(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let (first, second) = sizes.split_at(sizes.len() / 2);
    cx.check(first == second && !first.is_empty(), || {
        format!("expected a shape of two equal halves, got {}", list(&sizes))
    })?;
    let count = element_count(first).unwrap_or(i64::MAX);
    let element_type = cx.element_type(x);
    let zero = cx.scalar(element_type, 0.0);
    // After padding each row by one element, row i begins with element i of the diagonal.
    let flat = cx.reshape(x, &[count * count])?;
    let padded = cx.pad(flat, zero, &[(0, count, 0)])?;
    let rows = cx.reshape(padded, &[count, count + 1])?;
    let column = cx.slice_in(rows, 1, 0, 1)?;
    cx.reshape(column, first)
}
