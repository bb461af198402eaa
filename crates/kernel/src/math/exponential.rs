//! The exponential function and those made of it: `expm1`, `logistic`, `tanh`, `sinh`, `cosh`.
//!
//! `exp(x) = 2^n exp(r)` with `n` the integer nearest to `x / ln 2`, and `exp(r) = 1 + r + r^2 Q(r)`. The polynomials
//! are minimax ones for `|r| <= 0.34665`.

use super::exact::quick_two_sum;
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
    /// An integer whose low bits are those of `n` plus some number; shifted to the exponent's place only they are left.
    shifted: Lanes<'s>,
    r: Lanes<'s>,
    /// What `r` lost to rounding, in `F64`.
    tail: Lanes<'s>,
}

/// `|x|` is below `2^10`, or NaN. To `n` in `shifted` a small number is added.
fn reduce(x: Lanes<'_>, added: i64) -> Reduced<'_> {
    let single = x.is_single();
    // Adding 1.5 times the weight of the lowest bit rounds to an integer, and leaves it in the low bits.
    let shifter = 1.5 * 2f64.powi(mantissa_bits(x) as i32) + added as f64;
    let shifted = x.mul_add(std::f64::consts::LOG2_E, shifter);
    let n = shifted - shifter;
    // The high part of ln 2 has so few bits that its products with n are exact (Cephes, FreeBSD's msun).
    if single {
        let r = n.mul_add(0.00021219444005469057, n.mul_add(-0.693359375, x));
        return Reduced { shifted: shifted.bits(), r, tail: x };
    }
    let high = x - n * 0.6931471803691238;
    let low = n * 1.9082149292705877e-10;
    let r = high - low;
    Reduced { shifted: shifted.bits(), r, tail: (high - r) - low }
}

fn bias(x: Lanes<'_>) -> i64 {
    if x.is_single() { 127 } else { 1023 }
}

fn mantissa_bits(x: Lanes<'_>) -> i64 {
    if x.is_single() { 23 } else { 52 }
}

/// Beyond these the result is infinite, or 0.
fn clamp(x: Lanes<'_>) -> Lanes<'_> {
    let (least, most) = if x.is_single() { (-104.0, 89.0) } else { (-746.0, 711.0) };
    x.at_most_bound(most).at_least_bound(least)
}

/// `2^power exp(x + tail)`, for a tail below `2^-20`.
fn scaled_exp<'s>(x: Lanes<'s>, tail: Option<Lanes<'s>>, power: i64) -> Lanes<'s> {
    // Twice the bias, for two factors that are normal numbers each; their product rounds once, also to subnormals.
    let Reduced { shifted, r, tail: lost } = reduce(clamp(x), 2 * bias(x) + power);
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
    times_power(value, shifted)
}

/// Times `2^n`, for `n` plus twice the bias in the low bits.
fn times_power<'s>(value: Lanes<'s>, shifted: Lanes<'s>) -> Lanes<'s> {
    let half = shifted.shr(1i64);
    let factor = |exponent: Lanes<'s>| exponent.shl(mantissa_bits(value)).as_float();
    value * factor(half) * factor(shifted - half)
}

/// `e^x`.
pub(super) fn exp(x: Lanes<'_>) -> Lanes<'_> {
    scaled_exp(x, None, 0)
}

/// `e^x` of `F32` where the result is a normal number.
pub(super) fn exp_within(x: Lanes<'_>) -> Lanes<'_> {
    let Reduced { shifted, r, .. } = reduce(x, bias(x));
    let value = r.polynomial(SINGLE).mul_add(r, 1.0).mul_add(r, 1.0);
    value * shifted.shl(mantissa_bits(x)).as_float()
}

/// `e^(x + tail)` of `F64`, for a tail of at most half a unit in the last place of `x`.
pub(super) fn exp_of_sum<'s>(x: Lanes<'s>, tail: Lanes<'s>) -> Lanes<'s> {
    scaled_exp(x, Some(tail), 0)
}

/// `e^x - 1` of `F64` for `x` within the range where it is finite; tiny `x` lose their sign and lowest bit.
fn exp_minus_one_within(x: Lanes<'_>) -> Lanes<'_> {
    // Half the result, (2^(n-1) - 1/2) + 2^(n-1) (r + r^2 Q): 2^(n-1) is a normal number always.
    let Reduced { shifted, r, tail } = reduce(x, bias(x) - 1);
    let q = r.polynomial(DOUBLE);
    let half = shifted.shl(mantissa_bits(x)).as_float();
    let integral = half - 0.5;
    let sum = quick_two_sum(integral, half * r);
    let doubled = sum.high + half.mul_add((r * r).mul_add(q, tail), sum.low);
    doubled + doubled
}

/// `e^x - 1` of `F64`.
pub(super) fn expm1(x: Lanes<'_>) -> Lanes<'_> {
    let value = exp_minus_one_within(x.at_most_bound(710.0).at_least_bound(-40.0));
    x.abs().below(1e-17).choose(x, value)
}

/// `1 / (1 + e^-x)`.
pub(super) fn logistic(x: Lanes<'_>) -> Lanes<'_> {
    // e^-|x| does not overflow, and underflows only with the result.
    let is_positive = x.at_least(0.0);
    if x.is_single() {
        return logistic_single(x, is_positive);
    }
    let e = exp(-x.abs());
    is_positive.choose(x.number(1.0), e) / (1.0 + e)
}

fn logistic_single<'s>(x: Lanes<'s>, is_positive: Lanes<'s>) -> Lanes<'s> {
    let Reduced { shifted, r, .. } = reduce((-x.abs()).at_least_bound(-104.0), 2 * bias(x));
    let above_one = r.polynomial(SINGLE).mul_add(r, 1.0) * r;
    let one = x.number(1.0);
    let exp = quick_two_sum(one, above_one);
    let e = times_power(exp.high, shifted);
    let divisor = quick_two_sum(one, e);
    let value = is_positive.choose(one, e) / divisor.high;
    // What the two sums lost, relative to them: the dividend's divided by 1 + above_one to first order, the divisor's
    // by 1, which it is near where this counts.
    let of_dividend = above_one.mul_add(-exp.low, exp.low);
    let lost = is_positive.choose(x.number(0.0), of_dividend) - divisor.low;
    value.mul_add(lost, value)
}

/// Where `tanh` of `F32` is a polynomial: `x + x z T(z)` with `z = x^2`.
const TANH_BOUND: f64 = 0.55;
const TANH: &[f64] = &[-3.3333316e-1, 1.3332544e-1, -5.3847548e-2, 2.1050714e-2, -6.2428494e-3];

/// `(e^2x - 1) / (e^2x + 1)`.
pub(super) fn tanh(x: Lanes<'_>) -> Lanes<'_> {
    let magnitude = x.abs();
    if x.is_single() {
        let z = x * x;
        let near = (x * z).mul_add(z.polynomial(TANH), x);
        let saturated = magnitude.at_most_bound(10.0);
        let far = 1.0 - 2.0 / (1.0 + exp_within(saturated + saturated));
        return magnitude.below(TANH_BOUND).choose(near, far).with_sign_of(x);
    }
    let saturated = magnitude.at_most_bound(20.0);
    let e = exp_minus_one_within(saturated + saturated);
    (e / (e + 2.0)).with_sign_of(x)
}

/// `(e^x - e^-x) / 2`, of `F64`.
pub(super) fn sinh(x: Lanes<'_>) -> Lanes<'_> {
    let magnitude = x.abs();
    let near = expm1(magnitude.at_most_bound(1.0));
    let near = 0.5 * (near + near / (near + 1.0));
    let half = scaled_exp(magnitude, None, -1);
    let far = half - 0.25 / half;
    magnitude.at_most(1.0).choose(near, far).with_sign_of(x)
}

/// `(e^x + e^-x) / 2`, of `F64`.
pub(super) fn cosh(x: Lanes<'_>) -> Lanes<'_> {
    let half = scaled_exp(x.abs(), None, -1);
    half + 0.25 / half
}
