//! Elimination with pivots, one column a step, and what it solves.

use super::matrix::{diagonal, positions, spread, square_magnitude};
use super::triangular::substitute;
use crate::expression::Expression;
use shape::PrimitiveType;

/// A matrix after elimination.
#[derive(Clone, Copy)]
pub struct Lu<'f> {
    /// The upper factor, and below the diagonal the lower one without its ones.
    pub factors: Expression<'f>,
    /// Row `i` was row `permutation[i]`: `[batch, rows]`, `s32`.
    pub permutation: Expression<'f>,
    /// 1 or -1 for an even or odd permutation: `[batch]`, real.
    pub sign: Expression<'f>,
}

/// Factors with partial pivoting, of the first `steps` columns; those behind are eliminated along.
pub fn lu(a: Expression<'_>, steps: i64) -> Lu<'_> {
    let function = a.function();
    let sizes = a.sizes();
    let float = a.element_type().real_part();
    let permutation = function.iota(PrimitiveType::S32, &sizes[..2], 1);
    let sign = function.splat(float, &sizes[..1], 1.0);
    if sizes.contains(&0) {
        return Lu { factors: a, permutation, sign };
    }
    let done = function.for_loop(steps, &[a, permutation, sign], |_, k, state| eliminate(k, state));
    Lu { factors: done[0], permutation: done[1], sign: done[2] }
}

fn eliminate<'f>(k: Expression<'f>, state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[a, permutation, sign] = state else { return Vec::new() };
    let function = a.function();
    let sizes = a.sizes();
    let (batch, height) = (sizes[0], sizes[1]);
    let float = a.element_type().real_part();

    // The largest of the column from the diagonal on, the first one of equals.
    let column = a.dynamic_slice_in(2, k).reshape(&[batch, height]);
    let lines = function.iota(PrimitiveType::S32, &[batch, height], 1);
    let below = lines.ge(k.spread_like(lines));
    let size = below.select(square_magnitude(column), -1.0);
    let largest = size.reduce("maximum", hlo::Op::Maximum {}, -1.0, &[1]);
    let is_largest = size.equal(largest.broadcast(&[batch, height], &[0]));
    let first = is_largest.select(lines, height as f64);
    let pivot_line = first.reduce("minimum", hlo::Op::Minimum {}, height as f64, &[1]);
    // Of NaN none is the largest.
    let k_lines = k.spread_like(pivot_line);
    let pivot_line = pivot_line.lt(height as f64).select(pivot_line, k_lines);

    let (rows, columns) = positions(a);
    let k_everywhere = k.spread_like(rows);
    let is_pivot = rows.equal(pivot_line.broadcast(&sizes, &[0]));
    let is_k = rows.equal(k_everywhere);
    let pivot_row = pick(is_pivot, a, 1);
    let k_row = a.dynamic_slice_in(1, k);
    let swapped = is_pivot.select(spread(k_row, &sizes), a);
    let swapped = is_k.select(spread(pivot_row, &sizes), swapped);

    let moved = lines.equal(pivot_line.broadcast(&[batch, height], &[0]));
    let at_k = permutation.dynamic_slice_in(1, k);
    let at_pivot = moved.select(permutation, 0.0).sum(&[1]).reshape(&[batch, 1]);
    let permutation = moved
        .select(at_k.reshape(&[batch]).broadcast(&[batch, height], &[0]), permutation)
        .dynamic_update_in(at_pivot, 1, k);
    let sign = pivot_line.not_equal(k_lines).select(-sign, sign);

    let pivot = pivot_row.dynamic_slice_in(2, k);
    let lower = swapped.dynamic_slice_in(2, k);
    let lower_sizes = lower.sizes();
    let pivots = spread(pivot, &lower_sizes);
    // A column of zeros stays.
    let factors = pivots.equal(0.0).select(lower, lower / pivots);
    let is_below = rows.gt(k_everywhere);
    let factors = spread(factors, &sizes);
    let reduced = swapped - factors * spread(pivot_row, &sizes);
    let reduced = columns.equal(k_everywhere).select(factors, reduced);
    let next = (is_below & columns.ge(k_everywhere)).select(reduced, swapped);
    debug_assert!(!float.is_complex());
    vec![next, permutation, sign]
}

/// The one row that a mask leaves, exact: `[batch, 1, columns]`.
fn pick<'f>(mask: Expression<'f>, a: Expression<'f>, dimension: usize) -> Expression<'f> {
    let mut sizes = a.sizes();
    sizes[dimension] = 1;
    let sum = |part: Expression<'f>| mask.select(part, 0.0).sum(&[dimension]).reshape(&sizes);
    if a.element_type().is_complex() { sum(a.real()).complex(sum(a.imag())) } else { sum(a) }
}

/// `x` with `a x = b`. A singular matrix gives infinities or NaN.
pub fn solve<'f>(a: Expression<'f>, b: Expression<'f>) -> Expression<'f> {
    let n = a.size_from_end(0);
    if a.sizes().contains(&0) || b.sizes().contains(&0) {
        return b;
    }
    // The right sides are eliminated along, so that what is left is the upper triangle.
    let both = a.function().concatenate(&[a, b], 2);
    let factors = lu(both, n).factors;
    let upper = factors.slice_in(2, 0, n);
    let right = factors.slice_in(2, n, factors.size_from_end(0));
    substitute(upper, right, false, false)
}

/// The determinant as the product of its factors: the sign (of magnitude 1, or 0), and the pivots.
pub fn determinant<'f>(a: Expression<'f>) -> (Expression<'f>, Expression<'f>) {
    let n = a.size_from_end(0);
    let lu = lu(a, n);
    (lu.sign, diagonal(lu.factors))
}
