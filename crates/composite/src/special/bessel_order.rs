//! Bessel functions of the first and second kind. Up to 5, they use the rational functions of the
//! Cephes library, and polynomials where these cancel for the second kind. Beyond 5, they use
//! amplitude and phase, which are as accurate near the roots as elsewhere.

use super::bessel_order_tables::*;
use super::pair::{Pair, two_sum};
use super::{chebyshev, rational};
use crate::expression::Expression;
use shape::PrimitiveType;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_4};

/// The first two roots of `J0` and of `J1`, in two parts.
const J0_ROOTS: [[f64; 2]; 2] =
    [[2.404825557695773, -1.176691651530894e-16], [5.520078110286311, 8.088597146146722e-17]];
const J1_ROOTS: [[f64; 2]; 2] =
    [[3.8317059702075125, -1.5269184090088067e-16], [7.015586669815619, -9.414165653410389e-17]];

/// The first two roots of `Y0` and of `Y1`, in two parts.
const Y0_ROOTS: [[f64; 2]; 2] =
    [[0.8935769662791675, 2.6596231539720385e-17], [3.957678419314858, -1.0764340697562706e-16]];
const Y1_ROOTS: [[f64; 2]; 2] =
    [[2.197141326031017, -4.8259835876454966e-17], [5.429681040794135, 4.162514026670377e-16]];

/// Evaluates a polynomial within `reach` of a root, and returns `value` elsewhere.
fn next_to<'f>(
    x: Expression<'f>,
    [root, tail]: [f64; 2],
    reach: f64,
    coefficients: &[f64],
    value: Expression<'f>,
) -> Expression<'f> {
    let distance = x - root - tail;
    distance.abs().lt(reach).select(distance * distance.polynomial(coefficients), value)
}

/// `(x^2 - r^2) (x^2 - s^2)` for the roots `r` and `s`, accurate near them. Computed in two parts,
/// because four factors round often.
fn from_roots<'f>(x: Expression<'f>, roots: [[f64; 2]; 2]) -> Pair<'f> {
    let factor =
        |[root, tail]: [f64; 2]| (two_sum(x, x.splat(-root)) + -tail) * (two_sum(x, x.splat(root)) + tail);
    factor(roots[0]) * factor(roots[1])
}

/// A Chebyshev series between two roots, or near one of them, times the distances from both.
fn between<'f>(
    x: Expression<'f>,
    roots: [[f64; 2]; 2],
    [middle, reach]: [f64; 2],
    coefficients: &[f64],
) -> Expression<'f> {
    let distance = |[root, tail]: [f64; 2]| x - root - tail;
    chebyshev((x - middle) * (2.0 / reach), coefficients) * distance(roots[0]) * distance(roots[1])
}

/// `pi / 4` and `3 pi / 4`, in two parts.
const QUARTER_TURNS: [[f64; 2]; 2] =
    [[FRAC_PI_4, 3.061616997868383e-17], [2.356194490192345, 9.184850993605148e-17]];

/// `J` and `Y` of order 0 or 1 from 5 on: `sqrt(2 / (pi x)) m` times the cosine and the sine of
/// `x - (2 n + 1) pi / 4 + s`. Series in `1 / x^2` yield `m - 1` and `s x`, whose limit is
/// `(4 n^2 - 1) / 8`.
fn far<'f>(x: Expression<'f>, order: usize) -> [Expression<'f>; 2] {
    let (phase, amplitude, limit) = [(PHASE_0, AMPLITUDE_0, -0.125), (PHASE_1, AMPLITUDE_1, 0.375)][order];
    // At infinity, compute with a finite number; the functions are 0 there. Below 5, another series
    // applies.
    let finite = x.equal(f64::INFINITY).select(x.splat(5.0), x.max(5.0));
    let bounded = finite.min(if x.element_type() == PrimitiveType::F64 { 1e290 } else { 1e30 });
    let inverse = Pair::from(x.splat(1.0)) / Pair::from(bounded);
    let t = inverse.high * inverse.high * 25.0;
    let u = t * 4.0 - 2.0;
    let shift = inverse * limit + t * chebyshev(u, phase) * inverse.high;
    let turned = two_sum(finite, x.splat(-QUARTER_TURNS[order][0]));
    let angle = turned + (shift + -QUARTER_TURNS[order][1]);
    let (sine, cosine) = (angle.high.sin(), angle.high.cos());
    let size = (FRAC_2_PI / x).sqrt() * (t * chebyshev(u, amplitude) + 1.0);
    [size * (cosine - sine * angle.low), size * (sine + cosine * angle.low)]
}

/// `J0(x)`.
pub fn bessel_j0(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let z = y * y;
    let near = (from_roots(y, J0_ROOTS) * rational(z, J0_RP, J0_RQ)).high;
    y.le(5.0).select(near, far(y, 0)[0])
}

/// `J1(x)`.
pub fn bessel_j1(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let z = y * y;
    let near = (from_roots(y, J1_ROOTS) * y * rational(z, J1_RP, J1_RQ)).high;
    let result = y.le(5.0).select(near, far(y, 1)[0]);
    x.lt(0.0).select(-result, result)
}

/// `J0(x)` or `2 J1(x) / x` below 1.75.
fn power_series(x: Expression<'_>, order: i32) -> Expression<'_> {
    let mut coefficient = 1.0;
    let mut coefficients = vec![coefficient];
    for k in 1..=12 {
        coefficient /= -f64::from(k * (k + order));
        coefficients.insert(0, coefficient);
    }
    (x * x * 0.25).polynomial(&coefficients)
}

/// Returns `-infinity` at 0 and NaN below.
fn positive_only<'f>(x: Expression<'f>, result: Expression<'f>) -> Expression<'f> {
    let result = x.equal(0.0).select(x.splat(f64::NEG_INFINITY), result);
    x.lt(0.0).select(x.splat(f64::NAN), result)
}

/// `Y0(x)`: NaN below 0.
pub fn bessel_y0(x: Expression<'_>) -> Expression<'_> {
    let near = rational(x * x, Y0_YP, Y0_YQ) + x.log() * power_series(x, 0) * FRAC_2_PI;
    let near = next_to(x, Y0_ROOTS[0], 0.25, Y0_FIRST, near);
    let is_middle = x.gt(1.125) & x.lt(3.0);
    let near = is_middle.select(between(x, Y0_ROOTS, [2.0625, 0.9375], Y0_MIDDLE), near);
    let near = next_to(x, Y0_ROOTS[1], 1.05, Y0_SECOND, near);
    positive_only(x, x.le(5.0).select(near, far(x, 0)[1]))
}

/// `Y1(x)`: NaN below 0.
pub fn bessel_y1(x: Expression<'_>) -> Expression<'_> {
    let logarithmic = (x * 0.5 * power_series(x, 1) * x.log() - 1.0 / x) * FRAC_2_PI;
    let near = rational(x * x, Y1_YP, Y1_YQ) * x + logarithmic;
    let near = x.gt(1.75).select(between(x, Y1_ROOTS, [3.375, 1.625], Y1_MIDDLE), near);
    positive_only(x, x.le(5.0).select(near, far(x, 1)[1]))
}
