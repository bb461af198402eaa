//! Packs rows of the left operand.

use super::{Dimension, Matrix, batch_pointer, copy, for_summands, has_open_sizes};
use crate::context::KernelContext;
use crate::context::limits::{greater, lesser};
use crate::context::tasks::Span;
use crate::contraction::dot::Tiles;
use crate::contraction::dot::apart::{OpenDims, rows_of};
use crate::contraction::tile::scalar_type;
use crate::index::{Facts, Index};
use crate::transpose::transpose;
use nest::{RegionBuilder as _, ScalarType, Type, ValueId};
use plan::{DotLoops, DotPlan};
use support::Result;

/// Copies the needed rows of some steps. Returns the first row of the steps, which becomes the
/// first row of the copy.
pub(super) fn copy_needed_rows(
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    matrix: Matrix<'_>,
    steps: Span,
    dims: Option<&OpenDims>,
) -> Result<ValueId> {
    let rows = match (&plan.loops, steps) {
        (DotLoops::Tiled(tiled), _) => rows_of(cx, Tiles { dot: plan, tiled }, steps),
        (DotLoops::Rows { tile, .. }, Span::Part { begin, end, .. }) => {
            let rows = i64::from(tile.rows);
            let (begin, end) = (cx.mul_constant(begin, rows), cx.mul_constant(end, rows));
            Span::Part { begin, end, steps: plan.shape.m, is_one: false }
        }
        (_, Span::All(_)) => Span::All(plan.shape.m),
        _ => steps,
    };
    let (begin, end) = match rows {
        Span::All(rows) => (cx.index(0), cx.index(rows)),
        Span::Part { begin, end, .. } => (begin, end),
    };
    let squares = Squares::of(cx, plan, matrix, begin);
    let mut copy = |cx: &mut KernelContext<'_>, from: ValueId, to: ValueId| match &squares {
        Some(squares) => squares.copy(cx, from, to),
        None => copy_rows(cx, plan, matrix, begin, (from, to)),
    };
    match dims {
        Some(dims) => dims.for_parts(cx, rows, &mut copy)?,
        None => copy(cx, begin, end)?,
    }
    Ok(begin)
}

/// Copies some rows of a matrix. `first` becomes the first row of the copy.
fn copy_rows(
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    matrix: Matrix<'_>,
    first: ValueId,
    (begin, end): (ValueId, ValueId),
) -> Result<()> {
    cx.for_dynamic(begin, end, plan.shape.m, &[], |cx, row, _| {
        let from =
            batch_pointer(cx, matrix.from, &Index::scalar(row), matrix.outer.extents, matrix.element_type)?;
        let row = cx.sub(row, first);
        let to = cx.offset(matrix.to, row, matrix.outer.stride);
        let none = Dimension { extents: &[], stride: 0 };
        copy(cx, plan, Matrix { from, to, outer: none, ..matrix }).map(|()| Vec::new())
    })
    .map(|_| ())
}

/// Emitter for copies of rows whose neighbors are next to each other in memory. Squares are loaded
/// across rows and transposed.
struct Squares<'p> {
    plan: Tiles<'p>,
    matrix: Matrix<'p>,
    /// The row that becomes the first one of the copy.
    first: ValueId,
    lanes: i64,
    scalar: ScalarType,
    /// Distance in bytes between neighbors in a row of the source.
    stride: i64,
}

impl<'p> Squares<'p> {
    /// Returns the squares of a left operand, if the program has open sizes and vectors across rows
    /// are contiguous.
    fn of(cx: &KernelContext<'_>, plan: &'p DotPlan, matrix: Matrix<'p>, first: ValueId) -> Option<Self> {
        let plan = Tiles::of(plan).filter(|_| has_open_sizes(cx))?;
        let (lanes, size) = (i64::from(plan.tiled.tile.lanes), plan.dot.accumulator.byte_size() as i64);
        let (rows, &[summands]) = (plan.dot.dims.rows.last()?, &plan.dot.dims.lhs_k[..]) else { return None };
        let is_plain = plan.dot.lhs_type == plan.dot.accumulator;
        let fits = is_plain && lanes > 1 && rows.stride == 1 && rows.size % lanes == 0;
        let scalar = scalar_type(plan.dot.accumulator).ok()?;
        fits.then_some(Self { plan, matrix, first, lanes, scalar, stride: summands.stride * size })
    }

    /// Copies some rows. Those before and after whole squares are copied one by one.
    fn copy(&self, cx: &mut KernelContext<'_>, begin: ValueId, end: ValueId) -> Result<()> {
        let (m, lanes) = (self.plan.dot.shape.m, self.lanes);
        let multiple = |cx: &mut KernelContext<'_>, row: Index| {
            let (number, _) = cx.div_rem(&row, lanes)?;
            cx.scalar_value(&number.times(lanes))
        };
        let from = multiple(cx, Index::scalar(begin).plus_constant(lanes - 1))?;
        let from = lesser(cx, from, end);
        let to = multiple(cx, Index::scalar(end))?;
        let to = greater(cx, from, to);
        let rest = |cx: &mut KernelContext<'_>, rows: (ValueId, ValueId)| {
            copy_rows(cx, self.plan.dot, self.matrix, self.first, rows)
        };
        rest(cx, (begin, from))?;
        cx.for_carrying(from, to, lanes, &[], |cx, row, _| {
            cx.learn(row, Facts { min: 0, max: m - lanes, multiple: lanes });
            cx.scoped(|cx| self.rows(cx, row)).map(|()| Vec::new())
        })?;
        rest(cx, (to, end))
    }

    /// Copies as many rows as vectors have lanes.
    fn rows(&self, cx: &mut KernelContext<'_>, row: ValueId) -> Result<()> {
        let (matrix, size) = (self.matrix, self.plan.dot.accumulator.byte_size() as i64);
        let from =
            batch_pointer(cx, matrix.from, &Index::scalar(row), matrix.outer.extents, matrix.element_type)?;
        let row = cx.sub(row, self.first);
        let to = cx.offset(matrix.to, row, matrix.outer.stride);
        let (lanes, alignment) = (self.lanes, size as u32);
        let ty = Type::vector(self.scalar, lanes as u32);
        let k = self.plan.dot.shape.k;
        let whole = k - k % lanes;
        for_summands(cx, self.plan, (0, whole), lanes, |cx, summand| {
            let from = cx.offset(from, summand, self.stride);
            let to = cx.offset(to, summand, size);
            let columns: Vec<ValueId> = (0..lanes)
                .map(|k| {
                    let from = cx.offset_bytes(from, k * self.stride);
                    cx.load(ty, from, alignment)
                })
                .collect();
            for (row, value) in transpose(cx, &columns).into_iter().enumerate() {
                let to = cx.offset_bytes(to, row as i64 * matrix.outer.stride);
                cx.store(value, to, alignment);
            }
            Ok(())
        })?;
        for_summands(cx, self.plan, (whole, k), 1, |cx, summand| {
            let from = cx.offset(from, summand, self.stride);
            let to = cx.offset(to, summand, size);
            let value = cx.load(ty, from, alignment);
            for row in 0..lanes {
                let to = cx.offset_bytes(to, row * matrix.outer.stride);
                let element = cx.extract(value, row as u32);
                cx.store(element, to, alignment);
            }
            Ok(())
        })
    }
}
