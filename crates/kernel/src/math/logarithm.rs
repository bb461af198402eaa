//! The logarithm and the functions based on it: `log1p`, `asinh`, `acosh`, `atanh`.
//!
//! `x = 2^k (1 + f)` with `1 + f` from `sqrt(1/2)` to `sqrt(2)`. In `F32`, `log(1 + f)` is `f -
//! f^2/2 + f^3 P(f)`. In `F64` it is `2 s + s z R(z)` with `s = f / (2 + f)` and `z = s^2`, summed
//! as in FreeBSD's msun. The polynomials are minimax approximations.

use super::exact::two_sum;
use super::lanes::Lanes;

const SINGLE: &[f64] = &[
    3.333331e-1,
    -2.4999987e-1,
    2.0002227e-1,
    -1.6669253e-1,
    1.4218661e-1,
    -1.2384334e-1,
    1.1872938e-1,
    -1.17898695e-1,
    6.9155164e-2,
];
/// The polynomial for `1 + f` from 3/4 to 3/2.
const SINGLE_OF_MANTISSA: &[f64] = &[
    0.3333345055580139,
    -0.25000104308128357,
    0.19990819692611694,
    -0.1664699912071228,
    0.14478321373462677,
    -0.13163873553276062,
    0.10468878597021103,
    -0.04511205479502678,
];
const DOUBLE: &[f64] = &[
    0.6666666666666734,
    0.39999999999413943,
    0.28571428742565247,
    0.22222198553564437,
    0.18183565415079828,
    0.15314020989198754,
    0.14796261912558004,
];

/// `ln 2` in two parts. Products of the high part and exponents are exact in `F64`.
pub(super) const LN2_HIGH: f64 = 0.6931471803691238;
const LN2_LOW: f64 = 1.9082149292705877e-10;
/// `ln 2` in two parts for `F32`.
const SINGLE_LN2_HIGH: f64 = 0.693145751953125;
const SINGLE_LN2_LOW: f64 = 1.428606820309417e-6;

/// A positive number `2^k (1 + f)`.
pub(super) struct Split<'s> {
    /// The exponent as a float.
    pub(super) k: Lanes<'s>,
    pub(super) f: Lanes<'s>,
}

/// Splits a positive finite number, including subnormals. The result for other numbers is
/// unspecified.
pub(super) fn split(x: Lanes<'_>) -> Split<'_> {
    let is_subnormal = x.below(least_normal(x));
    let scale_bits = mantissa_bits(x) + 1;
    let Split { k, f } = split_normal(is_subnormal.choose(x * 2f64.powi(scale_bits as i32), x));
    Split { k: k - is_subnormal.choose(x.number(scale_bits as f64), 0.0), f }
}

/// Splits a positive normal number.
fn split_normal(x: Lanes<'_>) -> Split<'_> {
    let single = x.is_single();
    let mantissa_bits = mantissa_bits(x);
    // Bits of 1 and of sqrt(1/2). Adding their difference moves the boundaries of `k` from powers
    // of 2 to powers of 2 times sqrt(1/2).
    let (one, root) = if single { (0x3F80_0000, 0x3F35_04F3) } else { (0x3FF0 << 48, 0x3FE6_A09E_667F_3BCD) };
    let moved = x.bits() + (one - root);
    let m = ((moved & ((1i64 << mantissa_bits) - 1)) + root).as_float();
    // Placing the exponent in the low bits of 2^mantissa_bits yields the sum of that float and the
    // exponent.
    let integral = 2f64.powi(mantissa_bits as i32);
    let base = if single { i64::from((integral as f32).to_bits()) } else { integral.to_bits() as i64 };
    let bias = if single { 127.0 } else { 1023.0 };
    let k = (moved.shr(mantissa_bits) | base).as_float() - (integral + bias);
    Split { k, f: m - 1.0 }
}

/// Splits a number with dedicated instructions, subnormals included, such that `1 + f` is from 3/4
/// to 3/2.
fn split_by_parts(x: Lanes<'_>) -> Split<'_> {
    let m = x.mantissa();
    Split { k: x.exponent() - m.exponent(), f: m - 1.0 }
}

fn mantissa_bits(x: Lanes<'_>) -> i64 {
    if x.is_single() { 23 } else { 52 }
}

fn least_normal(x: Lanes<'_>) -> f64 {
    if x.is_single() { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE }
}

/// `k ln 2 + log(1 + f) + c` in `F64`, for a small correction `c`.
fn sum_of_split<'s>(k: Lanes<'s>, f: Lanes<'s>, c: Option<Lanes<'s>>) -> Lanes<'s> {
    let s = f / (f + 2.0);
    let z = s * s;
    let r = z * z.polynomial(DOUBLE);
    let half_square = 0.5 * f * f;
    let low = k * LN2_LOW;
    let low = c.map_or(low, |c| low + c);
    k * LN2_HIGH - ((half_square - (s * (half_square + r) + low)) - f)
}

/// The logarithm of a number that is already split.
fn log_of_split<'s>(Split { k, f }: Split<'s>) -> Lanes<'s> {
    if !k.is_single() {
        return sum_of_split(k, f, None);
    }
    let polynomial = if k.has_parts() { SINGLE_OF_MANTISSA } else { SINGLE };
    let square = f * f;
    let low = (square * f).mul_add(f.polynomial(polynomial), k * SINGLE_LN2_LOW);
    let low = square.mul_add(-0.5, low);
    k.mul_add(SINGLE_LN2_HIGH, f + low)
}

/// Replaces a logarithm by its limits where the argument is 0 or infinite, and by NaN where it is
/// negative.
fn with_limits<'s>(argument: Lanes<'s>, value: Lanes<'s>) -> Lanes<'s> {
    let value = argument.below(f64::INFINITY).choose(value, argument);
    let value = argument.equals(0.0).choose(argument.number(f64::NEG_INFINITY), value);
    argument.below(0.0).choose(argument.number(f64::NAN), value)
}

/// The natural logarithm.
pub(super) fn log(x: Lanes<'_>) -> Lanes<'_> {
    if x.has_parts() && x.is_single() {
        // The exponents of zeros and infinity, and the mantissas of negative numbers, produce the
        // limits.
        return log_of_split(split_by_parts(x));
    }
    let value = log_of_split(split_normal(x));
    let is_normal = x.at_least(least_normal(x)) & x.below(f64::INFINITY);
    // Zero, negative, subnormal, infinite, and NaN lanes are rare.
    (!is_normal).any().if_else(
        &[x, value],
        |values| vec![with_limits(values[0], log_of_split(split(values[0])))],
        |values| vec![values[1]],
    )[0]
}

/// `log(1 + x)`.
pub(super) fn log1p(x: Lanes<'_>) -> Lanes<'_> {
    if x.is_single() {
        return log1p_single(x);
    }
    let u = x + 1.0;
    // Rounding error of the sum, relative to the sum.
    let lost = x.at_least(1.0).choose(1.0 - (u - x), x - (u - 1.0)) / u;
    let Split { k, f } = split(u);
    let is_near = k.equals(0.0);
    let value = sum_of_split(k, is_near.choose(x, f), Some(is_near.choose(x.number(0.0), lost)));
    let value = with_limits(u, value);
    x.abs().below(1e-17).choose(x, value)
}

/// The natural logarithm of a positive normal number. The result for other numbers is unspecified.
pub(super) fn log_of_normal(x: Lanes<'_>) -> Lanes<'_> {
    log_of_split(split_normal(x))
}

fn log1p_single(x: Lanes<'_>) -> Lanes<'_> {
    let sum = two_sum(x.number(1.0), x);
    let u = sum.high;
    if x.has_parts() {
        let Split { k, f } = split_by_parts(u);
        let value = log_of_split(Split { k, f: f + sum.low.scale(-k) });
        // The exponent of 0 and of infinity is their logarithm, and the mantissa of a negative
        // number is NaN.
        return value.equals(value).choose(value, k * u.mantissa()).with_sign_of(x);
    }
    let Split { k, f } = split_normal(u);
    // 2^-k, or 0 where that is not a normal number. The rounding error of the sum does not matter
    // there.
    let integral = 2f64.powi(23);
    let inverse = (integral + 127.0 - k).at_least_bound(integral).bits().shl(23i64).as_float();
    let value = log_of_split(Split { k, f: sum.low.mul_add(inverse, f) });
    with_limits(u, value).with_sign_of(x)
}

/// The inverse of `sinh` for `F64`.
pub(super) fn asinh(x: Lanes<'_>) -> Lanes<'_> {
    let magnitude = x.abs();
    let is_large = magnitude.above(1e100);
    let square = magnitude * magnitude;
    let near = magnitude + square / ((square + 1.0).sqrt() + 1.0);
    // For large numbers, the square root equals the number, so the result is log(2 x) = log1p(x) +
    // log(2).
    let log = log1p(is_large.choose(magnitude, near));
    (log + is_large.choose(x.number(std::f64::consts::LN_2), 0.0)).with_sign_of(x)
}

/// The inverse of `cosh` for `F64`.
pub(super) fn acosh(x: Lanes<'_>) -> Lanes<'_> {
    let is_large = x.above(1e100);
    let t = x - 1.0;
    let near = t + (t * (t + 2.0)).sqrt();
    let log = log1p(is_large.choose(x, near));
    let value = log + is_large.choose(x.number(std::f64::consts::LN_2), 0.0);
    x.below(1.0).choose(x.number(f64::NAN), value)
}

/// The inverse of `tanh` for `F64`.
pub(super) fn atanh(x: Lanes<'_>) -> Lanes<'_> {
    let magnitude = x.abs();
    let twice = magnitude + magnitude;
    let value = 0.5 * log1p(twice + twice * magnitude / (1.0 - magnitude));
    magnitude.above(1.0).choose(x.number(f64::NAN), value).with_sign_of(x)
}
