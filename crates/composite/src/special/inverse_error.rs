//! Inverses of the error function and of the normal distribution function.

use super::error_tables::*;
use super::rational;
use crate::expression::Expression;

/// `erfinv(x)`: NaN outside `[-1, 1]`, infinite at its ends.
pub fn erf_inv(x: Expression<'_>) -> Expression<'_> {
    // `-log(1 - x^2)`. Near the ends, the square would lose the digits of the difference.
    let magnitude = x.abs();
    let by_ends = ((1.0 - magnitude) * (magnitude + 1.0)).log();
    let w = -magnitude.lt(0.5).select((-(x * x)).log1p(), by_ends);
    let (near, middle) = (w.lt(6.25), w.lt(16.0));
    let root = w.sqrt();
    let far = (root - 5.0).polynomial(ERF_INV_FAR);
    let factor = middle.select((root - 3.25).polynomial(ERF_INV_MIDDLE), far);
    let factor = near.select((w - 3.125).polynomial(ERF_INV_NEAR), factor);
    let result = factor * x;
    magnitude.equal(1.0).select(x * f64::INFINITY, result)
}

/// `ndtri(p)` by the inverse error function, as in XLA: infinite where `2 p - 1` rounds to an end.
pub fn ndtri_by_erf_inv(p: Expression<'_>) -> Expression<'_> {
    erf_inv(p * 2.0 - 1.0) * 2f64.sqrt()
}

/// `ndtri(p)`, the inverse of the normal distribution function: NaN outside `[0, 1]`, infinite at
/// its ends.
pub fn ndtri(p: Expression<'_>) -> Expression<'_> {
    const EDGE: f64 = 0.1353352832366127;
    let upper = p.gt(1.0 - EDGE);
    let y = upper.select(1.0 - p, p);
    let centered = y - 0.5;
    let square = centered * centered;
    let middle = centered + centered * square * rational(square, NDTRI_P0, NDTRI_Q0);
    let middle = middle * (2.0 * std::f64::consts::PI).sqrt();

    let z = (y.log() * -2.0).sqrt();
    let inverse = 1.0 / z;
    let near = rational(inverse, NDTRI_P1, NDTRI_Q1);
    let far = rational(inverse, NDTRI_P2, NDTRI_Q2);
    let tail = z - z.log() * inverse - inverse * z.lt(8.0).select(near, far);
    let tail = upper.select(tail, -tail);

    let result = y.gt(EDGE).select(middle, tail);
    let infinity = p.splat(f64::INFINITY);
    let result = p.equal(0.0).select(-infinity, result);
    let result = p.equal(1.0).select(infinity, result);
    (p.lt(0.0) | p.gt(1.0)).select(p.splat(f64::NAN), result)
}
