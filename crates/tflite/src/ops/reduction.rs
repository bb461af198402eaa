//! Reductions and scans.

use super::Row;
use crate::convert::Op;
use shape::index::element_count;
use std::collections::BTreeSet;
use support::Result;
use tf::DataType;
use tf::foreign::{Ref, flag, ty};

pub(super) const ROWS: &[Row] = &[
    ("ARG_MAX", |op| arg(op, "ArgMax")),
    ("ARG_MIN", |op| arg(op, "ArgMin")),
    ("CUMSUM", cumsum),
    ("MEAN", |op| reduce(op, "Mean")),
    ("REDUCE_ALL", |op| reduce(op, "All")),
    ("REDUCE_ANY", |op| reduce(op, "Any")),
    ("REDUCE_MAX", |op| extremum(op, "Max")),
    ("REDUCE_MIN", |op| extremum(op, "Min")),
    ("REDUCE_PROD", |op| reduce(op, "Prod")),
    ("SUM", |op| reduce(op, "Sum")),
];

/// The axes, each once.
fn axes(op: &mut Op<'_, '_>) -> Result<Ref> {
    let rank = op.sizes(0)?.len() as i64;
    match op.constant_ints(1)? {
        Some(axes) => {
            let unique: BTreeSet<i64> =
                axes.iter().map(|&axis| if axis < 0 { axis + rank } else { axis }).collect();
            if unique.len() == axes.len() {
                op.input(1)
            } else {
                op.int_vector(&unique.into_iter().collect::<Vec<_>>())
            }
        }
        None => fed_axes(op),
    }
}

/// The axes that a reduction removes, if the sizes of its result admit only one answer.
fn removed_axes(op: &Op<'_, '_>) -> Result<Option<Vec<i64>>> {
    let (sizes, result) = (op.sizes(0)?, op.result(0)?);
    if result.open.contains(&true) {
        return Ok(None);
    }
    let result = &result.sizes;
    let count = element_count(op.sizes(1)?);
    let mut found = None;
    for set in 0u32..1 << sizes.len().min(16) {
        let is_axis = |d: usize| set >> d & 1 == 1;
        let axes: Vec<i64> = (0..sizes.len()).filter(|&d| is_axis(d)).map(|d| d as i64).collect();
        let kept: Vec<i64> = (0..sizes.len()).filter(|&d| !is_axis(d)).map(|d| sizes[d]).collect();
        let ones: Vec<i64> = (0..sizes.len()).map(|d| if is_axis(d) { 1 } else { sizes[d] }).collect();
        if Some(axes.len() as i64) == count
            && (kept == *result || ones == *result)
            && found.replace(axes).is_some()
        {
            return Ok(None);
        }
    }
    Ok(found)
}

/// Input 1 or, if it is fed, the axes that the sizes tell.
fn fed_axes(op: &mut Op<'_, '_>) -> Result<Ref> {
    if op.is_fed(1)?
        && let Some(axes) = removed_axes(op)?
    {
        let (data_type, shape) = (op.data_type(1)?, op.sizes(1)?);
        return op.integers(data_type, shape, &axes);
    }
    op.input(1)
}

fn reduce(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let (x, axes) = (op.input(0)?, axes(op)?);
    let keeps = flag("keep_dims", op.options().bool(0, false)?);
    let index = ty("Tidx", op.data_type(1)?);
    let y = match name {
        "All" | "Any" => op.node(name, &[x, axes], [index, keeps])?,
        _ => op.node(name, &[x, axes], [ty("T", op.data_type(0)?), index, keeps])?,
    };
    op.set(0, y)
}

/// The largest or the least number, beginning with the opposite end of finite numbers. NaN is
/// neither.
fn extremum(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let t = op.data_type(0)?;
    let (end, comparison) = match (name, t) {
        ("Max", DataType::Float) => (f64::from(f32::MIN), "Greater"),
        ("Min", DataType::Float) => (f64::from(f32::MAX), "Less"),
        _ => return reduce(op, name),
    };
    let (x, axes, end) = (op.input(0)?, axes(op)?, op.scalar(t, end)?);
    let counts = op.node(comparison, &[x.clone(), end.clone()], [ty("T", t)])?;
    let x = op.node("SelectV2", &[counts, x, end.clone()], [ty("T", t)])?;
    let keeps = flag("keep_dims", op.options().bool(0, false)?);
    let mut y = op.node(name, &[x, axes], [ty("T", t), ty("Tidx", op.data_type(1)?), keeps])?;
    if op.sizes(0)?.contains(&0) {
        y = op.node(if name == "Max" { "Maximum" } else { "Minimum" }, &[y, end], [ty("T", t)])?;
    }
    op.set(0, y)
}

fn arg(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let (x, axis) = (op.input(0)?, fed_axes(op)?);
    let attributes =
        [ty("T", op.data_type(0)?), ty("Tidx", op.data_type(1)?), ty("output_type", op.result(0)?.data_type)];
    let y = op.node(name, &[x, axis], attributes)?;
    op.set(0, y)
}

fn cumsum(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, axis, index) = (op.input(0)?, op.input(1)?, op.data_type(1)?);
    let rank = op.sizes(0)?.len();
    if !op.is_fed(1)? || rank == 0 {
        let y = sums(op, x, axis)?;
        return op.set(0, y);
    }
    // The sums along a fed axis are selected from those along all.
    let mut y = None;
    for d in 0..rank as i64 {
        let along = op.integers(index, &[], &[d])?;
        let along = sums(op, x.clone(), along)?;
        y = Some(match y.take() {
            None => along,
            Some(others) => {
                let t = op.data_type(0)?;
                let (from_start, from_end) =
                    (op.integers(index, &[], &[d])?, op.integers(index, &[], &[d - rank as i64])?);
                let from_start = op.node("Equal", &[axis.clone(), from_start], [ty("T", index)])?;
                let from_end = op.node("Equal", &[axis.clone(), from_end], [ty("T", index)])?;
                let is_axis = op.node("LogicalOr", &[from_start, from_end], [])?;
                op.node("SelectV2", &[is_axis, along, others], [ty("T", t)])?
            }
        });
    }
    y.map_or(Ok(()), |y| op.set(0, y))
}

fn sums(op: &mut Op<'_, '_>, x: Ref, axis: Ref) -> Result<Ref> {
    let attributes = [
        ty("T", op.data_type(0)?),
        ty("Tidx", op.data_type(1)?),
        flag("exclusive", op.options().bool(0, false)?),
        flag("reverse", op.options().bool(1, false)?),
    ];
    op.node("Cumsum", &[x, axis], attributes)
}
