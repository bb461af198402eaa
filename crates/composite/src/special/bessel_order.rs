//! Bessel functions of the first and second kind, by the rational functions of the Cephes library; those of the second kind by
//! polynomials next to the roots, where that is a difference.

use super::bessel_order_tables::*;
use super::rational;
use crate::expression::Expression;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_4};

/// The first two roots of `J0` and of `J1`, and what is missing of them.
const J0_ROOTS: [[f64; 2]; 2] =
    [[2.404825557695773, -1.176691651530894e-16], [5.520078110286311, 8.088597146146722e-17]];
const J1_ROOTS: [[f64; 2]; 2] =
    [[3.8317059702075125, -1.5269184090088067e-16], [7.015586669815619, -9.414165653410389e-17]];

/// The roots of `Y0` and of `Y1` below 5, likewise.
const Y0_ROOTS: [[f64; 2]; 2] =
    [[0.8935769662791675, 2.6596231539720385e-17], [3.957678419314858, -1.0764340697562706e-16]];
const Y1_ROOT: [f64; 2] = [2.197141326031017, -4.8259835876454966e-17];

/// What a polynomial gives within a distance from a root, and `value` elsewhere.
fn next_to<'f>(
    x: Expression<'f>,
    [root, tail]: [f64; 2],
    (reach, coefficients): (f64, &[f64]),
    value: Expression<'f>,
) -> Expression<'f> {
    let distance = x - root - tail;
    distance.abs().lt(reach).select(distance * distance.polynomial(coefficients), value)
}

/// `(x^2 - r^2) (x^2 - s^2)` for the roots `r` and `s`, accurate next to them.
fn from_roots<'f>(x: Expression<'f>, roots: [[f64; 2]; 2]) -> Expression<'f> {
    let factor = |[root, tail]: [f64; 2]| (x - root - tail) * (x + root);
    factor(roots[0]) * factor(roots[1])
}

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

/// What `FRAC_PI_4` lacks of a quarter of pi.
const FRAC_PI_4_TAIL: f64 = 3.061616997868383e-17;

/// Sine and cosine of `x` less so many quarters of pi, at infinity of something finite: the functions are 0 there.
fn phase(x: Expression<'_>, quarters: f64) -> (Expression<'_>, Expression<'_>) {
    let x = x.equal(f64::INFINITY).select(x.splat(0.0), x);
    // The difference and what its rounding loses, which counts where the functions are nearly 0.
    let phase = quarters * FRAC_PI_4;
    let angle = x - phase;
    let taken = x - angle;
    let lost = (x - (angle + taken)) + (taken - phase) - quarters * FRAC_PI_4_TAIL;
    let (sine, cosine) = (angle.sin(), angle.cos());
    (sine + cosine * lost, cosine - sine * lost)
}

/// `J0(x)`.
pub fn bessel_j0(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let z = y * y;
    let near = from_roots(y, J0_ROOTS) * rational(z, J0_RP, J0_RQ);
    let (p, q) = asymptotic(y, (J0_PP, J0_PQ), (J0_QP, J0_QQ));
    let (sine, cosine) = phase(y, 1.0);
    y.le(5.0).select(near, p * cosine - q * sine)
}

/// `J1(x)`.
pub fn bessel_j1(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let z = y * y;
    let near = rational(z, J1_RP, J1_RQ) * y * from_roots(y, J1_ROOTS);
    let (p, q) = asymptotic(y, (J1_PP, J1_PQ), (J1_QP, J1_QQ));
    let (sine, cosine) = phase(y, 3.0);
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
    let near = next_to(x, Y0_ROOTS[0], (0.25, Y0_FIRST), near);
    let near = next_to(x, Y0_ROOTS[1], (1.05, Y0_SECOND), near);
    let (p, q) = asymptotic(x, (J0_PP, J0_PQ), (J0_QP, J0_QQ));
    let (sine, cosine) = phase(x, 1.0);
    positive_only(x, x.le(5.0).select(near, p * sine + q * cosine))
}

/// `Y1(x)`: NaN below 0.
pub fn bessel_y1(x: Expression<'_>) -> Expression<'_> {
    let logarithmic = (bessel_j1(x) * x.log() - 1.0 / x) * FRAC_2_PI;
    let near = rational(x * x, Y1_YP, Y1_YQ) * x + logarithmic;
    let near = next_to(x, Y1_ROOT, (0.5, Y1_FIRST), near);
    let (p, q) = asymptotic(x, (J1_PP, J1_PQ), (J1_QP, J1_QQ));
    let (sine, cosine) = phase(x, 3.0);
    positive_only(x, x.le(5.0).select(near, p * sine + q * cosine))
}
