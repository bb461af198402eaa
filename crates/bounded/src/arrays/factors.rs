//! Factors of matrices of open sizes: QR factors, and singular values and vectors, computed on
//! whole arrays.
//!
//! Rows and columns of zeros change neither R nor the leading columns of Q, because a column of
//! zeros needs no reflection. They add singular values of 0, which come last. The vectors of such
//! values are only those of the matrix if its own sizes leave no room for others: if the smaller
//! size is known. A square matrix gets a diagonal in the rest, whose values come first.

use super::{Bounded, Size};
use crate::builder::{Builder, Reducer};
use hlo::{ComparisonDirection, InstructionId, Op};
use support::{Code, Error, Result};

/// Matrices to be decomposed, padded to their largest sizes.
pub struct PaddedMatrices {
    /// The arrays.
    pub data: InstructionId,
    /// Number of singular values that come first and are not those of the matrix.
    skipped: Option<InstructionId>,
    batch: Vec<Option<InstructionId>>,
    rows: Size,
    columns: Size,
}

impl Builder {
    /// Pads matrices with zeros.
    pub fn padded_matrices(&mut self, a: InstructionId) -> Result<PaddedMatrices> {
        let sizes = self.all_sizes(a)?;
        let split = self.split(a)?;
        let [row, column] = [sizes.len() - 2, sizes.len() - 1];
        let element_type = self.element_type(a);
        let zero = self.scalar(element_type, 0.0);
        let data = self.masked(&split, &[row, column], zero)?;
        let batch = split.sizes[..row].to_vec();
        Ok(PaddedMatrices { data, skipped: None, batch, rows: sizes[row], columns: sizes[column] })
    }

    /// Pads matrices such that their singular values, and vectors if they are needed, are parts of
    /// those of the whole arrays. Returns an error if the sizes do not allow it.
    pub fn padded_for_singular_values(
        &mut self,
        a: InstructionId,
        with_vectors: bool,
    ) -> Result<PaddedMatrices> {
        let zeros = self.padded_matrices(a)?;
        let (rows, columns) = (zeros.rows, zeros.columns);
        let is_square = rows.bound == columns.bound && self.known_difference(rows, columns) == Some(0);
        let Some(size) = rows.size.filter(|_| with_vectors && is_square) else {
            let mut exceeds = |size: Size, other: Size| {
                other.size.is_none() && self.size_range(size).low.is_some_and(|low| low >= other.bound)
            };
            if !with_vectors || exceeds(rows, columns) || exceeds(columns, rows) {
                return Ok(zeros);
            }
            return Err(Error::unsupported(
                "singular vectors of matrices with open sizes need square matrices, or one size that is fixed \
                 and no larger than the other: fix a size with --dim NAME=N, raise the lower end of a range, \
                 or compute singular values alone",
            )
            .coded(Code::BoundedSize));
        };
        let split = self.split(a)?;
        let beyond = self.above_singular_values(zeros.data)?;
        let data = self.with_diagonal_beyond(&split, beyond)?;
        let most = self.s32(rows.bound)?;
        let skipped = self.sub(most, size)?;
        Ok(PaddedMatrices { data, skipped: Some(skipped), ..zeros })
    }

    /// Returns a number for each matrix that exceeds its singular values, and is not much larger:
    /// they are at most the mean of the largest sums of a row and of a column.
    fn above_singular_values(&mut self, matrices: InstructionId) -> Result<InstructionId> {
        let element_type = self.element_type(matrices);
        let [row, column] = [self.rank(matrices) - 2, self.rank(matrices) - 1];
        let magnitudes = self.op(Op::Abs {}, &[matrices])?;
        let mut most = None;
        for d in [column, row] {
            let sums = self.reduce(magnitudes, Reducer::Add, &[d])?;
            let largest = self.reduce(sums, Reducer::Maximum, &[row])?;
            most = Some(match most {
                Some(other) => self.add(largest, other)?,
                None => largest,
            });
        }
        let most = most.expect("two dimensions were reduced");
        let (zero, one) = (self.splat_like(most, 0.0)?, self.splat_like(most, 1.0)?);
        let is_zero = self.compare(ComparisonDirection::Eq, most, zero)?;
        let most = self.select(is_zero, one, most)?;
        if element_type.is_complex() { self.op(Op::Complex {}, &[most, zero]) } else { Ok(most) }
    }

    /// Returns the smaller one of the sizes of matrices: the number of singular values.
    pub fn smaller_size(&mut self, matrices: &PaddedMatrices) -> Result<Size> {
        let (a, b) = (matrices.rows, matrices.columns);
        let bound = a.bound.min(b.bound);
        if a.size.is_none() && b.size.is_none() {
            return Ok(Size::known(bound));
        }
        let (a, b) = (self.size_value(a)?, self.size_value(b)?);
        let size = if a == b { a } else { self.op(Op::Minimum {}, &[a, b])? };
        let known = if self.has_named_sizes() { self.size_element(size, 0)? } else { None };
        Ok(known.filter(|known| known.bound <= bound).unwrap_or(Size { bound, size: Some(size) }))
    }

    /// Gives matrices, or vectors, that were computed from padded ones their true sizes.
    fn with_matrix_sizes(
        &mut self,
        of: &PaddedMatrices,
        data: InstructionId,
        last: &[Size],
    ) -> Result<InstructionId> {
        let sizes: Vec<Option<InstructionId>> =
            of.batch.iter().copied().chain(last.iter().map(|size| size.size)).collect();
        self.bounded(data, &sizes)
    }

    /// Returns Q and R with their true sizes. Q has as many columns as rows if it is full.
    pub fn qr_factors(
        &mut self,
        of: &PaddedMatrices,
        [q, r]: [InstructionId; 2],
        full: bool,
    ) -> Result<[InstructionId; 2]> {
        let width = if full { of.rows } else { self.smaller_size(of)? };
        let q = self.with_matrix_sizes(of, q, &[of.rows, width])?;
        Ok([q, self.with_matrix_sizes(of, r, &[width, of.columns])?])
    }

    /// Returns reflections that are packed in matrices, and their scalar factors, with their true
    /// sizes.
    pub fn packed_reflections(
        &mut self,
        of: &PaddedMatrices,
        [packed, factors]: [InstructionId; 2],
    ) -> Result<[InstructionId; 2]> {
        let count = self.smaller_size(of)?;
        let packed = self.with_matrix_sizes(of, packed, &[of.rows, of.columns])?;
        Ok([packed, self.with_matrix_sizes(of, factors, &[count])?])
    }

    /// Returns the first `width` columns of a product of packed reflections with their true sizes.
    pub fn orthonormal_columns(
        &mut self,
        of: &PaddedMatrices,
        columns: InstructionId,
        width: Size,
    ) -> Result<InstructionId> {
        self.with_matrix_sizes(of, columns, &[of.rows, width])
    }

    /// Returns the singular values of matrices among those of the padded ones.
    pub fn singular_values(&mut self, of: &PaddedMatrices, values: InstructionId) -> Result<InstructionId> {
        let count = self.smaller_size(of)?;
        let values = self.without_first(of, values, count)?;
        self.with_matrix_sizes(of, values, &[count])
    }

    /// Returns the singular vectors of matrices among those of the padded ones, as columns. Left
    /// ones have as many elements as the matrix has rows.
    pub fn singular_vectors(
        &mut self,
        of: &PaddedMatrices,
        vectors: InstructionId,
        is_left: bool,
        full: bool,
    ) -> Result<InstructionId> {
        let elements = if is_left { of.rows } else { of.columns };
        let count = if full { elements } else { self.smaller_size(of)? };
        let vectors = self.without_first(of, vectors, count)?;
        self.with_matrix_sizes(of, vectors, &[elements, count])
    }

    /// Removes the leading values, or columns, that belong to the padding.
    fn without_first(&mut self, of: &PaddedMatrices, x: InstructionId, count: Size) -> Result<InstructionId> {
        let Some(skipped) = of.skipped else { return Ok(x) };
        let last = self.rank(x) - 1;
        let taken = self.take(x, last, skipped, 1, count)?;
        let Bounded { data, .. } = self.split(taken)?;
        Ok(data)
    }
}
