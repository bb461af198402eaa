//! Intervals of integers, wide enough that no sum or product of elements overflows undetected.

use shape::PrimitiveType;

/// Bounds of an integer, both inclusive. `None` means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The smallest value, if known.
    pub low: Option<i64>,
    /// The largest value, if known.
    pub high: Option<i64>,
}

impl Range {
    /// No information.
    pub const UNKNOWN: Self = Self { low: None, high: None };

    /// Creates a range with a single value.
    pub fn exactly(value: i64) -> Self {
        Self { low: Some(value), high: Some(value) }
    }

    /// Returns the value, if there is only one.
    pub fn value(self) -> Option<i64> {
        self.low.filter(|_| self.low == self.high)
    }
}

/// A nonempty interval. Element types have at most 64 bits, so sums never overflow; products are
/// checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: i128,
    pub(super) high: i128,
}

impl Interval {
    /// Creates the interval between two values in either order.
    pub(super) fn new(a: i128, b: i128) -> Self {
        Self { low: a.min(b), high: a.max(b) }
    }

    pub(super) fn exactly(value: i128) -> Self {
        Self { low: value, high: value }
    }

    /// Returns the interval of all values of a type; `None` for types that are neither integers nor
    /// `pred`.
    pub(super) fn of_type(element_type: PrimitiveType) -> Option<Self> {
        let bits = element_type.bit_width();
        if element_type.is_signed_integer() {
            let half = 1i128 << (bits - 1);
            return Some(Self { low: -half, high: half - 1 });
        }
        let is_unsigned = element_type.is_unsigned_integer() || element_type == PrimitiveType::Pred;
        is_unsigned.then(|| Self { low: 0, high: (1i128 << bits) - 1 })
    }

    /// Converts the range of a value whose type has the interval `all`.
    pub(super) fn from_range(range: Range, all: Self) -> Self {
        let low = range.low.map_or(all.low, i128::from).max(all.low);
        let high = range.high.map_or(all.high, i128::from).min(all.high);
        // A contradiction comes from code that never runs, so any interval is valid.
        if low <= high { Self { low, high } } else { all }
    }

    /// Converts to a range, in which the limits of a signed type count as unknown.
    pub(super) fn to_range(self, all: Self) -> Range {
        let is_known = |end: i128, limit: i128| end != limit || limit == 0;
        let low = i64::try_from(self.low).ok().filter(|_| is_known(self.low, all.low));
        let high = i64::try_from(self.high).ok();
        // The limits of `pred` and its conversions are meaningful, so they count as known.
        let high = high.filter(|_| self.high != all.high || self.low == self.high || all.high <= 1);
        let low = if self.low == self.high { i64::try_from(self.low).ok() } else { low };
        Range { low, high }
    }

    pub(super) fn value(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    /// Returns the distance between the ends.
    pub(super) fn width(self) -> i128 {
        self.high - self.low
    }

    /// Returns the interval of `multiplier * x + offset` for all x in this interval.
    pub(super) fn scaled(self, multiplier: i128, offset: i128) -> Option<Self> {
        let end = |end: i128| end.checked_mul(multiplier)?.checked_add(offset);
        Some(Self::new(end(self.low)?, end(self.high)?))
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    pub(super) fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Returns the intersection; `None` if it is empty.
    pub(super) fn intersection(self, other: Self) -> Option<Self> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (low <= high).then_some(Self { low, high })
    }

    /// Returns this interval if it fits into the type, otherwise the full interval, because
    /// arithmetic wraps.
    pub(super) fn within(self, all: Self) -> Self {
        if all.contains(self) { self } else { all }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { low: self.low.saturating_add(other.low), high: self.high.saturating_add(other.high) }
    }

    pub(super) fn negated(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        self.corners(other, i128::checked_mul)
    }

    /// A shift to the left by less than 63 bits; `None` for others.
    pub(super) fn shifted_left(self, other: Self) -> Option<Self> {
        let is_known = other.low >= 0 && other.high < 63;
        is_known.then(|| self.corners(other, |x, bits| x.checked_mul(1 << bits)))?
    }

    /// A shift to the right that keeps the sign, by less than the type's bits; `None` for others.
    pub(super) fn shifted_right(self, other: Self, bits: i128) -> Option<Self> {
        let is_known = other.low >= 0 && other.high < bits;
        is_known.then(|| self.corners(other, |x, bits| Some(x >> bits)))?
    }

    /// Division that rounds toward zero. `None` if the divisor may be 0.
    pub(super) fn divided_by(self, other: Self) -> Option<Self> {
        if other.low <= 0 && other.high >= 0 {
            return None;
        }
        self.corners(other, i128::checked_div)
    }

    /// The remainder of a division that rounds toward zero: its sign is that of the dividend.
    /// `None` if the divisor may be 0.
    pub(super) fn remainder_by(self, other: Self) -> Option<Self> {
        if other.low <= 0 && other.high >= 0 {
            return None;
        }
        let largest = other.low.abs().max(other.high.abs()) - 1;
        let low = if self.low >= 0 { 0 } else { (-largest).max(self.low) };
        let high = if self.high <= 0 { 0 } else { largest.min(self.high) };
        Some(Self { low, high })
    }

    pub(super) fn maximum(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.max(other.high) }
    }

    pub(super) fn minimum(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.min(other.high) }
    }

    pub(super) fn absolute(self) -> Self {
        let (low, high) = (self.low.abs(), self.high.abs());
        let spans_zero = self.low <= 0 && self.high >= 0;
        Self { low: if spans_zero { 0 } else { low.min(high) }, high: low.max(high) }
    }

    /// Extremes of a function that is monotonic in each argument lie at the corners.
    fn corners(self, other: Self, f: impl Fn(i128, i128) -> Option<i128>) -> Option<Self> {
        let mut result: Option<Self> = None;
        for a in [self.low, self.high] {
            for b in [other.low, other.high] {
                let corner = Self::exactly(f(a, b)?);
                result = Some(result.map_or(corner, |r| r.hull(corner)));
            }
        }
        result
    }
}
