//! Functions defined as integrals: Dawson's, the exponential integral, Fresnel's, and Spence's, by
//! the rational functions of the Cephes library.

use super::fresnel_tables::*;
use super::integral_tables::*;
use super::rational;
use crate::expression::Expression;
use std::f64::consts::PI;

/// Dawson's integral `e^-x^2` times the integral of `e^t^2` from 0 to `x`.
pub fn dawsn(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let square = y * y;
    let near = y * rational(square, DAWSN_AN, DAWSN_AD);
    let inverse = 1.0 / y;
    let inverse_square = inverse * inverse;
    let tail = |p, q| (inverse_square * inverse * rational(inverse_square, p, q) + inverse) * 0.5;
    let middle = tail(DAWSN_BN, DAWSN_BD);
    let far = y.lt(1.0e9).select(tail(DAWSN_CN, DAWSN_CD), inverse * 0.5);
    let result = y.lt(6.25).select(middle, far);
    let result = y.lt(3.25).select(near, result);
    x.lt(0.0).select(-result, result)
}

/// The exponential integral `Ei(x)`: NaN below 0.
pub fn expint(x: Expression<'_>) -> Expression<'_> {
    const EULER: f64 = 0.5772156649015329;
    let near = x * rational(x, EXPINT_1_P, EXPINT_1_Q) + EULER + x.log();
    let w = 1.0 / x;
    let beyond: [(f64, &[f64], &[f64]); 6] = [
        (64.0, EXPINT_7_P, EXPINT_7_Q),
        (32.0, EXPINT_6_P, EXPINT_6_Q),
        (16.0, EXPINT_5_P, EXPINT_5_Q),
        (8.0, EXPINT_4_P, EXPINT_4_Q),
        (4.0, EXPINT_3_P, EXPINT_3_Q),
        (2.0, EXPINT_2_P, EXPINT_2_Q),
    ];
    let [(_, p, q), rest @ ..] = &beyond;
    let mut factor = rational(w, p, q);
    let mut limit = 64.0;
    for (from, p, q) in rest {
        factor = x.lt(limit).select(rational(w, p, q), factor);
        limit = *from;
    }
    let far = x.exp() * w * (w * factor + 1.0);
    let far = x.equal(f64::INFINITY).select(x, far);
    let result = x.lt(2.0).select(near, far);
    x.lt(0.0).select(x.splat(f64::NAN), result)
}

/// Returns the two auxiliary functions of Fresnel's integrals, and the sine and cosine of
/// `pi x^2 / 2`.
fn fresnel_parts(x: Expression<'_>) -> [Expression<'_>; 4] {
    let square = x * x;
    let t = 1.0 / (square * PI);
    let u = t * t;
    let f = 1.0 - u * rational(u, FRESNEL_FN, FRESNEL_FD);
    let g = t * rational(u, FRESNEL_GN, FRESNEL_GD);
    let angle = square * (PI / 2.0);
    [f, g, angle.sin(), angle.cos()]
}

/// Combines an odd Fresnel integral from its near and far approximations.
fn fresnel<'f>(x: Expression<'f>, near: Expression<'f>, far: Expression<'f>) -> Expression<'f> {
    let y = x.abs();
    let result = (y * y).lt(2.5625).select(near, far);
    let result = y.gt(36_974.0).select(x.splat(0.5), result);
    x.lt(0.0).select(-result, result)
}

/// Fresnel's cosine integral: the integral of `cos(pi t^2 / 2)` from 0 to `x`.
pub fn fresnel_cos(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let fourth = (y * y) * (y * y);
    let near = y * rational(fourth, FRESNEL_CN, FRESNEL_CD);
    let [f, g, sine, cosine] = fresnel_parts(y);
    fresnel(x, near, (f * sine - g * cosine) / (y * PI) + 0.5)
}

/// Fresnel's sine integral: the integral of `sin(pi t^2 / 2)` from 0 to `x`.
pub fn fresnel_sin(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let fourth = (y * y) * (y * y);
    let near = y * y * y * rational(fourth, FRESNEL_SN, FRESNEL_SD);
    let [f, g, sine, cosine] = fresnel_parts(y);
    fresnel(x, near, 0.5 - (f * cosine + g * sine) / (y * PI))
}

/// Spence's integral: the integral of `-log(t) / (t - 1)` from 1 to `x`; NaN below 0.
pub fn spence(x: Expression<'_>) -> Expression<'_> {
    let sixth = PI * PI / 6.0;
    let y = x.lt(2.0).select(x, 1.0 / x);
    let w = y.lt(0.5).select(-y, y - 1.0);
    let w = y.gt(1.5).select(1.0 / y - 1.0, w);
    let direct = -w * rational(w, SPENCE_A, SPENCE_B);
    let log = y.log();
    let mirrored = y.lt(0.5).select(sixth - log * (-y).log1p() - direct, direct);
    let result = x.gt(1.5).select(log * log * -0.5 - mirrored, mirrored);
    let result = x.equal(0.0).select(x.splat(sixth), result);
    x.lt(0.0).select(x.splat(f64::NAN), result)
}
