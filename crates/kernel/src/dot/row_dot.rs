//! Results one after another, vectors along the summands: for products with very few columns, or with very few rows and
//! a right operand whose columns are contiguous.

use super::{DotElement, DotSurroundings, Product, multiply_add, scalar_type, zero};
use crate::ir::{FunctionBuilder, Type, ValueId};
use plan::DotPlan;
use support::Result;

/// Emits the loops of one product: all rows, a few columns at once.
pub(super) fn emit(
    b: &mut FunctionBuilder,
    plan: &DotPlan,
    product: &Product,
    surroundings: &mut dyn DotSurroundings,
) -> Result<()> {
    let (n, together) = (plan.shape.n, i64::from(plan.tile.vectors));
    let (zero, rows) = (b.index(0), b.index(plan.shape.m));
    b.for_each(zero, rows, 1, |b, row| {
        let lhs = b.offset(product.lhs, row, product.lhs_row);
        let (zero, end) = (b.index(0), b.index(n - n % together));
        b.for_each(zero, end, together, |b, column| {
            columns(b, plan, product, Place { row, lhs, column, count: together }, surroundings)
        })?;
        let (begin, end) = (b.index(n - n % together), b.index(n));
        b.for_each(begin, end, 1, |b, column| {
            columns(b, plan, product, Place { row, lhs, column, count: 1 }, surroundings)
        })
    })
}

/// Some columns of one row.
#[derive(Clone, Copy)]
struct Place {
    row: ValueId,
    lhs: ValueId,
    column: ValueId,
    count: i64,
}

fn columns(
    b: &mut FunctionBuilder,
    plan: &DotPlan,
    product: &Product,
    place: Place,
    surroundings: &mut dyn DotSurroundings,
) -> Result<()> {
    let scalar = scalar_type(plan.accumulator)?;
    let (lanes, sets) = (plan.tile.lanes, plan.tile.k_split as usize);
    let ty = Type::vector(scalar, lanes);
    let alignment = scalar.byte_size() as u32;
    let size = i64::from(alignment);
    let rhs = b.offset(product.rhs, place.column, product.rhs_column);
    let count = place.count as usize;
    let step = i64::from(lanes) * sets as i64;
    let (k, whole) = (plan.shape.k, plan.shape.k / step * step);
    let zeros: Vec<ValueId> = (0..count * sets).map(|_| zero(b, ty)).collect();
    let (start, end) = (b.index(0), b.index(whole));
    let sums = b.for_carrying(start, end, step, &zeros, |b, index, sums| {
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
    let (start, end) = (b.index(whole), b.index(k));
    let totals = b.for_carrying(start, end, 1, &totals, |b, index, totals| {
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
        let column = b.add_constant(place.column, offset as i64);
        let element =
            DotElement { batch: product.batch, row: place.row, column, lanes: 1, values: vec![total] };
        surroundings.finish(b, &element)?;
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
