//! `gather` and `scatter`.

use crate::array::{View, array, arrays, dot, for_each_index, from_bytes, from_scalars, move_elements, pack};
use crate::dynamic_index::index_of;
use crate::evaluator::Evaluator;
use hlo::{ComputationId, GatherDimensionNumbers, ScatterDimensionNumbers};
use shape::index::row_major_strides;
use shape::{Literal, Scalar, Shape};
use support::{Error, Result};

/// Computes slice starts from an index array, for both gather and scatter.
struct Starts<'a> {
    indices: &'a Literal,
    view: View<'a>,
    index_vector_dim: usize,
    /// The operand dimension that each component of an index vector positions.
    start_index_map: &'a [usize],
    /// Operand dimensions whose position equals that of the index vector along
    /// `indices_batching_dims`.
    operand_batching_dims: &'a [usize],
    indices_batching_dims: &'a [usize],
}

impl Starts<'_> {
    /// Returns the start in the operand for one index vector, given its position in the index
    /// array's other dimensions.
    fn start(&self, operand_rank: usize, batch: &[i64]) -> Result<Vec<i64>> {
        let mut position = batch.to_vec();
        let has_vectors = self.index_vector_dim < self.view.sizes.len();
        if has_vectors {
            position.insert(self.index_vector_dim, 0);
        }
        let mut start = vec![0; operand_rank];
        for (component, &d) in self.start_index_map.iter().enumerate() {
            if has_vectors {
                position[self.index_vector_dim] = component as i64;
            }
            start[d] = index_of(self.indices.scalar_at(dot(&position, &self.view.strides) as usize))?;
        }
        for (&d, &i) in self.operand_batching_dims.iter().zip(self.indices_batching_dims) {
            start[d] = position[i];
        }
        Ok(start)
    }
}

/// Splits an index into the components at `window_dims` and all others.
fn split(index: &[i64], window_dims: &[usize]) -> (Vec<i64>, Vec<i64>) {
    let window = window_dims.iter().map(|&d| index[d]).collect();
    let others = (0..index.len()).filter(|d| !window_dims.contains(d)).map(|d| index[d]).collect();
    (window, others)
}

/// Returns the dimensions that a window spans: all except the elided and the batching ones.
fn window_dims(rank: usize, elided: &[usize], batching: &[usize]) -> Vec<usize> {
    (0..rank).filter(|d| !elided.contains(d) && !batching.contains(d)).collect()
}

/// Evaluates `gather`: slices of the operand, with each start clamped so that the slice fits.
pub(crate) fn gather(
    shape: &Shape,
    operand: &Literal,
    indices: &Literal,
    numbers: &GatherDimensionNumbers,
    slice_sizes: &[i64],
) -> Result<Literal> {
    let (result, view) = (array(shape)?, View::new(operand)?);
    let rank = view.sizes.len();
    if slice_sizes.len() != rank || slice_sizes.iter().zip(&view.sizes).any(|(slice, size)| slice > size) {
        return Err(Error::invalid(format!("slices of {slice_sizes:?} do not fit {:?}", view.sizes)));
    }
    if view.sizes.contains(&0) {
        // There is nothing to read if a dimension of size 0 is dropped.
        let bytes = vec![0; result.byte_size() as usize];
        return from_bytes(&result, bytes);
    }
    let starts = Starts {
        indices,
        view: View::new(indices)?,
        index_vector_dim: numbers.index_vector_dim,
        start_index_map: &numbers.start_index_map,
        operand_batching_dims: &numbers.operand_batching_dims,
        indices_batching_dims: &numbers.start_indices_batching_dims,
    };
    let sliced = window_dims(rank, &numbers.collapsed_slice_dims, &numbers.operand_batching_dims);
    let mut failure = None;
    let gathered = move_elements(&result, |index| {
        let (offsets, batch) = split(index, &numbers.offset_dims);
        let mut at = starts.start(rank, &batch).unwrap_or_else(|e| {
            failure = Some(e);
            vec![0; rank]
        });
        for (start, (size, slice)) in at.iter_mut().zip(view.sizes.iter().zip(slice_sizes)) {
            *start = (*start).clamp(0, size - slice);
        }
        sliced.iter().zip(offsets).for_each(|(&d, offset)| at[d] += offset);
        view.get(&at)
    })?;
    failure.map_or(Ok(gathered), Err)
}

impl Evaluator<'_> {
    /// Evaluates `scatter`: combines windows of the updates into the operands. Windows that do not
    /// fit are skipped.
    pub(crate) fn scatter(
        &mut self,
        shape: &Shape,
        operands: &[&Literal],
        numbers: &ScatterDimensionNumbers,
        to_apply: ComputationId,
    ) -> Result<Literal> {
        let results = arrays(shape)?;
        let count = operands.len() / 2;
        if operands.len() != 2 * count + 1 || results.len() != count || count == 0 {
            return Err(Error::invalid("expected one index array, and one update and one result per input"));
        }
        let (inputs, indices, updates) = (&operands[..count], operands[count], &operands[count + 1..]);
        let sizes = View::new(inputs[0])?.sizes;
        let update_sizes = View::new(updates[0])?.sizes;
        for (input, update) in inputs.iter().zip(updates) {
            if View::new(input)?.sizes != sizes || View::new(update)?.sizes != update_sizes {
                return Err(Error::invalid(
                    "all inputs must have the same dimensions, and so must all updates",
                ));
            }
        }
        let callee = self.callee(to_apply, 2 * count)?;
        let starts = Starts {
            indices,
            view: View::new(indices)?,
            index_vector_dim: numbers.index_vector_dim,
            start_index_map: &numbers.scatter_dims_to_operand_dims,
            operand_batching_dims: &numbers.input_batching_dims,
            indices_batching_dims: &numbers.scatter_indices_batching_dims,
        };
        let spanned = window_dims(sizes.len(), &numbers.inserted_window_dims, &numbers.input_batching_dims);
        let (window_sizes, batch_sizes) = split(&update_sizes, &numbers.update_window_dims);
        let (strides, update_strides) = (row_major_strides(&sizes), row_major_strides(&update_sizes));
        let (window_strides, batch_strides) = split(&update_strides, &numbers.update_window_dims);
        let mut values: Vec<Vec<Scalar>> = inputs.iter().map(|input| input.scalars().collect()).collect();
        for_each_index(&batch_sizes, |batch| {
            self.charge(1)?;
            let start = starts.start(sizes.len(), batch)?;
            let mut extent = vec![1; sizes.len()];
            spanned.iter().zip(&window_sizes).for_each(|(&d, &size)| extent[d] = size);
            let fits = |d: usize| (0..=sizes[d] - extent[d]).contains(&start[d]);
            if !(0..sizes.len()).all(fits) {
                return Ok(());
            }
            for_each_index(&window_sizes, |window| {
                let mut at = start.clone();
                spanned.iter().zip(window).for_each(|(&d, offset)| at[d] += offset);
                let at = dot(&at, &strides) as usize;
                let source = (dot(window, &window_strides) + dot(batch, &batch_strides)) as usize;
                let mut arguments: Vec<Scalar> = values.iter().map(|values| values[at]).collect();
                arguments.extend(updates.iter().map(|update| update.scalar_at(source)));
                let combined = self.apply(&callee, &arguments)?;
                values.iter_mut().zip(combined).for_each(|(values, new)| values[at] = new);
                Ok(())
            })
        })?;
        let literals =
            results.iter().zip(values).map(|(result, values)| from_scalars(result, values)).collect();
        Ok(pack(shape, literals))
    }
}
