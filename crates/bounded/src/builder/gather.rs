//! Gathers along one dimension. Indices out of range are clamped, as in XLA.

use crate::builder::{Builder, list};
use hlo::{GatherDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

impl Builder {
    /// Returns the elements of a vector at positions, one by one, so that known ones remain known.
    fn selected(
        &mut self,
        vector: InstructionId,
        positions: &[i64],
        is_scalar: bool,
    ) -> Result<InstructionId> {
        let mut elements = Vec::new();
        for &position in positions {
            let element = self.scalar_of_vector(vector, position)?;
            elements.push(if is_scalar { element } else { self.reshape(element, &[1])? });
        }
        if is_scalar { Ok(elements[0]) } else { self.concatenate(&elements, 0) }
    }

    /// `result[b..., p..., i..., q...] = params[b..., p..., indices[b..., i...], q...]`, with the
    /// index at dimension `axis`.
    pub fn gather_along(
        &mut self,
        params: InstructionId,
        indices: InstructionId,
        axis: i64,
        batch_dims: i64,
    ) -> Result<InstructionId> {
        let (sizes, index_sizes) = (self.sizes(params), self.sizes(indices));
        let index_rank = index_sizes.len() as i64;
        let batch = if batch_dims < 0 { batch_dims + index_rank } else { batch_dims };
        let axis = self.dimension(axis, sizes.len())?;
        let fits = (0..=index_rank).contains(&batch) && batch as usize <= axis;
        self.check(fits, || {
            format!("batch_dims: expected at most axis {axis} and the indices' {index_rank} dimensions, got {batch_dims}")
        })?;
        let batch = batch as usize;
        self.check(sizes[..batch] == index_sizes[..batch], || {
            format!("the first {batch} dimensions differ: {} vs. {}", list(&sizes), list(&index_sizes))
        })?;
        let result = [&sizes[..axis], &index_sizes[batch..], &sizes[axis + 1..]].concat();
        if result.contains(&0) || sizes[axis] == 0 {
            let element_type = self.element_type(params);
            let zeros = self.splat(element_type, &result, 0.0)?;
            let (of_params, of_indices) = (self.split(params)?.sizes, self.split(indices)?.sizes);
            let sizes = [&of_params[..axis], &of_indices[batch..], &of_params[axis + 1..]].concat();
            return self.bounded(zeros, &sizes);
        }
        if index_sizes.len() <= 1
            && let Some(positions) = self.fold(indices).and_then(|literal| literal.to_i64s())
            && self.is_shape(params)
            && positions.iter().all(|position| (0..sizes[0]).contains(position))
        {
            return self.selected(params, &positions, index_sizes.is_empty());
        }
        let mut gather_dimension_numbers = GatherDimensionNumbers {
            collapsed_slice_dims: vec![axis],
            start_index_map: vec![axis],
            index_vector_dim: index_sizes.len(),
            ..Default::default()
        };
        let mut indices = indices;
        if batch > 0 {
            indices = self.with_batch_positions(indices, batch)?;
            gather_dimension_numbers.collapsed_slice_dims = (0..batch).chain([axis]).collect();
            gather_dimension_numbers.start_index_map = (0..batch).chain([axis]).collect();
        }
        let after = axis + index_sizes.len() - batch;
        gather_dimension_numbers.offset_dims = (batch..axis).chain(after..result.len()).collect();
        let mut slice_sizes = sizes.clone();
        for &d in &gather_dimension_numbers.collapsed_slice_dims {
            slice_sizes[d] = 1;
        }
        self.op(
            Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: false },
            &[params, indices],
        )
    }

    /// Converts 64-bit indices as XLA's `TorchIndexSelect` does: to unsigned 32-bit numbers, so
    /// that a negative index is beyond the end and clamped to it.
    pub fn as_unsigned(&mut self, indices: InstructionId) -> Result<InstructionId> {
        match self.element_type(indices) {
            PrimitiveType::S64 => self.convert(indices, PrimitiveType::U32),
            _ => Ok(indices),
        }
    }

    /// Returns index vectors `[position in each batch dimension..., index]`.
    fn with_batch_positions(&mut self, indices: InstructionId, batch: usize) -> Result<InstructionId> {
        let mut index_type = self.element_type(indices);
        if index_type.byte_size() < 4 {
            index_type = PrimitiveType::S32;
        }
        let indices = if index_type == PrimitiveType::S64 {
            self.as_unsigned(indices)?
        } else {
            self.convert(indices, index_type)?
        };
        let index_type = self.element_type(indices);
        let mut sizes = self.sizes(indices);
        sizes.push(1);
        let mut parts = Vec::new();
        for d in 0..batch {
            parts.push(self.iota(index_type, &sizes, d)?);
        }
        parts.push(self.reshape(indices, &sizes)?);
        self.concatenate(&parts, sizes.len() - 1)
    }
}
