//! Symbolic indices: affine in the loop variables and in the lane number, with opaque vector parts
//! where an index is not affine.
//!
//! Index arithmetic stays symbolic until an address is needed. Reindexing opcodes therefore compose
//! without code, equal indices compare equal, and the distance between lanes is known at compile
//! time.

use nest::ValueId;

/// One index per lane: `constant + lane * lane_stride + terms + vectors`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Index {
    /// Scalars (the same in every lane) with their factors, sorted by id; no factor is 0.
    terms: Vec<(ValueId, i64)>,
    /// Vectors of one number per lane, with their factors, sorted by id.
    vectors: Vec<(ValueId, i64)>,
    /// Difference between neighboring lanes.
    lane_stride: i64,
    constant: i64,
}

impl Index {
    /// Returns an index that is the same number in every lane.
    pub fn constant(constant: i64) -> Self {
        Self { constant, ..Self::default() }
    }

    /// Returns the index of a scalar `I64`, the same in every lane.
    pub fn scalar(value: ValueId) -> Self {
        Self { terms: vec![(value, 1)], ..Self::default() }
    }

    /// Returns the index of a vector of `I64`.
    pub fn vector(value: ValueId) -> Self {
        Self { vectors: vec![(value, 1)], ..Self::default() }
    }

    /// Returns the lane number times a stride.
    pub fn lanes(stride: i64) -> Self {
        Self { lane_stride: stride, ..Self::default() }
    }

    /// Returns the number if the index is a compile-time constant.
    pub fn as_constant(&self) -> Option<i64> {
        (self.terms.is_empty() && self.is_uniform()).then_some(self.constant)
    }

    /// True if all lanes have the same index.
    pub fn is_uniform(&self) -> bool {
        self.lane_stride == 0 && self.vectors.is_empty()
    }

    /// Returns the distance from lane to lane if it is the same between all lanes.
    pub fn stride(&self) -> Option<i64> {
        self.vectors.is_empty().then_some(self.lane_stride)
    }

    /// Returns the scalar terms.
    pub(crate) fn terms(&self) -> &[(ValueId, i64)] {
        &self.terms
    }

    /// Returns the vector terms.
    pub(crate) fn vectors(&self) -> &[(ValueId, i64)] {
        &self.vectors
    }

    /// Returns the constant part.
    pub(crate) fn offset(&self) -> i64 {
        self.constant
    }

    /// Returns the lane stride. Vectors do not count.
    pub(crate) fn lane_stride(&self) -> i64 {
        self.lane_stride
    }

    /// Returns the part that all lanes share: without vectors and lane stride.
    #[must_use]
    pub fn uniform_part(&self) -> Self {
        Self { terms: self.terms.clone(), constant: self.constant, ..Self::default() }
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            terms: merge(&self.terms, &other.terms),
            vectors: merge(&self.vectors, &other.vectors),
            lane_stride: self.lane_stride.wrapping_add(other.lane_stride),
            constant: self.constant.wrapping_add(other.constant),
        }
    }

    /// Returns the sum with a constant.
    #[must_use]
    pub fn plus_constant(&self, constant: i64) -> Self {
        Self { constant: self.constant.wrapping_add(constant), ..self.clone() }
    }

    /// Returns the product with a constant.
    #[must_use]
    pub fn times(&self, factor: i64) -> Self {
        if factor == 0 {
            return Self::default();
        }
        let scale =
            |terms: &[(ValueId, i64)]| terms.iter().map(|&(v, f)| (v, f.wrapping_mul(factor))).collect();
        Self {
            terms: scale(&self.terms),
            vectors: scale(&self.vectors),
            lane_stride: self.lane_stride.wrapping_mul(factor),
            constant: self.constant.wrapping_mul(factor),
        }
    }

    /// Divides the terms whose factors are multiples of `divisor`, and the constant. Returns the
    /// quotient and the rest.
    pub(crate) fn split(&self, divisor: i64) -> (Self, Self) {
        let divides = |&(_, f): &(ValueId, i64)| f % divisor == 0;
        let divide = |terms: &[(ValueId, i64)]| -> Vec<(ValueId, i64)> {
            terms.iter().filter(|t| divides(t)).map(|&(v, f)| (v, f / divisor)).collect()
        };
        let keep = |terms: &[(ValueId, i64)]| -> Vec<(ValueId, i64)> {
            terms.iter().filter(|t| !divides(t)).copied().collect()
        };
        let strides_divide = self.lane_stride % divisor == 0;
        let quotient = Self {
            terms: divide(&self.terms),
            vectors: divide(&self.vectors),
            lane_stride: if strides_divide { self.lane_stride / divisor } else { 0 },
            constant: self.constant.div_euclid(divisor),
        };
        let rest = Self {
            terms: keep(&self.terms),
            vectors: keep(&self.vectors),
            lane_stride: if strides_divide { 0 } else { self.lane_stride },
            constant: self.constant.rem_euclid(divisor),
        };
        (quotient, rest)
    }
}

fn merge(a: &[(ValueId, i64)], b: &[(ValueId, i64)]) -> Vec<(ValueId, i64)> {
    let mut merged: Vec<(ValueId, i64)> = Vec::with_capacity(a.len() + b.len());
    let mut pending: Vec<(ValueId, i64)> = a.iter().chain(b).copied().collect();
    pending.sort_unstable();
    for (value, factor) in pending {
        match merged.last_mut() {
            Some(last) if last.0 == value => last.1 = last.1.wrapping_add(factor),
            _ => merged.push((value, factor)),
        }
    }
    merged.retain(|&(_, factor)| factor != 0);
    merged
}

/// A position in an array, for each lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// An index for each dimension.
    Multi(Vec<Index>),
    /// The row-major element number.
    Linear(Index),
}

impl Position {
    /// Returns the position in an array of rank 0.
    pub const fn scalar() -> Self {
        Self::Multi(Vec::new())
    }

    /// True if all lanes have the same position.
    pub fn is_uniform(&self) -> bool {
        match self {
            Self::Multi(indices) => indices.iter().all(Index::is_uniform),
            Self::Linear(index) => index.is_uniform(),
        }
    }

    /// Returns the row-major element number in an array of these sizes.
    pub fn linear(&self, sizes: &[i64]) -> Index {
        match self {
            Self::Linear(index) => index.clone(),
            Self::Multi(indices) => {
                let strides = shape::index::row_major_strides(sizes);
                indices.iter().zip(strides).fold(Index::default(), |sum, (i, s)| sum.plus(&i.times(s)))
            }
        }
    }
}

/// Known facts about a scalar, or about each lane of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Smallest possible value.
    pub min: i64,
    /// Largest possible value.
    pub max: i64,
    /// A common divisor of all values.
    pub multiple: i64,
}

impl Facts {
    /// Facts that exclude no value.
    pub const UNKNOWN: Self = Self { min: i64::MIN, max: i64::MAX, multiple: 1 };

    /// Returns the facts of a number from `min` to `max`, inclusive.
    pub const fn range(min: i64, max: i64) -> Self {
        Self { min, max, multiple: 1 }
    }
}

/// Returns the greatest common divisor. If one number is 0, this is the other one.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use support::Id;

    #[test]
    fn equal_indices_compare_equal_however_they_were_made() {
        let (i, j) = (Index::scalar(ValueId::from_index(1)), Index::scalar(ValueId::from_index(2)));
        let a = i.times(6).plus(&j).plus_constant(5).plus(&Index::lanes(2));
        let b = Index::lanes(2).plus(&j.plus_constant(5)).plus(&i.times(2).times(3));
        assert_eq!(a, b);
        assert_eq!(a.plus(&i.times(-6)), Index::lanes(2).plus(&j).plus_constant(5));
        assert_eq!(a.stride(), Some(2));
    }

    #[test]
    fn splitting_by_a_divisor_adds_up() {
        let (i, j) = (Index::scalar(ValueId::from_index(1)), Index::scalar(ValueId::from_index(2)));
        let sum = i.times(6).plus(&j).plus_constant(-1);
        let (quotient, rest) = sum.split(3);
        assert_eq!(quotient, i.times(2).plus_constant(-1));
        assert_eq!(rest, j.plus_constant(2));
        assert_eq!(quotient.times(3).plus(&rest), sum);
    }

    #[test]
    fn a_position_of_size_one_dimensions_is_linear_in_the_others() {
        let i = Index::scalar(ValueId::from_index(1));
        let position = Position::Multi(vec![Index::constant(1), i.clone(), Index::default()]);
        assert_eq!(position.linear(&[2, 5, 1]), i.plus_constant(5));
    }
}
