//! Reductions over segments, and Fourier transforms.

use super::{Row, cast};
use crate::convert::Op;
use support::Result;
use tf::DataType;
use tf::foreign::{Ref, int, ty};

pub(super) const ROWS: &[Row] = &[
    ("RFFT2D", rfft),
    ("SEGMENT_SUM", segment_sum),
    ("UNSORTED_SEGMENT_MAX", |op| unsorted(op, "UnsortedSegmentMax")),
    ("UNSORTED_SEGMENT_MIN", |op| unsorted(op, "UnsortedSegmentMin")),
    ("UNSORTED_SEGMENT_PROD", |op| unsorted(op, "UnsortedSegmentProd")),
    ("UNSORTED_SEGMENT_SUM", |op| unsorted(op, "UnsortedSegmentSum")),
];

/// Segments are numbered without gaps, as TensorFlow Lite requires. If the numbers are fed, there
/// are not more segments than numbers.
fn segment_sum(op: &mut Op<'_, '_>) -> Result<()> {
    let mut inputs = op.inputs()?;
    let (t, index) = (op.data_type(0)?, op.data_type(1)?);
    let sizes = op.sizes(0)?.to_vec();
    let count = sizes.first().copied().unwrap_or(0);
    if !op.is_fed(1)? || count == 0 {
        let y = op.node("SegmentSum", &inputs, [ty("T", t), ty("Tindices", index)])?;
        return op.set(0, y);
    }
    let numbers = inputs[1].clone();
    inputs.push(op.int(count)?);
    let attributes = [ty("T", t), ty("Tindices", index), ty("Tnumsegments", DataType::Int32)];
    let sums = op.node("UnsortedSegmentSum", &inputs, attributes)?;
    // The last number, plus 1, is the number of segments.
    let (last, one) = (op.int_vector(&[count - 1])?, op.int_vector(&[1])?);
    let indices = || [ty("T", index), ty("Index", DataType::Int32)];
    let last = op.node("Slice", &[numbers, last, one.clone()], indices())?;
    let last = cast(op, last, index, DataType::Int32)?;
    let segments = op.node("AddV2", &[last, one], [ty("T", DataType::Int32)])?;
    let y = leading(op, sums, t, segments, &sizes)?;
    op.set(0, y)
}

/// The first rows of an array of these sizes; their number is a vector of one element.
fn leading(op: &mut Op<'_, '_>, x: Ref, t: DataType, count: Ref, sizes: &[i64]) -> Result<Ref> {
    let mut shape = count;
    if sizes.len() > 1 {
        let (others, axis) = (op.int_vector(&sizes[1..])?, op.int(0)?);
        let attributes = [ty("T", DataType::Int32), int("N", 2), ty("Tidx", DataType::Int32)];
        shape = op.node("ConcatV2", &[shape, others, axis], attributes)?;
    }
    let start = op.int_vector(&vec![0; sizes.len()])?;
    op.node("Slice", &[x, start, shape], [ty("T", t), ty("Index", DataType::Int32)])
}

fn unsorted(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let inputs = op.inputs()?;
    let attributes =
        [ty("T", op.data_type(0)?), ty("Tindices", op.data_type(1)?), ty("Tnumsegments", op.data_type(2)?)];
    let y = op.node(name, &inputs, attributes)?;
    op.set(0, y)
}

fn rfft(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let attributes = [ty("Treal", op.data_type(0)?), ty("Tcomplex", op.result(0)?.data_type)];
    let y = op.node("RFFT2D", &inputs, attributes)?;
    op.set(0, y)
}
