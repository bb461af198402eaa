//! Gradients of ops that move elements.

use super::builder::{Builder, Call, type_attribute};
use crate::proto::attr_value::Value;
use crate::{DataType, OutputId};
use support::Result;

type Build = fn(&mut Builder<'_>, &Call) -> Result<Vec<Option<OutputId>>>;

/// The attributes of `StridedSlice` and of its gradient.
const SLICE: &[&str] =
    &["T", "Index", "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];

pub(super) fn find(op: &str) -> Option<Build> {
    Some(match op {
        "Reshape" | "ExpandDims" | "Squeeze" => |b, c| {
            let shape = b.shape(c.input(0)?)?;
            let back = b.reshape(c.gradient()?, shape)?;
            Ok(first_of(c, back))
        },
        "Pack" => |b, c| {
            let attributes =
                [c.attributes(&["T", "axis"]), vec![("num", Value::I(c.x.len() as i64))]].concat();
            let node = b.node("Unpack", &[c.gradient()?], attributes)?;
            Ok((0..c.x.len()).map(|index| Some(OutputId { node, index })).collect())
        },
        "Unpack" => |b, c| {
            let attributes =
                [c.attributes(&["T", "axis"]), vec![("N", Value::I(c.dy.len() as i64))]].concat();
            Ok(vec![Some(b.first("Pack", &c.dy, attributes)?)])
        },
        "Concat" => |b, c| concatenation(b, c, 0),
        "ConcatV2" => |b, c| concatenation(b, c, c.x.len().saturating_sub(1)),
        "Split" => |b, c| Ok(vec![None, Some(join(b, c, 0)?)]),
        "SplitV" => |b, c| Ok(vec![Some(join(b, c, 2)?), None, None]),
        "_ArrayToList" | "_ListToArray" => |_, c| Ok(c.dy.iter().copied().map(Some).collect()),
        "Fill" => |b, c| {
            let dy = c.gradient()?;
            let (zero, one) = (b.integers(&[0], true)?, b.integers(&[1], true)?);
            let rank = b.op("Rank", &[dy])?;
            let all = b.first("Range", &[zero, rank, one], vec![type_attribute("Tidx", DataType::Int32)])?;
            Ok(vec![None, Some(b.sum(dy, all, false)?)])
        },
        "Transpose" => |b, c| transposition(b, c, "Transpose"),
        "ConjugateTranspose" => |b, c| transposition(b, c, "ConjugateTranspose"),
        "GatherNd" => |b, c| {
            let (x, indices, dy) = (c.input(0)?, c.input(1)?, c.gradient()?);
            let (data_type, index) = (b.type_of(x), b.type_of(indices));
            let types = vec![type_attribute("T", data_type), type_attribute("out_type", index)];
            let shape = b.first("Shape", &[x], types)?;
            let types = vec![type_attribute("T", data_type), type_attribute("Tindices", index)];
            Ok(vec![Some(b.first("ScatterNd", &[indices, dy, shape], types)?), None])
        },
        "Reverse" => |b, c| {
            let back = b.first("Reverse", &[c.gradient()?, c.input(1)?], c.attributes(&["T"]))?;
            Ok(first_of(c, back))
        },
        "ReverseV2" => |b, c| {
            let back = b.first("ReverseV2", &[c.gradient()?, c.input(1)?], c.attributes(&["T", "Tidx"]))?;
            Ok(first_of(c, back))
        },
        "Slice" => slice,
        "StridedSlice" => |b, c| {
            let (x, begin) = (c.input(0)?, c.input(1)?);
            let types = vec![type_attribute("T", b.type_of(x)), type_attribute("out_type", b.type_of(begin))];
            let shape = b.first("Shape", &[x], types)?;
            let inputs = [shape, begin, c.input(2)?, c.input(3)?, c.gradient()?];
            let back = b.first("StridedSliceGrad", &inputs, c.attributes(SLICE))?;
            Ok(first_of(c, back))
        },
        "StridedSliceGrad" => |b, c| {
            let inputs = [c.gradient()?, c.input(1)?, c.input(2)?, c.input(3)?];
            let back = b.first("StridedSlice", &inputs, c.attributes(SLICE))?;
            Ok(vec![None, None, None, None, Some(back)])
        },
        "Select" => select,
        "Real" | "Imag" => |b, c| {
            let (x, dy) = (c.input(0)?, c.gradient()?);
            let zeros = b.op("ZerosLike", &[dy])?;
            let parts = if c.node.op == "Real" { [dy, zeros] } else { [zeros, dy] };
            let types = vec![type_attribute("T", b.type_of(dy)), type_attribute("Tout", b.type_of(x))];
            Ok(vec![Some(b.first("Complex", &parts, types)?)])
        },
        "AddN" => |_, c| {
            let dy = c.gradient()?;
            Ok(vec![Some(dy); c.x.len()])
        },
        _ => return None,
    })
}

/// Returns a gradient for the first input, and none for the others.
fn first_of(call: &Call, gradient: OutputId) -> Vec<Option<OutputId>> {
    let rest = call.x.len().saturating_sub(1);
    std::iter::once(Some(gradient)).chain(std::iter::repeat_n(None, rest)).collect()
}

/// Splits the gradient of a concatenation. Input `at` is the dimension.
fn concatenation(b: &mut Builder<'_>, call: &Call, at: usize) -> Result<Vec<Option<OutputId>>> {
    let (dimension, dy) = (call.input(at)?, call.gradient()?);
    let parts: Vec<OutputId> =
        call.x.iter().enumerate().filter(|(k, _)| *k != at).map(|(_, &part)| part).collect();
    let count = Value::I(parts.len() as i64);
    let data_type = b.type_of(dy);
    let shapes = b.node("ShapeN", &parts, vec![type_attribute("T", data_type), ("N", count.clone())])?;
    let shapes: Vec<OutputId> = (0..parts.len()).map(|index| OutputId { node: shapes, index }).collect();
    let dimension = b.cast(dimension, DataType::Int32)?;
    let inputs = [vec![dimension], shapes.clone()].concat();
    let offsets = b.node("ConcatOffset", &inputs, vec![("N", count)])?;
    let mut back = Vec::new();
    for (index, &shape) in shapes.iter().enumerate() {
        let types = vec![type_attribute("T", data_type), type_attribute("Index", DataType::Int32)];
        back.push(Some(b.first("Slice", &[dy, OutputId { node: offsets, index }, shape], types)?));
    }
    back.insert(at, None);
    Ok(back)
}

/// Concatenates the gradients of the pieces of a split. Input `at` is the dimension.
fn join(b: &mut Builder<'_>, call: &Call, at: usize) -> Result<OutputId> {
    let dimension = call.input(at)?;
    let types = [type_attribute("T", b.type_of(call.dy[0])), type_attribute("Tidx", b.type_of(dimension))];
    let attributes = [types.to_vec(), vec![("N", Value::I(call.dy.len() as i64))]].concat();
    match call.dy.as_slice() {
        [only] => Ok(*only),
        all => b.first("ConcatV2", &[all, &[dimension]].concat(), attributes),
    }
}

fn transposition(b: &mut Builder<'_>, call: &Call, op: &str) -> Result<Vec<Option<OutputId>>> {
    let (permutation, dy) = (call.input(1)?, call.gradient()?);
    let inverse = b.op("InvertPermutation", &[permutation])?;
    let back = b.first(op, &[dy, inverse], call.attributes(&["T", "Tperm"]))?;
    Ok(first_of(call, back))
}

/// Pads the gradient of a slice with zeros.
fn slice(b: &mut Builder<'_>, call: &Call) -> Result<Vec<Option<OutputId>>> {
    let (x, begin, dy) = (call.input(0)?, call.input(1)?, call.gradient()?);
    let index = b.type_of(begin);
    let sizes = |b: &mut Builder<'_>, x: OutputId| {
        let types = vec![type_attribute("T", b.type_of(x)), type_attribute("out_type", index)];
        b.first("Shape", &[x], types)
    };
    // The `size` input of the node may be -1, which means the rest of the dimension.
    let (whole, part) = (sizes(b, x)?, sizes(b, dy)?);
    let after = b.sub(whole, begin)?;
    let after = b.sub(after, part)?;
    let attributes = vec![type_attribute("T", index), ("N", Value::I(2)), ("axis", Value::I(1))];
    let paddings = b.first("Pack", &[begin, after], attributes)?;
    let types = vec![type_attribute("T", b.type_of(dy)), type_attribute("Tpaddings", index)];
    let back = b.first("Pad", &[dy, paddings], types)?;
    Ok(first_of(call, back))
}

/// Passes `dy` to the operand that was selected, and zero to the other.
fn select(b: &mut Builder<'_>, call: &Call) -> Result<Vec<Option<OutputId>>> {
    let (condition, dy) = (call.input(0)?, call.gradient()?);
    let zeros = b.op("ZerosLike", &[dy])?;
    let types = || call.attributes(&["T"]);
    let of_true = b.first(&call.node.op, &[condition, dy, zeros], types())?;
    let of_false = b.first(&call.node.op, &[condition, zeros, dy], types())?;
    Ok(vec![None, Some(of_true), Some(of_false)])
}
