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
}

/// What is kept of the order of the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Nothing,
    Permutation,
    Sign,
}

/// Factors with partial pivoting.
pub fn lu(a: Expression<'_>) -> Lu<'_> {
    let permutation = a.function().iota(PrimitiveType::S32, &a.sizes()[..2], 1);
    let (factors, permutation) = reduce_columns(a, permutation, Keeps::Permutation);
    Lu { factors, permutation }
}

/// Eliminates as many columns as there are rows, those behind along; and what is kept of the order of the rows.
fn reduce_columns<'f>(
    a: Expression<'f>,
    order: Expression<'f>,
    keeps: Keeps,
) -> (Expression<'f>, Expression<'f>) {
    let sizes = a.sizes();
    if sizes.contains(&0) {
        return (a, order);
    }
    let state = if keeps == Keeps::Nothing { vec![a] } else { vec![a, order] };
    let done = a.function().for_loop(sizes[1], &state, |_, k, state| eliminate(k, state, keeps));
    (done[0], done.get(1).copied().unwrap_or(order))
}

fn eliminate<'f>(k: Expression<'f>, state: &[Expression<'f>], keeps: Keeps) -> Vec<Expression<'f>> {
    let a = state[0];
    let function = a.function();
    let sizes = a.sizes();
    let (batch, height) = (sizes[0], sizes[1]);

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
    let mut kept = vec![next];
    match (keeps, state.get(1)) {
        (Keeps::Permutation, Some(&permutation)) => {
            let moved = lines.equal(pivot_line.broadcast(&[batch, height], &[0]));
            let at_k = permutation.dynamic_slice_in(1, k);
            let at_pivot = moved.select(permutation, 0.0).sum(&[1]).reshape(&[batch, 1]);
            let at_k = at_k.reshape(&[batch]).broadcast(&[batch, height], &[0]);
            kept.push(moved.select(at_k, permutation).dynamic_update_in(at_pivot, 1, k));
        }
        (Keeps::Sign, Some(&sign)) => kept.push(pivot_line.not_equal(k_lines).select(-sign, sign)),
        _ => {}
    }
    kept
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
    let (factors, _) = reduce_columns(both, both, Keeps::Nothing);
    let upper = factors.slice_in(2, 0, n);
    let right = factors.slice_in(2, n, factors.size_from_end(0));
    substitute(upper, right, false, false)
}

/// The determinant as the product of its factors: the sign of the rows' order (1 or -1, `[batch]`, real), and the pivots.
pub fn determinant<'f>(a: Expression<'f>) -> (Expression<'f>, Expression<'f>) {
    let sign = a.function().splat(a.element_type().real_part(), &a.sizes()[..1], 1.0);
    let (factors, sign) = reduce_columns(a, sign, Keeps::Sign);
    (sign, diagonal(factors))
}
