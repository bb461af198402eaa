//! Ops that move or select elements and have a counterpart in TensorFlow.

use super::Row;
use crate::convert::{Array, Op};
use crate::tensor::Constant;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{flag, int, ty};

pub(super) const ROWS: &[Row] = &[
    ("Compress", compress),
    ("Concat", concat),
    ("ConstantOfShape", constant_of_shape),
    ("CumProd", |op| scan(op, "Cumprod")),
    ("CumSum", |op| scan(op, "Cumsum")),
    ("Det", determinant),
    ("NonZero", non_zero),
    ("Range", range),
    ("ReverseSequence", reverse_sequence),
    ("Shape", shape),
    ("Size", size),
];

fn concat(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let axis = op.attribute("axis").map(|attribute| attribute.i);
    let axis = axis.ok_or_else(|| Error::invalid("attribute 'axis' is missing"))?;
    let inputs = (0..op.input_count()).map(|k| op.input(k)).collect::<Result<Vec<Array>>>()?;
    let first = inputs.first().ok_or_else(|| Error::invalid("the op has no inputs"))?;
    if let Some(other) = inputs.iter().find(|array| array.data_type != first.data_type) {
        return Err(Error::invalid(format!(
            "inputs of types {} and {} must have the same type",
            first.data_type, other.data_type
        )));
    }
    let data_type = first.data_type;
    let mut values: Vec<_> = inputs.iter().map(|array| array.value.clone()).collect();
    let count = values.len() as i64;
    if count == 1 {
        let y = op.unary("Identity", first)?;
        return op.set_array(y);
    }
    values.push(op.long(axis)?.value);
    let attributes = [ty("T", data_type), ty("Tidx", DataType::Int64), int("N", count)];
    let y = op.node("ConcatV2", &values, attributes)?;
    op.set_array(Array::new(y, data_type))
}

fn constant_of_shape(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let sizes = op.input(0)?;
    let value = match op.attribute("value").and_then(|attribute| attribute.t.as_ref()) {
        Some(tensor) => {
            let constant = Constant::read(tensor, &mut *op.converter.external)?;
            if constant.sizes.iter().any(|&size| size != 1) {
                return Err(Error::invalid("value: expected one element"));
            }
            op.constant(Constant { sizes: Vec::new(), ..constant })?
        }
        None => op.scalar(DataType::Float, 0.0)?,
    };
    let attributes = [ty("T", value.data_type), ty("index_type", sizes.data_type)];
    let y = op.node("Fill", &[sizes.value, value.value], attributes)?;
    op.set_array(Array::new(y, value.data_type))
}

fn scan(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    let (x, axis) = (op.input(0)?, op.input(1)?);
    let axis = op.reshape(&axis, &[])?;
    let attributes = [
        ty("T", x.data_type),
        ty("Tidx", axis.data_type),
        flag("exclusive", op.int("exclusive", 0) != 0),
        flag("reverse", op.int("reverse", 0) != 0),
    ];
    let y = op.node(name, &[x.value, axis.value], attributes)?;
    op.set_array(Array::new(y, x.data_type))
}

fn determinant(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let y = op.unary("MatrixDeterminant", &x)?;
    op.set_array(y)
}

/// The indices of elements that are not 0, a row for each dimension.
fn non_zero(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let rows = op.node("Where", std::slice::from_ref(&x.value), [ty("T", x.data_type)])?;
    let order = op.longs(&[1, 0])?;
    let attributes = [ty("T", DataType::Int64), ty("Tperm", DataType::Int64)];
    let y = op.node("Transpose", &[rows, order.value], attributes)?;
    op.set_array(Array::new(y, DataType::Int64))
}

/// The elements of an axis for which a condition holds.
fn compress(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (mut x, condition) = (op.input(0)?, op.input(1)?);
    let axis = match op.attribute("axis") {
        Some(axis) => axis.i,
        None => {
            x = op.reshape(&x, &[-1])?;
            0
        }
    };
    let rows = op.node("Where", std::slice::from_ref(&condition.value), [ty("T", condition.data_type)])?;
    let positions = op.reshape(&Array::new(rows, DataType::Int64), &[-1])?;
    let axis = op.long(axis)?;
    let attributes = [
        ty("Tparams", x.data_type),
        ty("Tindices", DataType::Int64),
        ty("Taxis", DataType::Int64),
        int("batch_dims", 0),
    ];
    let y = op.node("GatherV2", &[x.value, positions.value, axis.value], attributes)?;
    op.set_array(Array::new(y, x.data_type))
}

fn range(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let own = op.input(0)?.data_type;
    // TensorFlow's op has no narrow types.
    let wide = match own {
        DataType::Int16 => DataType::Int32,
        DataType::Half | DataType::Bfloat16 => DataType::Float,
        other => other,
    };
    let mut ends = Vec::new();
    for k in 0..3 {
        let end = op.input(k)?;
        let end = op.reshape(&end, &[])?;
        ends.push(op.cast(&end, wide)?.value);
    }
    let y = op.node("Range", &ends, [ty("Tidx", wide)])?;
    let y = op.cast(&Array::new(y, wide), own)?;
    op.set_array(y)
}

fn reverse_sequence(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (x, lengths) = (op.input(0)?, op.input(1)?);
    let attributes = [
        ty("T", x.data_type),
        ty("Tlen", lengths.data_type),
        int("seq_dim", op.int("time_axis", 0)),
        int("batch_dim", op.int("batch_axis", 1)),
    ];
    let y = op.node("ReverseSequence", &[x.value, lengths.value], attributes)?;
    op.set_array(Array::new(y, x.data_type))
}

fn shape(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let attributes = [ty("T", x.data_type), ty("out_type", DataType::Int64)];
    let mut y = op.node("Shape", std::slice::from_ref(&x.value), attributes)?;
    let end = op.attribute("end").map(|attribute| attribute.i);
    let start = op.int("start", 0);
    if start != 0 || end.is_some() {
        let (begin, limit, strides) = (op.longs(&[start])?, op.longs(&[end.unwrap_or(0)])?, op.longs(&[1])?);
        let attributes = [
            ty("T", DataType::Int64),
            ty("Index", DataType::Int64),
            int("end_mask", i64::from(end.is_none())),
        ];
        y = op.node("StridedSlice", &[y, begin.value, limit.value, strides.value], attributes)?;
    }
    op.set_array(Array::new(y, DataType::Int64))
}

fn size(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let attributes = [ty("T", x.data_type), ty("out_type", DataType::Int64)];
    let y = op.node("Size", &[x.value], attributes)?;
    op.set_array(Array::new(y, DataType::Int64))
}
