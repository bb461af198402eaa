//! Gathers from bounded arrays: indices are clamped to the true sizes, as others are to the sizes
//! of an array.

use super::{Bounded, Sizes};
use crate::builder::Builder;
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op};
use shape::{PrimitiveType, Shape};
use support::Result;

impl Builder {
    /// Adds a gather. If it selects from a dimension without elements, the result is zero.
    pub(super) fn bounded_gather(
        &mut self,
        op: Op,
        mut parts: Vec<Bounded>,
        requested: Option<&Shape>,
    ) -> Result<InstructionId> {
        let Op::Gather { gather_dimension_numbers: numbers, slice_sizes, .. } = &op else {
            return self.static_op(op, &[parts[0].data, parts[1].data], requested);
        };
        let sizes = self.gathered_sizes(&parts, numbers, slice_sizes);
        let whole = self.sizes(parts[0].data);
        let is_cut = |d: usize| parts[0].sizes[d].filter(|_| slice_sizes[d] < whole[d]);
        let cut: Vec<Option<InstructionId>> = numbers.start_index_map.iter().map(|&d| is_cut(d)).collect();
        if cut.iter().any(Option::is_some) {
            let spans: Vec<(i64, i64)> =
                numbers.start_index_map.iter().map(|&d| (slice_sizes[d], whole[d])).collect();
            parts[1].data = self.clamped_indices(parts[1].data, numbers.index_vector_dim, &cut, &spans)?;
        }
        let mut result = self.static_op(op, &[parts[0].data, parts[1].data], requested)?;
        for size in cut.into_iter().flatten() {
            if self.range(size).low.is_some_and(|low| low > 0) {
                continue;
            }
            let zero = self.splat_like(result, 0.0)?;
            let has_elements = self.compare_scalar(ComparisonDirection::Gt, size, 0.0)?;
            let shape = self.sizes(result);
            let has_elements = self.broadcast(has_elements, &shape, &[])?;
            result = self.select(has_elements, result, zero)?;
        }
        self.bounded(result, &sizes)
    }

    /// Returns indices that are at most the true size minus that of a slice. `cut` has the true
    /// size for each element of an index vector, and `spans` the sizes of slice and array.
    fn clamped_indices(
        &mut self,
        mut indices: InstructionId,
        vector_dimension: usize,
        cut: &[Option<InstructionId>],
        spans: &[(i64, i64)],
    ) -> Result<InstructionId> {
        if self.element_type(indices).byte_size() < 4 {
            indices = self.convert(indices, PrimitiveType::S32)?;
        }
        let (index_type, sizes) = (self.element_type(indices), self.sizes(indices));
        let mut limits = Vec::new();
        for (size, &(slice, whole)) in cut.iter().zip(spans) {
            let limit = match *size {
                Some(size) => {
                    let limit = self.add_scalar(size, -slice as f64)?;
                    let zero = self.s32(0)?;
                    self.op(Op::Maximum {}, &[limit, zero])?
                }
                None => self.s32(whole - slice)?,
            };
            limits.push(self.convert(limit, index_type)?);
        }
        let limits = match &limits[..] {
            [limit] => self.broadcast(*limit, &sizes, &[])?,
            limits => {
                let mut elements = Vec::new();
                for &limit in limits {
                    elements.push(self.reshape(limit, &[1])?);
                }
                let vector = self.concatenate(&elements, 0)?;
                self.broadcast(vector, &sizes, &[vector_dimension])?
            }
        };
        self.op(Op::Minimum {}, &[indices, limits])
    }

    /// Returns the sizes of a gather. A bounded dimension keeps its size if it is gathered as a
    /// whole. Dimensions of the indices keep theirs.
    fn gathered_sizes(
        &self,
        parts: &[Bounded],
        numbers: &GatherDimensionNumbers,
        slice_sizes: &[i64],
    ) -> Sizes {
        let whole_sizes = self.sizes(parts[0].data);
        let is_dropped =
            |d: &usize| numbers.collapsed_slice_dims.contains(d) || numbers.operand_batching_dims.contains(d);
        let mut slices = (0..whole_sizes.len())
            .filter(|d| !is_dropped(d))
            .map(|d| parts[0].sizes[d].filter(|_| slice_sizes[d] == whole_sizes[d]));
        let mut places =
            (0..parts[1].sizes.len()).filter(|&d| d != numbers.index_vector_dim).map(|d| parts[1].sizes[d]);
        let places_count =
            parts[1].sizes.len() - usize::from(numbers.index_vector_dim < parts[1].sizes.len());
        let rank = numbers.offset_dims.len() + places_count;
        (0..rank)
            .map(|d| {
                if numbers.offset_dims.contains(&d) {
                    slices.next().flatten()
                } else {
                    places.next().flatten()
                }
            })
            .collect()
    }
}
