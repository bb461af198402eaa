//! Gather and scatter.

use super::{Inference, array_of};
use crate::attributes::{GatherDimensionNumbers, ScatterDimensionNumbers};
use crate::ids::ComputationId;
use shape::{ArrayShape, Dimension, PrimitiveType, Shape};
use support::Result;

/// The dimensions of an array of indices except that of the index vector, and the vector's length.
struct IndexSpace {
    batch: Vec<Dimension>,
    vector_length: i64,
}

impl Inference<'_> {
    /// Splits the indices' dimensions. An index vector dimension one past the last means that the
    /// indices are scalars.
    fn index_space(&self, indices: &ArrayShape, vector_dim: usize) -> Result<IndexSpace> {
        self.check(indices.element_type.is_integer(), "the indices must be integers")?;
        self.check(
            vector_dim <= indices.rank(),
            format_args!("index_vector_dim {vector_dim} exceeds the indices' rank {}", indices.rank()),
        )?;
        let mut batch = indices.dimensions.clone();
        let vector_length = if vector_dim < batch.len() { batch.remove(vector_dim).size } else { 1 };
        Ok(IndexSpace { batch, vector_length })
    }

    /// Checks the batching dimensions, which pair dimensions of the operand and of the indices.
    fn check_batching(
        &self,
        operand: &ArrayShape,
        operand_dims: &[usize],
        indices: &ArrayShape,
        indices_dims: &[usize],
        vector_dim: usize,
    ) -> Result<()> {
        self.check(
            operand_dims.len() == indices_dims.len(),
            "operand and indices must have the same number of batching dimensions",
        )?;
        self.check_dimensions("batching dimensions of the operand", operand_dims, operand.rank())?;
        self.check_ascending("batching dimensions of the operand", operand_dims)?;
        self.check_dimensions("batching dimensions of the indices", indices_dims, indices.rank())?;
        self.check(
            !indices_dims.contains(&vector_dim),
            "the batching dimensions of the indices must not contain index_vector_dim",
        )?;
        for (&o, &i) in operand_dims.iter().zip(indices_dims) {
            self.check(
                operand.size(o) == indices.size(i),
                format_args!(
                    "batching dimension {o} of the operand must have the size of {i} of the indices"
                ),
            )?;
        }
        Ok(())
    }

    pub(super) fn gather(&self, numbers: &GatherDimensionNumbers, slice_sizes: &[i64]) -> Result<Shape> {
        let (operand, indices) = (self.array(0)?, self.array(1)?);
        let IndexSpace { batch, vector_length } = self.index_space(indices, numbers.index_vector_dim)?;
        let result_rank = batch.len() + numbers.offset_dims.len();
        self.check_dimensions("offset_dims", &numbers.offset_dims, result_rank)?;
        self.check_ascending("offset_dims", &numbers.offset_dims)?;
        self.check_dimensions("start_index_map", &numbers.start_index_map, operand.rank())?;
        self.check(
            numbers.start_index_map.len() as i64 == vector_length,
            format_args!("start_index_map must have {vector_length} entries, like the index vector"),
        )?;
        self.check_batching(
            operand,
            &numbers.operand_batching_dims,
            indices,
            &numbers.start_indices_batching_dims,
            numbers.index_vector_dim,
        )?;
        self.check_ascending("collapsed_slice_dims", &numbers.collapsed_slice_dims)?;
        let dropped = [&numbers.collapsed_slice_dims[..], &numbers.operand_batching_dims].concat();
        self.check_dimensions("collapsed and batching dimensions", &dropped, operand.rank())?;
        self.check(
            numbers.operand_batching_dims.iter().all(|d| !numbers.start_index_map.contains(d)),
            "start_index_map must not name a batching dimension",
        )?;
        let offsets = self.gather_slice(operand, slice_sizes, &dropped)?;
        self.check(
            offsets.len() == numbers.offset_dims.len(),
            format_args!(
                "offset_dims must name {} dimensions, one for each that the slices keep",
                offsets.len()
            ),
        )?;
        let (mut offsets, mut batch) = (offsets.into_iter(), batch.into_iter());
        let dimensions = (0..result_rank)
            .map(|d| if numbers.offset_dims.contains(&d) { offsets.next() } else { batch.next() });
        let dimensions =
            dimensions.map(|d| d.expect("expected the offset and batch dimensions to add up to the rank"));
        Ok(array_of(operand.element_type, dimensions.collect()))
    }

    /// Returns the dimensions of a slice that are not dropped.
    fn gather_slice(
        &self,
        operand: &ArrayShape,
        slice_sizes: &[i64],
        dropped: &[usize],
    ) -> Result<Vec<Dimension>> {
        self.check(
            slice_sizes.len() == operand.rank(),
            format_args!(
                "slice_sizes must have one size for each dimension of the operand, got {slice_sizes:?}"
            ),
        )?;
        let mut retained = Vec::new();
        for (d, (&size, dimension)) in slice_sizes.iter().zip(&operand.dimensions).enumerate() {
            self.check(
                0 <= size && size <= dimension.size,
                format_args!("a slice of size {size} does not fit into dimension {d}"),
            )?;
            if dropped.contains(&d) {
                self.check(
                    size <= 1,
                    format_args!("dimension {d} is collapsed, so its slice size must be 1"),
                )?;
            } else {
                let is_dynamic = dimension.is_dynamic && size == dimension.size;
                retained.push(Dimension { size, is_dynamic });
            }
        }
        Ok(retained)
    }

    pub(super) fn scatter(
        &self,
        numbers: &ScatterDimensionNumbers,
        to_apply: ComputationId,
    ) -> Result<Shape> {
        let count = self.operands.len() / 2;
        self.check(
            count >= 1 && self.operands.len() == 2 * count + 1,
            "expected arrays, the indices, and an equal number of updates",
        )?;
        let indices = self.array(count)?;
        let space = self.index_space(indices, numbers.index_vector_dim)?;
        let (operands, updates) = (self.arrays(0..count)?, self.arrays(count + 1..self.operands.len())?);
        for (operand, update) in operands.iter().zip(&updates) {
            self.check(
                operand.element_type == update.element_type,
                "the updates must have the element type of their array",
            )?;
            self.check(
                operand.sizes() == operands[0].sizes() && update.sizes() == updates[0].sizes(),
                "all arrays, and all updates, must have the same dimensions",
            )?;
            self.check_batching(
                operand,
                &numbers.input_batching_dims,
                indices,
                &numbers.scatter_indices_batching_dims,
                numbers.index_vector_dim,
            )?;
            self.check_scatter_window(operand, update, &space, numbers)?;
        }
        let types: Vec<PrimitiveType> = operands.iter().map(|operand| operand.element_type).collect();
        self.check_reducer("to_apply", to_apply, &types)?;
        let results: Vec<Shape> = operands.iter().map(|o| super::with_type(o, o.element_type)).collect();
        Ok(if results.len() == 1 { results[0].clone() } else { Shape::Tuple(results) })
    }

    fn check_scatter_window(
        &self,
        operand: &ArrayShape,
        update: &ArrayShape,
        space: &IndexSpace,
        numbers: &ScatterDimensionNumbers,
    ) -> Result<()> {
        let window_dims = &numbers.update_window_dims;
        let rank = space.batch.len() + window_dims.len();
        self.check(update.rank() == rank, format_args!("the updates must have rank {rank}"))?;
        self.check_dimensions("update_window_dims", window_dims, rank)?;
        self.check_ascending("update_window_dims", window_dims)?;
        self.check_ascending("inserted_window_dims", &numbers.inserted_window_dims)?;
        let dropped = [&numbers.inserted_window_dims[..], &numbers.input_batching_dims].concat();
        self.check_dimensions("inserted and batching dimensions", &dropped, operand.rank())?;
        self.check_dimensions(
            "scatter_dims_to_operand_dims",
            &numbers.scatter_dims_to_operand_dims,
            operand.rank(),
        )?;
        self.check(
            numbers.scatter_dims_to_operand_dims.len() as i64 == space.vector_length,
            format_args!(
                "scatter_dims_to_operand_dims must have {} entries, like the index vector",
                space.vector_length
            ),
        )?;
        let retained: Vec<usize> = (0..operand.rank()).filter(|d| !dropped.contains(d)).collect();
        self.check(
            retained.len() == window_dims.len(),
            format_args!(
                "update_window_dims must name {} dimensions, one for each that is not inserted",
                retained.len()
            ),
        )?;
        for (&d, &w) in retained.iter().zip(window_dims) {
            self.check(
                update.size(w) <= operand.size(d),
                format_args!("dimension {w} of the updates does not fit into dimension {d} of the array"),
            )?;
        }
        let scatter_dims = (0..rank).filter(|d| !window_dims.contains(d));
        for (d, dimension) in scatter_dims.zip(&space.batch) {
            self.check(
                update.size(d) == dimension.size,
                format_args!(
                    "dimension {d} of the updates must have size {}, as in the indices",
                    dimension.size
                ),
            )?;
        }
        Ok(())
    }
}
