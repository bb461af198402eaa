//! Dots with one sum per result, and vectors along the summands: for products with very few
//! columns, or with very few rows and a right operand whose columns are contiguous.

use super::{DotElement, Part, Product, finish};
use crate::context::KernelContext;
use crate::contraction::tile::{multiply_add, scalar_type, zero};
use crate::element::Element;
use crate::index::Index;
use nest::{FunctionBuilder, Predicate, ScalarType, Type, ValueId};
use plan::{DotPlan, Tile};
use support::{Error, Result};

/// Emits the loops of one product: a few rows at once or one after another, a few columns at once.
pub(super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    tile: Tile,
    product: &Product,
    part: Part<'_>,
) -> Result<()> {
    let (m, n) = (plan.shape.m, plan.shape.n);
    let (rows, together) = (i64::from(tile.rows), i64::from(tile.vectors));
    if m % rows != 0 {
        return Err(Error::internal("expected a number of rows that is a multiple of the tile's"));
    }
    cx.for_span(part.rows.span, 1, |cx, step| {
        let row = step.times(rows);
        let lhs = product.row(cx, &row)?;
        let few = Rows { first: &row, count: rows as usize, lhs };
        cx.for_part(part.columns, 0, n / together, together, |cx, column| {
            columns(cx, plan, product, Place { tile, rows: few, column: &column, count: together as usize })
        })?;
        if n % together == 0 {
            return Ok(());
        }
        cx.if_last(part.columns, |cx| {
            cx.for_range(n - n % together, n, 1, |cx, column| {
                columns(cx, plan, product, Place { tile, rows: few, column: &column, count: 1 })
            })
        })
    })
}

/// Rows that are computed together.
#[derive(Clone, Copy)]
struct Rows<'p> {
    first: &'p Index,
    count: usize,
    /// Address of the first row in the left operand.
    lhs: ValueId,
}

/// Several columns of several rows.
#[derive(Clone, Copy)]
struct Place<'p> {
    tile: Tile,
    rows: Rows<'p>,
    /// The first column.
    column: &'p Index,
    count: usize,
}

fn columns(cx: &mut KernelContext<'_>, plan: &DotPlan, product: &Product, place: Place<'_>) -> Result<()> {
    let scalar = scalar_type(plan.accumulator)?;
    let (lanes, sets) = (place.tile.lanes, place.tile.k_split as usize);
    let ty = Type::vector(scalar, lanes);
    let (size, own) = (scalar.byte_size() as i64, product.rhs_type.byte_size() as i64);
    let column = cx.scalar_value(place.column)?;
    let rhs = cx.offset(product.rhs, column, product.rhs_column);
    let results = place.rows.count * place.count;
    let step = i64::from(lanes) * sets as i64;
    let (k, whole) = (plan.shape.k, plan.shape.k / step * step);
    let inputs = Inputs { product, place, rhs };
    let zeros: Vec<ValueId> = (0..results * sets).map(|_| zero(cx, ty)).collect();
    let sums = cx.for_range_carrying(0, whole, step, &zeros, |cx, index, sums| {
        let index = cx.scalar_value(&index)?;
        let mut sums = sums.to_vec();
        for set in 0..sets {
            let skip = set as i64 * i64::from(lanes);
            let summands = Summands { index, lhs_k: size, rhs_k: own, skip };
            inputs.accumulate(cx, ty, summands, &mut sums[set * results..(set + 1) * results]);
        }
        Ok(sums)
    })?;
    let mut sums = sums;
    let further = (k - whole) / i64::from(lanes);
    for number in 0..further {
        let set = &mut sums[number as usize * results..][..results];
        let index = cx.index(whole + number * i64::from(lanes));
        inputs.accumulate(cx, ty, Summands { index, lhs_k: size, rhs_k: own, skip: 0 }, set);
    }
    let whole = whole + further * i64::from(lanes);
    let overlaps = whole < k && k >= i64::from(lanes);
    if overlaps {
        // The last vector ends with the last summand. Its first lanes were added before.
        let set = &mut sums[further as usize * results..][..results];
        let before = set.to_vec();
        let index = cx.index(k - i64::from(lanes));
        inputs.accumulate(cx, ty, Summands { index, lhs_k: size, rhs_k: own, skip: 0 }, set);
        let is_new = lanes_from(cx, lanes, i64::from(lanes) - (k - whole));
        for (sum, before) in set.iter_mut().zip(before) {
            *sum = cx.select(is_new, *sum, before);
        }
    }
    let mut totals = Vec::new();
    for result in 0..results {
        let mut sum = sums[result];
        for set in 1..sets {
            sum = cx.add(sum, sums[set * results + result]);
        }
        totals.push(add_lanes(cx, sum));
    }
    let done = if overlaps { k } else { whole };
    let totals = cx.for_range_carrying(done, k, 1, &totals, |cx, index, totals| {
        let index = cx.scalar_value(&index)?;
        let mut totals = totals.to_vec();
        let summands = Summands { index, lhs_k: product.lhs_k, rhs_k: product.rhs_k, skip: 0 };
        inputs.accumulate(cx, Type::scalar(scalar), summands, &mut totals);
        Ok(totals)
    })?;
    for (number, total) in totals.into_iter().enumerate() {
        let column = place.column.plus_constant((number % place.count) as i64);
        let row = place.rows.first.plus_constant((number / place.count) as i64);
        let (batch, value) = (product.batch.clone(), Element::Real(total));
        finish(cx, plan, DotElement { batch, row, column, lanes: 1, value })?;
    }
    Ok(())
}

/// Summands that are added at once.
#[derive(Clone, Copy)]
struct Summands {
    /// Number of the first one.
    index: ValueId,
    /// Distance in bytes between summands in the left and in the right operand.
    lhs_k: i64,
    rhs_k: i64,
    /// Number of summands from the first one to the first load.
    skip: i64,
}

/// Inputs of the results that are computed together.
struct Inputs<'p> {
    product: &'p Product,
    place: Place<'p>,
    /// Address of the first column.
    rhs: ValueId,
}

impl Inputs<'_> {
    /// Adds the products of summands to the sums, row by row.
    fn accumulate(&self, b: &mut FunctionBuilder, ty: Type, summands: Summands, sums: &mut [ValueId]) {
        let Summands { index, lhs_k, rhs_k, skip } = summands;
        let alignment = ty.scalar.byte_size() as u32;
        let (lhs, rhs) = (b.offset(self.place.rows.lhs, index, lhs_k), b.offset(self.rhs, index, rhs_k));
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for row in 0..self.place.rows.count as i64 {
            let from = b.offset_bytes(lhs, row * self.product.lhs_row + skip * lhs_k);
            left.push(b.load(ty, from, alignment));
        }
        for column in 0..self.place.count as i64 {
            let from = b.offset_bytes(rhs, column * self.product.rhs_column + skip * rhs_k);
            right.push(self.product.load_right(b, ty.scalar, from, ty.lanes));
        }
        for (number, sum) in sums.iter_mut().enumerate() {
            let (row, column) = (number / self.place.count, number % self.place.count);
            *sum = multiply_add(b, left[row], right[column], *sum);
        }
    }
}

/// Returns a mask of the lanes from a number on.
fn lanes_from(b: &mut FunctionBuilder, lanes: u32, first: i64) -> ValueId {
    let numbers = b.iota(ScalarType::I32, lanes);
    let first = b.integer(Type::vector(ScalarType::I32, lanes), first);
    b.compare(Predicate::GreaterEqual, numbers, first)
}

/// Returns the sum of a vector's lanes, added as a tree.
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
