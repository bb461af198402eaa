//! Powers and the cube root.

use super::exact::{Pair, halves, quick_two_sum, two_product, two_sum};
use super::exponential::{exp, exp_of_sum};
use super::lanes::Lanes;
use super::logarithm::{Split, log_of_normal, split};

/// `ln 2`: a part whose products with exponents are exact, and the remainder.
const LN2_HIGH: f64 = 0.6931471805598903;
const LN2_LOW: f64 = 5.497923018708371e-14;
/// `log((1 + s) / (1 - s)) = 2 s + s z (2/3 + z L(z))` with `z = s^2`. `L` is a minimax polynomial
/// for `|s| <= 0.1716`.
const LOG: &[f64] = &[
    0.40000000000002256,
    0.28571428570098506,
    0.22222222520118862,
    0.1818178434954113,
    0.15386758160475983,
    0.13256798002072578,
    0.1319651585723645,
];

/// `x^y` for `F32`, computed in `F64`, which is precise enough for all exponents.
pub(super) fn pow_of_singles<'s>(x: Lanes<'s>, y: Lanes<'s>) -> Lanes<'s> {
    let exponent = y.to_double() * log_of_normal(x.abs().to_double());
    with_special_cases(x, y, exp(exponent).to_single())
}

/// `x^y` for `F64`.
pub(super) fn pow<'s>(x: Lanes<'s>, y: Lanes<'s>) -> Lanes<'s> {
    let log = extended_log(x.abs());
    // Larger exponents than 2^65 do not change the result: the logarithm of any other number than 1
    // is at least 2^-53.
    let bounded = y.at_most_bound(2f64.powi(65)).at_least_bound(-2f64.powi(65));
    let product = two_product(log.high, bounded);
    let sum = quick_two_sum(product.high, product.low + log.low * bounded);
    let is_moderate = sum.high.abs().below(1000.0);
    let value = exp_of_sum(sum.high, is_moderate.choose(sum.low, 0.0));
    with_special_cases(x, y, value)
}

/// The logarithm of a positive finite number to about 68 bits.
fn extended_log(x: Lanes<'_>) -> Pair<'_> {
    let Split { k, f } = split(x);
    // s = f / (2 + f), in two parts.
    let divisor = quick_two_sum(x.number(2.0), f);
    let s = f / divisor.high;
    let product = two_product(s, divisor.high);
    let s_low = (((f - product.high) - product.low) - s * divisor.low) / divisor.high;
    let s = Pair { high: s, low: s_low };
    let z = s.times(s);
    let higher = z.high * z.high.polynomial(LOG);
    let two_thirds = quick_two_sum(x.number(2.0 / 3.0), higher);
    let two_thirds = Pair { high: two_thirds.high, low: two_thirds.low + 3.700743415417188e-17 };
    let series = s.times(z.times(two_thirds));
    let doubled = Pair { high: s.high + s.high, low: s.low + s.low };
    let log = doubled.plus(series);
    // k ln 2 is 0 or larger than the logarithm of 1 + f.
    let sum = two_sum(k * LN2_HIGH, log.high);
    quick_two_sum(sum.high, sum.low + (log.low + k * LN2_LOW))
}

/// Corrects `|x|^y` for special operands, like C's `pow`.
fn with_special_cases<'s>(x: Lanes<'s>, y: Lanes<'s>, value: Lanes<'s>) -> Lanes<'s> {
    let magnitude = x.abs();
    let is_integer = y.trunc().equals(y);
    let half = y * 0.5;
    let is_odd = is_integer & half.trunc().differs(half);
    let is_extreme = magnitude.equals(0.0) | magnitude.equals(f64::INFINITY) | y.abs().equals(f64::INFINITY);
    let grows = !(magnitude.above(1.0) ^ y.above(0.0));
    let extreme = grows.choose(x.number(f64::INFINITY), 0.0);
    let value = is_extreme.choose(extreme, value);
    let one = x.number(1.0);
    let value = magnitude.equals(1.0).choose(one, value);
    // Negative numbers have only integral powers, except for infinity and zero.
    let is_undefined = x.below(0.0) & magnitude.below(f64::INFINITY) & !is_integer;
    let nan = x.number(f64::NAN);
    let value = is_undefined.choose(nan, value);
    let value = is_odd.choose(value.flip_sign(x.sign_bits()), value);
    let is_nan = x.differs(x) | y.differs(y);
    let value = is_nan.choose(nan, value);
    (y.equals(0.0) | x.equals(1.0)).choose(one, value)
}

/// `r^(-1/3)` for `r` near 1.
const INVERSE_ROOT: &[f64] =
    &[1.8772127399139118, -1.8893462827496894, 1.6269453808105336, -0.7613777095687971, 0.14656588482634117];

/// The cube root for `F64`.
pub(super) fn cbrt(x: Lanes<'_>) -> Lanes<'_> {
    let magnitude = x.abs();
    let is_subnormal = magnitude.below(f64::MIN_POSITIVE);
    let scaled = is_subnormal.choose(magnitude * 2f64.powi(54), magnitude);
    // A third of the exponent and the leading bits gives the root to within 4 percent. The
    // constants are msun's.
    let third = (scaled.bits().shr(32i64) * 0x5555_5556i64).shr(32i64);
    let guess = (third + 715094163i64).shl(32i64).as_float();
    let ratio = guess * guess * (guess / scaled);
    let root = guess * ratio.polynomial(INVERSE_ROOT);
    // Truncate the root so that its square is exact, then apply one step of Halley's method.
    let (root, _) = halves(root);
    let quotient = scaled / (root * root);
    let root = root + root * ((quotient - root) / (root + root + quotient));
    let root = is_subnormal.choose(root * 2f64.powi(-18), root);
    let is_ordinary = magnitude.above(0.0) & magnitude.below(f64::INFINITY);
    is_ordinary.choose(root, magnitude).with_sign_of(x)
}

/// `1 / sqrt(x)`.
pub(super) fn rsqrt(x: Lanes<'_>) -> Lanes<'_> {
    if !x.has_parts() {
        return 1.0 / x.sqrt();
    }
    // With an estimate y and e = 1 - x y^2, the result is y (1 + e/2 + 3/8 e^2 + ..), which triples
    // the number of digits. In `F32`, the rounding error of x y matters as much as the final
    // rounding.
    let estimate = x.reciprocal_root_estimate();
    let product = x * estimate;
    let mut e = (-product).mul_add(estimate, 1.0);
    if x.is_single() {
        let lost = x.mul_add(estimate, -product);
        e = (-lost).mul_add(estimate, e);
    }
    let mut value = (estimate * e).mul_add(e.mul_add(0.375, 0.5), estimate);
    if !x.is_single() {
        let e = (-(x * value)).mul_add(value, 1.0);
        value = (value * 0.5).mul_add(e, value);
    }
    // For 0 and infinity, the estimate is the result.
    value.equals(value).choose(value, estimate)
}
