//! Results one after another, vectors along the summands: for products with very few columns, or with very few rows and
//! a right operand whose columns are contiguous.

use super::{DotElement, Part, Product, finish};
use crate::context::KernelContext;
use crate::element::Element;
use crate::index::Index;
use crate::ir::{FunctionBuilder, Type, ValueId};
use crate::tile::{multiply_add, scalar_type, zero};
use plan::DotPlan;
use support::Result;

/// Emits the loops of one product: all rows, a few columns at once.
pub(super) fn emit(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    product: &Product,
    part: Part,
) -> Result<()> {
    let (n, together) = (plan.shape.n, i64::from(plan.tile.vectors));
    cx.for_span(b, part.rows, 1, |cx, b, row| {
        let lhs = product.row(b, cx, &row)?;
        cx.for_part(b, part.columns, (0, n / together), together, |cx, b, column| {
            columns(b, cx, plan, product, Place { row: &row, lhs, column: &column, count: together as usize })
        })?;
        if n % together == 0 {
            return Ok(());
        }
        cx.if_last(b, part.columns, |cx, b| {
            cx.for_range(b, n - n % together, n, 1, |cx, b, column| {
                columns(b, cx, plan, product, Place { row: &row, lhs, column: &column, count: 1 })
            })
        })
    })
}

/// Some columns of one row.
#[derive(Clone, Copy)]
struct Place<'p> {
    row: &'p Index,
    lhs: ValueId,
    column: &'p Index,
    count: usize,
}

fn columns(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    product: &Product,
    place: Place<'_>,
) -> Result<()> {
    let scalar = scalar_type(plan.accumulator)?;
    let (lanes, sets) = (plan.tile.lanes, plan.tile.k_split as usize);
    let ty = Type::vector(scalar, lanes);
    let alignment = scalar.byte_size() as u32;
    let size = i64::from(alignment);
    let column = cx.scalar_value(b, place.column)?;
    let rhs = b.offset(product.rhs, column, product.rhs_column);
    let count = place.count;
    let step = i64::from(lanes) * sets as i64;
    let (k, whole) = (plan.shape.k, plan.shape.k / step * step);
    let zeros: Vec<ValueId> = (0..count * sets).map(|_| zero(b, ty)).collect();
    let sums = cx.for_range_carrying(b, (0, whole, step), &zeros, |cx, b, index, sums| {
        let index = cx.scalar_value(b, &index)?;
        let mut sums = sums.to_vec();
        for set in 0..sets {
            let skip = set as i64 * i64::from(lanes) * size;
            let left = b.offset(place.lhs, index, size);
            let left = b.offset_bytes(left, skip);
            let left = b.load(ty, left, alignment);
            for column in 0..count {
                let right = b.offset(rhs, index, size);
                let right = b.offset_bytes(right, column as i64 * product.rhs_column + skip);
                let right = b.load(ty, right, alignment);
                let sum = &mut sums[set * count + column];
                *sum = multiply_add(b, left, right, *sum);
            }
        }
        Ok(sums)
    })?;
    let mut totals = Vec::new();
    for column in 0..count {
        let mut sum = sums[column];
        for set in 1..sets {
            sum = b.add(sum, sums[set * count + column]);
        }
        totals.push(add_lanes(b, sum));
    }
    let totals = cx.for_range_carrying(b, (whole, k, 1), &totals, |cx, b, index, totals| {
        let index = cx.scalar_value(b, &index)?;
        let left = b.offset(place.lhs, index, product.lhs_k);
        let left = b.load(Type::scalar(scalar), left, alignment);
        let mut next = Vec::new();
        for (column, &total) in totals.iter().enumerate() {
            let right = b.offset(rhs, index, product.rhs_k);
            let right = b.offset_bytes(right, column as i64 * product.rhs_column);
            let right = b.load(Type::scalar(scalar), right, alignment);
            next.push(multiply_add(b, left, right, total));
        }
        Ok(next)
    })?;
    for (offset, total) in totals.into_iter().enumerate() {
        let column = place.column.plus_constant(offset as i64);
        let (batch, row, value) = (product.batch.clone(), place.row.clone(), Element::Real(total));
        finish(b, cx, plan, DotElement { batch, row, column, lanes: 1, value })?;
    }
    Ok(())
}

/// The sum of a vector's lanes, as a tree.
fn add_lanes(b: &mut FunctionBuilder, vector: ValueId) -> ValueId {
    let mut vector = vector;
    let mut lanes = b.ty(vector).lanes;
    while lanes > 1 {
        lanes /= 2;
        let low = b.shuffle(vector, vector, (0..lanes).collect());
        let high = b.shuffle(vector, vector, (lanes..2 * lanes).collect());
        vector = b.add(low, high);
    }
    if b.ty(vector).lanes == 1 { vector } else { b.extract(vector, 0) }
}
