//! Random numbers. Their distribution is that of ONNX; the numbers are those of this compiler.

use super::Row;
use crate::convert::{Array, Op};
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{int, ty};

pub(super) const ROWS: &[Row] = &[
    ("Bernoulli", bernoulli),
    ("Multinomial", multinomial),
    ("RandomNormal", |op| of_shape(op, "RandomStandardNormal")),
    ("RandomNormalLike", |op| like(op, "RandomStandardNormal")),
    ("RandomUniform", |op| of_shape(op, "RandomUniform")),
    ("RandomUniformLike", |op| like(op, "RandomUniform")),
];

/// The seed, which the file states as a number with a fraction.
fn seed(op: &Op<'_, '_, '_>) -> i64 {
    i64::from(op.attribute("seed").map_or(0, |attribute| attribute.f.to_bits()))
}

/// Draws numbers for an array with these sizes.
fn draw(op: &mut Op<'_, '_, '_>, name: &str, sizes: &Array, data_type: DataType) -> Result<Array> {
    let seed = seed(op);
    let attributes = [ty("dtype", data_type), ty("T", sizes.data_type), int("seed", seed), int("seed2", 0)];
    Ok(Array::new(op.node(name, std::slice::from_ref(&sizes.value), attributes)?, data_type))
}

/// The sizes of an array.
fn sizes_of(op: &mut Op<'_, '_, '_>, x: &Array) -> Result<Array> {
    let attributes = [ty("T", x.data_type), ty("out_type", DataType::Int64)];
    Ok(Array::new(op.node("Shape", std::slice::from_ref(&x.value), attributes)?, DataType::Int64))
}

/// Draws numbers and scales them as the attributes say.
fn scaled(op: &mut Op<'_, '_, '_>, name: &str, sizes: &Array, data_type: DataType) -> Result<()> {
    let (factor, offset) = if name == "RandomUniform" {
        let (low, high) = (op.float("low", 0.0), op.float("high", 1.0));
        (f64::from(high) - f64::from(low), f64::from(low))
    } else {
        (f64::from(op.float("scale", 1.0)), f64::from(op.float("mean", 0.0)))
    };
    let numbers = draw(op, name, sizes, data_type)?;
    let (factor, offset) = (op.scalar(data_type, factor)?, op.scalar(data_type, offset)?);
    let numbers = op.binary("Mul", &numbers, &factor)?;
    let numbers = op.binary("AddV2", &numbers, &offset)?;
    op.set_array(numbers)
}

fn of_shape(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    let shape = op.attribute("shape").map(|attribute| attribute.ints.clone());
    let shape = shape.ok_or_else(|| Error::invalid("attribute 'shape' is missing"))?;
    let data_type = op.type_attribute("dtype")?.unwrap_or(DataType::Float);
    let sizes = op.longs(&shape)?;
    scaled(op, name, &sizes, data_type)
}

fn like(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    let x = op.input(0)?;
    let data_type = op.type_attribute("dtype")?.unwrap_or(x.data_type);
    let sizes = sizes_of(op, &x)?;
    scaled(op, name, &sizes, data_type)
}

/// 1 with the probability that each element states.
fn bernoulli(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let data_type = op.type_attribute("dtype")?.unwrap_or(x.data_type);
    let sizes = sizes_of(op, &x)?;
    let numbers = draw(op, "RandomUniform", &sizes, x.data_type)?;
    let is_one = op.comparison("Less", &numbers, &x)?;
    let y = op.cast(&is_one, data_type)?;
    op.set_array(y)
}

fn multinomial(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let data_type = op.type_attribute("dtype")?.unwrap_or(DataType::Int32);
    let count = i32::try_from(op.int("sample_size", 1))
        .map_err(|_| Error::invalid("sample_size must be an int32"))?;
    let (count, seed) = (op.int32(count)?, seed(op));
    let attributes =
        [ty("T", x.data_type), ty("output_dtype", data_type), int("seed", seed), int("seed2", 0)];
    let y = op.node("Multinomial", &[x.value.clone(), count.value], attributes)?;
    op.set_array(Array::new(y, data_type))
}
