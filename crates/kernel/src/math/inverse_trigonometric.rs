//! Inverse trigonometric functions.
//!
//! Minimax polynomials with `z = t^2`: `atan(t) = t + t z A(z)` for `|t| <= tan(pi/8)` (in `F32`
//! for `|t| <= 1`), and `asin(t) = t + t z S(z)` for `|t| <= 1/2`.

use super::exact::{Pair, quick_two_sum, two_product};
use super::lanes::Lanes;

const ATAN: &[f64] = &[
    -0.333333333333332,
    0.19999999999954002,
    -0.14285714280239842,
    0.11111110785683027,
    -0.09090897822821056,
    0.07692061385905667,
    -0.06663117437388043,
    0.05847986868376882,
    -0.050397436268809104,
    0.03807567213061117,
    -0.017919316574621612,
];
const ASIN: &[f64] = &[
    0.16666666666666763,
    0.07499999999970261,
    0.044642857175121654,
    0.030381942683580108,
    0.022372215661195703,
    0.017351600078401516,
    0.013980961586270909,
    0.011397775054398271,
    0.010786533549692284,
    0.003683027126002759,
    0.021763531235383566,
    -0.021077332976254005,
    0.03267691278965451,
];
const ATAN_SINGLE: &[f64] = &[
    -0.33333298563957214,
    0.1999853104352951,
    -0.14264051616191864,
    0.10951174795627594,
    -0.08400475233793259,
    0.05790654569864273,
    -0.031127002090215683,
    0.010887361131608486,
    -0.0017875476041808724,
];
const ASIN_SINGLE: &[f64] = &[
    0.16666752099990845,
    0.074953094124794,
    0.04546914994716644,
    0.024184778332710266,
    0.042158305644989014,
];
/// The nearest `F32` number to `pi/2`, and the remainder.
const HALF_PI_SINGLE: f64 = 1.5707963705062866;
const HALF_PI_SINGLE_LOW: f64 = -4.371139000186243e-8;
const HALF_PI: f64 = std::f64::consts::FRAC_PI_2;
const HALF_PI_LOW: f64 = 6.123233995736766e-17;
/// `tan(pi/8)`.
const TAN_EIGHTH: f64 = std::f64::consts::SQRT_2 - 1.0;

/// The arc tangent of a nonnegative number, in two parts.
fn atan_of_magnitude(x: Lanes<'_>) -> Pair<'_> {
    let is_large = x.above(1.0 / TAN_EIGHTH);
    let is_middle = x.above(TAN_EIGHTH);
    // atan(x) is pi/4 + atan((x - 1) / (x + 1)) and pi/2 + atan(-1 / x).
    let numerator = is_large.choose(x.number(-1.0), is_middle.choose(x - 1.0, x));
    let denominator = is_large.choose(x, is_middle.choose(x + 1.0, 1.0));
    let t = numerator / denominator;
    let z = t * t;
    let base = |part: f64| is_large.choose(x.number(part), is_middle.choose(x.number(part / 2.0), 0.0));
    let sum = quick_two_sum(base(HALF_PI), t);
    Pair { high: sum.high, low: sum.low + (t * (z * z.polynomial(ATAN)) + base(HALF_PI_LOW)) }
}

/// The arc tangent.
pub(super) fn atan(x: Lanes<'_>) -> Lanes<'_> {
    if x.is_single() {
        // atan(x) = pi/2 + atan(-1 / x).
        let magnitude = x.abs();
        let is_large = magnitude.above(1.0);
        let numerator = is_large.choose(x.number(-1.0), magnitude);
        let angle = atan_of_ratio(numerator / is_large.choose(magnitude, 1.0));
        let low = is_large.choose(x.number(HALF_PI_SINGLE_LOW), 0.0);
        let high = is_large.choose(x.number(HALF_PI_SINGLE), 0.0);
        return (high + (angle + low)).with_sign_of(x);
    }
    let angle = atan_of_magnitude(x.abs());
    (angle.high + angle.low).with_sign_of(x)
}

/// The arc tangent of an `F32` number from -1 to 1.
fn atan_of_ratio(t: Lanes<'_>) -> Lanes<'_> {
    let z = t * t;
    (t * z).mul_add(z.polynomial(ATAN_SINGLE), t)
}

/// The angle of the point `(x, y)`, from `-pi` to `pi`.
pub(super) fn atan2<'s>(y: Lanes<'s>, x: Lanes<'s>) -> Lanes<'s> {
    let (height, width) = (y.abs(), x.abs());
    let is_steep = height.above(width);
    let (least, most) = (is_steep.choose(width, height), is_steep.choose(height, width));
    // 0/0 counts as 0, and inf/inf as 1.
    let ratio = least.equals(0.0).choose(least, least / most);
    let both_infinite = least.equals(f64::INFINITY);
    let ratio = both_infinite.choose(x.number(1.0), ratio);
    if x.is_single() {
        return turned_single(y, x, is_steep, atan_of_ratio(ratio));
    }
    let angle = atan_of_magnitude(ratio);
    // The complement of the angle if it is steep, and its supplement if x is negative.
    let is_negative = x.sign_bits().differs(0);
    let turned = is_steep | is_negative;
    let base = |part: f64| {
        let upright = is_negative.choose(x.number(2.0 * part), 0.0);
        is_steep.choose(x.number(part), upright)
    };
    // Measured from the vertical, the angle grows to the left. Measured from the negative axis, it
    // shrinks.
    let is_subtracted = is_steep ^ is_negative;
    let sign = |value: Lanes<'s>| is_subtracted.choose(-value, value);
    let sum = quick_two_sum(base(HALF_PI), sign(angle.high));
    let value = sum.high + (sum.low + (sign(angle.low) + base(HALF_PI_LOW)));
    let plain = angle.high + angle.low;
    let value = turned.choose(value, plain);
    let value = value.with_sign_of(y);
    let value = x.differs(x).choose(x, value);
    y.differs(y).choose(y, value)
}

/// The `F32` angle in its quadrant, computed from the angle to the nearer axis.
fn turned_single<'s>(y: Lanes<'s>, x: Lanes<'s>, is_steep: Lanes<'s>, angle: Lanes<'s>) -> Lanes<'s> {
    let is_negative = x.sign_bits().differs(0);
    let base = |part: f64| {
        let upright = is_negative.choose(x.number(2.0 * part), 0.0);
        is_steep.choose(x.number(part), upright)
    };
    let signed = (is_steep ^ is_negative).choose(-angle, angle);
    let value = (base(HALF_PI_SINGLE) + (signed + base(HALF_PI_SINGLE_LOW))).with_sign_of(y);
    let value = x.differs(x).choose(x, value);
    y.differs(y).choose(y, value)
}

/// Like [`arc`], for `F32`, without the rounding error of `s`.
fn arc_single(magnitude: Lanes<'_>) -> Arc<'_> {
    let is_large = magnitude.above(0.5);
    let complement = (1.0 - magnitude) * 0.5;
    let z = is_large.choose(complement, magnitude * magnitude);
    let s = is_large.choose(complement.sqrt(), magnitude);
    Arc { is_large, s, rest: (s * z) * z.polynomial(ASIN_SINGLE) }
}

/// The arc sine of `s` for a magnitude up to 1. Up to 1/2, `s` is the magnitude `m`. Beyond, it is
/// `sqrt((1 - m) / 2)`.
struct Arc<'s> {
    is_large: Lanes<'s>,
    s: Lanes<'s>,
    /// Rounding error of `s`, plus the difference between the arc sine and `s`.
    rest: Lanes<'s>,
}

fn arc(magnitude: Lanes<'_>) -> Arc<'_> {
    let is_large = magnitude.above(0.5);
    let complement = (1.0 - magnitude) * 0.5;
    let root = complement.sqrt();
    let square = two_product(root, root);
    let lost = ((complement - square.high) - square.low) / (root + root);
    let lost = root.equals(0.0).choose(root, lost);
    let z = is_large.choose(complement, magnitude * magnitude);
    let s = is_large.choose(root, magnitude);
    let higher = s * (z * z.polynomial(ASIN));
    Arc { is_large, s, rest: higher + is_large.choose(lost, 0.0) }
}

/// The arc sine.
pub(super) fn asin(x: Lanes<'_>) -> Lanes<'_> {
    if x.is_single() {
        let Arc { is_large, s, rest } = arc_single(x.abs());
        // The difference may be above 1 and the arc sine below it. Half a unit in the last place is
        // then a whole one of the result.
        let sum = quick_two_sum(x.number(HALF_PI_SINGLE), s * -2.0);
        let large = sum.high + (sum.low + (HALF_PI_SINGLE_LOW - 2.0 * rest));
        return is_large.choose(large, s + rest).with_sign_of(x);
    }
    let Arc { is_large, s, rest } = arc(x.abs());
    let sum = quick_two_sum(x.number(HALF_PI), s * -2.0);
    let large = sum.high + (sum.low + (HALF_PI_LOW - 2.0 * rest));
    is_large.choose(large, s + rest).with_sign_of(x)
}

/// The arc cosine.
pub(super) fn acos(x: Lanes<'_>) -> Lanes<'_> {
    if x.is_single() {
        let Arc { is_large, s, rest } = arc_single(x.abs());
        let near_minus_one = (2.0 * HALF_PI_SINGLE - 2.0 * s) - (2.0 * rest - 2.0 * HALF_PI_SINGLE_LOW);
        let large = x.below(0.0).choose(near_minus_one, 2.0 * (s + rest));
        let small = (HALF_PI_SINGLE - x) - (rest.flip_sign(x.sign_bits()) - HALF_PI_SINGLE_LOW);
        return is_large.choose(large, small);
    }
    let Arc { is_large, s, rest } = arc(x.abs());
    let is_negative = x.below(0.0);
    // Near 0: pi/2 minus the arc sine, which has the sign of x.
    let (s_signed, rest_signed) = (s.flip_sign(x.sign_bits()), rest.flip_sign(x.sign_bits()));
    let sum = quick_two_sum(x.number(HALF_PI), -s_signed);
    let small = sum.high + (sum.low + (HALF_PI_LOW - rest_signed));
    // Near 1: twice the arc sine of s. Near -1: pi minus that.
    let near_one = 2.0 * (s + rest);
    let sum = quick_two_sum(x.number(2.0 * HALF_PI), s * -2.0);
    let near_minus_one = sum.high + (sum.low + (2.0 * HALF_PI_LOW - 2.0 * rest));
    is_large.choose(is_negative.choose(near_minus_one, near_one), small)
}
