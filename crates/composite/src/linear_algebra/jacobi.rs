//! Jacobi rotations, all pairs of a round at once, in the order of Brent and Luk on the two halves
//! of a matrix.

use super::matrix::matmul;
use crate::expression::Expression;
use shape::PrimitiveType;

/// Upper bound for rounds through all pairs. Convergence is quadratic; ten rounds are already many.
pub(super) const MAX_SWEEPS: f64 = 30.0;

/// Returns the distance from 1 to the next number.
pub(super) fn epsilon(element_type: PrimitiveType) -> f64 {
    if element_type.real_part() == PrimitiveType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

/// Returns sine and cosine of the rotation that diagonalizes `[[a, b], [b, d]]` for real `b >= 0`.
/// The rotation is the identity where `skips` is true.
pub(super) fn rotation<'f>(
    a: Expression<'f>,
    b: Expression<'f>,
    d: Expression<'f>,
    skips: Expression<'f>,
) -> (Expression<'f>, Expression<'f>) {
    let tau = (d - a) / (b * 2.0);
    let magnitude = tau.abs();
    // Beyond the square root of the largest number, squares overflow.
    let root = magnitude.gt(1.0e18).select(magnitude, (tau * tau + 1.0).sqrt());
    let tangent = 1.0 / (magnitude + root);
    let tangent = tau.lt(0.0).select(-tangent, tangent);
    let tangent = skips.select(tangent.splat(0.0), tangent);
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    (tangent * cosine, cosine)
}

/// Arranges the pairs of the next round: the first element stays, all others move by one place
/// around both halves.
pub(super) fn next_round<'f>(
    first: Expression<'f>,
    second: Expression<'f>,
    dimension: usize,
) -> (Expression<'f>, Expression<'f>) {
    let half = first.sizes()[dimension];
    if half < 2 {
        return (first, second);
    }
    let function = first.function();
    let part = |x: Expression<'f>, from, to| x.slice_in(dimension, from, to);
    let top = [part(first, 0, 1), part(second, 0, 1), part(first, 1, half - 1)];
    // With two pairs, the middle is empty.
    let top = if half == 2 { &top[..2] } else { &top[..] };
    let bottom = [part(second, 1, half), part(first, half - 1, half)];
    (function.concatenate(top, dimension), function.concatenate(&bottom, dimension))
}

/// Returns a matrix whose product from the right sorts columns by their keys, `[batch, n]`. The
/// sort is stable.
pub(super) fn sorting<'f>(keys: Expression<'f>, element_type: PrimitiveType) -> Expression<'f> {
    let function = keys.function();
    let sizes = keys.sizes();
    let (batch, n) = (sizes[0], sizes[1]);
    let square = [batch, n, n];
    let (mine, other) = (keys.broadcast(&square, &[0, 1]), keys.broadcast(&square, &[0, 2]));
    let (i, j) =
        (function.iota(PrimitiveType::S32, &square, 1), function.iota(PrimitiveType::S32, &square, 2));
    let before = other.lt(mine) | (other.equal(mine) & j.lt(i));
    let rank = before.convert(PrimitiveType::S32).sum(&[2]).broadcast(&square, &[0, 1]);
    rank.equal(j).convert(PrimitiveType::S32).convert(element_type)
}

/// Sorts `[batch, n]` by keys.
pub(super) fn sort_by_keys<'f>(values: Expression<'f>, keys: Expression<'f>) -> Expression<'f> {
    let sizes = values.sizes();
    let rows = values.reshape(&[sizes[0], 1, sizes[1]]);
    matmul(rows, sorting(keys, values.element_type())).reshape(&sizes)
}
