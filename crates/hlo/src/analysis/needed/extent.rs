//! Numbers of elements that depend on a size.

/// A number of elements: `(multiple * size + offset) / divisor`, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// The entry's parameter that holds the size.
    pub parameter: usize,
    /// The factor of the size, at least 1.
    pub multiple: i64,
    /// The number added to the product.
    pub offset: i64,
    /// The divisor of the sum, at least 1. It has no common factor with the other numbers, and does
    /// not divide the factor, unless it is 1.
    pub divisor: i64,
}

impl Extent {
    /// The size that a parameter holds.
    pub(super) fn of_parameter(parameter: usize) -> Self {
        Self { parameter, multiple: 1, offset: 0, divisor: 1 }
    }

    fn reduced(self) -> Self {
        let Self { parameter, multiple, offset, divisor } = self;
        if multiple % divisor == 0 {
            return Self {
                parameter,
                multiple: multiple / divisor,
                offset: offset.div_euclid(divisor),
                divisor: 1,
            };
        }
        let common = gcd(gcd(multiple, offset), divisor);
        Self { parameter, multiple: multiple / common, offset: offset / common, divisor: divisor / common }
    }

    /// The extent with a number added. `None` if a number is too large.
    pub(super) fn plus(self, number: i64) -> Option<Self> {
        let offset = self.offset.checked_add(number.checked_mul(self.divisor)?)?;
        Some(Self { offset, ..self }.reduced())
    }

    /// At least the extent times a positive number.
    pub fn times(self, factor: i64) -> Option<Self> {
        let (multiple, offset) = (self.multiple.checked_mul(factor)?, self.offset.checked_mul(factor)?);
        (factor > 0).then_some(Self { multiple, offset, ..self }.reduced())
    }

    /// The extent times a positive number, unless something is rounded before.
    pub(super) fn exactly_times(self, factor: i64) -> Option<Self> {
        self.times(factor).filter(|_| self.divisor == 1)
    }

    /// The extent divided by a positive number and rounded down.
    pub(super) fn divided_by(self, number: i64) -> Option<Self> {
        let divisor = self.divisor.checked_mul(number)?;
        (number > 0).then_some(Self { divisor, ..self }.reduced())
    }

    /// The extent divided by a positive number and rounded up.
    pub(super) fn over(self, number: i64) -> Option<Self> {
        self.plus(number.checked_sub(1)?)?.divided_by(number)
    }

    /// The number of elements for a size.
    pub fn at(self, size: i64) -> i64 {
        self.multiple.saturating_mul(size).saturating_add(self.offset).div_euclid(self.divisor)
    }
}

/// Greatest common divisor.
fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).map_or(1, |common| common.max(1))
}

/// The elements of an array that are read: in each dimension, the first ones, or all. `None` if
/// none is.
pub(super) type Need = Option<Vec<Option<Extent>>>;

/// The elements that either of two readers reads.
pub(super) fn joined(a: Need, b: Need) -> Need {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.into_iter().zip(b).map(|(a, b)| most(a, b)).collect()),
        (one, None) | (None, one) => one,
    }
}

/// The larger of two extents, or all if it is not known which one is.
pub(super) fn most(a: Option<Extent>, b: Option<Extent>) -> Option<Extent> {
    let (a, b) = (a?, b?);
    if a.parameter != b.parameter {
        return None;
    }
    let is_more = |a: Extent, b: Extent| {
        let product = |x: i64, y: i64| i128::from(x) * i128::from(y);
        product(a.multiple, b.divisor) >= product(b.multiple, a.divisor)
            && product(a.offset, b.divisor) >= product(b.offset, a.divisor)
    };
    match (is_more(a, b), is_more(b, a)) {
        (true, _) => Some(a),
        (_, true) => Some(b),
        _ => None,
    }
}

/// The smaller of two extents, or one of them if it is not known which one is.
pub(super) fn least(a: Option<Extent>, b: Option<Extent>) -> Option<Extent> {
    match (a, b) {
        (Some(a), Some(b)) if most(Some(a), Some(b)) == Some(a) => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

/// The number of leading elements of neighboring dimensions in memory order, if only the first of
/// them that is larger than 1 is limited.
pub fn linear_extent(sizes: &[i64], extents: &[Option<Extent>]) -> Option<Extent> {
    let first = sizes.iter().position(|&size| size != 1)?;
    let limited = extents.get(first).copied().flatten()?;
    let inner = sizes[first + 1..].iter().try_fold(1i64, |all, &size| all.checked_mul(size))?;
    limited.times(inner)
}

/// The extents of an array's elements in the dimensions of another with the same elements in memory
/// order.
pub(super) fn reshaped(from: &[i64], extents: &[Option<Extent>], to: &[i64]) -> Vec<Option<Extent>> {
    let mut result = vec![None; to.len()];
    let (mut i, mut k) = (0, 0);
    if from.contains(&0) {
        return result;
    }
    while i < from.len() && k < to.len() {
        let (start, first) = (i, k);
        let (mut a, mut b) = (from[i], to[k]);
        (i, k) = (i + 1, k + 1);
        while a != b {
            let next = if a < b { from.get(i) } else { to.get(k) };
            let Some(&next) = next else { return vec![None; to.len()] };
            if a < b {
                (a, i) = (a.saturating_mul(next), i + 1);
            } else {
                (b, k) = (b.saturating_mul(next), k + 1);
            }
        }
        let Some(all) = linear_extent(&from[start..i], &extents[start..i]) else { continue };
        let Some(wide) = (first..k).find(|&d| to[d] != 1) else { continue };
        let inner: i64 = to[wide + 1..k].iter().product();
        result[wide] = all.over(inner);
    }
    result
}
