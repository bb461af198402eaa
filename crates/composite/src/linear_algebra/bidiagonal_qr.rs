//! The implicit QR method for upper bidiagonal matrices (Golub and Kahan, with the order of steps
//! of LAPACK's `bdsqr`).

use super::bidiagonal::Bidiagonal;
use super::givens::{Givens, at, deflate, first_coupled, last_coupled, with};
use super::jacobi::epsilon;
use super::matrix::in_type_of;
use super::tridiagonal_qr::MAX_SWEEPS;
use crate::expression::Expression;
use shape::PrimitiveType;

/// `a = u diag(values) v^H`, unsorted.
pub(super) struct Factors<'f> {
    /// `[1, n]`, nonnegative.
    pub(super) values: Expression<'f>,
    /// `[1, n, n]`.
    pub(super) u: Expression<'f>,
    /// `[1, n, n]`.
    pub(super) v: Expression<'f>,
}

/// Returns the singular values and vectors of a matrix in bidiagonal form.
pub(super) fn diagonalize_bidiagonal(matrix: Bidiagonal<'_>) -> Factors<'_> {
    let Bidiagonal { diagonal, above, rows_of_u, rows_of_v } = matrix;
    let function = diagonal.function();
    let n = diagonal.size_from_end(0);
    let diagonal = without_small(diagonal);
    let above = deflate(diagonal, above);
    // One more element, because the one after the last is read, too.
    let state = [
        function.scalar(PrimitiveType::S32, 0.0),
        last_coupled(above),
        diagonal,
        above.pad_in(1, 0, 1, 0.0),
        rows_of_u,
        rows_of_v,
    ];
    let outputs = function.while_loop(
        &state,
        |_, state| state[0].lt((MAX_SWEEPS * n) as f64) & state[1].gt(0.0),
        |_, state| sweep(state),
    );
    let (d, v) = (outputs[2], outputs[5].transpose(&[0, 2, 1]));
    let signs = d.lt(0.0).select(d.splat(-1.0), 1.0).broadcast(&v.sizes(), &[0, 2]);
    Factors { values: d.abs(), u: outputs[4].transpose(&[0, 2, 1]), v: v * in_type_of(signs, v) }
}

/// Flushes elements negligible relative to 1 to zero: the iteration deflates an exact zero, but
/// takes many sweeps for a tiny value.
fn without_small(diagonal: Expression<'_>) -> Expression<'_> {
    let least = epsilon(diagonal.element_type()).powi(2);
    diagonal.abs().le(least).select(diagonal.splat(0.0), diagonal)
}

/// Performs one sweep over the last block that is not diagonal.
fn sweep<'f>(state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[count, last, d, e, u, v] = state else { return Vec::new() };
    let n = d.size_from_end(0);
    let first = first_coupled(e, last);
    let (a, b) = (at(d, first), at(e, first + 1.0));
    let x = beginning(first, last, d, e);
    let [row_of_u, row_of_v] = [u, v].map(|rows| rows.dynamic_slice_in(1, first));
    let start = [first, last, a, b, x, b, row_of_u, row_of_v, d, e, u, v];
    let outputs = d.function().while_loop(&start, |_, state| state[0].lt(state[1]), |_, state| chase(state));
    let &[_, _, a, _, x, _, row_of_u, row_of_v, d, e, u, v] = &outputs[..] else { return Vec::new() };
    let d = without_small(with(d, last, a));
    let e = deflate(d, with(e, last, x).slice_in(1, 0, n));
    let u = u.dynamic_update_in(row_of_u, 1, last);
    let v = v.dynamic_update_in(row_of_v, 1, last);
    vec![count + 1.0, last_coupled(e), d, e.pad_in(1, 0, 1, 0.0), u, v]
}

/// Returns the value that replaces the block's first element in the first rotation of columns:
/// `(a^2 - shift^2) / a`. The shift is the smaller singular value of the last two rows. Without a
/// shift, a block with a zero on its diagonal splits in one sweep.
fn beginning<'f>(
    first: Expression<'f>,
    last: Expression<'f>,
    d: Expression<'f>,
    e: Expression<'f>,
) -> Expression<'f> {
    let (f, g, h) = (at(d, last - 1.0).abs(), at(e, last).abs(), at(d, last).abs());
    let (small, large) = (f.min(h), f.max(h));
    let unit = large.max(g);
    let [sum, difference, beside] = [large + small, large - small, g].map(|x| x / unit);
    let root = |x: Expression<'f>| (x * x + beside * beside).sqrt();
    let shift = small * (large / unit) * 2.0 / (root(sum) + root(difference));
    let a = at(d, first);
    let indices = d.function().iota(PrimitiveType::S32, &d.sizes(), 1);
    let within = indices.ge(first.spread_like(indices)) & indices.le(last.spread_like(indices));
    let has_zero = (within & d.equal(0.0)).any();
    let divisor = has_zero.select(a.splat(1.0), a);
    let ratio = shift / divisor;
    let counts = (ratio * ratio).ge(epsilon(a.element_type())) & !has_zero;
    let shifted = (a.abs() - shift) * (a.lt(0.0).select(a.splat(-1.0), 1.0) + ratio);
    counts.select(shifted, a)
}

/// Rotates two neighboring columns and then two rows, moving the bulge by one place. `a` and `b`
/// are the current values of diagonal element `k` and its right neighbor. The column rotation
/// combines `x` and `z` into one element.
fn chase<'f>(state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[k, last, a, b, x, z, row_of_u, row_of_v, d, e, u, v] = state else { return Vec::new() };
    let next = k + 1.0;
    let (c, after) = (at(d, next), at(e, next + 1.0));
    let right = Givens::new(x, z);
    // The element above a block remains 0.
    let above = at(e, k).equal(0.0).select(x.splat(0.0), right.norm);
    let beside = right.cosine * b - right.sine * a;
    let below = right.cosine * c;
    let left = Givens::new(right.cosine * a + right.sine * b, right.sine * c);
    let (turned_u, row_of_u) = left.rotate(row_of_u, u.dynamic_slice_in(1, next));
    let (turned_v, row_of_v) = right.rotate(row_of_v, v.dynamic_slice_in(1, next));
    vec![
        next,
        last,
        left.cosine * below - left.sine * beside,
        left.cosine * after,
        left.cosine * beside + left.sine * below,
        left.sine * after,
        row_of_u,
        row_of_v,
        with(d, k, left.norm),
        with(e, k, above),
        u.dynamic_update_in(turned_u, 1, k),
        v.dynamic_update_in(turned_v, 1, k),
    ]
}
