//! The exponential function and the functions based on it: `expm1`, `logistic`, `tanh`, `sinh`,
//! `cosh`.
//!
//! `exp(x) = 2^n exp(r)`, where `n` is the integer nearest to `x / ln 2`, and `exp(r) = 1 + r + r^2
//! Q(r)`. The polynomials are minimax approximations for `|r| <= 0.34665`.

use super::exact::{quick_two_sum, two_product};
use super::lanes::Lanes;

const SINGLE: &[f64] = &[4.9999994e-1, 1.6666517e-1, 4.1668102e-2, 8.369192e-3, 1.3838868e-3];
const DOUBLE: &[f64] = &[
    0.5,
    0.16666666666666677,
    0.0416666666666667,
    0.008333333333321605,
    0.001388888888886682,
    0.00019841269886191243,
    2.4801587360591664e-05,
    2.755724414552869e-06,
    2.755724272774412e-07,
    2.510905868988307e-08,
    2.09244536482291e-09,
];

/// `x = n ln 2 + r + tail`.
struct Reduced<'s> {
    /// A float, without the addend.
    n: Lanes<'s>,
    /// An integer whose low bits are `n` plus the addend. Shifting it to the place of the exponent
    /// drops all other bits.
    shifted: Lanes<'s>,
    r: Lanes<'s>,
    /// Rounding error of `r` in `F64`.
    tail: Lanes<'s>,
}

/// Reduces `x`, which must be below `2^10` in magnitude, or NaN. The small number `added` is added
/// to `n` in `shifted`.
fn reduce(x: Lanes<'_>, added: i64) -> Reduced<'_> {
    let single = x.is_single();
    let shifter = shifter(x, added);
    let shifted = x.mul_add(std::f64::consts::LOG2_E, shifter);
    let n = shifted - shifter;
    // The high part of ln 2 has few enough bits that its products with n are exact (Cephes,
    // FreeBSD's msun).
    if single {
        let r = n.mul_add(0.00021219444005469057, n.mul_add(-0.693359375, x));
        return Reduced { n, shifted: shifted.bits(), r, tail: x };
    }
    let high = x - n * 0.6931471803691238;
    let low = n * 1.9082149292705877e-10;
    let r = high - low;
    Reduced { n, shifted: shifted.bits(), r, tail: (high - r) - low }
}

/// Returns 1.5 times the number whose lowest bit has the value 1, plus a small number. A float
/// added to it is rounded to an integer, which occupies the low bits.
fn shifter(x: Lanes<'_>, added: i64) -> f64 {
    1.5 * 2f64.powi(mantissa_bits(x) as i32) + added as f64
}

fn bias(x: Lanes<'_>) -> i64 {
    if x.is_single() { 127 } else { 1023 }
}

fn mantissa_bits(x: Lanes<'_>) -> i64 {
    if x.is_single() { 23 } else { 52 }
}

/// Lower bound on arguments whose result is not 0.
fn least(x: Lanes<'_>) -> f64 {
    if x.is_single() { -104.0 } else { -746.0 }
}

/// Clamps `x` to a range beyond which the result is infinite or 0. The lower limit is far below the
/// start of the zeros: processors take a hundred cycles for a product just below the subnormal
/// numbers, but not for one that is far below them.
fn clamp(x: Lanes<'_>) -> Lanes<'_> {
    let (least, most) = if x.is_single() { (-174.0, 91.0) } else { (-1416.0, 711.0) };
    let x = x.at_most_bound(most);
    if x.has_parts() { x } else { x.at_least_bound(least) }
}

/// `2^power exp(x + tail)`, for a tail below `2^-20`.
fn scaled_exp<'s>(x: Lanes<'s>, tail: Option<Lanes<'s>>, power: i64) -> Lanes<'s> {
    // Twice the bias, for two factors that are both normal numbers. Their product rounds once, even
    // to a subnormal number.
    let Reduced { n, shifted, r, tail: lost } = reduce(clamp(x), 2 * bias(x) + power);
    let value = if x.is_single() {
        r.polynomial(SINGLE).mul_add(r, 1.0).mul_add(r, 1.0)
    } else {
        let mut higher = (r * r) * r.polynomial(DOUBLE);
        if let Some(tail) = tail {
            let tail = lost + tail;
            higher = higher + tail.mul_add(r + higher, tail);
        }
        1.0 + (r + higher)
    };
    if x.has_parts() {
        // Scaling to a result of 0 takes a hundred cycles, but scaling 0 does not. Replace the
        // values far below, which are arbitrary, before scaling.
        let value = x.below(least(x)).choose(x.number(0.0), value);
        return value.scale(if power == 0 { n } else { n + power as f64 });
    }
    times_power(value, shifted)
}

/// Multiplies by `2^n`, given `n` plus twice the bias in the low bits of `shifted`.
fn times_power<'s>(value: Lanes<'s>, shifted: Lanes<'s>) -> Lanes<'s> {
    let half = shifted.shr(1i64);
    let factor = |exponent: Lanes<'s>| exponent.shl(mantissa_bits(value)).as_float();
    value * factor(half) * factor(shifted - half)
}

/// `e^x`.
pub(super) fn exp(x: Lanes<'_>) -> Lanes<'_> {
    scaled_exp(x, None, 0)
}

/// `e^x` for `F32` if the result is a normal number.
pub(super) fn exp_within(x: Lanes<'_>) -> Lanes<'_> {
    let Reduced { shifted, r, .. } = reduce(x, bias(x));
    let value = r.polynomial(SINGLE).mul_add(r, 1.0).mul_add(r, 1.0);
    value * shifted.shl(mantissa_bits(x)).as_float()
}

/// `e^(x + tail)` for `F64`, for a tail of at most half a unit in the last place of `x`.
pub(super) fn exp_of_sum<'s>(x: Lanes<'s>, tail: Lanes<'s>) -> Lanes<'s> {
    scaled_exp(x, Some(tail), 0)
}

/// `e^x - 1` for `F64`, in the range where it is finite. Tiny `x` lose their sign and lowest bit.
fn exp_minus_one_within(x: Lanes<'_>) -> Lanes<'_> {
    // Half the result is (2^(n-1) - 1/2) + 2^(n-1) (r + r^2 Q). 2^(n-1) is always a normal number.
    let Reduced { shifted, r, tail, .. } = reduce(x, bias(x) - 1);
    let q = r.polynomial(DOUBLE);
    let half = shifted.shl(mantissa_bits(x)).as_float();
    let integral = half - 0.5;
    let sum = quick_two_sum(integral, half * r);
    let doubled = sum.high + half.mul_add((r * r).mul_add(q, tail), sum.low);
    doubled + doubled
}

/// `e^x - 1`.
pub(super) fn expm1(x: Lanes<'_>) -> Lanes<'_> {
    if x.is_single() {
        return expm1_single(x);
    }
    let value = exp_minus_one_within(x.at_most_bound(710.0).at_least_bound(-40.0));
    x.abs().below(1e-17).choose(x, value)
}

fn expm1_single(x: Lanes<'_>) -> Lanes<'_> {
    // Half the result is 2^(n-1) (e^r - 1) + (2^(n-1) - 1/2). 2^(n-1) is always a normal number.
    let Reduced { shifted, r, .. } = reduce(x.at_most_bound(89.0).at_least_bound(-18.0), bias(x) - 1);
    let rest = (r * r).mul_add(r.polynomial(SINGLE), r);
    let half = shifted.shl(mantissa_bits(x)).as_float();
    let value = half.mul_add(rest, half - 0.5);
    x.abs().below(1e-30).choose(x, value + value)
}

/// `1 / (1 + e^-x)`.
pub(super) fn logistic(x: Lanes<'_>) -> Lanes<'_> {
    if x.is_single() {
        return logistic_single(x);
    }
    // e^-|x| does not overflow, and underflows only if the result does.
    let e = exp(-x.abs());
    x.at_least(0.0).choose(x.number(1.0), e) / (1.0 + e)
}

/// With `e^x = 2^n e^-r`, this is `2^n / (2^n + e^r)`. Powers of two scale exactly. The rounding
/// error of `2^n + 1`, where 1 is the leading term of `e^r`, is compensated.
fn logistic_single(x: Lanes<'_>) -> Lanes<'_> {
    // Far below the start of the zeros, as in `exp`.
    let least = if x.has_parts() { -1000.0 } else { -174.0 };
    let x = x.at_most_bound(30.0).at_least_bound(least);
    let shifter = shifter(x, 2 * bias(x));
    let shifted = x.mul_add(std::f64::consts::LOG2_E, shifter);
    let n = shifted - shifter;
    let r = n.mul_add(-0.00021219444005469057, n.mul_add(0.693359375, -x));
    let power = if x.has_parts() {
        x.number(1.0).scale(n)
    } else {
        // Powers below the normal numbers are negligible compared to e^r.
        let exponent = shifted.at_least_bound(shifter - 126.0).bits() + (-bias(x));
        exponent.shl(mantissa_bits(x)).as_float()
    };
    let sum = power + 1.0;
    let lost = power - (sum - 1.0);
    let divisor = r.polynomial(SINGLE).mul_add(r, 1.0).mul_add(r, lost) + sum;
    let quotient = 1.0 / divisor;
    if x.has_parts() { quotient.scale(n) } else { times_power(quotient, shifted.bits()) }
}

/// `(e^2x - 1) / (e^2x + 1)`.
pub(super) fn tanh(x: Lanes<'_>) -> Lanes<'_> {
    if x.is_single() {
        return tanh_single(x);
    }
    let saturated = x.abs().at_most_bound(20.0);
    let e = exp_minus_one_within(saturated + saturated);
    (e / (e + 2.0)).with_sign_of(x)
}

/// `g / (g + 1)` with `g = (e^2|x| - 1) / 2`.
fn tanh_single(x: Lanes<'_>) -> Lanes<'_> {
    // The result is 1 from 9.02 on. |x| = n (ln 2)/2 + r.
    let magnitude = x.abs().at_most_bound(9.1);
    let shifter = shifter(x, bias(x));
    let shifted = magnitude.mul_add(2.0 * std::f64::consts::LOG2_E, shifter);
    let n = shifted - shifter;
    let r = n.mul_add(0.00021219444005469057 / 2.0, n.mul_add(-0.693359375 / 2.0, magnitude));
    // (e^2r - 1) / 2 by the polynomial in 2r. The coefficients stay exact because their factors are
    // powers of two.
    let doubled: Vec<f64> = SINGLE.iter().zip(1..).map(|(c, k)| c * 2f64.powi(k)).collect();
    let rest = (r * r).mul_add(r.polynomial(&doubled), r);
    let power = shifted.bits().shl(mantissa_bits(x)).as_float();
    let g = power.mul_add(rest, power.mul_add(0.5, -0.5));
    let divisor = g + 1.0;
    // An estimate of the quotient, and the remainder of g. The rounding of g + 1 does not enter the
    // remainder.
    let reciprocal = divisor.reciprocal_estimate();
    let quotient = g * reciprocal;
    let left = if x.has_fma() {
        (-quotient).mul_add(g, g - quotient)
    } else {
        let product = two_product(quotient, g);
        ((g - quotient) - product.high) - product.low
    };
    left.mul_add(reciprocal, quotient).with_sign_of(x)
}

/// `sinh(x) = x + x z H(z)` for `F32` with `z = x^2`, up to 1.
const SINGLE_SINH: &[f64] =
    &[0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869470468e-06];

/// `(e^x - e^-x) / 2`.
pub(super) fn sinh(x: Lanes<'_>) -> Lanes<'_> {
    let magnitude = x.abs();
    if x.is_single() {
        let z = x * x;
        let near = (x * z).mul_add(z.polynomial(SINGLE_SINH), x);
        let half = scaled_exp(magnitude, None, -1);
        let far = half - 0.25 / half;
        return magnitude.below(1.0).choose(near, far).with_sign_of(x);
    }
    let near = expm1(magnitude.at_most_bound(1.0));
    let near = 0.5 * (near + near / (near + 1.0));
    let half = scaled_exp(magnitude, None, -1);
    let far = half - 0.25 / half;
    magnitude.at_most(1.0).choose(near, far).with_sign_of(x)
}

/// `(e^x + e^-x) / 2`.
pub(super) fn cosh(x: Lanes<'_>) -> Lanes<'_> {
    let half = scaled_exp(x.abs(), None, -1);
    half + 0.25 / half
}
