//! Static and dynamic slices, and the sizes of dynamic dimensions.

use super::{Inference, array_of};
use crate::attributes::SliceDimension;
use shape::{ArrayShape, Dimension, PrimitiveType, Shape};
use support::Result;

impl Inference<'_> {
    pub(super) fn slice(&self, slice: &[SliceDimension]) -> Result<Shape> {
        let operand = self.array(0)?;
        self.check(
            slice.len() == operand.rank(),
            format_args!("expected {} slice dimensions, got {}", operand.rank(), slice.len()),
        )?;
        let mut dimensions = Vec::with_capacity(slice.len());
        for (i, (part, dimension)) in slice.iter().zip(&operand.dimensions).enumerate() {
            self.check(
                0 <= part.start && part.start <= part.limit && part.limit <= dimension.size,
                format_args!("[{}:{}] is not within dimension {i}", part.start, part.limit),
            )?;
            self.check(part.stride >= 1, format_args!("the stride {} must be positive", part.stride))?;
            let extent = part.limit - part.start;
            let size = extent / part.stride + i64::from(extent % part.stride != 0);
            // A dimension with a single element is no longer dynamic.
            dimensions.push(Dimension { size, is_dynamic: dimension.is_dynamic && size != 1 });
        }
        Ok(array_of(operand.element_type, dimensions))
    }

    /// Checks the start indices from `position` on: either one integer scalar per dimension, all of
    /// one type, or one vector.
    fn check_start_indices(&self, position: usize, rank: usize) -> Result<()> {
        let indices = self.arrays(position..self.operands.len())?;
        for index in &indices {
            self.check(index.element_type.is_integer(), "the start indices must be integers")?;
            self.check(
                index.element_type == indices[0].element_type,
                "the start indices must have the same element type",
            )?;
        }
        if let [vector] = indices[..]
            && vector.rank() == 1
        {
            return self.check(
                vector.size(0) == rank as i64,
                format_args!("expected {rank} start indices, one for each dimension"),
            );
        }
        self.check(
            indices.len() == rank,
            format_args!("expected {rank} start indices, one for each dimension, got {}", indices.len()),
        )?;
        self.check(indices.iter().all(|index| index.rank() == 0), "the start indices must be scalars")
    }

    pub(super) fn dynamic_slice(&self, sizes: &[i64]) -> Result<Shape> {
        let operand = self.array(0)?;
        self.check_start_indices(1, operand.rank())?;
        self.check(
            sizes.len() == operand.rank(),
            format_args!("dynamic_slice_sizes must have one size for each dimension, got {sizes:?}"),
        )?;
        let mut dimensions = Vec::with_capacity(sizes.len());
        for (i, (&size, dimension)) in sizes.iter().zip(&operand.dimensions).enumerate() {
            self.check(
                0 <= size && size <= dimension.size,
                format_args!("a slice of size {size} does not fit into dimension {i}"),
            )?;
            let is_dynamic = dimension.is_dynamic && size > 1 && size == dimension.size;
            dimensions.push(Dimension { size, is_dynamic });
        }
        Ok(array_of(operand.element_type, dimensions))
    }

    pub(super) fn dynamic_update_slice(&self) -> Result<Shape> {
        self.check(self.operands.len() >= 2, "expected the array, the update, and the start indices")?;
        let (operand, update) = (self.array(0)?, self.array(1)?);
        self.check_start_indices(2, operand.rank())?;
        self.check(
            operand.element_type == update.element_type,
            "the update must have the operand's element type",
        )?;
        self.check(operand.rank() == update.rank(), "the update must have the operand's rank")?;
        let mut dimensions = operand.dimensions.clone();
        for (i, (dimension, update)) in dimensions.iter_mut().zip(&update.dimensions).enumerate() {
            self.check(
                update.size <= dimension.size,
                format_args!("the update does not fit into dimension {i}"),
            )?;
            dimension.is_dynamic |= update.is_dynamic && update.size == dimension.size;
        }
        Ok(array_of(operand.element_type, dimensions))
    }

    fn check_sized_dimension(&self, operand: &ArrayShape, dimension: usize) -> Result<()> {
        self.check_dimension("dimension", dimension, operand.rank())?;
        self.check(
            operand.size(dimension) <= i64::from(i32::MAX),
            "the size of the dimension must fit into s32",
        )
    }

    pub(super) fn get_dimension_size(&self, dimension: usize) -> Result<Shape> {
        self.check_sized_dimension(self.array(0)?, dimension)?;
        Ok(Shape::scalar(PrimitiveType::S32))
    }

    pub(super) fn set_dimension_size(&self, dimension: usize) -> Result<Shape> {
        let (operand, size) = (self.array(0)?, self.scalar(1)?);
        self.check(size.element_type == PrimitiveType::S32, "the size must be s32")?;
        self.check_sized_dimension(operand, dimension)?;
        let mut dimensions = operand.dimensions.clone();
        dimensions[dimension].is_dynamic = true;
        // A constant size equal to the bound makes a dimension static again, which only the
        // declared shape reveals.
        if let Some(declared) = self.declared.and_then(Shape::as_array)
            && declared.rank() == operand.rank()
            && !declared.dimensions[dimension].is_dynamic
        {
            dimensions[dimension].is_dynamic = false;
        }
        Ok(array_of(operand.element_type, dimensions))
    }
}
