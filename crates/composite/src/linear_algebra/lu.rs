//! LU decomposition with pivoting, one column per step, with blocks of columns for large matrices;
//! and the systems it solves.

use super::matrix::{BLOCK, diagonal, matmul, positions, spread, square_magnitude};
use super::triangular::substitute;
use crate::expression::Expression;
use hlo::{GatherDimensionNumbers, Op};
use shape::PrimitiveType;

/// An LU decomposition.
#[derive(Clone, Copy)]
pub struct Lu<'f> {
    /// The upper factor and, below the diagonal, the lower factor without its unit diagonal.
    pub factors: Expression<'f>,
    /// Row `i` was originally row `permutation[i]`: `[batch, rows]`, `s32`.
    pub permutation: Expression<'f>,
}

impl<'f> Lu<'f> {
    /// Returns the sequence of row swaps that produces the permutation: `[batch, count]`, `s32`,
    /// zero-based.
    pub fn pivots(&self, count: i64) -> Expression<'f> {
        let function = self.permutation.function();
        let sizes = self.permutation.sizes();
        let (batch, rows) = (sizes[0], sizes[1]);
        let order = function.iota(PrimitiveType::S32, &sizes, 1);
        let swaps = function.splat(PrimitiveType::S32, &[batch, count], 0.0);
        if sizes.contains(&0) || count == 0 {
            return swaps;
        }
        let outputs = function.for_loop(count, &[order, swaps, self.permutation], |function, k, state| {
            let &[order, swaps, permutation] = state else { return Vec::new() };
            let lines = function.iota(PrimitiveType::S32, &[batch, rows], 1);
            let target = permutation.dynamic_slice_in(1, k).reshape(&[batch]).broadcast(&[batch, rows], &[0]);
            let is_target = order.equal(target);
            let place = is_target.select(lines, 0.0).sum(&[1]).reshape(&[batch, 1]);
            let displaced = order.dynamic_slice_in(1, k).reshape(&[batch]).broadcast(&[batch, rows], &[0]);
            let order = is_target.select(displaced, order);
            let order = lines.equal(k.spread_like(lines)).select(target, order);
            vec![order, swaps.dynamic_update_in(place, 1, k), permutation]
        });
        outputs[1]
    }
}

/// Factors with partial pivoting.
pub fn lu(a: Expression<'_>) -> Lu<'_> {
    let rows = reduce_columns(a);
    Lu { factors: rows.factors, permutation: rows.permutation }
}

/// Rows during elimination.
#[derive(Clone, Copy)]
struct Rows<'f> {
    factors: Expression<'f>,
    /// As in [`Lu`].
    permutation: Expression<'f>,
    /// Sign of the permutation, 1 or -1: `[batch]`, real.
    sign: Expression<'f>,
}

impl<'f> Rows<'f> {
    fn new(factors: Expression<'f>) -> Self {
        let (function, sizes) = (factors.function(), factors.sizes());
        let permutation = function.iota(PrimitiveType::S32, &sizes[..2], 1);
        let sign = function.splat(factors.element_type().real_part(), &sizes[..1], 1.0);
        Self { factors, permutation, sign }
    }

    fn state(self) -> Vec<Expression<'f>> {
        vec![self.factors, self.permutation, self.sign]
    }

    fn of_state(state: &[Expression<'f>]) -> Option<Self> {
        let &[factors, permutation, sign, ..] = state else { return None };
        Some(Self { factors, permutation, sign })
    }
}

/// Eliminates a column for each row, or all columns if there are fewer. Further columns are updated
/// along with them.
fn reduce_columns(a: Expression<'_>) -> Rows<'_> {
    let rows = Rows::new(a);
    // The number of diagonal elements.
    let count = a.size_from_end(1).min(a.size_from_end(0));
    if a.sizes().contains(&0) {
        return rows;
    }
    let blocks = if count <= 2 * BLOCK { 0 } else { count / BLOCK };
    let (function, eliminated) = (a.function(), blocks * BLOCK);
    let mut state = rows.state();
    if blocks > 0 {
        state = function.for_loop(blocks, &state, |_, block, state| {
            Rows::of_state(state)
                .map(|rows| eliminate_block(block * BLOCK as f64, rows).state())
                .unwrap_or_default()
        });
    }
    if eliminated < count {
        state = function.for_loop(count - eliminated, &state, |_, step, state| {
            let k = step + eliminated as f64;
            Rows::of_state(state).map(|rows| eliminate(k, k, rows).state()).unwrap_or_default()
        });
    }
    Rows::of_state(&state).unwrap_or(rows)
}

/// Eliminates a block of columns, starting at the diagonal's row `first`. The update of the columns
/// to the right is one matrix product.
fn eliminate_block<'f>(first: Expression<'f>, rows: Rows<'f>) -> Rows<'f> {
    let a = rows.factors;
    let mut state = Rows::new(a.dynamic_range_in(2, first, BLOCK)).state();
    state.push(first);
    let outputs = a.function().for_loop(BLOCK, &state, |_, step, state| {
        let (Some(panel), Some(&first)) = (Rows::of_state(state), state.get(3)) else { return Vec::new() };
        let mut next = eliminate(first + step, step, panel).state();
        next.push(first);
        next
    });
    let Some(panel) = Rows::of_state(&outputs) else { return rows };
    let moved = in_order(a, panel.permutation).dynamic_update_in(panel.factors, 2, first);
    let (lines, columns) = positions(moved);
    let end = first + BLOCK as f64;
    let is_right = columns.ge(end.spread_like(columns));
    let corner = panel.factors.dynamic_range_in(1, first, BLOCK);
    let upper = moved.dynamic_range_in(1, first, BLOCK);
    let solved = substitute(corner, upper, true, true);
    let reduced = moved - matmul(panel.factors, solved);
    let is_below = lines.ge(end.spread_like(lines));
    let reduced = (is_below & is_right).select(reduced, moved);
    let upper = is_right.dynamic_range_in(1, first, BLOCK).select(solved, upper);
    Rows {
        factors: reduced.dynamic_update_in(upper, 1, first),
        permutation: in_order(rows.permutation, panel.permutation),
        sign: rows.sign * panel.sign,
    }
}

/// Permutes rows: row `i` of the result is row `order[i]`, `[batch, rows, ...]` indexed by
/// `[batch, rows]`.
fn in_order<'f>(x: Expression<'f>, order: Expression<'f>) -> Expression<'f> {
    let rank = x.rank();
    let slice_sizes: Vec<i64> = (0..rank).map(|d| if d < 2 { 1 } else { x.sizes()[d] }).collect();
    let gather_dimension_numbers = GatherDimensionNumbers {
        offset_dims: (2..rank).collect(),
        collapsed_slice_dims: vec![1],
        start_index_map: vec![1],
        operand_batching_dims: vec![0],
        start_indices_batching_dims: vec![0],
        index_vector_dim: 2,
    };
    let op = Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: false };
    x.function().op(op, &[x, order], None)
}

/// Eliminates a column, using its largest element from row `k` on as the pivot. The pivot's row
/// becomes row `k`.
fn eliminate<'f>(k: Expression<'f>, column_number: Expression<'f>, rows: Rows<'f>) -> Rows<'f> {
    let a = rows.factors;
    let function = a.function();
    let sizes = a.sizes();
    let (batch, height) = (sizes[0], sizes[1]);

    // Largest element of the column from the diagonal down; the first one of equals.
    let column = a.dynamic_slice_in(2, column_number).reshape(&[batch, height]);
    let lines = function.iota(PrimitiveType::S32, &[batch, height], 1);
    let below = lines.ge(k.spread_like(lines));
    let size = below.select(square_magnitude(column), -1.0);
    let largest = size.reduce("maximum", Op::Maximum {}, -1.0, &[1]);
    let is_largest = size.equal(largest.broadcast(&[batch, height], &[0]));
    let first = is_largest.select(lines, height as f64);
    let pivot_line = first.reduce("minimum", Op::Minimum {}, height as f64, &[1]);
    // If the column has NaN, no element equals the maximum.
    let k_lines = k.spread_like(pivot_line);
    let pivot_line = pivot_line.lt(height as f64).select(pivot_line, k_lines);

    let (places, columns) = positions(a);
    let k_everywhere = k.spread_like(places);
    let here = column_number.spread_like(columns);
    let is_pivot = places.equal(pivot_line.broadcast(&sizes, &[0]));
    let is_k = places.equal(k_everywhere);
    let pivot_row = pick(is_pivot, a, 1);
    let k_row = a.dynamic_slice_in(1, k);
    let swapped = is_pivot.select(spread(k_row, &sizes), a);
    let swapped = is_k.select(spread(pivot_row, &sizes), swapped);

    let pivot = pivot_row.dynamic_slice_in(2, column_number);
    let lower = swapped.dynamic_slice_in(2, column_number);
    let lower_sizes = lower.sizes();
    let pivots = spread(pivot, &lower_sizes);
    // A column of zeros remains unchanged.
    let factors = pivots.equal(0.0).select(lower, lower / pivots);
    let is_below = places.gt(k_everywhere);
    let factors = spread(factors, &sizes);
    let reduced = swapped - factors * spread(pivot_row, &sizes);
    let reduced = columns.equal(here).select(factors, reduced);
    let next = (is_below & columns.ge(here)).select(reduced, swapped);
    let permutation = rows.permutation;
    let moved = lines.equal(pivot_line.broadcast(&[batch, height], &[0]));
    let at_k = permutation.dynamic_slice_in(1, k);
    let at_pivot = moved.select(permutation, 0.0).sum(&[1]).reshape(&[batch, 1]);
    let at_k = at_k.reshape(&[batch]).broadcast(&[batch, height], &[0]);
    Rows {
        factors: next,
        permutation: moved.select(at_k, permutation).dynamic_update_in(at_pivot, 1, k),
        sign: pivot_line.not_equal(k_lines).select(-rows.sign, rows.sign),
    }
}

/// Selects the one row of a mask exactly: `[batch, 1, columns]`.
fn pick<'f>(mask: Expression<'f>, a: Expression<'f>, dimension: usize) -> Expression<'f> {
    let mut sizes = a.sizes();
    sizes[dimension] = 1;
    let sum = |part: Expression<'f>| mask.select(part, 0.0).sum(&[dimension]).reshape(&sizes);
    if a.element_type().is_complex() { sum(a.real()).complex(sum(a.imag())) } else { sum(a) }
}

/// Solves `a x = b`. A singular matrix yields infinities or NaN.
pub fn solve<'f>(a: Expression<'f>, b: Expression<'f>) -> Expression<'f> {
    let n = a.size_from_end(0);
    if a.sizes().contains(&0) || b.sizes().contains(&0) {
        return b;
    }
    // The right sides are eliminated along with the matrix, which leaves an upper triangular
    // system.
    let both = a.function().concatenate(&[a, b], 2);
    let factors = reduce_columns(both).factors;
    let upper = factors.slice_in(2, 0, n);
    let right = factors.slice_in(2, n, factors.size_from_end(0));
    substitute(upper, right, false, false)
}

/// Returns the determinant as factors: the sign of the row permutation (1 or -1, `[batch]`, real),
/// and the pivots.
pub fn determinant<'f>(a: Expression<'f>) -> (Expression<'f>, Expression<'f>) {
    let rows = reduce_columns(a);
    (rows.sign, diagonal(rows.factors))
}
