//! The implicit QR method with Wilkinson's shifts for symmetric tridiagonal matrices (Golub and Van
//! Loan, Matrix Computations, 8.3.5).

use super::givens::{Givens, at, deflate, first_coupled, last_coupled, with};
use super::tridiagonal::Tridiagonal;
use crate::expression::Expression;
use shape::PrimitiveType;

/// Maximum sweeps per eigenvalue. Two are typical; LAPACK uses the same limit.
pub(super) const MAX_SWEEPS: i64 = 30;

/// Returns the unsorted eigenvalues, `[1, n]`, of a matrix in tridiagonal form, and the
/// eigenvectors as columns, `[1, n, n]`.
pub(super) fn diagonalize_tridiagonal(matrix: Tridiagonal<'_>) -> (Expression<'_>, Expression<'_>) {
    let Tridiagonal { diagonal, before, rows_of_q } = matrix;
    let function = diagonal.function();
    let n = diagonal.size_from_end(0);
    let before = deflate(diagonal, before);
    // One more element, because the one after the last is read, too.
    let state = [
        function.scalar(PrimitiveType::S32, 0.0),
        last_coupled(before),
        diagonal,
        before.pad_in(1, 0, 1, 0.0),
        rows_of_q,
    ];
    let outputs = function.while_loop(
        &state,
        |_, state| state[0].lt((MAX_SWEEPS * n) as f64) & state[1].gt(0.0),
        |_, state| sweep(state),
    );
    (outputs[2], outputs[4].transpose(&[0, 2, 1]))
}

/// Performs one sweep over the last block that is not diagonal.
fn sweep<'f>(state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[count, last, d, e, v] = state else { return Vec::new() };
    let n = d.size_from_end(0);
    let first = first_coupled(e, last);
    // Shift: the eigenvalue of the last two rows that is closer to the last element.
    let (coupling, corner) = (at(e, last), at(d, last));
    let delta = (at(d, last - 1.0) - corner) * 0.5;
    let root = (delta * delta + coupling * coupling).sqrt();
    let sum = delta + delta.lt(0.0).select(-root, root);
    let shift = corner - coupling * (coupling / sum);
    let (a, b) = (at(d, first), at(e, first + 1.0));
    let start = [first, last, a, b, a - shift, b, v.dynamic_slice_in(1, first), d, e, v];
    let outputs = d.function().while_loop(&start, |_, state| state[0].lt(state[1]), |_, state| chase(state));
    let &[_, _, a, _, x, _, row, d, e, v] = &outputs[..] else { return Vec::new() };
    let d = with(d, last, a);
    let e = deflate(d, with(e, last, x).slice_in(1, 0, n));
    vec![count + 1.0, last_coupled(e), d, e.pad_in(1, 0, 1, 0.0), v.dynamic_update_in(row, 1, last)]
}

/// Rotates two neighbors, moving the bulge by one place. `a` and `b` are the current values of
/// diagonal element `k` and its neighbor. The rotation combines `x` and `z` into one element. `row`
/// is the current row of vectors.
fn chase<'f>(state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[k, last, a, b, x, z, row, d, e, v] = state else { return Vec::new() };
    let next = k + 1.0;
    let (c, after) = (at(d, next), at(e, next + 1.0));
    let givens = Givens::new(x, z);
    let Givens { cosine, sine, norm } = givens;
    let q = sine * (c - a) + cosine * b * 2.0;
    let p = sine * q;
    // The element before a block remains 0.
    let before = at(e, k).equal(0.0).select(norm.splat(0.0), norm);
    let (turned, row) = givens.rotate(row, v.dynamic_slice_in(1, next));
    vec![
        next,
        last,
        c - p,
        cosine * after,
        cosine * q - b,
        sine * after,
        row,
        with(d, k, a + p),
        with(e, k, before),
        v.dynamic_update_in(turned, 1, k),
    ]
}
