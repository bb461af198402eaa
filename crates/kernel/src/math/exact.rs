//! Sums and products with their rounding errors, and pairs of floats with twice the precision.

use super::lanes::Lanes;

/// `high + low`, where `low` is at most half a unit in the last place of `high`.
#[derive(Clone, Copy)]
pub(super) struct Pair<'s> {
    pub(super) high: Lanes<'s>,
    pub(super) low: Lanes<'s>,
}

/// `a + b` exactly (Knuth).
pub(super) fn two_sum<'s>(a: Lanes<'s>, b: Lanes<'s>) -> Pair<'s> {
    let high = a + b;
    let of_b = high - a;
    let low = (a - (high - of_b)) + (b - of_b);
    Pair { high, low }
}

/// `a + b` exactly if `a` is 0 or its magnitude is at least that of `b` (Dekker).
pub(super) fn quick_two_sum<'s>(a: Lanes<'s>, b: Lanes<'s>) -> Pair<'s> {
    let high = a + b;
    Pair { high, low: b - (high - a) }
}

/// `a * b`, with the low part at least to its own precision. Without a fused multiply-add, the
/// operands are split into halves.
pub(super) fn two_product<'s>(a: Lanes<'s>, b: Lanes<'s>) -> Pair<'s> {
    let high = a * b;
    if a.has_fma() {
        return Pair { high, low: a.mul_add(b, -high) };
    }
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    let low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low;
    Pair { high, low }
}

/// Splits a number into leading digits and a remainder. Products of leading digits with leading
/// digits or remainders are exact.
pub(super) fn halves(x: Lanes<'_>) -> (Lanes<'_>, Lanes<'_>) {
    let rest: i64 = if x.is_single() { 0xFFF } else { 0x7FF_FFFF };
    let high = (x.bits() & !rest).as_float();
    (high, x - high)
}

impl<'s> Pair<'s> {
    /// Returns the sum with a smaller pair.
    pub(super) fn plus(self, other: Self) -> Self {
        let sum = two_sum(self.high, other.high);
        quick_two_sum(sum.high, sum.low + (self.low + other.low))
    }

    /// Returns the product with a pair.
    pub(super) fn times(self, other: Self) -> Self {
        let product = two_product(self.high, other.high);
        quick_two_sum(product.high, product.low + (self.high * other.low + self.low * other.high))
    }
}
