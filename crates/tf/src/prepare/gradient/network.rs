//! Gradients of reductions, matrix products, convolutions, and pooling.

use super::broadcast::products;
use super::builder::{Builder, Call, type_attribute};
use crate::proto::attr_value::Value;
use crate::{DataType, OutputId};
use support::Result;

type Build = fn(&mut Builder<'_>, &Call) -> Result<Vec<Option<OutputId>>>;

pub(super) fn find(op: &str) -> Option<Build> {
    Some(match op {
        "Sum" => |b, c| {
            let dy = c.gradient()?;
            Ok(vec![Some(spread(b, c, dy)?), None])
        },
        "Mean" => |b, c| {
            let (x, dy) = (c.input(0)?, c.gradient()?);
            let (whole, part) = (b.op("Size", &[x])?, b.op("Size", &[dy])?);
            let count = b.op("Div", &[whole, part])?;
            let count = b.cast(count, b.type_of(dy))?;
            let scaled = b.op("Div", &[dy, count])?;
            Ok(vec![Some(spread(b, c, scaled)?), None])
        },
        "Max" => |b, c| extreme(b, c, "Max"),
        "Min" => |b, c| extreme(b, c, "Min"),
        "MatMul" => |b, c| Ok(products(b, c, "MatMul", ["transpose_a", "transpose_b"])?.map(Some).to_vec()),
        "BatchMatMul" => |b, c| Ok(products(b, c, "BatchMatMul", ["adj_x", "adj_y"])?.map(Some).to_vec()),
        "Softmax" => |b, c| {
            let (y, dy) = (c.y[0], c.gradient()?);
            let product = b.mul(dy, y)?;
            let last = b.integers(&[-1], false)?;
            let sum = b.sum(product, last, true)?;
            let rest = b.sub(dy, sum)?;
            Ok(vec![Some(b.mul(rest, y)?)])
        },
        "LogSoftmax" => |b, c| {
            let (x, dy) = (c.input(0)?, c.gradient()?);
            let softmax = b.op("Softmax", &[x])?;
            let last = b.integers(&[-1], false)?;
            let sum = b.sum(dy, last, true)?;
            let share = b.mul(sum, softmax)?;
            Ok(vec![Some(b.sub(dy, share)?)])
        },
        "Relu" => |b, c| Ok(vec![Some(b.op("ReluGrad", &[c.gradient()?, c.input(0)?])?)]),
        "Relu6" => |b, c| Ok(vec![Some(b.op("Relu6Grad", &[c.gradient()?, c.input(0)?])?)]),
        "BiasAdd" => |b, c| {
            let dy = c.gradient()?;
            let bias = b.first("BiasAddGrad", &[dy], c.attributes(&["T", "data_format"]))?;
            Ok(vec![Some(dy), Some(bias)])
        },
        "Conv2D" => |b, c| {
            const NAMES: &[&str] =
                &["T", "strides", "padding", "explicit_paddings", "data_format", "dilations"];
            let (x, filter, dy) = (c.input(0)?, c.input(1)?, c.gradient()?);
            let (x_shape, filter_shape) = (b.shape(x)?, b.shape(filter)?);
            let of_x = b.first("Conv2DBackpropInput", &[x_shape, filter, dy], c.attributes(NAMES))?;
            let of_filter = b.first("Conv2DBackpropFilter", &[x, filter_shape, dy], c.attributes(NAMES))?;
            Ok(vec![Some(of_x), Some(of_filter)])
        },
        "MaxPool" => |b, c| {
            const NAMES: &[&str] = &["T", "ksize", "strides", "padding", "explicit_paddings", "data_format"];
            let inputs = [c.input(0)?, c.y[0], c.gradient()?];
            Ok(vec![Some(b.first("MaxPoolGrad", &inputs, c.attributes(NAMES))?)])
        },
        "AvgPool" => |b, c| {
            let shape = b.shape(c.input(0)?)?;
            let attributes = c.attributes(&["T", "ksize", "strides", "padding", "data_format"]);
            Ok(vec![Some(b.first("AvgPoolGrad", &[shape, c.gradient()?], attributes)?)])
        },
        "MaxPoolGrad" => |b, c| {
            let inputs = [c.input(0)?, c.input(1)?, c.gradient()?];
            let attributes = c.attributes(&["T", "ksize", "strides", "padding", "data_format"]);
            let of_gradient = b.first("MaxPoolGradGrad", &inputs, attributes)?;
            Ok(vec![None, None, Some(of_gradient)])
        },
        _ => return None,
    })
}

/// Adds a reduction that keeps reduced dimensions with size 1.
fn reduce_keeping_rank(b: &mut Builder<'_>, call: &Call, op: &str) -> Result<OutputId> {
    let (x, dimensions) = (call.input(0)?, call.input(1)?);
    let types = [type_attribute("T", b.type_of(x)), type_attribute("Tidx", b.type_of(dimensions))];
    b.first(op, &[x, dimensions], [types.to_vec(), vec![("keep_dims", Value::B(true))]].concat())
}

/// Broadcasts the gradient of a reduction's result along the reduced dimensions.
fn spread(b: &mut Builder<'_>, call: &Call, dy: OutputId) -> Result<OutputId> {
    let sum = reduce_keeping_rank(b, call, "Sum")?;
    let (narrow, whole) = (b.shape(sum)?, b.shape(call.input(0)?)?);
    let dy = b.reshape(dy, narrow)?;
    let types = [type_attribute("T", b.type_of(dy)), type_attribute("Tidx", DataType::Int32)];
    b.first("BroadcastTo", &[dy, whole], types.to_vec())
}

/// Gradient of a maximum or minimum, shared equally by all elements with the extreme value.
fn extreme(b: &mut Builder<'_>, call: &Call, op: &str) -> Result<Vec<Option<OutputId>>> {
    let (x, dy) = (call.input(0)?, call.gradient()?);
    let y = reduce_keeping_rank(b, call, op)?;
    let mask = b.op("Equal", &[x, y])?;
    let mask = b.cast(mask, b.type_of(x))?;
    let count = b.sum(mask, call.input(1)?, true)?;
    let narrow = b.shape(y)?;
    let dy = b.reshape(dy, narrow)?;
    let share = b.op("Div", &[dy, count])?;
    Ok(vec![Some(b.mul(mask, share)?), None])
}
