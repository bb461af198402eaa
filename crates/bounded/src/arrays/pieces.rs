//! Pieces of arrays with a data-dependent position or length.

use super::Size;
use crate::builder::Builder;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

impl Builder {
    /// Returns the `length` elements `begin, begin + stride, ...` of a dimension, which must be
    /// within the array. `begin` is an `s32` scalar.
    pub fn take(
        &mut self,
        id: InstructionId,
        dimension: usize,
        begin: InstructionId,
        stride: i64,
        length: Size,
    ) -> Result<InstructionId> {
        let mut sizes = self.split(id)?.sizes;
        let data = self.split(id)?.data;
        if stride == 1 && length.bound > 0 {
            let piece = self.take_row(data, dimension, begin, length.bound)?;
            sizes[dimension] = length.size;
            return self.bounded(piece, &sizes);
        }
        let stride = self.s32(stride)?;
        self.take_steps(id, dimension, begin, stride, length)
    }

    /// Like [`Self::take`], with a stride that is a positive `s32` scalar.
    pub fn take_steps(
        &mut self,
        id: InstructionId,
        dimension: usize,
        begin: InstructionId,
        stride: InstructionId,
        length: Size,
    ) -> Result<InstructionId> {
        let mut part = self.split(id)?;
        let steps = self.iota(PrimitiveType::S32, &[length.bound], 0)?;
        let stride = self.broadcast(stride, &[length.bound], &[])?;
        let offsets = self.mul(steps, stride)?;
        let begin = self.broadcast(begin, &[length.bound], &[])?;
        let positions = self.add(begin, offsets)?;
        let positions = self.within(positions, self.sizes(part.data)[dimension])?;
        let piece = self.gather_along(part.data, positions, dimension as i64, 0)?;
        part.sizes[dimension] = length.size;
        self.bounded(piece, &part.sizes)
    }

    /// Clamps positions to those of a dimension of this size.
    pub fn within(&mut self, positions: InstructionId, size: i64) -> Result<InstructionId> {
        let zero = self.splat_like(positions, 0.0)?;
        let last = self.splat_like(positions, (size - 1).max(0) as f64)?;
        self.clamped(positions, zero, last)
    }

    /// Returns `bound` elements from `begin` on. Elements beyond the end are unspecified.
    fn take_row(
        &mut self,
        data: InstructionId,
        dimension: usize,
        begin: InstructionId,
        bound: i64,
    ) -> Result<InstructionId> {
        let element_type = self.element_type(data);
        let zero = self.scalar(element_type, 0.0);
        let mut padding = vec![(0, 0, 0); self.rank(data)];
        let begins_at_0 = self.fold(begin).is_some_and(|begin| begin.scalar_at(0).as_i64() == Some(0));
        if !begins_at_0 {
            padding[dimension].1 = bound;
        }
        let padded = self.pad(data, zero, &padding)?;
        let mut dynamic_slice_sizes = self.sizes(data);
        if begins_at_0 {
            return self.slice_in(padded, dimension, 0, bound.min(dynamic_slice_sizes[dimension]));
        }
        dynamic_slice_sizes[dimension] = bound;
        let origin = self.s32(0)?;
        let starts = (0..dynamic_slice_sizes.len()).map(|d| if d == dimension { begin } else { origin });
        let operands: Vec<InstructionId> = std::iter::once(padded).chain(starts).collect();
        self.op(Op::DynamicSlice { dynamic_slice_sizes }, &operands)
    }

    /// Returns the positions of the rows for which `keep` holds, in order, and their number. `keep`
    /// is a `pred` vector with one element per row. The positions are an `s32` vector, padded with
    /// zeros, and the number is an `s32` scalar.
    pub fn kept_positions(&mut self, keep: InstructionId) -> Result<(InstructionId, InstructionId)> {
        let rows = self.sizes(keep)[0];
        let places = self.ranks(keep)?;
        let (count, place) = places;
        let row = self.iota(PrimitiveType::S32, &[rows], 0)?;
        let nowhere = self.splat_like(row, rows as f64)?;
        let place = self.select(keep, place, nowhere)?;
        let zeros = self.splat_like(row, 0.0)?;
        let positions = self.replace_rows(zeros, place, row)?;
        Ok((positions, count))
    }

    /// Returns the number of true elements of a `pred` vector, and the number before each element,
    /// as `s32`.
    pub fn ranks(&mut self, keep: InstructionId) -> Result<(InstructionId, InstructionId)> {
        let ones = self.convert(keep, PrimitiveType::S32)?;
        let count = self.reduce(ones, crate::builder::Reducer::Add, &[0])?;
        let mut sums = ones;
        let (size, zero) = (self.sizes(keep)[0], self.scalar(PrimitiveType::S32, 0.0));
        let mut distance = 1;
        while distance < size {
            let shifted = self.slice_in(sums, 0, 0, size - distance)?;
            let before = self.pad(shifted, zero, &[(distance, 0, 0)])?;
            sums = self.add(before, sums)?;
            distance *= 2;
        }
        Ok((count, self.sub(sums, ones)?))
    }

    /// `into[index[i]] = values[i]` for distinct indices. Indices out of range are ignored.
    pub fn replace_rows(
        &mut self,
        into: InstructionId,
        index: InstructionId,
        values: InstructionId,
    ) -> Result<InstructionId> {
        let element_type = self.element_type(into);
        let to_apply = self.reducer(crate::builder::Reducer::Replace, element_type)?;
        let scatter_dimension_numbers = hlo::ScatterDimensionNumbers {
            inserted_window_dims: vec![0],
            scatter_dims_to_operand_dims: vec![0],
            index_vector_dim: 1,
            update_window_dims: (1..self.rank(values)).collect(),
            ..Default::default()
        };
        let op = Op::Scatter {
            scatter_dimension_numbers,
            indices_are_sorted: false,
            unique_indices: true,
            to_apply,
        };
        self.op(op, &[into, index, values])
    }

    /// Adds the size, an `s32` scalar, to negative `s32` indices, so that they count from the end.
    pub fn wrapped(&mut self, index: InstructionId, size: InstructionId) -> Result<InstructionId> {
        let negative = self.compare_scalar(ComparisonDirection::Lt, index, 0.0)?;
        let sizes = self.sizes(index);
        let size = self.broadcast(size, &sizes, &[])?;
        let from_end = self.add(index, size)?;
        self.select(negative, from_end, index)
    }
}
