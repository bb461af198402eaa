//! Ops that select, move, or replace elements.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::array::gather::gather_vectors;
use crate::ops::array::space_to_depth::{in_blocks, multiple};
use crate::ops::array::strided_slice::strided_slice;
use crate::ops::math::reductions::arg_extremum_along;
use crate::ops::math::topk::top_k_of_rows;
use crate::ops::onnx::operands::{
    count, dimensions, flag, integers, number, opset, optional, place, required, required_place, wrapped,
};
use crate::ops::onnx::shapes::{flattened, resized};
use crate::values::value::Value;
use bounded::{Indices, Reducer, Size, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{Literal, PrimitiveType};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxArgMax", |cx| arg(cx, Reducer::Maximum)),
    rule("OnnxArgMin", |cx| arg(cx, Reducer::Minimum)),
    rule("OnnxCenterCropPad", center_crop_pad),
    rule("OnnxDepthToSpace", depth_to_space),
    rule("OnnxGather", gather),
    rule("OnnxGatherElements", gather_elements),
    rule("OnnxGatherND", gather_nd),
    rule("OnnxHardmax", hardmax),
    rule("OnnxOneHot", one_hot),
    rule("OnnxScatter", scatter_elements),
    rule("OnnxScatterElements", scatter_elements),
    rule("OnnxScatterND", scatter_nd),
    rule("OnnxSlice", slice),
    rule("OnnxSpaceToDepth", space_to_depth),
    rule("OnnxTensorScatter", tensor_scatter),
    rule_many("OnnxTopK", top_k),
];

/// Positions of the largest or smallest elements along an axis.
fn arg(cx: &mut NodeContext<'_, '_>, reducer: Reducer) -> Result<InstructionId> {
    let mut x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let axis = cx.attributes().int_or("axis", 0)?;
    let axis = cx.dimension(axis, sizes.len())?;
    let last = flag(cx, "select_last_index", false)?;
    if last {
        x = cx.reverse(x, vec![axis])?;
    }
    let mut position = arg_extremum_along(cx, x, axis, reducer)?;
    if last {
        let size = cx.true_size(x, axis)?;
        let (element_type, sizes) = (cx.element_type(position), cx.sizes(position));
        let size = cx.convert(size, element_type)?;
        let most = cx.add_scalar(size, -1.0)?;
        let most = cx.broadcast(most, &sizes, &[])?;
        position = cx.sub(most, position)?;
    }
    if !flag(cx, "keepdims", true)? {
        return Ok(position);
    }
    let mut kept = sizes;
    kept[axis] = 1;
    cx.reshape(position, &kept)
}

/// Crops or pads axes around their centers.
fn center_crop_pad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = required(cx, 0)?;
    let place = required_place(cx, 1)?;
    let wanted = cx.constant_sizes(place)?;
    let rank = cx.rank(x);
    let axes = cx.attributes().ints_or("axes", (0..rank as i64).collect())?;
    let axes = dimensions(cx, &axes, rank)?;
    cx.check(axes.len() == wanted.len(), || {
        format!("{} sizes do not fit {} axes", wanted.len(), axes.len())
    })?;
    for (&axis, &size) in axes.iter().zip(&wanted) {
        let own = cx.sizes(x)[axis];
        if size < own {
            let start = (own - size) / 2;
            x = cx.slice_in(x, axis, start, start + size)?;
        } else {
            let mut padding = vec![(0, 0, 0); rank];
            padding[axis] = ((size - own) / 2, size - own - (size - own) / 2, 0);
            let element_type = cx.element_type(x);
            let zero = cx.scalar(element_type, 0.0);
            x = cx.pad(x, zero, &padding)?;
        }
    }
    Ok(x)
}

fn block_size(cx: &NodeContext<'_, '_>, sizes: &[i64]) -> Result<i64> {
    cx.check_rank("the input", sizes, 4)?;
    let block = cx.attributes().int("blocksize")?;
    cx.check(block > 0 && block < 1 << 20, || format!("blocksize: expected a positive number, got {block}"))?;
    Ok(block)
}

fn depth_to_space(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let block = block_size(cx, &sizes)?;
    let depth = sizes[1] / (block * block);
    cx.check(depth * block * block == sizes[1], || {
        format!("{} features are no multiple of {block} x {block}", sizes[1])
    })?;
    let all = cx.all_sizes(x)?;
    let [n, h, w] = [all[0], all[2], all[3]];
    let [b, depth] = [block, depth].map(Size::known);
    let (split, order) = match cx.text_or("mode", "DCR")? {
        "DCR" => ([n, b, b, depth, h, w], [0, 3, 4, 1, 5, 2]),
        "CRD" => ([n, depth, b, b, h, w], [0, 1, 4, 2, 5, 3]),
        other => return Err(cx.invalid(format!("mode: expected DCR or CRD, got '{other}'"))),
    };
    let blocks = resized(cx, x, &split)?;
    let blocks = cx.transpose(blocks, &order)?;
    let result = [n, depth, multiple(cx, h, block)?, multiple(cx, w, block)?];
    resized(cx, blocks, &result)
}

fn space_to_depth(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let block = block_size(cx, &sizes)?;
    let features = cx.checked_product(&[sizes[1], block, block])?;
    let (x, h) = in_blocks(cx, x, 2, block)?;
    let (x, w) = in_blocks(cx, x, 3, block)?;
    let n = cx.all_sizes(x)?[0];
    let [b, c] = [block, sizes[1]].map(Size::known);
    let blocks = resized(cx, x, &[n, c, h, b, w, b])?;
    let order = if cx.text_or("mode", "DCR")? == "CRD" { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
    let blocks = cx.transpose(blocks, &order)?;
    resized(cx, blocks, &[n, Size::known(features), h, w])
}

fn gather(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, indices) = (required(cx, 0)?, required(cx, 1)?);
    let axis = cx.attributes().int_or("axis", 0)?;
    let dimension = cx.dimension(axis, cx.rank(x))?;
    let size = cx.sizes(x)[dimension];
    let indices = if cx.array(x).dimensions[dimension].is_dynamic {
        let size = cx.true_size(x, dimension)?;
        let indices = cx.convert(indices, PrimitiveType::S32)?;
        cx.wrapped(indices, size)?
    } else {
        wrapped(cx, indices, size)?
    };
    cx.gather_along(x, indices, axis, 0)
}

/// Index vectors of whole elements: positions everywhere but in one dimension, where the indices
/// are.
fn full_indices(cx: &mut NodeContext<'_, '_>, indices: InstructionId, axis: usize) -> Result<InstructionId> {
    let sizes = cx.sizes(indices);
    let column = [&sizes[..], &[1]].concat();
    let element_type = cx.element_type(indices);
    let mut parts = Vec::new();
    for d in 0..sizes.len() {
        let part = if d == axis { indices } else { cx.iota(element_type, &sizes, d)? };
        parts.push(cx.reshape(part, &column)?);
    }
    cx.concatenate(&parts, sizes.len())
}

/// The axis, and indices of elements along it, for an array with these bounds and true sizes.
fn element_indices(
    cx: &mut NodeContext<'_, '_>,
    mut indices: InstructionId,
    sizes: &[i64],
    true_sizes: &[Option<InstructionId>],
) -> Result<(usize, InstructionId)> {
    let axis = cx.attributes().int_or("axis", 0)?;
    let axis = cx.dimension(axis, sizes.len())?;
    let index_sizes = cx.sizes(indices);
    let fits =
        index_sizes.len() == sizes.len() && (0..sizes.len()).all(|d| d == axis || index_sizes[d] <= sizes[d]);
    cx.check(fits, || format!("indices of shape {} do not fit {}", list(&index_sizes), list(sizes)))?;
    if let Some(size) = true_sizes[axis] {
        // Negative indices count from the true end.
        indices = cx.convert(indices, PrimitiveType::S32)?;
        indices = cx.wrapped(indices, size)?;
    }
    Ok((axis, wrapped(cx, indices, sizes[axis])?))
}

/// Replaces indices at positions beyond the true sizes of their array.
fn replaced_beyond(
    cx: &mut NodeContext<'_, '_>,
    mut indices: InstructionId,
    true_sizes: &[Option<InstructionId>],
    value: f64,
) -> Result<InstructionId> {
    let sizes = cx.sizes(indices);
    let beyond = cx.splat_like(indices, value)?;
    for (d, size) in true_sizes.iter().enumerate() {
        let &Some(size) = size else { continue };
        let number = cx.iota(PrimitiveType::S32, &sizes, d)?;
        let size = cx.broadcast(size, &sizes, &[])?;
        let is_within = cx.compare(ComparisonDirection::Lt, number, size)?;
        indices = cx.select(is_within, indices, beyond)?;
    }
    Ok(indices)
}

/// The part of the updates within the bounds of the indices.
fn updates_of_indices(
    cx: &mut NodeContext<'_, '_>,
    mut updates: InstructionId,
    index_sizes: &[i64],
) -> Result<InstructionId> {
    for (d, &size) in index_sizes.iter().enumerate() {
        if cx.sizes(updates).get(d).is_some_and(|&other| other > size) {
            updates = cx.slice_in(updates, d, 0, size)?;
        }
    }
    Ok(updates)
}

fn gather_elements(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, indices) = (required(cx, 0)?, required(cx, 1)?);
    let (whole, sizes, indices) = (cx.split(x)?, cx.sizes(x), cx.split(indices)?);
    let (axis, positions) = element_indices(cx, indices.data, &sizes, &whole.sizes)?;
    let result = cx.sizes(positions);
    if result.contains(&0) {
        return cx.reshape_empty(whole.data, &result);
    }
    let positions = full_indices(cx, positions, axis)?;
    let result = gather_vectors(cx, whole.data, positions)?;
    cx.bounded(result, &indices.sizes)
}

impl NodeContext<'_, '_> {
    /// An array without elements, of the type of another.
    pub(crate) fn reshape_empty(&mut self, like: InstructionId, sizes: &[i64]) -> Result<InstructionId> {
        let element_type = self.element_type(like);
        self.splat(element_type, sizes, 0.0)
    }
}

/// Index vectors with components from 0 on, for an array with these bounds and true sizes.
fn wrapped_vectors(
    cx: &mut NodeContext<'_, '_>,
    indices: InstructionId,
    sizes: &[i64],
    true_sizes: &[Option<InstructionId>],
) -> Result<InstructionId> {
    let index_sizes = cx.sizes(indices);
    let depth = index_sizes.last().copied().unwrap_or(0) as usize;
    if let Some(literal) = cx.fold(indices)
        && literal.to_i64s().is_some_and(|values| values.iter().all(|&value| value >= 0))
    {
        return Ok(indices);
    }
    let element_type = cx.element_type(indices);
    let mut parts = Vec::new();
    for (&bound, size) in sizes.iter().zip(true_sizes).take(depth) {
        parts.push(match size {
            Some(size) => {
                let size = cx.convert(*size, element_type)?;
                cx.reshape(size, &[1])?
            }
            None => cx.integers(element_type, &[bound])?,
        });
    }
    if parts.is_empty() {
        return Ok(indices);
    }
    let vector = cx.concatenate(&parts, 0)?;
    let spread = cx.broadcast(vector, &index_sizes, &[index_sizes.len() - 1])?;
    let is_negative = cx.compare_scalar(ComparisonDirection::Lt, indices, 0.0)?;
    let from_end = cx.add(indices, spread)?;
    cx.select(is_negative, from_end, indices)
}

fn gather_nd(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, indices) = (required(cx, 0)?, required(cx, 1)?);
    let (sizes, index_sizes) = (cx.sizes(x), cx.sizes(indices));
    let (whole, indices) = (cx.split(x)?, cx.split(indices)?);
    let batch = usize::try_from(cx.attributes().int_or("batch_dims", 0)?).unwrap_or(usize::MAX);
    let depth = index_sizes.last().copied().unwrap_or(-1);
    let fits = depth >= 0
        && batch < index_sizes.len()
        && batch.saturating_add(depth as usize) <= sizes.len()
        && sizes[..batch] == index_sizes[..batch];
    cx.check(fits, || {
        format!("indices of shape {} do not fit {} (batch_dims {batch})", list(&index_sizes), list(&sizes))
    })?;
    let depth = depth as usize;
    let rows = known_vectors(cx, &indices.sizes)?;
    let true_sizes = [rows, &whole.sizes[batch + depth..]].concat();
    let rows = &index_sizes[..index_sizes.len() - 1];
    let result = [rows, &sizes[batch + depth..]].concat();
    if result.contains(&0) || sizes.contains(&0) {
        return cx.reshape_empty(whole.data, &result);
    }
    let indices = wrapped_vectors(cx, indices.data, &sizes[batch..], &whole.sizes[batch..])?;
    let mut parts = Vec::new();
    let column = [rows, &[1]].concat();
    let element_type = cx.element_type(indices);
    for d in 0..batch {
        let position = cx.iota(element_type, &column, d)?;
        parts.push(position);
    }
    parts.push(indices);
    let indices = cx.concatenate(&parts, rows.len())?;
    let result = gather_vectors(cx, whole.data, indices)?;
    cx.bounded(result, &true_sizes)
}

/// The true sizes of an array of index vectors, but for the vectors' own, which must be known.
fn known_vectors<'s>(
    cx: &NodeContext<'_, '_>,
    true_sizes: &'s [Option<InstructionId>],
) -> Result<&'s [Option<InstructionId>]> {
    match true_sizes.split_last() {
        Some((None, rows)) => Ok(rows),
        _ => Err(cx.invalid("the last dimension of the indices is open; set its size".to_owned())),
    }
}

/// The combination of updates with what is there.
fn reduction(cx: &NodeContext<'_, '_>) -> Result<Reducer> {
    Ok(match cx.text_or("reduction", "none")? {
        "none" => Reducer::Replace,
        "add" => Reducer::Add,
        "mul" => Reducer::Multiply,
        "max" => Reducer::Maximum,
        "min" => Reducer::Minimum,
        other => return Err(cx.invalid(format!("reduction: '{other}' does not exist"))),
    })
}

fn scatter_elements(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, indices, updates) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (whole, sizes) = (cx.split(x)?, cx.sizes(x));
    let (indices, updates) = (cx.split(indices)?, cx.split(updates)?.data);
    let index_sizes = cx.sizes(indices.data);
    let (axis, positions) = element_indices(cx, indices.data, &sizes, &whole.sizes)?;
    // Beyond the true sizes, indices are beyond the array: nothing is written there.
    let positions = replaced_beyond(cx, positions, &indices.sizes, sizes[axis] as f64)?;
    let updates = updates_of_indices(cx, updates, &index_sizes)?;
    let positions = full_indices(cx, positions, axis)?;
    let reducer = reduction(cx)?;
    let result = cx.scatter(whole.data, positions, updates, Indices::Vectors, reducer)?;
    cx.bounded(result, &whole.sizes)
}

fn scatter_nd(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, indices, updates) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (sizes, index_sizes) = (cx.sizes(x), cx.sizes(indices));
    let (whole, indices, updates) = (cx.split(x)?, cx.split(indices)?, cx.split(updates)?.data);
    let depth = index_sizes.last().copied().unwrap_or(-1);
    cx.check((0..=sizes.len() as i64).contains(&depth), || {
        format!("indices of shape {} do not fit {}", list(&index_sizes), list(&sizes))
    })?;
    let rows = known_vectors(cx, &indices.sizes)?;
    cx.check(depth > 0 || rows.iter().all(Option::is_none), || {
        "the number of updates of the whole array is open; set its size".to_owned()
    })?;
    let vectors = wrapped_vectors(cx, indices.data, &sizes, &whole.sizes)?;
    // As in `scatter_elements`.
    let most = sizes.iter().copied().max().unwrap_or(0);
    let vectors = replaced_beyond(cx, vectors, rows, most as f64)?;
    let updates = updates_of_indices(cx, updates, &index_sizes[..index_sizes.len() - 1])?;
    let reducer = reduction(cx)?;
    let result = cx.scatter(whole.data, vectors, updates, Indices::Vectors, reducer)?;
    cx.bounded(result, &whole.sizes)
}

/// Writes rows of a cache, each at its own position.
fn tensor_scatter(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (cache, update) = (required(cx, 0)?, required(cx, 1)?);
    let (sizes, update_sizes) = (cx.sizes(cache), cx.sizes(update));
    let rank = sizes.len();
    let axis = cx.attributes().int_or("axis", -2)?;
    let axis = cx.dimension(axis, rank)?;
    let fits = update_sizes.len() == rank
        && axis > 0
        && (0..rank)
            .all(|d| if d == axis { update_sizes[d] <= sizes[d] } else { update_sizes[d] == sizes[d] });
    cx.check(fits, || format!("an update {} does not fit {}", list(&update_sizes), list(&sizes)))?;
    let positions = cx.iota(PrimitiveType::S64, &update_sizes, axis)?;
    let mut positions = match optional(cx, 2)? {
        None => positions,
        Some(starts) => {
            cx.check(cx.sizes(starts) == sizes[..1], || "expected one position for each batch".to_owned())?;
            let starts = cx.convert(starts, PrimitiveType::S64)?;
            let starts = cx.broadcast(starts, &update_sizes, &[0])?;
            cx.add(positions, starts)?
        }
    };
    if cx.text_or("mode", "linear")? == "circular" {
        let size = cx.literal(Literal::scalar(sizes[axis].max(1)));
        let size = cx.broadcast(size, &update_sizes, &[])?;
        positions = cx.op(Op::Remainder {}, &[positions, size])?;
    }
    let indices = full_indices(cx, positions, axis)?;
    cx.scatter(cache, indices, update, Indices::Vectors, Reducer::Replace)
}

/// 1 at the first largest element of each row, 0 elsewhere.
fn hardmax(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let (x, axis, sizes) = rows_of_softmax(cx, x)?;
    let row_sizes = cx.sizes(x);
    let position = arg_extremum_along(cx, x, axis, Reducer::Maximum)?;
    let others: Vec<usize> = (0..row_sizes.len()).filter(|&d| d != axis).collect();
    let position = cx.broadcast(position, &row_sizes, &others)?;
    let own = cx.iota(PrimitiveType::S64, &row_sizes, axis)?;
    let position = cx.convert(position, PrimitiveType::S64)?;
    let is_largest = cx.compare(ComparisonDirection::Eq, own, position)?;
    let element_type = cx.element_type(x);
    let y = cx.convert(is_largest, element_type)?;
    cx.reshape(y, &sizes)
}

/// The array, the axis along which rows are normalized, and the sizes of the result. Before version
/// 13, the rows are all dimensions from the axis on.
pub(crate) fn rows_of_softmax(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
) -> Result<(InstructionId, usize, Vec<i64>)> {
    let sizes = cx.sizes(x);
    let is_old = opset(cx)? < 13;
    let axis = cx.attributes().int_or("axis", if is_old { 1 } else { -1 })?;
    if !is_old {
        let axis = cx.dimension(axis, sizes.len())?;
        return Ok((x, axis, sizes));
    }
    let axis = if axis == sizes.len() as i64 { sizes.len() } else { cx.dimension(axis, sizes.len())? };
    Ok((flattened(cx, x, axis)?, 1, sizes))
}

/// `values[1]` at the index along a new axis, `values[0]` elsewhere.
fn one_hot(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (indices, values) = (required(cx, 0)?, required(cx, 2)?);
    let depth = number(cx, 1)?.unwrap_or(0.0);
    cx.check((0.0..1e9).contains(&depth), || format!("depth: expected 0 or more, got {depth}"))?;
    let depth = depth as i64;
    cx.check(cx.sizes(values) == [2], || "values: expected two elements".to_owned())?;
    let index_sizes = cx.sizes(indices);
    let axis = cx.attributes().int_or("axis", -1)?;
    let axis = cx.dimension(axis, index_sizes.len() + 1)?;
    let mut sizes = index_sizes.clone();
    sizes.insert(axis, depth);
    let indices = cx.convert(indices, PrimitiveType::S64)?;
    let indices = wrapped(cx, indices, depth)?;
    let others: Vec<usize> = (0..sizes.len()).filter(|&d| d != axis).collect();
    let spread = cx.broadcast(indices, &sizes, &others)?;
    let positions = cx.iota(PrimitiveType::S64, &sizes, axis)?;
    let is_on = cx.compare(ComparisonDirection::Eq, positions, spread)?;
    let mut choices = Vec::new();
    for k in 0..2 {
        let value = cx.slice_in(values, 0, k, k + 1)?;
        let value = cx.reshape(value, &[])?;
        choices.push(cx.broadcast(value, &sizes, &[])?);
    }
    cx.select(is_on, choices[1], choices[0])
}

/// Slices of axes, as TensorFlow's strided slice of all dimensions.
fn slice(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let rank = cx.rank(x);
    let is_old = cx.attributes().has("starts");
    let mut ends = Vec::new();
    for (k, name) in [(1, "starts"), (2, "ends")] {
        ends.push(if is_old {
            let values = cx.attributes().ints(name)?;
            cx.integers(PrimitiveType::S64, &values)?
        } else {
            let end = required(cx, k)?;
            cx.convert(end, PrimitiveType::S64)?
        });
    }
    let length = cx.sizes(ends[0]).first().copied().unwrap_or(0) as usize;
    let axes = integers(cx, "axes", 3)?.unwrap_or_else(|| (0..length as i64).collect());
    let axes = dimensions(cx, &axes, rank)?;
    let steps = match place(cx, 4)? {
        Some(place) => cx.constant_i64s(place)?,
        None => vec![1; axes.len()],
    };
    let fits = axes.len() == length
        && steps.len() == length
        && ends.iter().all(|&end| cx.sizes(end) == [length as i64])
        && !steps.contains(&0);
    cx.check(fits, || format!("starts, ends, axes, and steps {} do not fit each other", list(&steps)))?;
    let mut all_steps = vec![1; rank];
    let mut parts = [Vec::new(), Vec::new()];
    for (d, step) in all_steps.iter_mut().enumerate() {
        let at = axes.iter().position(|&axis| axis == d);
        if let Some(at) = at {
            *step = steps[at];
        }
        for (k, part) in parts.iter_mut().enumerate() {
            part.push(match at {
                Some(at) => cx.slice_in(ends[k], 0, at as i64, at as i64 + 1)?,
                None => cx.integers(PrimitiveType::S64, &[if k == 0 { 0 } else { i64::MAX }])?,
            });
        }
    }
    if rank == 0 {
        return Ok(x);
    }
    let begin = cx.concatenate(&parts[0], 0)?;
    let end = cx.concatenate(&parts[1], 0)?;
    // Ends are folded, so that errors and bounds are those of constants.
    let (begin, end) = (folded(cx, begin), folded(cx, end));
    let steps = cx.integers(PrimitiveType::S64, &all_steps)?;
    let inputs = [x, begin, end, steps].map(Value::Array).to_vec();
    cx.with_inputs(inputs, strided_slice)
}

/// The value as a constant, if it is known when compiling.
fn folded(cx: &mut NodeContext<'_, '_>, id: InstructionId) -> InstructionId {
    match cx.fold(id) {
        Some(literal) => cx.literal(literal),
        None => id,
    }
}

/// The largest or smallest elements along an axis, and their positions.
fn top_k(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    let k = if count(cx)? > 1 {
        let place = required_place(cx, 1)?;
        let k = cx.bounded_i64s(place)?;
        k.first().copied().ok_or_else(|| cx.invalid("k: expected an integer"))?
    } else {
        Size::known(cx.attributes().int("k")?)
    };
    let sizes = cx.sizes(x);
    let axis = cx.attributes().int_or("axis", -1)?;
    let axis = cx.dimension(axis, sizes.len())?;
    let largest = flag(cx, "largest", true)?;
    let mut order: Vec<usize> = (0..sizes.len()).filter(|&d| d != axis).collect();
    order.push(axis);
    let rows = cx.transpose(x, &order)?;
    let (values, positions) = top_k_of_rows(cx, rows, k, largest)?;
    let mut back = vec![0; sizes.len()];
    order.iter().enumerate().for_each(|(at, &d)| back[d] = at);
    let positions = cx.convert(positions, PrimitiveType::S64)?;
    let results = vec![cx.transpose(values, &back)?, cx.transpose(positions, &back)?];
    Ok(results)
}
