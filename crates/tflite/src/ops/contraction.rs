//! Dots and convolutions.

use super::elementwise::requires_float;
use super::{Row, activated};
use crate::convert::Op;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Ref, flag, int, ints, text, ty};

pub(super) const ROWS: &[Row] = &[
    ("BATCH_MATMUL", batch_matmul),
    ("CONV_2D", conv_2d),
    ("CONV_3D", conv_3d),
    ("CONV_3D_TRANSPOSE", conv_3d_transpose),
    ("DEPTHWISE_CONV_2D", depthwise_conv_2d),
    ("EMBEDDING_LOOKUP", embedding_lookup),
    ("FULLY_CONNECTED", fully_connected),
    ("TRANSPOSE_CONV", transpose_conv),
];

/// `SAME` or `VALID`, from a field of the options.
pub(super) fn padding(op: &Op<'_, '_>, field: usize) -> Result<&'static str> {
    match op.options().byte(field)? {
        0 => Ok("SAME"),
        1 => Ok("VALID"),
        other => Err(Error::invalid(format!("padding {other} is unknown"))),
    }
}

/// A positive number of the options, such as a stride.
pub(super) fn positive(op: &Op<'_, '_>, field: usize, default: i32, what: &str) -> Result<i64> {
    let value = op.options().int(field, default)?;
    if value > 0 { Ok(value) } else { Err(Error::invalid(format!("{what} {value} is not positive"))) }
}

/// Transposes a value.
fn transposed(op: &mut Op<'_, '_>, value: Ref, t: DataType, permutation: &[i64]) -> Result<Ref> {
    let permutation = op.int_vector(permutation)?;
    op.node("Transpose", &[value, permutation], [ty("T", t), ty("Tperm", DataType::Int32)])
}

/// Reshapes a value.
pub(super) fn reshaped(op: &mut Op<'_, '_>, value: Ref, t: DataType, sizes: &[i64]) -> Result<Ref> {
    let sizes = op.int_vector(sizes)?;
    op.node("Reshape", &[value, sizes], [ty("T", t), ty("Tshape", DataType::Int32)])
}

/// Adds the bias if there is one, and applies the activation.
fn finished(op: &mut Op<'_, '_>, mut value: Ref, t: DataType, bias: usize, activation: usize) -> Result<()> {
    if op.has_input(bias) {
        let bias = op.input(bias)?;
        value = op.node("AddV2", &[value, bias], [ty("T", t)])?;
    }
    let y = activated(op, value, activation)?;
    op.set(0, y)
}

fn rank_is(op: &Op<'_, '_>, k: usize, rank: usize, what: &str) -> Result<Vec<i64>> {
    let sizes = op.sizes(k)?;
    if sizes.len() != rank {
        return Err(Error::invalid(format!("the {what} must have rank {rank}, but has shape {sizes:?}")));
    }
    Ok(sizes.to_vec())
}

/// Filter: output features, height, width, input features of a group.
fn conv_2d(op: &mut Op<'_, '_>) -> Result<()> {
    requires_float(op, 0)?;
    rank_is(op, 1, 4, "filter")?;
    let (stride_w, stride_h) = (positive(op, 1, 0, "stride")?, positive(op, 2, 0, "stride")?);
    let (dilation_w, dilation_h) = (positive(op, 4, 1, "dilation")?, positive(op, 5, 1, "dilation")?);
    let (x, filter, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    let filter = transposed(op, filter, t, &[1, 2, 3, 0])?;
    let attributes = [
        ty("T", t),
        ints("strides", &[1, stride_h, stride_w, 1]),
        ints("dilations", &[1, dilation_h, dilation_w, 1]),
        text("padding", padding(op, 0)?),
    ];
    let y = op.node("Conv2D", &[x, filter], attributes)?;
    finished(op, y, t, 2, 3)
}

/// Filter: 1, height, width, output features.
fn depthwise_conv_2d(op: &mut Op<'_, '_>) -> Result<()> {
    requires_float(op, 0)?;
    let input = rank_is(op, 0, 4, "input")?;
    let filter_sizes = rank_is(op, 1, 4, "filter")?;
    let (stride_w, stride_h) = (positive(op, 1, 0, "stride")?, positive(op, 2, 0, "stride")?);
    let (dilation_w, dilation_h) = (positive(op, 5, 1, "dilation")?, positive(op, 6, 1, "dilation")?);
    let (features, outputs) = (input[3], filter_sizes[3]);
    if features == 0 || outputs % features != 0 {
        return Err(Error::invalid(format!(
            "{outputs} output features are no multiple of {features} input features"
        )));
    }
    let (x, filter, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    let sizes = [filter_sizes[1], filter_sizes[2], features, outputs / features];
    let filter = reshaped(op, filter, t, &sizes)?;
    // TensorFlow wants equal strides, but compiles others.
    let attributes = [
        ty("T", t),
        ints("strides", &[1, stride_h, stride_w, 1]),
        ints("dilations", &[1, dilation_h, dilation_w, 1]),
        text("padding", padding(op, 0)?),
    ];
    let y = op.node("DepthwiseConv2dNative", &[x, filter], attributes)?;
    finished(op, y, t, 2, 4)
}

/// Filter: output features, height, width, input features.
fn transpose_conv(op: &mut Op<'_, '_>) -> Result<()> {
    requires_float(op, 2)?;
    rank_is(op, 1, 4, "filter")?;
    let (stride_w, stride_h) = (positive(op, 1, 0, "stride")?, positive(op, 2, 0, "stride")?);
    let (sizes, filter, x, t) = (op.input(0)?, op.input(1)?, op.input(2)?, op.data_type(2)?);
    let padding = padding(op, 0)?;
    let y = transposed_convolution(op, [sizes, filter, x], t, [stride_h, stride_w], padding)?;
    finished(op, y, t, 3, 3)
}

/// The transposed convolution with the sizes of the result, a filter, and an input.
pub(super) fn transposed_convolution(
    op: &mut Op<'_, '_>,
    [sizes, filter, x]: [Ref; 3],
    t: DataType,
    [stride_h, stride_w]: [i64; 2],
    padding: &str,
) -> Result<Ref> {
    let filter = transposed(op, filter, t, &[1, 2, 0, 3])?;
    let attributes = [ty("T", t), ints("strides", &[1, stride_h, stride_w, 1]), text("padding", padding)];
    op.node("Conv2DBackpropInput", &[sizes, filter, x], attributes)
}

fn strides_3d(op: &Op<'_, '_>) -> Result<[i64; 5]> {
    let (d, w, h) =
        (positive(op, 1, 0, "stride")?, positive(op, 2, 0, "stride")?, positive(op, 3, 0, "stride")?);
    Ok([1, d, h, w, 1])
}

fn dilations_3d(op: &Op<'_, '_>) -> Result<[i64; 5]> {
    let of = |field| positive(op, field, 1, "dilation");
    Ok([1, of(5)?, of(7)?, of(6)?, 1])
}

fn conv_3d(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, filter, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    let attributes = [
        ty("T", t),
        ints("strides", &strides_3d(op)?),
        ints("dilations", &dilations_3d(op)?),
        text("padding", padding(op, 0)?),
    ];
    let y = op.node("Conv3D", &[x, filter], attributes)?;
    finished(op, y, t, 2, 4)
}

fn conv_3d_transpose(op: &mut Op<'_, '_>) -> Result<()> {
    let (sizes, filter, x, t) = (op.input(0)?, op.input(1)?, op.input(2)?, op.data_type(2)?);
    let attributes = [
        ty("T", t),
        ty("Tshape", DataType::Int32),
        ints("strides", &strides_3d(op)?),
        ints("dilations", &dilations_3d(op)?),
        text("padding", padding(op, 0)?),
    ];
    let y = op.node("Conv3DBackpropInputV2", &[sizes, filter, x], attributes)?;
    finished(op, y, t, 3, 4)
}

/// Weights: output features, input features.
fn fully_connected(op: &mut Op<'_, '_>) -> Result<()> {
    requires_float(op, 0)?;
    let weights_sizes = rank_is(op, 1, 2, "weights")?;
    let (x, weights, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    let rows = reshaped(op, x, t, &[-1, weights_sizes[1]])?;
    let attributes = [ty("T", t), flag("transpose_a", false), flag("transpose_b", true)];
    let mut y = op.node("MatMul", &[rows, weights], attributes)?;
    if op.has_input(2) {
        let bias = op.input(2)?;
        y = op.node("AddV2", &[y, bias], [ty("T", t)])?;
    }
    y = activated(op, y, 0)?;
    if op.options().bool(2, false)? {
        let mut sizes = op.sizes(0)?.to_vec();
        *sizes.last_mut().ok_or_else(|| Error::invalid("the input is a scalar"))? = weights_sizes[0];
        y = reshaped(op, y, t, &sizes)?;
    }
    op.set(0, y)
}

fn batch_matmul(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, y, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    let attributes = [
        ty("T", t),
        flag("adj_x", op.options().bool(0, false)?),
        flag("adj_y", op.options().bool(1, false)?),
    ];
    let z = op.node("BatchMatMulV2", &[x, y], attributes)?;
    op.set(0, z)
}

/// Rows of a table.
fn embedding_lookup(op: &mut Op<'_, '_>) -> Result<()> {
    let (ids, table) = (op.input(0)?, op.input(1)?);
    let axis = op.int(0)?;
    let attributes = [
        ty("Tparams", op.data_type(1)?),
        ty("Tindices", op.data_type(0)?),
        ty("Taxis", DataType::Int32),
        int("batch_dims", 0),
    ];
    let y = op.node("GatherV2", &[table, ids, axis], attributes)?;
    op.set(0, y)
}
