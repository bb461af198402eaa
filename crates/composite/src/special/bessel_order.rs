//! Bessel functions of the first and second kind, by the rational functions of the Cephes library.

use super::bessel_order_tables::*;
use super::rational;
use crate::expression::Expression;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_4};

/// Squares of the first two roots of `J0` and of `J1`.
const J0_ROOTS: [f64; 2] = [5.783185962946784, 30.471262343662087];
const J1_ROOTS: [f64; 2] = [14.681970642123893, 49.218_456_321_694_6];

/// The asymptotic expansion's two factors beyond 5.
fn asymptotic<'f>(
    x: Expression<'f>,
    (pp, pq): (&[f64], &[f64]),
    (qp, qq): (&[f64], &[f64]),
) -> (Expression<'f>, Expression<'f>) {
    let s = 25.0 / (x * x);
    let root = (FRAC_2_PI / x).sqrt();
    (rational(s, pp, pq) * root, rational(s, qp, qq) * (5.0 / x) * root)
}

/// Sine and cosine of `x - phase`, both 0 at infinity, where the functions are.
fn phase(x: Expression<'_>, phase: f64) -> (Expression<'_>, Expression<'_>) {
    let angle = x.equal(f64::INFINITY).select(x.splat(0.0), x) - phase;
    (angle.sin(), angle.cos())
}

/// `J0(x)`.
pub fn bessel_j0(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let z = y * y;
    let near = (z - J0_ROOTS[0]) * (z - J0_ROOTS[1]) * rational(z, J0_RP, J0_RQ);
    let (p, q) = asymptotic(y, (J0_PP, J0_PQ), (J0_QP, J0_QQ));
    let (sine, cosine) = phase(y, FRAC_PI_4);
    y.le(5.0).select(near, p * cosine - q * sine)
}

/// `J1(x)`.
pub fn bessel_j1(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let z = y * y;
    let near = rational(z, J1_RP, J1_RQ) * y * (z - J1_ROOTS[0]) * (z - J1_ROOTS[1]);
    let (p, q) = asymptotic(y, (J1_PP, J1_PQ), (J1_QP, J1_QQ));
    let (sine, cosine) = phase(y, 3.0 * FRAC_PI_4);
    let result = y.le(5.0).select(near, p * cosine - q * sine);
    x.lt(0.0).select(-result, result)
}

/// `-infinity` at 0, NaN below.
fn positive_only<'f>(x: Expression<'f>, result: Expression<'f>) -> Expression<'f> {
    let result = x.equal(0.0).select(x.splat(f64::NEG_INFINITY), result);
    x.lt(0.0).select(x.splat(f64::NAN), result)
}

/// `Y0(x)`: NaN below 0.
pub fn bessel_y0(x: Expression<'_>) -> Expression<'_> {
    let near = rational(x * x, Y0_YP, Y0_YQ) + x.log() * bessel_j0(x) * FRAC_2_PI;
    let (p, q) = asymptotic(x, (J0_PP, J0_PQ), (J0_QP, J0_QQ));
    let (sine, cosine) = phase(x, FRAC_PI_4);
    positive_only(x, x.le(5.0).select(near, p * sine + q * cosine))
}

/// `Y1(x)`: NaN below 0.
pub fn bessel_y1(x: Expression<'_>) -> Expression<'_> {
    let logarithmic = (bessel_j1(x) * x.log() - 1.0 / x) * FRAC_2_PI;
    let near = rational(x * x, Y1_YP, Y1_YQ) * x + logarithmic;
    let (p, q) = asymptotic(x, (J1_PP, J1_PQ), (J1_QP, J1_QQ));
    let (sine, cosine) = phase(x, 3.0 * FRAC_PI_4);
    positive_only(x, x.le(5.0).select(near, p * sine + q * cosine))
}
