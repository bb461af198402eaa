//! Ops that return shapes: constants, except for the true sizes of bounded dimensions.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many};
use bounded::list;
use hlo::InstructionId;
use shape::index::element_count;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Shape", shape_op).types("T", ALL),
    rule_many("ShapeN", shape_n).types("T", ALL),
    rule("Size", size).types("T", ALL),
    rule("Rank", rank).types("T", ALL),
    rule("BroadcastArgs", broadcast_args).types("T", INDICES),
    rule_many("BroadcastGradientArgs", broadcast_gradient_args).types("T", INDICES),
    rule_many("ConcatOffset", concat_offset),
];

/// Returns the sizes of the input.
fn shape_op(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    shape_of(cx, x)
}

/// Returns the sizes of an array as a vector.
fn shape_of(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let (sizes, out_type) = (cx.sizes(x), cx.output_type(0)?);
    if !cx.is_bounded(x) {
        return cx.integers(out_type, &sizes);
    }
    let mut elements = Vec::new();
    for d in 0..sizes.len() {
        let size = cx.true_size(x, d)?;
        let size = cx.convert(size, out_type)?;
        elements.push(cx.reshape(size, &[1])?);
    }
    cx.concatenate(&elements, 0)
}

/// Returns the sizes of each input.
fn shape_n(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let inputs = cx.inputs_from(0)?;
    inputs.into_iter().map(|x| shape_of(cx, x)).collect()
}

fn integer(cx: &mut NodeContext<'_, '_>, value: i64) -> Result<InstructionId> {
    let out_type = cx.output_type(0)?;
    let vector = cx.integers(out_type, &[value])?;
    let literal = cx.fold(vector).and_then(|vector| vector.reshape(&[]));
    Ok(cx.literal(literal.expect("cannot reshape a vector of one element to a scalar")))
}

/// Returns the number of elements.
fn size(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    if cx.is_bounded(x) {
        let dimensions: Vec<usize> = (0..cx.rank(x)).collect();
        let (count, out_type) = (cx.true_count(x, &dimensions)?, cx.output_type(0)?);
        return cx.convert(count, out_type);
    }
    let count = element_count(&cx.sizes(x)).ok_or_else(|| cx.invalid("the tensor has too many elements"))?;
    integer(cx, count)
}

/// Returns the number of dimensions.
fn rank(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let rank = cx.rank(x) as i64;
    integer(cx, rank)
}

/// Returns the shape that two shapes broadcast to.
fn broadcast_args(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, b) = (cx.constant_i64s(0)?, cx.constant_i64s(1)?);
    let sizes = cx.broadcast_sizes(&a, &b)?;
    let out_type = cx.output_type(0)?;
    cx.integers(out_type, &sizes)
}

/// For each of two shapes, the dimensions along which the gradient of a broadcast op must be
/// summed: those that it repeats, and those of size 1 in both.
fn broadcast_gradient_args(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (a, b) = (cx.constant_i64s(0)?, cx.constant_i64s(1)?);
    let sizes = cx.broadcast_sizes(&a, &b)?;
    let out_type = cx.output_type(0)?;
    let summed = |own: &[i64], other: &[i64]| -> Vec<i64> {
        if own == other {
            return Vec::new();
        }
        let lead = sizes.len() - own.len();
        (0..sizes.len()).filter(|&d| d < lead || own[d - lead] == 1).map(|d| d as i64).collect()
    };
    let (for_a, for_b) = (summed(&a, &b), summed(&b, &a));
    Ok(vec![cx.integers(out_type, &for_a)?, cx.integers(out_type, &for_b)?])
}

/// Returns the offset of each part of a concatenation: 0, except along the concatenated dimension.
fn concat_offset(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let axis = cx.constant_i64(0)?;
    let out_type = cx.output_type(0)?;
    let mut offset = 0i64;
    let mut offsets = Vec::new();
    let first = cx.constant_i64s(1)?;
    let axis = cx.dimension(axis, first.len())?;
    for k in 1..cx.inputs().len() {
        let sizes = cx.constant_i64s(k)?;
        let fits = sizes.len() == first.len() && (0..sizes.len()).all(|d| d == axis || sizes[d] == first[d]);
        cx.check(fits, || {
            format!(
                "the shapes differ in dimensions other than {axis}: {} vs. {}",
                list(&first),
                list(&sizes)
            )
        })?;
        let mut start = vec![0; sizes.len()];
        start[axis] = offset;
        offsets.push(cx.integers(out_type, &start)?);
        offset =
            offset.checked_add(sizes[axis]).ok_or_else(|| cx.invalid("the sum of the sizes overflows"))?;
    }
    Ok(offsets)
}
