//! The rules of instructions whose operands have different dimensions.

use super::{Axis, Result, Rows, Value};
use crate::{DotDimensionNumbers, GatherDimensionNumbers, InstructionId, Op, ScatterDimensionNumbers};

/// Reason for indices that select rows.
const SELECTS: &str = "it selects rows of the batch by their number";

impl Rows<'_> {
    pub(super) fn dot(
        &self,
        numbers: &DotDimensionNumbers,
        id: InstructionId,
        ids: &[InstructionId],
        operands: &[Value],
    ) -> Result<Value> {
        let sides = [
            (&numbers.lhs_batch_dims, &numbers.lhs_contracting_dims),
            (&numbers.rhs_batch_dims, &numbers.rhs_contracting_dims),
        ];
        let mut place: Option<Axis> = None;
        for side in 0..2 {
            if operands[side].is_fixed() {
                continue;
            }
            let axis = self.axis_of(ids[side], &operands[side])?;
            let (batch, contracting) = sides[side];
            let other = ids[1 - side];
            let found = if let Some(number) = batch.iter().position(|&d| d == axis.dimension) {
                // The other operand has the same products.
                let dimension = sides[1 - side].0[number];
                self.expect_at(other, &operands[1 - side], Axis { dimension, ..axis })?;
                Axis { dimension: number, ..axis }
            } else if contracting.contains(&axis.dimension) {
                return Err(self.dependence("it sums over the rows of the batch"));
            } else {
                self.expect_fixed(&operands[1 - side..2 - side])?;
                let is_free = |d: &usize| !batch.contains(d) && !contracting.contains(d);
                let before = (0..axis.dimension).filter(is_free).count();
                let first =
                    if side == 0 { batch.len() } else { self.array(ids[0])?.rank() - sides[0].1.len() };
                Axis { dimension: first + before, ..axis }
            };
            place = Some(found);
        }
        let place = place.ok_or_else(|| self.dependence("its rows cannot be told apart"))?;
        self.at_axis(self.array(id)?, place)
    }

    /// Statistics are taken over all dimensions but that of the features. Each row has its own if
    /// it is a feature.
    pub(super) fn batch_norm(
        &self,
        op: &Op,
        feature: usize,
        id: InstructionId,
        ids: &[InstructionId],
        operands: &[Value],
    ) -> Result<Value> {
        let axis = self.axis_of(ids[0], &operands[0])?;
        let of_features = Axis { dimension: 0, ..axis };
        if axis.dimension != feature {
            self.expect_fixed(&operands[1..])?;
            return match op {
                Op::BatchNormInference { .. } => self.at_axis(self.array(id)?, axis),
                _ => Err(self.dependence("it takes the mean of all rows of the batch")),
            };
        }
        for (&id, value) in ids.iter().zip(operands).skip(1) {
            self.expect_at(id, value, of_features)?;
        }
        let result = self.at_axis(self.array(ids[0])?, axis)?;
        if let Op::BatchNormInference { .. } = op {
            return Ok(result);
        }
        let statistics = self.at_axis(self.array(ids[1])?, of_features)?;
        Ok(Value::Tuple(vec![result, statistics.clone(), statistics]))
    }

    pub(super) fn gather(
        &self,
        numbers: &GatherDimensionNumbers,
        slice_sizes: &[i64],
        id: InstructionId,
        ids: &[InstructionId],
        operands: &[Value],
    ) -> Result<Value> {
        let rank = self.array(id)?.rank();
        // The result's dimensions that come from the indices, and those of the slices.
        let of_indices: Vec<usize> = (0..rank).filter(|d| !numbers.offset_dims.contains(d)).collect();
        let index_dimension = |dimension: usize| {
            let is_after = dimension > numbers.index_vector_dim;
            of_indices.get(dimension - usize::from(is_after)).copied()
        };
        let is_dropped =
            |d: &usize| numbers.collapsed_slice_dims.contains(d) || numbers.operand_batching_dims.contains(d);
        let mut place: Option<Axis> = None;
        if !operands[0].is_fixed() {
            let axis = self.axis_of(ids[0], &operands[0])?;
            let pair = numbers.operand_batching_dims.iter().position(|&d| d == axis.dimension);
            let dimension = if let Some(number) = pair {
                let dimension = numbers.start_indices_batching_dims[number];
                self.expect_at(ids[1], &operands[1], Axis { dimension, ..axis })?;
                index_dimension(dimension)
            } else {
                self.expect_fixed(&operands[1..])?;
                if is_dropped(&axis.dimension)
                    || slice_sizes[axis.dimension] != self.array(ids[0])?.size(axis.dimension)
                {
                    return Err(self.dependence(SELECTS));
                }
                let before = (0..axis.dimension).filter(|d| !is_dropped(d)).count();
                numbers.offset_dims.get(before).copied()
            };
            place = dimension.map(|dimension| Axis { dimension, ..axis });
        } else if !operands[1].is_fixed() {
            let axis = self.axis_of(ids[1], &operands[1])?;
            if axis.dimension == numbers.index_vector_dim {
                return Err(self.dependence(SELECTS));
            }
            let pair = numbers.start_indices_batching_dims.iter().position(|&d| d == axis.dimension);
            if let Some(number) = pair {
                let dimension = numbers.operand_batching_dims[number];
                self.expect_at(ids[0], &operands[0], Axis { dimension, ..axis })?;
            }
            place = index_dimension(axis.dimension).map(|dimension| Axis { dimension, ..axis });
        }
        let place = place.ok_or_else(|| self.dependence("its rows cannot be told apart"))?;
        self.at_axis(self.array(id)?, place)
    }

    /// A scatter whose operand and updates contain the batch: as a dimension of the windows, which
    /// are then whole along it, or as a dimension that operand, indices, and updates share.
    pub(super) fn scatter(
        &self,
        numbers: &ScatterDimensionNumbers,
        id: InstructionId,
        ids: &[InstructionId],
        operands: &[Value],
    ) -> Result<Value> {
        let result = self.array(id)?;
        let updates = self.array(ids[2])?;
        let scatter_dims: Vec<usize> =
            (0..updates.rank()).filter(|d| !numbers.update_window_dims.contains(d)).collect();
        let is_dropped =
            |d: &usize| numbers.inserted_window_dims.contains(d) || numbers.input_batching_dims.contains(d);
        let axis = match (&operands[0], &operands[1], &operands[2]) {
            (Value::Fixed, _, updates) => {
                let axis = self.axis_of(ids[2], updates)?;
                let dimension = if let Some(number) =
                    numbers.update_window_dims.iter().position(|&d| d == axis.dimension)
                {
                    (0..result.rank()).filter(|d| !is_dropped(d)).nth(number)
                } else {
                    let number = scatter_dims.iter().position(|&d| d == axis.dimension).unwrap_or(0);
                    let in_indices = number + usize::from(number >= numbers.index_vector_dim);
                    let pair = numbers.scatter_indices_batching_dims.iter().position(|&d| d == in_indices);
                    pair.map(|pair| numbers.input_batching_dims[pair])
                };
                let dimension = dimension.ok_or_else(|| self.dependence(SELECTS))?;
                Axis { dimension, ..axis }
            }
            (operand, _, _) => self.axis_of(ids[0], operand)?,
        };
        self.expect_at(ids[0], &operands[0], axis)?;
        if let Some(pair) = numbers.input_batching_dims.iter().position(|&d| d == axis.dimension) {
            let in_indices = numbers.scatter_indices_batching_dims[pair];
            self.expect_at(ids[1], &operands[1], Axis { dimension: in_indices, ..axis })?;
            let number = in_indices - usize::from(in_indices > numbers.index_vector_dim);
            self.expect_at(ids[2], &operands[2], Axis { dimension: scatter_dims[number], ..axis })?;
            return self.at_axis(result, axis);
        }
        self.expect_fixed(&operands[1..2])?;
        if is_dropped(&axis.dimension) || numbers.scatter_dims_to_operand_dims.contains(&axis.dimension) {
            return Err(self.dependence(SELECTS));
        }
        let before = (0..axis.dimension).filter(|d| !is_dropped(d)).count();
        let dimension = numbers.update_window_dims[before];
        if updates.size(dimension) != result.size(axis.dimension) {
            return Err(self.dependence("it updates a part of the batch"));
        }
        self.expect_at(ids[2], &operands[2], Axis { dimension, ..axis })?;
        self.at_axis(result, axis)
    }
}
