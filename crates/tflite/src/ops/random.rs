//! Random numbers: those of TensorFlow Lite, from the operator's seeds and a counter that each run
//! advances. The counter is a variable, which is 0 before the first run.

use super::{Row, cast};
use crate::convert::Op;
use shape::index::element_count;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Ref, flag, int, ty};

pub(super) const ROWS: &[Row] = &[
    ("MULTINOMIAL", multinomial),
    ("RANDOM_STANDARD_NORMAL", |op| random(op, "StatelessRandomNormalV2")),
    ("RANDOM_UNIFORM", |op| random(op, "StatelessRandomUniformV2")),
];

/// TensorFlow's number of the Philox algorithm.
const PHILOX: i64 = 1;

/// Adds the random numbers of a stateless op. Each run advances the counter by `blocks`.
fn draw(op: &mut Op<'_, '_>, name: &str, sizes: &[i64], data_type: DataType, blocks: i64) -> Result<Ref> {
    let (seed, seed2) = (op.options().long(0)?, op.options().long(1)?);
    let handle = op.counter()?;
    let count = op.node("ReadVariableOp", std::slice::from_ref(&handle), [ty("dtype", DataType::Int64)])?;
    let step = op.long_vector(&[blocks])?;
    let next = op.node("AddV2", &[count.clone(), step], [ty("T", DataType::Int64)])?;
    op.add("AssignVariableOp", &[handle, next], [ty("dtype", DataType::Int64)])?;
    let high = op.long_vector(&[seed2])?;
    let axis = op.int(0)?;
    let attributes = [ty("T", DataType::Int64), int("N", 2), ty("Tidx", DataType::Int32)];
    let counter = op.node("ConcatV2", &[count, high, axis], attributes)?;
    let unsigned = || [ty("T", DataType::Int64), ty("type", DataType::Uint64)];
    let counter = op.node("Bitcast", &[counter], unsigned())?;
    let key = op.long_vector(&[seed])?;
    let key = op.node("Bitcast", &[key], unsigned())?;
    let (sizes, algorithm) = (op.int_vector(sizes)?, op.int(PHILOX)?);
    op.node(name, &[sizes, key, counter, algorithm], [ty("dtype", data_type), ty("Tshape", DataType::Int32)])
}

/// The sizes of the result, which are known, and its number of elements.
fn result_sizes(op: &Op<'_, '_>) -> Result<(Vec<i64>, i64)> {
    let sizes = match op.operator().op {
        "MULTINOMIAL" => op.result(0)?.sizes.clone(),
        _ => op.required_ints(0, "the shape of the result")?,
    };
    let count = element_count(&sizes).filter(|&count| (0..1 << 40).contains(&count));
    let count = count.ok_or_else(|| Error::invalid(format!("shape {sizes:?} is not possible")))?;
    Ok((sizes, count))
}

fn random(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let (sizes, count) = result_sizes(op)?;
    let data_type = op.result(0)?.data_type;
    // A block has four numbers.
    let y = draw(op, name, &sizes, data_type, (count + 3) / 4)?;
    op.set(0, y)
}

/// For each row of logits, classes by the inverse of the cumulative distribution.
fn multinomial(op: &mut Op<'_, '_>) -> Result<()> {
    const F64: DataType = DataType::Double;
    let (sizes, _) = result_sizes(op)?;
    let &[rows, samples] = sizes.as_slice() else {
        return Err(Error::invalid(format!("expected a result of rank 2, got shape {sizes:?}")));
    };
    let typed = || [ty("T", F64)];
    let (logits, from) = (op.input(0)?, op.data_type(0)?);
    let is_finite = op.node("IsFinite", std::slice::from_ref(&logits), [ty("T", from)])?;
    let logits = cast(op, logits, from, F64)?;
    let least = op.scalar(F64, f64::from(f32::MIN))?;
    let kept = op.node("SelectV2", &[is_finite.clone(), logits.clone(), least], typed())?;
    let axis = op.int(1)?;
    let reduced = |keeps| [ty("T", F64), ty("Tidx", DataType::Int32), flag("keep_dims", keeps)];
    let largest = op.node("Max", &[kept, axis.clone()], reduced(true))?;
    let shifted = op.node("Sub", &[logits, largest], typed())?;
    let odds = op.node("Exp", &[shifted], typed())?;
    let none = op.scalar(F64, 0.0)?;
    let odds = op.node("SelectV2", &[is_finite, odds, none], typed())?;
    let scanned =
        [ty("T", F64), ty("Tidx", DataType::Int32), flag("exclusive", false), flag("reverse", false)];
    let cumulative = op.node("Cumsum", &[odds, axis.clone()], scanned)?;
    let total = op.node("Max", &[cumulative.clone(), axis.clone()], reduced(true))?;
    let blocks = rows * ((samples + 3) / 4 * 4) * 2 * 256;
    let uniform = draw(op, "StatelessRandomUniformV2", &[rows, samples], F64, blocks)?;
    let sought = op.node("Mul", &[uniform, total], typed())?;
    // The number of classes whose cumulative odds are not larger.
    let expand = |op: &mut Op<'_, '_>, value: Ref, at: i64| {
        let at = op.int(at)?;
        op.node("ExpandDims", &[value, at], [ty("T", F64), ty("Tdim", DataType::Int32)])
    };
    let (cumulative, sought) = (expand(op, cumulative, 1)?, expand(op, sought, 2)?);
    let is_below = op.node("LessEqual", &[cumulative, sought], typed())?;
    let to = op.result(0)?.data_type;
    let ones = cast(op, is_below, DataType::Bool, to)?;
    let last = op.int(2)?;
    let counted = [ty("T", to), ty("Tidx", DataType::Int32), flag("keep_dims", false)];
    let y = op.node("Sum", &[ones, last], counted)?;
    op.set(0, y)
}
