//! Sums and products with what rounding takes away, and pairs of floats that hold twice the digits.

use super::lanes::Lanes;

/// `high + low`, `low` at most half a unit in the last place of `high`.
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

/// `a + b` exactly where `a` is 0 or has at least the magnitude of `b` (Dekker).
pub(super) fn quick_two_sum<'s>(a: Lanes<'s>, b: Lanes<'s>) -> Pair<'s> {
    let high = a + b;
    Pair { high, low: b - (high - a) }
}

/// `a * b`, the low part to its own precision at least. Without fused multiply-add by halves of the digits.
pub(super) fn two_product<'s>(a: Lanes<'s>, b: Lanes<'s>) -> Pair<'s> {
    let high = a * b;
    if a.has_fma() {
        return Pair { high, low: a.mul_add(b, -high) };
    }
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    let low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low;
    Pair { high, low }
}

/// The leading digits and the rest. Products of leading digits are exact, and products of one with a rest.
pub(super) fn halves(x: Lanes<'_>) -> (Lanes<'_>, Lanes<'_>) {
    let rest: i64 = if x.is_single() { 0xFFF } else { 0x7FF_FFFF };
    let high = (x.bits() & !rest).as_float();
    (high, x - high)
}

impl<'s> Pair<'s> {
    /// The sum with a smaller pair.
    pub(super) fn plus(self, other: Self) -> Self {
        let sum = two_sum(self.high, other.high);
        quick_two_sum(sum.high, sum.low + (self.low + other.low))
    }

    /// The product with a pair.
    pub(super) fn times(self, other: Self) -> Self {
        let product = two_product(self.high, other.high);
        quick_two_sum(product.high, product.low + (self.high * other.low + self.low * other.high))
    }
}
