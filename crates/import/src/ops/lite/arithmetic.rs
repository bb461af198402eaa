//! Fixed-point functions of gemmlowp and TensorFlow Lite, as expressions.
//!
//! A number is an integer of 32 bits, in an `s64`. With n integer bits it stands for itself divided
//! by 2^(31 - n); a product has the integer bits of both factors.

use super::fixed_point::{Multiplier, arithmetic_shift, doubling_high, rounding_shift};
use ::composite::Expression;
use hlo::Op;

/// 1 with no integer bits, as near as 32 bits allow.
const ONE: f64 = i32::MAX as f64;

/// Wraps around at 32 bits. Conversions would do, too, but they keep tables from being folded.
pub(super) fn wrapped(x: Expression<'_>) -> Expression<'_> {
    (x << 32.0).shift_right_arithmetic(32.0)
}

/// Clamps to the range of 32 bits.
fn saturated(x: Expression<'_>) -> Expression<'_> {
    x.max(f64::from(i32::MIN)).min(f64::from(i32::MAX))
}

/// x × 2^shift, wrapped around at 32 bits.
pub(super) fn shifted(x: Expression<'_>, shift: i32) -> Expression<'_> {
    if shift == 0 { x } else { wrapped(x << f64::from(shift)) }
}

/// x / 2^shift, rounded to nearest and away from zero at halves.
pub(super) fn divided(x: Expression<'_>, shift: i32) -> Expression<'_> {
    if shift == 0 {
        return x;
    }
    let sign = x.shift_right_arithmetic(63.0);
    (x + sign + 2f64.powi(shift - 1)).shift_right_arithmetic(f64::from(shift))
}

/// x × factor × 2^(shift - 31) with two roundings (`MultiplyByQuantizedMultiplier`).
pub(super) fn multiplied(x: Expression<'_>, multiplier: Multiplier) -> Expression<'_> {
    let product = shifted(x, multiplier.shift.max(0)) * f64::from(multiplier.factor);
    // Like `doubling_high`, but the factor is not the least number, so that nothing saturates.
    let high = (product + 2f64.powi(30)).shift_right_arithmetic(31.0);
    divided(high, -multiplier.shift.min(0))
}

/// Like [`multiplied`], with a multiplier for each element.
pub(super) fn multiplied_by<'f>(
    x: Expression<'f>,
    factor: Expression<'f>,
    shift: Expression<'f>,
) -> Expression<'f> {
    let shifted = wrapped(x << shift.max(0.0));
    rounding_shift(doubling_high(shifted, factor), (-shift).max(0.0))
}

/// x / 2^shift, rounded like [`divided`]. Other shifts than those from 0 to 31 are undefined in the
/// reference: this is what x86 and AArch64 do, which take them modulo 32 and mask nothing.
pub(super) fn divided_by<'f>(x: Expression<'f>, shift: Expression<'f>) -> Expression<'f> {
    let reduced = shift & 31.0;
    let rounded = rounding_shift(x, reduced);
    let one = x.ge(0.0).select(x.splat(1.0), 0.0);
    reduced.equal(shift).select(rounded, arithmetic_shift(x, reduced) + one)
}

/// Like [`multiplied`], for numbers of up to 48 bits: a multiplier of 15 bits and one rounding.
pub(super) fn multiplied_once(x: Expression<'_>, multiplier: Multiplier) -> Expression<'_> {
    let shift = 15 - multiplier.shift;
    let product = x * narrow(multiplier) + 2f64.powi(shift - 1);
    wrapped(product.shift_right_arithmetic(f64::from(shift)))
}

/// A multiplier of 15 bits instead of 31.
pub(super) fn narrow(multiplier: Multiplier) -> f64 {
    let rounded = (i64::from(multiplier.factor) + (1 << 15)) >> 16;
    rounded.min(0x7fff) as f64
}

/// Reduces the number of integer bits by `bits`, and saturates.
fn rescaled(x: Expression<'_>, bits: i32) -> Expression<'_> {
    if bits < 0 { divided(x, -bits) } else { saturated(x * 2f64.powi(bits)) }
}

/// (a + b) / 2, rounded away from zero.
fn half_sum<'f>(a: Expression<'f>, b: Expression<'f>) -> Expression<'f> {
    let sum = a + b;
    let sign = sum.ge(0.0).select(sum.splat(1.0), -1.0);
    (sum + sign) / 2.0
}

/// The number of zeros above the highest one among 32 bits, of a number that is not negative.
pub(super) fn leading_zeros(x: Expression<'_>) -> Expression<'_> {
    x.function().op(Op::CountLeadingZeros {}, &[x], None) - 32.0
}

/// e^x for x of 5 integer bits, not positive. Has no integer bits.
pub(super) fn exp_of_negative(x: Expression<'_>) -> Expression<'_> {
    const FRACTION: i32 = 26;
    const QUARTER: i32 = FRACTION - 2;
    let remainder = (x & (2f64.powi(QUARTER) - 1.0)) - 2f64.powi(QUARTER);
    // The Taylor series around -1/8, for x in [-1/4, 0).
    let y = rescaled(remainder, 5) + 2f64.powi(28);
    let square = doubling_high(y, y);
    let (cube, fourth) = (doubling_high(square, y), doubling_high(square, square));
    let third = x.splat(715_827_883.0);
    let tail = divided(doubling_high(divided(fourth, 2) + cube, third) + square, 1);
    let constant = x.splat(1_895_147_668.0);
    let mut result = constant + doubling_high(constant, y + tail);
    // e^-(2^k) for each bit of the multiple of 1/4, from k = -2.
    let quarters = remainder - x;
    for (k, factor) in
        (QUARTER..).zip([1_672_461_947, 1_302_514_674, 790_015_084, 290_630_308, 39_332_535, 720_401, 242])
    {
        let has_bit = (quarters & 2f64.powi(k)).not_equal(0.0);
        result = has_bit.select(doubling_high(result, x.splat(f64::from(factor))), result);
    }
    x.equal(0.0).select(x.splat(ONE), result)
}

/// 1 / (1 + x) for x in [0, 1], without integer bits: Newton's method.
fn one_over_one_plus(x: Expression<'_>) -> Expression<'_> {
    let half_denominator = half_sum(x, x.splat(ONE));
    let (constant, slope) = (1_515_870_810.0, -1_010_580_540.0);
    let mut result = doubling_high(half_denominator, x.splat(slope)) + constant;
    for _ in 0..3 {
        let product = doubling_high(half_denominator, result);
        result = wrapped(result + rescaled(doubling_high(result, 2f64.powi(29) - product), 2));
    }
    rescaled(result, 1)
}

/// 1 / x for a positive x of `bits` integer bits: a number without integer bits, which must be
/// divided by 2^(second result) (`GetReciprocal`).
pub(super) fn reciprocal(x: Expression<'_>, bits: i32) -> [Expression<'_>; 2] {
    let headroom = leading_zeros(x);
    let fraction = (x << headroom) - 2f64.powi(31);
    [one_over_one_plus(fraction), f64::from(bits) - headroom]
}

/// The natural logarithm of a number of 12 integer bits, at least 1. Has 5 integer bits.
pub(super) fn log_of_12_bits(x: Expression<'_>) -> Expression<'_> {
    const BITS: f64 = 12.0;
    /// The sum has one integer bit more than the result.
    const ACCUMULATION_BITS: i32 = 6;
    fn exponent(bits: Expression<'_>) -> Expression<'_> {
        saturated(bits * 2f64.powi(31 - ACCUMULATION_BITS))
    }
    let number = |value: f64| x.splat(value);
    let [log_2, root_half, root_root_half] = [1_488_522_236.0, 1_518_500_250.0, 1_805_811_301.0].map(number);
    let [alpha_n, alpha_d, alpha_i, alpha_f] =
        [117_049_297.0, 127_690_142.0, 1_057_819_769.0, 638_450_708.0].map(number);
    let quarter = 2f64.powi(31 - ACCUMULATION_BITS - 2);
    let one = number(1.0);

    // x = r × 2^exponent, where r is near the fourth root of 1/2.
    let headroom = leading_zeros(x);
    let normal = saturated(x * (one << (headroom - 1.0)));
    let first = saturated(doubling_high(normal, root_half) * 2.0);
    let first_exponent = saturated(exponent(BITS - headroom) + quarter);
    let scaled = doubling_high(x, root_half);
    let headroom = leading_zeros(scaled) - 1.0;
    let second = saturated(x * (one << headroom));
    let second_exponent = saturated(exponent(BITS - headroom) - quarter);
    let (r, exponent) = (first.min(second), first_exponent.max(second_exponent));

    // A rational approximation of log(r).
    let p = half_sum(r, root_root_half);
    let q = (r - root_root_half) * 2.0;
    let square = doubling_high(q, q);
    let numerator = doubling_high(q, r) + doubling_high(doubling_high(q, square), alpha_n);
    let sum = alpha_i + q + doubling_high(alpha_d, square);
    let denominator = doubling_high(p, sum) + doubling_high(alpha_f, q);
    let inverse = one_over_one_plus(denominator);
    let log = doubling_high(rescaled(numerator, -ACCUMULATION_BITS), inverse);
    rescaled(doubling_high(exponent, log_2) + log, 1)
}

/// 1 / √x of an integer that is not negative, as a factor and a shift of [`multiplied_by`]
/// (`GetInvSqrtQuantizedMultiplierExp`). The square root of 0 counts as 1.
pub(super) fn inverse_root(x: Expression<'_>) -> [Expression<'_>; 2] {
    let (zero, one) = (x.splat(0.0), x.splat(1.0));
    let is_large = x.ge(2f64.powi(29));
    let reduced = is_large.select(x >> 2.0, x);
    let pairs = arithmetic_shift(leading_zeros(reduced) - 1.0, one) - 1.0;
    let shift = is_large.select(one, zero) + 11.0 - pairs;
    let normal = reduced << (pairs * 2.0).max(0.0);
    // Newton's method with 3 integer bits, from 1.
    let input = normal >> 1.0;
    let half = divided(input, 1);
    let three_halves = x.splat(2f64.powi(28) + 2f64.powi(27));
    let mut root = x.splat(2f64.powi(28));
    for _ in 0..5 {
        let cube = rescaled(doubling_high(doubling_high(root, root), root), 6);
        root = rescaled(doubling_high(three_halves, root) - doubling_high(half, cube), 3);
    }
    let factor = doubling_high(root, x.splat(1_518_500_250.0));
    let factor = wrapped(factor << (-shift).max(0.0));
    let is_one = x.le(1.0);
    [is_one.select(x.splat(ONE), factor), is_one.select(zero, -(shift.max(0.0)))]
}
