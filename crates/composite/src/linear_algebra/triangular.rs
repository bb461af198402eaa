//! Triangular systems by substitution, one row of the solution per step, with blocks of rows for
//! large matrices.

use super::matrix::{BLOCK, conjugate, matmul, pad_with_identity, positions};
use crate::expression::Expression;
use hlo::TriangularTranspose;

/// Options of a triangular solve, as in HLO's `triangular-solve`.
#[derive(Clone, Copy, Debug)]
pub struct Triangular {
    /// `op(a) x = b` instead of `x op(a) = b`.
    pub left_side: bool,
    /// True to read the lower triangle of `a`.
    pub lower: bool,
    /// True to assume a diagonal of ones without reading it.
    pub unit_diagonal: bool,
    /// Transposition `op` of the matrix.
    pub transpose_a: TriangularTranspose,
}

/// Solves stacks of triangular systems.
pub fn triangular_solve<'f>(a: Expression<'f>, b: Expression<'f>, options: Triangular) -> Expression<'f> {
    let is_transposed = options.transpose_a != TriangularTranspose::NoTranspose;
    let a = if options.transpose_a == TriangularTranspose::Adjoint { conjugate(a) } else { a };
    // `x op(a) = b` is `op(a)^T x^T = b^T`.
    let flips = is_transposed == options.left_side;
    let a = if flips { a.transpose(&[0, 2, 1]) } else { a };
    let b = if options.left_side { b } else { b.transpose(&[0, 2, 1]) };
    let x = substitute(a, b, options.lower != flips, options.unit_diagonal);
    if options.left_side { x } else { x.transpose(&[0, 2, 1]) }
}

/// Solves `a x = b` row by row, from the top for a lower triangle.
pub(super) fn substitute<'f>(
    a: Expression<'f>,
    b: Expression<'f>,
    is_lower: bool,
    unit_diagonal: bool,
) -> Expression<'f> {
    let n = a.size_from_end(0);
    if a.sizes().contains(&0) || b.sizes().contains(&0) {
        return b;
    }
    if n <= 2 * BLOCK { rows(a, b, is_lower, unit_diagonal) } else { blocked(a, b, is_lower, unit_diagonal) }
}

/// Solves one block of rows at a time. The contribution of earlier blocks is one matrix product.
fn blocked<'f>(a: Expression<'f>, b: Expression<'f>, is_lower: bool, unit_diagonal: bool) -> Expression<'f> {
    let n = a.size_from_end(0);
    let a = pad_with_identity(a, BLOCK);
    let size = a.size_from_end(0);
    let b = b.pad_in(1, 0, size - n, 0.0);
    // The other triangle may hold anything. In blocks not yet solved, `x` is 0.
    let (row, column) = positions(a);
    let strict = if is_lower { row.gt(column) } else { row.lt(column) };
    let strict = strict.select(a, 0.0);
    let blocks = size / BLOCK;
    let outputs = a.function().for_loop(blocks, &[b.splat(0.0), a, b, strict], |_, step, state| {
        let &[x, a, b, strict] = state else { return Vec::new() };
        let block = if is_lower { step } else { (blocks - 1) as f64 - step };
        let first = block * BLOCK as f64;
        let known = matmul(strict.dynamic_range_in(1, first, BLOCK), x);
        let right = b.dynamic_range_in(1, first, BLOCK) - known;
        let corner = a.dynamic_range_in(1, first, BLOCK).dynamic_range_in(2, first, BLOCK);
        let solved = rows(corner, right, is_lower, unit_diagonal);
        vec![x.dynamic_update_in(solved, 1, first), a, b, strict]
    });
    outputs[0].slice_in(1, 0, n)
}

fn rows<'f>(a: Expression<'f>, b: Expression<'f>, is_lower: bool, unit_diagonal: bool) -> Expression<'f> {
    let n = a.size_from_end(0);
    let (rows, columns) = positions(a);
    let strict = if is_lower { rows.gt(columns) } else { rows.lt(columns) };
    let strict = strict.select(a, 0.0);
    // The other triangle may hold anything.
    let scale = rows.equal(columns).select(a, 0.0);
    let initial = [b.splat(0.0), b, strict, scale];
    let outputs = a.function().for_loop(n, &initial, |_, step, state| {
        let &[x, b, strict, scale] = state else { return Vec::new() };
        let row = if is_lower { step } else { (n - 1) as f64 - step };
        let known = matmul(strict.dynamic_slice_in(1, row), x);
        let mut next = b.dynamic_slice_in(1, row) - known;
        if !unit_diagonal {
            let pivot = scale.dynamic_slice_in(1, row).dynamic_slice_in(2, row);
            next = next / super::matrix::spread(pivot, &next.sizes());
        }
        vec![x.dynamic_update_in(next, 1, row), b, strict, scale]
    });
    outputs[0]
}
