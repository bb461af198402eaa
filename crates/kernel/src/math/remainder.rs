//! The exact remainder of a division.

use super::exact::halves;
use super::lanes::Lanes;

/// Maximum number of quotient bits per step.
const STEP_BITS: i64 = 25;

/// C's `fmod` for `F64`: `x - trunc(x / y) y` without rounding, with the sign of `x`.
pub(super) fn fmod<'s>(x: Lanes<'s>, y: Lanes<'s>) -> Lanes<'s> {
    let (dividend, divisor) = (x.abs(), y.abs());
    let is_defined = dividend.below(f64::INFINITY) & divisor.above(0.0);
    let dividend = is_defined.choose(dividend, 0.0);
    let rest = Lanes::while_loop(
        &[dividend],
        &[divisor],
        |rest, divisor| rest[0].at_least(divisor[0]).any(),
        |rest, divisor| vec![step(rest[0], divisor[0])],
    )[0];
    is_defined.choose(rest, f64::NAN).with_sign_of(x)
}

/// Subtracts a multiple of the divisor. The result is congruent, nonnegative, and either less than
/// the divisor or smaller than before by a factor of `2^STEP_BITS`.
fn step<'s>(rest: Lanes<'s>, divisor: Lanes<'s>) -> Lanes<'s> {
    let excess = exponent(rest) - exponent(divisor) + (-STEP_BITS);
    let shift = excess.above(0i64).choose(excess, 0i64);
    // Four factors, because the shift can exceed the range of a float's exponent.
    let quarter = shift.shr(2i64);
    let power = |n: Lanes<'s>| (n + 1023i64).shl(52i64).as_float();
    let factor = power(quarter);
    let scaled = divisor * factor * factor * factor * power(shift - quarter - quarter - quarter);
    // The quotient has few enough bits that its products with the halves are exact. The differences
    // are then exact too.
    let quotient = (rest / scaled).trunc();
    let (high, low) = halves(scaled);
    let difference = (rest - quotient * high) - quotient * low;
    // Rounding may have increased the quotient to the next integer.
    let difference = difference.below(0.0).choose(difference + scaled, difference);
    rest.at_least(divisor).choose(difference, rest)
}

/// Returns the biased exponent, treating subnormal numbers as normal ones.
fn exponent(x: Lanes<'_>) -> Lanes<'_> {
    let is_small = x.below(2f64.powi(-900));
    let scaled = is_small.choose(x * 2f64.powi(100), x);
    scaled.bits().shr(52i64) - is_small.choose(scaled.bits().number(100i64), 0i64)
}
