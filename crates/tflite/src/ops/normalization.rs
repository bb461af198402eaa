//! Softmax and normalization.

use super::Row;
use super::elementwise::requires_float;
use crate::convert::Op;
use support::Result;
use tf::DataType;
use tf::foreign::{flag, float, int, ty};

pub(super) const ROWS: &[Row] = &[
    ("L2_NORMALIZATION", l2_normalization),
    ("LOCAL_RESPONSE_NORMALIZATION", local_response_normalization),
    ("LOG_SOFTMAX", log_softmax),
    ("SOFTMAX", softmax),
];

/// Softmax of beta x along the last dimension.
fn softmax(op: &mut Op<'_, '_>) -> Result<()> {
    requires_float(op, 0)?;
    let (mut x, t, beta) = (op.input(0)?, op.data_type(0)?, op.options().float(0)?);
    if beta != 1.0 {
        let beta = op.scalar(t, f64::from(beta))?;
        x = op.node("Mul", &[x, beta], [ty("T", t)])?;
    }
    let y = op.node("Softmax", &[x], [ty("T", t)])?;
    op.set(0, y)
}

fn log_softmax(op: &mut Op<'_, '_>) -> Result<()> {
    requires_float(op, 0)?;
    let (x, t) = (op.input(0)?, op.data_type(0)?);
    let y = op.node("LogSoftmax", &[x], [ty("T", t)])?;
    op.set(0, y)
}

/// x / max(|x|, 1e-6), by rows of the last dimension.
fn l2_normalization(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, t) = (op.input(0)?, op.data_type(0)?);
    let squares = op.node("Square", std::slice::from_ref(&x), [ty("T", t)])?;
    let axis = op.int(-1)?;
    let attributes = [ty("T", t), ty("Tidx", DataType::Int32), flag("keep_dims", true)];
    let sums = op.node("Sum", &[squares, axis], attributes)?;
    let norms = op.node("Sqrt", &[sums], [ty("T", t)])?;
    let least = op.scalar(t, 1e-6)?;
    let bounded = op.node("Maximum", &[norms, least], [ty("T", t)])?;
    let y = op.node("RealDiv", &[x, bounded], [ty("T", t)])?;
    op.set(0, y)
}

fn local_response_normalization(op: &mut Op<'_, '_>) -> Result<()> {
    let options = op.options();
    let attributes = [
        ty("T", op.data_type(0)?),
        int("depth_radius", options.int(0, 0)?),
        float("bias", options.float(1)?),
        float("alpha", options.float(2)?),
        float("beta", options.float(3)?),
    ];
    let x = op.input(0)?;
    let y = op.node("LRN", &[x], attributes)?;
    op.set(0, y)
}
