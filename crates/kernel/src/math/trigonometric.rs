//! `sin`, `cos`, and `tan`.
//!
//! The angle is reduced by multiples of `pi/2`. Minimax polynomials approximate the rest, for `|r|
//! <= 0.786` and `z = r^2`: `sin(r) = r + r z S(z)`, `cos(r) = 1 - z/2 + z^2 C(z)`, `tan(r) = r + r
//! z T(z)`.

use super::exact::two_product;
use super::lanes::Lanes;
use super::reduction::{Reduced, reduce};

const SIN_SINGLE: &[f64] = &[-1.6666655e-1, 8.33219e-3, -1.9518405e-4];
const COS_SINGLE: &[f64] = &[4.1666646e-2, -1.3887301e-3, 2.443067e-5];
const TAN_SINGLE: &[f64] = &[
    0.33333155512809753,
    0.13338859379291534,
    0.05340616777539253,
    0.024448739364743233,
    0.003089548321440816,
    0.009403681382536888,
];
const SIN_DOUBLE: &[f64] = &[
    -0.16666666666666632,
    0.00833333333332234,
    -0.00019841269829746482,
    2.7557313669757534e-06,
    -2.5050754516028338e-08,
    1.589657996499822e-10,
];
const COS_DOUBLE: &[f64] = &[
    0.0416666666666666,
    -0.0013888888888874025,
    2.4801587289417756e-05,
    -2.7557314332909426e-07,
    2.087572052948151e-09,
    -1.1359500677944522e-11,
];

/// Returns the sine and the cosine of a reduced angle.
fn sin_cos<'s>(reduced: &Reduced<'s>) -> (Lanes<'s>, Lanes<'s>) {
    let Reduced { angle, tail, .. } = *reduced;
    let z = angle * angle;
    let half = 0.5 * z;
    if angle.is_single() {
        let sin = angle + (angle * z).mul_add(z.polynomial(SIN_SINGLE), tail);
        let cos = (z * z).mul_add(z.polynomial(COS_SINGLE), angle.mul_add(-tail, 1.0 - half));
        return (sin, cos);
    }
    let sin = angle + ((angle * z).mul_add(z.polynomial(SIN_DOUBLE), tail) - half * tail);
    let one_less = 1.0 - half;
    let lost = (1.0 - one_less) - half;
    let cos = one_less + (lost + ((z * z) * z.polynomial(COS_DOUBLE) - angle * tail));
    (sin, cos)
}

/// Returns the sine of a reduced angle, with an offset to its quadrant.
fn sin_from<'s>(reduced: &Reduced<'s>, first_quadrant: i64) -> Lanes<'s> {
    let (sin, cos) = sin_cos(reduced);
    let quadrant = if first_quadrant == 0 { reduced.quadrant } else { reduced.quadrant + first_quadrant };
    let value = (quadrant & 1i64).differs(0i64).choose(cos, sin);
    let sign_place = if sin.is_single() { 30i64 } else { 62i64 };
    value.flip_sign((quadrant & 2i64).shl(sign_place))
}

/// The sine.
pub(super) fn sin(x: Lanes<'_>) -> Lanes<'_> {
    sin_from(&reduce(x.abs()), 0).flip_sign(x.sign_bits())
}

/// The cosine.
pub(super) fn cos(x: Lanes<'_>) -> Lanes<'_> {
    sin_from(&reduce(x.abs()), 1)
}

/// The tangent.
pub(super) fn tan(x: Lanes<'_>) -> Lanes<'_> {
    if x.is_single() {
        return tan_single(x);
    }
    let reduced = reduce(x.abs());
    let (sin, cos) = sin_cos(&reduced);
    let is_odd = (reduced.quadrant & 1i64).differs(0i64);
    let value = is_odd.choose(-cos, sin) / is_odd.choose(sin, cos);
    value.flip_sign(x.sign_bits())
}

/// In odd quadrants, this is `-1 / t`, where `t = tan(r)` is corrected by the rounding error of its
/// sum.
fn tan_single(x: Lanes<'_>) -> Lanes<'_> {
    let Reduced { quadrant, angle, tail } = reduce(x.abs());
    let z = angle * angle;
    let more = (angle * z).mul_add(z.polynomial(TAN_SINGLE), tail);
    // Tangent of a sum: the tail contributes 1 + t^2 times.
    let tangent = angle + more;
    let more = tail.mul_add(tangent * tangent, more);
    let tangent = angle + more;
    let rest = (angle - tangent) + more;
    let estimate = tangent.reciprocal_estimate();
    let left = if x.has_fma() {
        (-tangent).mul_add(estimate, 1.0)
    } else {
        let product = two_product(tangent, estimate);
        (1.0 - product.high) - product.low
    };
    let left = (-rest).mul_add(estimate, left);
    let cotangent = left.mul_add(estimate, estimate);
    let is_odd = (quadrant & 1i64).differs(0i64);
    is_odd.choose(-cotangent, tangent).flip_sign(x.sign_bits())
}
