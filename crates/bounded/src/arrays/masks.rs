//! Masks for the padding beyond true sizes.

use super::Bounded;
use crate::builder::Builder;
use hlo::{ComparisonDirection, InstructionId};
use shape::PrimitiveType;
use support::Result;

impl Builder {
    /// Returns, for each element of an array of these sizes, whether it is before `size` along a
    /// dimension.
    pub fn before(&mut self, sizes: &[i64], dimension: usize, size: InstructionId) -> Result<InstructionId> {
        let positions = self.iota(PrimitiveType::S32, sizes, dimension)?;
        let size = self.broadcast(size, sizes, &[])?;
        self.compare(ComparisonDirection::Lt, positions, size)
    }

    /// Returns the whole array with a scalar in place of the padding of some dimensions.
    pub fn masked(
        &mut self,
        array: &Bounded,
        dimensions: &[usize],
        value: InstructionId,
    ) -> Result<InstructionId> {
        let sizes = self.sizes(array.data);
        let mut data = array.data;
        // A constant whose elements are the value stays one, so that a branch whose condition
        // follows from it is known not to run.
        if let (Some(all), Some(value)) = (self.fold(data), self.fold(value))
            && all.scalars().all(|element| element == value.scalar_at(0))
        {
            return Ok(data);
        }
        for &dimension in dimensions {
            let Some(size) = array.sizes[dimension] else { continue };
            let exists = self.before(&sizes, dimension, size)?;
            let value = self.broadcast(value, &sizes, &[])?;
            data = self.select(exists, data, value)?;
        }
        Ok(data)
    }

    /// Returns square matrices whose padding is that of a block-diagonal matrix: `value`, a number
    /// for each matrix, on the diagonal, and zeros elsewhere. Such a matrix has the factors of the
    /// true one and those of a diagonal matrix.
    pub fn with_diagonal_beyond(
        &mut self,
        matrices: &Bounded,
        value: InstructionId,
    ) -> Result<InstructionId> {
        let sizes = self.sizes(matrices.data);
        let (row, column) = (sizes.len() - 2, sizes.len() - 1);
        let Some(size) = matrices.sizes[row].or(matrices.sizes[column]) else { return Ok(matrices.data) };
        let element_type = self.element_type(matrices.data);
        let zero = self.scalar(element_type, 0.0);
        let data = self.masked(matrices, &[row, column], zero)?;
        let (rows, columns) =
            (self.iota(PrimitiveType::S32, &sizes, row)?, self.iota(PrimitiveType::S32, &sizes, column)?);
        let is_diagonal = self.compare(ComparisonDirection::Eq, rows, columns)?;
        let size = self.broadcast(size, &sizes, &[])?;
        let is_beyond = self.compare(ComparisonDirection::Ge, rows, size)?;
        let is_changed = self.op(hlo::Op::And {}, &[is_diagonal, is_beyond])?;
        let batch: Vec<usize> = (0..self.rank(value)).collect();
        let value = self.broadcast(value, &sizes, &batch)?;
        self.select(is_changed, value, data)
    }

    /// Like [`Self::masked`], with a number and in all dimensions.
    pub fn masked_with(&mut self, id: InstructionId, value: f64) -> Result<InstructionId> {
        let array = self.split(id)?;
        if array.is_static() {
            return Ok(id);
        }
        let element_type = self.element_type(id);
        let value = self.scalar(element_type, value);
        let dimensions: Vec<usize> = (0..array.sizes.len()).collect();
        self.masked(&array, &dimensions, value)
    }
}
