//! Numbers of elements that depend on a size.

/// A number of elements: `multiple * size + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// The entry's parameter that holds the size.
    pub parameter: usize,
    /// The factor of the size, at least 1.
    pub multiple: i64,
    /// The number added.
    pub offset: i64,
}

impl Extent {
    /// The size that a parameter holds.
    pub(super) fn of_parameter(parameter: usize) -> Self {
        Self { parameter, multiple: 1, offset: 0 }
    }

    /// The extent with a number added. `None` if a number is too large.
    pub(super) fn plus(self, number: i64) -> Option<Self> {
        Some(Self { offset: self.offset.checked_add(number)?, ..self })
    }

    /// The extent times a positive number.
    pub fn times(self, factor: i64) -> Option<Self> {
        let (multiple, offset) = (self.multiple.checked_mul(factor)?, self.offset.checked_mul(factor)?);
        (factor > 0).then_some(Self { multiple, offset, ..self })
    }

    /// The extent divided by a positive number, if there is no remainder for any size.
    pub(super) fn over(self, divisor: i64) -> Option<Self> {
        let divides = divisor > 0 && self.multiple % divisor == 0 && self.offset % divisor == 0;
        divides.then(|| Self { multiple: self.multiple / divisor, offset: self.offset / divisor, ..self })
    }

    /// The number of elements for a size.
    pub fn at(self, size: i64) -> i64 {
        self.multiple.saturating_mul(size).saturating_add(self.offset)
    }
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
fn most(a: Option<Extent>, b: Option<Extent>) -> Option<Extent> {
    let (a, b) = (a?, b?);
    if a.parameter != b.parameter {
        return None;
    }
    match (a.multiple >= b.multiple && a.offset >= b.offset, b.multiple >= a.multiple && b.offset >= a.offset)
    {
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
