//! Pooling.

use super::contraction::{padding, positive};
use super::{Row, activated};
use crate::convert::Op;
use support::Result;
use tf::foreign::{Attribute, ints, text, ty};

pub(super) const ROWS: &[Row] = &[
    ("AVERAGE_POOL_2D", |op| pool(op, "AvgPool")),
    ("MAX_POOL_2D", |op| pool(op, "MaxPool")),
    ("L2_POOL_2D", l2_pool),
];

fn attributes(op: &Op<'_, '_>) -> Result<[Attribute; 4]> {
    let (stride_w, stride_h) = (positive(op, 1, 0, "stride")?, positive(op, 2, 0, "stride")?);
    let (width, height) = (positive(op, 3, 0, "window size")?, positive(op, 4, 0, "window size")?);
    Ok([
        ty("T", op.data_type(0)?),
        ints("ksize", &[1, height, width, 1]),
        ints("strides", &[1, stride_h, stride_w, 1]),
        text("padding", padding(op, 0)?),
    ])
}

fn pool(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let x = op.input(0)?;
    let y = op.node(name, &[x], attributes(op)?)?;
    let y = activated(op, y, 5)?;
    op.set(0, y)
}

/// The square root of the mean of squares.
fn l2_pool(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, t) = (op.input(0)?, op.data_type(0)?);
    let squares = op.node("Square", &[x], [ty("T", t)])?;
    let means = op.node("AvgPool", &[squares], attributes(op)?)?;
    let roots = op.node("Sqrt", &[means], [ty("T", t)])?;
    let y = activated(op, roots, 5)?;
    op.set(0, y)
}
