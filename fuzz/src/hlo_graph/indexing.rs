//! Dynamic slices, gathers, and scatters, with indices that may be out of range.

use super::Writer;
use hlo::{GatherDimensionNumbers, InstructionId, Op, ScatterDimensionNumbers};
use shape::{ArrayShape, PrimitiveType};

/// Types of indices.
const INDICES: &[PrimitiveType] =
    &[PrimitiveType::S32, PrimitiveType::S32, PrimitiveType::S64, PrimitiveType::U8, PrimitiveType::U32];

impl Writer<'_> {
    /// Adds a slice at data-dependent positions, and sometimes the inverse update.
    pub(super) fn dynamic_slice(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let sizes: Vec<i64> = array.sizes().iter().map(|&s| self.draw.between(0.max(s / 3), s)).collect();
        let index_type = self.draw.choose(INDICES);
        let mut operands = vec![x];
        for _ in 0..array.rank() {
            operands.push(self.exact_like(&ArrayShape::new(index_type, &[])));
        }
        let slice = self.add(Op::DynamicSlice { dynamic_slice_sizes: sizes }, &operands)?;
        if self.draw.once_in(2) {
            return Some(slice);
        }
        let update = if self.draw.once_in(2) { slice } else { self.like(&self.array(slice)) };
        operands.insert(1, update);
        self.add(Op::DynamicUpdateSlice {}, &operands)
    }

    /// Adds index vectors with `parts` components. Returns them and the position of their component
    /// dimension.
    fn indices(&mut self, batches: &[i64], parts: usize) -> (InstructionId, usize) {
        let mut sizes = batches.to_vec();
        let at = if parts == 1 && self.draw.once_in(3) {
            sizes.len()
        } else {
            let at = self.draw.below(sizes.len() + 1);
            sizes.insert(at, parts as i64);
            at
        };
        let element_type = self.draw.choose(INDICES);
        (self.exact_like(&ArrayShape::new(element_type, &sizes)), at)
    }

    fn batches(&mut self) -> Vec<i64> {
        let rank = self.draw.choose(&[0, 1, 1, 1, 2]);
        (0..rank).map(|_| self.draw.choose(&[0, 1, 2, 3, 5, 9])).collect()
    }

    pub(super) fn gather(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let rank = array.rank();
        if rank == 0 {
            return None;
        }
        let order = self.draw.permutation(rank);
        let indexed = order[..self.draw.between(1, rank as i64) as usize].to_vec();
        let (mut slice_sizes, mut collapsed) = (array.sizes(), Vec::new());
        for &d in &indexed {
            slice_sizes[d] = self.draw.between(0, array.size(d)).min(self.draw.choose(&[1, 1, 2, 4]));
            if slice_sizes[d] == 1 && self.draw.once_in(2) {
                collapsed.push(d);
            }
        }
        collapsed.sort_unstable();
        // Sometimes, operand and indices share a batching dimension.
        let free: Vec<usize> = (0..rank).filter(|d| !indexed.contains(d)).collect();
        let batching =
            if !free.is_empty() && self.draw.once_in(4) { vec![self.draw.choose(&free)] } else { Vec::new() };
        let mut batches = self.batches();
        for &d in &batching {
            slice_sizes[d] = 1;
            batches.insert(0, array.size(d));
        }
        let (indices, at) = self.indices(&batches, indexed.len());
        // The component dimension may precede the batch dimension.
        let indices_batching = batching.iter().map(|_| usize::from(at == 0)).collect();
        let offset_count = rank - collapsed.len() - batching.len();
        let mut offset_dims = self.draw.permutation(offset_count + batches.len());
        offset_dims.truncate(offset_count);
        offset_dims.sort_unstable();
        let gather_dimension_numbers = GatherDimensionNumbers {
            offset_dims,
            collapsed_slice_dims: collapsed,
            start_index_map: indexed,
            operand_batching_dims: batching,
            start_indices_batching_dims: indices_batching,
            index_vector_dim: at,
        };
        let op = Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: false };
        self.add(op, &[x, indices])
    }

    pub(super) fn scatter(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let rank = array.rank();
        if rank == 0 {
            return None;
        }
        let order = self.draw.permutation(rank);
        let indexed = order[..self.draw.between(1, rank as i64) as usize].to_vec();
        let mut inserted: Vec<usize> = indexed.iter().copied().filter(|_| !self.draw.once_in(3)).collect();
        inserted.sort_unstable();
        let batches = self.batches();
        let (indices, at) = self.indices(&batches, indexed.len());
        let windows: Vec<usize> = (0..rank).filter(|d| !inserted.contains(d)).collect();
        let mut window_dims = self.draw.permutation(windows.len() + batches.len());
        window_dims.truncate(windows.len());
        window_dims.sort_unstable();
        let (mut batch, mut window) = (batches.iter(), windows.iter());
        let sizes: Vec<i64> = (0..windows.len() + batches.len())
            .map(|d| {
                if window_dims.contains(&d) {
                    let size = window.next().map_or(0, |&w| array.size(w));
                    if self.draw.once_in(3) { self.draw.between(0, size) } else { size }
                } else {
                    batch.next().copied().unwrap_or(0)
                }
            })
            .collect();
        let updates = self.like(&ArrayShape::new(array.element_type, &sizes));
        let to_apply = self.combination(array.element_type);
        let scatter_dimension_numbers = ScatterDimensionNumbers {
            update_window_dims: window_dims,
            inserted_window_dims: inserted,
            scatter_dims_to_operand_dims: indexed,
            index_vector_dim: at,
            ..ScatterDimensionNumbers::default()
        };
        let op = Op::Scatter {
            scatter_dimension_numbers,
            indices_are_sorted: false,
            unique_indices: false,
            to_apply,
        };
        self.add(op, &[x, indices, updates])
    }
}
