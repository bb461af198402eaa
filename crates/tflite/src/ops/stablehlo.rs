//! StableHLO's operations that have a kernel in TensorFlow Lite, and `REDUCE_WINDOW`.

use super::Row;
use super::control::called;
use super::quantized::{Choice, convert_with_states};
use crate::convert::Op;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Ref, flag, function, text_bytes, ty};

pub(super) const ROWS: &[Row] = &[
    ("STABLEHLO_ADD", |op| binary(op, "AddV2", "LogicalOr")),
    ("STABLEHLO_AND", |op| binary(op, "BitwiseAnd", "LogicalAnd")),
    ("STABLEHLO_CBRT", cube_root),
    ("STABLEHLO_GATHER", gather),
    ("STABLEHLO_MAXIMUM", |op| binary(op, "Maximum", "LogicalOr")),
    ("STABLEHLO_MINIMUM", |op| binary(op, "Minimum", "LogicalAnd")),
    ("STABLEHLO_MULTIPLY", |op| binary(op, "Mul", "LogicalAnd")),
    ("STABLEHLO_PAD", pad),
    ("STABLEHLO_REDUCE_WINDOW", reduce_window),
    ("STABLEHLO_RNG_BIT_GENERATOR", |op| {
        convert_with_states(op, &[Choice::Byte("algorithm", 0), Choice::Sizes("output_sizes", 1)], &[])
    }),
    ("STABLEHLO_SCATTER", scatter),
    ("STABLEHLO_SHIFT_LEFT", |op| binary(op, "LeftShift", "")),
    ("REDUCE_WINDOW", reduce_window_of_function),
];

/// An op of numbers, and the one for bools.
fn binary(op: &mut Op<'_, '_>, name: &str, of_bools: &str) -> Result<()> {
    let (x, y, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    let z = match t {
        DataType::Bool if of_bools.is_empty() => return Err(Error::invalid("bools cannot be shifted")),
        DataType::Bool => op.node(of_bools, &[x, y], [])?,
        _ => op.node(name, &[x, y], [ty("T", t)])?,
    };
    op.set(0, z)
}

/// The real cube root, also of negative numbers.
fn cube_root(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, t) = (op.input(0)?, op.data_type(0)?);
    let third = op.scalar(t, 1.0 / 3.0)?;
    let sign = op.node("Sign", std::slice::from_ref(&x), [ty("T", t)])?;
    let size = op.node("Abs", &[x], [ty("T", t)])?;
    let root = op.node("Pow", &[size, third], [ty("T", t)])?;
    let y = op.node("Mul", &[sign, root], [ty("T", t)])?;
    op.set(0, y)
}

/// A message of XLA with dimension numbers: three lists and a number.
fn dimension_numbers(lists: [Vec<i64>; 3], number: i64) -> Vec<u8> {
    let mut message = Vec::new();
    let varint = |message: &mut Vec<u8>, number: i64| {
        let mut rest = number as u64;
        while rest >= 0x80 {
            message.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        message.push(rest as u8);
    };
    for (field, list) in (1..).zip(lists) {
        for element in list {
            message.push(field << 3);
            varint(&mut message, element);
        }
    }
    message.push(4 << 3);
    varint(&mut message, number);
    message
}

fn gather(op: &mut Op<'_, '_>) -> Result<()> {
    let options = op.options();
    let lists = [options.longs(0)?, options.longs(1)?, options.longs(2)?];
    let numbers = dimension_numbers(lists, options.long(3)?);
    let sizes = op.long_vector(&options.longs(4)?)?;
    let (x, indices, index) = (op.input(0)?, op.input(1)?, op.data_type(1)?);
    let indices = super::cast(op, indices, index, DataType::Int64)?;
    let attributes = [
        ty("T", op.data_type(0)?),
        ty("Tindices", DataType::Int64),
        text_bytes("dimension_numbers", &numbers),
        flag("indices_are_sorted", options.bool(5, false)?),
    ];
    let y = op.node("XlaGather", &[x, indices, sizes], attributes)?;
    op.set(0, y)
}

fn scatter(op: &mut Op<'_, '_>) -> Result<()> {
    let options = op.options();
    let combine = called(op, &[options.int(6, 0)?], 2, 1)?;
    let lists = [options.longs(1)?, options.longs(2)?, options.longs(3)?];
    let numbers = dimension_numbers(lists, options.long(4)?);
    let (x, indices, updates) = (op.input(0)?, op.input(1)?, op.input(2)?);
    let attributes = [
        ty("T", op.data_type(0)?),
        ty("Tindices", op.data_type(1)?),
        function("update_computation", combine.only()?),
        text_bytes("dimension_numbers", &numbers),
        flag("indices_are_sorted", options.bool(0, false)?),
    ];
    let y = op.node("XlaScatter", &[x, indices, updates], attributes)?;
    op.set(0, y)
}

fn pad(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, value) = (op.input(0)?, op.input(1)?);
    let mut inputs = vec![x, value];
    for field in 0..3 {
        inputs.push(op.long_vector(&op.options().longs(field)?)?);
    }
    let y = op.node("XlaPad", &inputs, [ty("T", op.data_type(0)?), ty("Tindices", DataType::Int64)])?;
    op.set(0, y)
}

/// Dimensions, strides, base dilations, window dilations, and paddings of windows.
fn windows(op: &mut Op<'_, '_>, combine: &str, numbers: [Ref; 5]) -> Result<()> {
    let (x, initial, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    let initial = super::contraction::reshaped(op, initial, t, &[])?;
    let inputs: Vec<Ref> = [x, initial].into_iter().chain(numbers).collect();
    let attributes = [ty("T", t), ty("Tindices", DataType::Int64), function("computation", combine)];
    let y = op.node("XlaReduceWindow", &inputs, attributes)?;
    op.set(0, y)
}

fn reduce_window(op: &mut Op<'_, '_>) -> Result<()> {
    let options = op.options();
    let combine = called(op, &[options.int(5, 0)?], 2, 1)?;
    let rank = op.sizes(0)?.len();
    let vector = |op: &mut Op<'_, '_>, field: usize| {
        let mut numbers = options.longs(field)?;
        if numbers.is_empty() {
            numbers = vec![1; rank];
        }
        op.long_vector(&numbers)
    };
    let lists = [vector(op, 0)?, vector(op, 1)?, vector(op, 2)?, vector(op, 3)?];
    let mut paddings = options.longs(4)?;
    paddings.resize(2 * rank, 0);
    let paddings = op.longs(&paddings, &[rank as i64, 2])?;
    let [dimensions, strides, base, dilations] = lists;
    windows(op, combine.only()?, [dimensions, strides, base, dilations, paddings])
}

fn reduce_window_of_function(op: &mut Op<'_, '_>) -> Result<()> {
    let name = match op.options().int(0, 0)? {
        1 => "AddV2",
        2 => "Mul",
        3 => "Minimum",
        4 => "Maximum",
        5 => "LogicalAnd",
        6 => "LogicalOr",
        other => return Err(Error::unsupported(format!("function {other} of windows is not supported"))),
    };
    let combine = op.combination(name, op.data_type(0)?)?;
    let rank = op.sizes(0)?.len();
    let mut lists = Vec::new();
    for k in 2..5 {
        let (numbers, from) = (op.input(k)?, op.data_type(k)?);
        lists.push(super::cast(op, numbers, from, DataType::Int64)?);
    }
    let base = op.long_vector(&vec![1; rank])?;
    let paddings = op.longs(&vec![0; 2 * rank], &[rank as i64, 2])?;
    let [dimensions, strides, dilations]: [Ref; 3] = lists.try_into().expect("three lists");
    windows(op, &combine, [dimensions, strides, base, dilations, paddings])
}
