//! Operators that move elements or compute shapes.

use super::Row;
use super::contraction::reshaped;
use super::{activated, cast};
use crate::convert::Op;
use shape::index::element_count;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Ref, flag, int, ints, text, ty};

pub(super) const ROWS: &[Row] = &[
    ("BATCH_TO_SPACE_ND", |op| blocks(op, "BatchToSpaceND", "Tcrops")),
    ("BROADCAST_ARGS", broadcast_args),
    ("BROADCAST_TO", broadcast_to),
    ("CONCATENATION", concatenation),
    ("DENSIFY", |op| op.input(0).and_then(|x| op.set(0, x))),
    ("DEPTH_TO_SPACE", |op| depth(op, "DepthToSpace")),
    ("DILATE", dilate),
    ("EXPAND_DIMS", expand_dims),
    ("FILL", fill),
    ("MATRIX_DIAG", |op| diagonals(op, "MatrixDiag")),
    ("MATRIX_SET_DIAG", |op| diagonals(op, "MatrixSetDiag")),
    ("MIRROR_PAD", mirror_pad),
    ("PACK", pack),
    ("PAD", pad),
    ("PADV2", pad_v2),
    ("RANGE", range),
    ("RANK", rank),
    ("RESHAPE", reshape),
    ("REVERSE_SEQUENCE", reverse_sequence),
    ("REVERSE_V2", reverse),
    ("SHAPE", shape_of_input),
    ("SLICE", slice),
    ("SPACE_TO_BATCH_ND", space_to_batch),
    ("SPACE_TO_DEPTH", |op| depth(op, "SpaceToDepth")),
    ("SPLIT", split),
    ("SPLIT_V", split_v),
    ("SQUEEZE", squeeze),
    ("STRIDED_SLICE", strided_slice),
    ("TILE", tile),
    ("TRANSPOSE", transpose),
    ("UNPACK", unpack),
];

fn blocks(op: &mut Op<'_, '_>, name: &str, third: &'static str) -> Result<()> {
    let inputs = op.inputs()?;
    let attributes =
        [ty("T", op.data_type(0)?), ty("Tblock_shape", op.data_type(1)?), ty(third, op.data_type(2)?)];
    let y = op.node(name, &inputs, attributes)?;
    op.set(0, y)
}

/// Pads with zero, which quantized tensors store as their zero point.
fn space_to_batch(op: &mut Op<'_, '_>) -> Result<()> {
    let zero_point = op.quantization(0)?.map_or(0, |quantization| quantization.zero_points[0]);
    let (true, Some(paddings)) = (zero_point != 0, op.constant_ints(2)?) else {
        return blocks(op, "SpaceToBatchND", "Tpaddings");
    };
    let (t, index) = (op.data_type(0)?, op.data_type(2)?);
    let rank = op.sizes(0)?.len();
    // The first dimension is that of the batch; others follow those of the block.
    let mut amounts = vec![0, 0];
    amounts.extend_from_slice(&paddings);
    amounts.resize(2 * rank, 0);
    let amounts = op.integers(index, &[rank as i64, 2], &amounts)?;
    let zero = zero_of_input(op)?;
    let x = op.input(0)?;
    let x = op.node("PadV2", &[x, amounts, zero], [ty("T", t), ty("Tpaddings", index)])?;
    let none = op.integers(index, op.sizes(2)?, &vec![0; paddings.len()])?;
    let block = op.input(1)?;
    let attributes = [ty("T", t), ty("Tblock_shape", op.data_type(1)?), ty("Tpaddings", index)];
    let y = op.node("SpaceToBatchND", &[x, block, none], attributes)?;
    op.set(0, y)
}

/// The shape of the broadcast of two fed shapes: where one of them has 1 or nothing, that of the
/// other.
fn broadcast_args(op: &mut Op<'_, '_>) -> Result<()> {
    let (inputs, t) = (op.inputs()?, op.data_type(0)?);
    if !op.is_fed(0)? && !op.is_fed(1)? {
        let y = op.node("BroadcastArgs", &inputs, [ty("T", t)])?;
        return op.set(0, y);
    }
    let rank = |k| -> Result<i64> {
        let sizes = op.sizes(k)?;
        element_count(sizes).ok_or_else(|| Error::invalid(format!("shape {sizes:?} is not possible")))
    };
    let ranks = [rank(0)?, rank(1)?];
    let most = ranks[0].max(ranks[1]);
    let one = op.scalar(t, 1.0)?;
    let mut aligned = Vec::new();
    for (shape, rank) in inputs.into_iter().zip(ranks) {
        let amounts = op.integers(DataType::Int32, &[1, 2], &[most - rank, 0])?;
        let attributes = [ty("T", t), ty("Tpaddings", DataType::Int32)];
        aligned.push(op.node("PadV2", &[shape, amounts, one.clone()], attributes)?);
    }
    let attributes = [ty("T", t), flag("incompatible_shape_error", true)];
    let is_one = op.node("Equal", &[aligned[0].clone(), one], attributes)?;
    let y = op.node("SelectV2", &[is_one, aligned[1].clone(), aligned[0].clone()], [ty("T", t)])?;
    op.set(0, y)
}

fn broadcast_to(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("BroadcastTo", &inputs, [ty("T", op.data_type(0)?), ty("Tidx", op.data_type(1)?)])?;
    op.set(0, y)
}

fn concatenation(op: &mut Op<'_, '_>) -> Result<()> {
    let (mut values, t) = (op.inputs()?, op.data_type(0)?);
    if let [only] = values.as_slice() {
        let y = activated(op, only.clone(), 1)?;
        return op.set(0, y);
    }
    let count = values.len() as i64;
    values.push(op.int(op.options().int(0, 0)?)?);
    let y = op.node("ConcatV2", &values, [ty("T", t), int("N", count), ty("Tidx", DataType::Int32)])?;
    let y = activated(op, y, 1)?;
    op.set(0, y)
}

fn depth(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let block = op.options().int(0, 0)?;
    let x = op.input(0)?;
    if block == 1 {
        return op.set(0, x);
    }
    let y = op.node(name, &[x], [ty("T", op.data_type(0)?), int("block_size", block)])?;
    op.set(0, y)
}

/// Puts `dilation - 1` padding values between elements.
fn dilate(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, padding, t) = (op.input(0)?, op.input(2)?, op.data_type(0)?);
    let interior: Vec<i64> =
        op.required_ints(1, "the dilations")?.iter().map(|dilation| dilation - 1).collect();
    let none = op.int_vector(&vec![0; interior.len()])?;
    let interior = op.int_vector(&interior)?;
    let attributes = [ty("T", t), ty("Tindices", DataType::Int32)];
    let y = op.node("XlaPad", &[x, padding, none.clone(), none, interior], attributes)?;
    op.set(0, y)
}

fn expand_dims(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("ExpandDims", &inputs, [ty("T", op.data_type(0)?), ty("Tdim", op.data_type(1)?)])?;
    op.set(0, y)
}

fn fill(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("Fill", &inputs, [ty("T", op.data_type(1)?), ty("index_type", op.data_type(0)?)])?;
    op.set(0, y)
}

fn diagonals(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node(name, &inputs, [ty("T", op.data_type(0)?)])?;
    op.set(0, y)
}

fn mirror_pad(op: &mut Op<'_, '_>) -> Result<()> {
    let mode = match op.options().byte(0)? {
        0 => "REFLECT",
        1 => "SYMMETRIC",
        other => return Err(Error::invalid(format!("mode {other} is unknown"))),
    };
    let inputs = op.inputs()?;
    let attributes = [ty("T", op.data_type(0)?), ty("Tpaddings", op.data_type(1)?), text("mode", mode)];
    let y = op.node("MirrorPad", &inputs, attributes)?;
    op.set(0, y)
}

fn pack(op: &mut Op<'_, '_>) -> Result<()> {
    let (values, axis) = (op.inputs()?, op.options().int(1, 0)?);
    let count = values.len() as i64;
    let y = op.node("Pack", &values, [ty("T", op.data_type(0)?), int("N", count), int("axis", axis)])?;
    op.set(0, y)
}

/// Zero as a quantized tensor stores it.
fn zero_of_input(op: &mut Op<'_, '_>) -> Result<Ref> {
    let zero = op.quantization(0)?.map_or(0, |quantization| quantization.zero_points[0]);
    op.scalar(op.data_type(0)?, zero as f64)
}

fn pad(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, paddings, t, zero) = (op.input(0)?, op.input(1)?, op.data_type(0)?, zero_of_input(op)?);
    let y = op.node("PadV2", &[x, paddings, zero], [ty("T", t), ty("Tpaddings", op.data_type(1)?)])?;
    op.set(0, y)
}

fn pad_v2(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("PadV2", &inputs, [ty("T", op.data_type(0)?), ty("Tpaddings", op.data_type(1)?)])?;
    op.set(0, y)
}

fn range(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("Range", &inputs, [ty("Tidx", op.data_type(0)?)])?;
    op.set(0, y)
}

fn rank(op: &mut Op<'_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let y = op.node("Rank", &[x], [ty("T", op.data_type(0)?)])?;
    let y = cast(op, y, DataType::Int32, op.result(0)?.data_type)?;
    op.set(0, y)
}

/// The new shape is an input or, in older models, an option.
fn reshape(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, t) = (op.input(0)?, op.data_type(0)?);
    let y = if op.has_input(1) && op.data_type(1)? == DataType::Int32 {
        let sizes = op.input(1)?;
        op.node("Reshape", &[x, sizes], [ty("T", t), ty("Tshape", DataType::Int32)])?
    } else {
        let sizes = op.options().ints(0)?;
        // Before shapes could be empty, a scalar was [0].
        let sizes = if sizes == [0] { Vec::new() } else { sizes };
        reshaped(op, x, t, &sizes)?
    };
    op.set(0, y)
}

fn reverse(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("ReverseV2", &inputs, [ty("T", op.data_type(0)?), ty("Tidx", op.data_type(1)?)])?;
    op.set(0, y)
}

fn reverse_sequence(op: &mut Op<'_, '_>) -> Result<()> {
    let options = op.options();
    let (sequence, batch) = (options.int(0, 0)?, options.int(1, 0)?);
    let inputs = op.inputs()?;
    let attributes = [
        ty("T", op.data_type(0)?),
        ty("Tlen", op.data_type(1)?),
        int("seq_dim", sequence),
        int("batch_dim", batch),
    ];
    let y = op.node("ReverseSequence", &inputs, attributes)?;
    op.set(0, y)
}

fn shape_of_input(op: &mut Op<'_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let y = op.node("Shape", &[x], [ty("T", op.data_type(0)?), ty("out_type", op.result(0)?.data_type)])?;
    op.set(0, y)
}

fn slice(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("Slice", &inputs, [ty("T", op.data_type(0)?), ty("Index", op.data_type(1)?)])?;
    op.set(0, y)
}

fn split(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let count = op.output_count() as i64;
    let parts = op.add("Split", &inputs, [ty("T", op.data_type(1)?), int("num_split", count)])?;
    op.set_all(parts)
}

fn split_v(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let count = op.output_count() as i64;
    let attributes = [ty("T", op.data_type(0)?), ty("Tlen", op.data_type(1)?), int("num_split", count)];
    let parts = op.add("SplitV", &inputs, attributes)?;
    op.set_all(parts)
}

fn squeeze(op: &mut Op<'_, '_>) -> Result<()> {
    let dimensions = op.options().ints(0)?;
    let x = op.input(0)?;
    let y = op.node("Squeeze", &[x], [ty("T", op.data_type(0)?), ints("squeeze_dims", &dimensions)])?;
    op.set(0, y)
}

fn strided_slice(op: &mut Op<'_, '_>) -> Result<()> {
    let options = op.options();
    let mut inputs = op.inputs()?;
    let index = op.data_type(1)?;
    if options.bool(5, false)? {
        // The ends are distances from the beginnings.
        inputs[2] = op.node("AddV2", &[inputs[1].clone(), inputs[2].clone()], [ty("T", index)])?;
    }
    let mut attributes = vec![ty("T", op.data_type(0)?), ty("Index", index)];
    for (field, mask) in ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"]
        .into_iter()
        .enumerate()
    {
        attributes.push(int(mask, options.int(field, 0)?));
    }
    let y = op.node("StridedSlice", &inputs, attributes)?;
    op.set(0, y)
}

fn tile(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("Tile", &inputs, [ty("T", op.data_type(0)?), ty("Tmultiples", op.data_type(1)?)])?;
    op.set(0, y)
}

fn transpose(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("Transpose", &inputs, [ty("T", op.data_type(0)?), ty("Tperm", op.data_type(1)?)])?;
    op.set(0, y)
}

fn unpack(op: &mut Op<'_, '_>) -> Result<()> {
    let axis = op.options().int(1, 0)?;
    let x = op.input(0)?;
    let count = op.output_count() as i64;
    let parts = op.add("Unpack", &[x], [ty("T", op.data_type(0)?), int("num", count), int("axis", axis)])?;
    op.set_all(parts)
}
