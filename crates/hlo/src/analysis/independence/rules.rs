//! The rules of instructions: where the batch is in the result.

use super::{Axis, Dependence, Result, Rows, Value, is_scalar};
use crate::{InstructionId, Op, Traits, WindowDimension};
use shape::Shape;

/// Reason for a reduction, sort, or similar along the batch.
const ALONG: &str = "it combines the rows of the batch";

impl Rows<'_> {
    /// Returns the value of an instruction of which an operand depends on the batch.
    pub(super) fn rule(&mut self, op: &Op, id: InstructionId, operands: &[Value]) -> Result<Value> {
        let computation = &self.module[self.at.0];
        let ids = computation[id].operands();
        let shape = computation[id].shape();
        match op {
            op if op.opcode().traits().contains(Traits::ELEMENTWISE) => self.elementwise(ids, operands),
            Op::Clamp {} | Op::Map { .. } => self.elementwise(ids, operands),
            Op::BitcastConvert {} if self.array(ids[0])?.sizes() == self.array(id)?.sizes() => {
                self.elementwise(ids, operands)
            }
            Op::Reshape {} | Op::Bitcast {} => {
                let stride = operands[0].stride().ok_or_else(|| self.dependence("a tuple is reshaped"))?;
                self.axis(self.array(id)?, stride)?;
                Ok(Value::Rows(stride))
            }
            Op::Broadcast { dimensions } => {
                let Axis { dimension, inner } = self.axis_of(ids[0], &operands[0])?;
                self.at_axis(self.array(id)?, Axis { dimension: dimensions[dimension], inner })
            }
            Op::Transpose { dimensions } => {
                let Axis { dimension, inner } = self.axis_of(ids[0], &operands[0])?;
                let place = dimensions.iter().position(|&d| d == dimension).unwrap_or(0);
                self.at_axis(self.array(id)?, Axis { dimension: place, inner })
            }
            Op::Reduce { dimensions, .. } => {
                let arrays = self.arrays(ids, operands)?;
                let axis = self.common_axis(&ids[..arrays], &operands[..arrays])?;
                if dimensions.contains(&axis.dimension) {
                    return Err(self.dependence(ALONG));
                }
                let removed = dimensions.iter().filter(|&&d| d < axis.dimension).count();
                self.of_results(shape, Axis { dimension: axis.dimension - removed, ..axis })
            }
            Op::ReduceWindow { window, .. } => {
                let arrays = self.arrays(ids, operands)?;
                let axis = self.common_axis(&ids[..arrays], &operands[..arrays])?;
                if window.dimensions[axis.dimension] != WindowDimension::of_size(1) {
                    return Err(self.dependence(ALONG));
                }
                self.of_results(shape, axis)
            }
            Op::SelectAndScatter { window, .. } => {
                self.expect_fixed(&operands[2..])?;
                let axis = self.common_axis(&ids[..2], &operands[..2])?;
                if window.dimensions[axis.dimension] != WindowDimension::of_size(1) {
                    return Err(self.dependence(ALONG));
                }
                self.of_results(shape, axis)
            }
            Op::Sort { dimension, .. } => {
                let axis = self.common_axis(ids, operands)?;
                if *dimension == axis.dimension {
                    return Err(self.dependence(ALONG));
                }
                self.of_results(shape, axis)
            }
            Op::TopK { .. } => {
                let axis = self.axis_of(ids[0], &operands[0])?;
                if axis.dimension + 1 == self.array(ids[0])?.rank() {
                    return Err(self.dependence(ALONG));
                }
                self.of_results(shape, axis)
            }
            Op::Fft { fft_length, .. } => {
                let axis = self.axis_of(ids[0], &operands[0])?;
                self.before_last(ids[0], axis, fft_length.len())?;
                self.of_results(shape, axis)
            }
            Op::Cholesky { .. } | Op::TriangularSolve { .. } => {
                let axis = self.common_axis(ids, operands)?;
                self.before_last(ids[0], axis, 2)?;
                self.of_results(shape, axis)
            }
            Op::BatchNormInference { feature_index, .. } | Op::BatchNormTraining { feature_index, .. } => {
                self.batch_norm(op, *feature_index, id, ids, operands)
            }
            Op::Pad { padding } => {
                self.expect_fixed(&operands[1..])?;
                let axis = self.axis_of(ids[0], &operands[0])?;
                if padding.dimensions[axis.dimension] != crate::PaddingDimension::default() {
                    return Err(self.dependence("it pads the batch"));
                }
                self.of_results(shape, axis)
            }
            Op::Slice { slice } => {
                let axis = self.axis_of(ids[0], &operands[0])?;
                let part = slice[axis.dimension];
                let whole = self.array(ids[0])?.size(axis.dimension);
                if (part.start, part.limit, part.stride) != (0, whole, 1) {
                    return Err(self.dependence("it takes a part of the batch"));
                }
                self.of_results(shape, axis)
            }
            Op::DynamicSlice { dynamic_slice_sizes } => {
                self.expect_fixed(&operands[1..])?;
                let axis = self.axis_of(ids[0], &operands[0])?;
                if dynamic_slice_sizes[axis.dimension] != self.array(ids[0])?.size(axis.dimension) {
                    return Err(self.dependence("it takes a part of the batch"));
                }
                self.of_results(shape, axis)
            }
            Op::DynamicUpdateSlice {} => {
                self.expect_fixed(&operands[2..])?;
                let axis = self.common_axis(&ids[..2], &operands[..2])?;
                if self.array(ids[0])?.size(axis.dimension) != self.array(ids[1])?.size(axis.dimension) {
                    return Err(self.dependence("it updates a part of the batch"));
                }
                self.of_results(shape, axis)
            }
            Op::Concatenate { dimension } => {
                let axis = self.common_axis(ids, operands)?;
                if *dimension == axis.dimension {
                    return Err(self.dependence("it extends the batch"));
                }
                self.of_results(shape, axis)
            }
            Op::Reverse { dimensions } => {
                let axis = self.axis_of(ids[0], &operands[0])?;
                if dimensions.contains(&axis.dimension) {
                    return Err(self.dependence("it reverses the batch"));
                }
                self.of_results(shape, axis)
            }
            Op::Dot { dot_dimension_numbers } => self.dot(dot_dimension_numbers, id, ids, operands),
            Op::Convolution { dim_labels, batch_group_count: 1, .. } => {
                self.expect_fixed(&operands[1..])?;
                let axis = self.axis_of(ids[0], &operands[0])?;
                if axis.dimension != dim_labels.input_batch_dimension {
                    return Err(self.dependence(ALONG));
                }
                self.of_results(shape, Axis { dimension: dim_labels.output_batch_dimension, ..axis })
            }
            Op::Gather { gather_dimension_numbers, slice_sizes, .. } => {
                self.gather(gather_dimension_numbers, slice_sizes, id, ids, operands)
            }
            Op::Scatter { scatter_dimension_numbers, .. } if operands.len() == 3 => {
                self.scatter(scatter_dimension_numbers, id, ids, operands)
            }
            _ => Err(self.dependence("its rows cannot be told apart")),
        }
    }

    fn elementwise(&self, ids: &[InstructionId], operands: &[Value]) -> Result<Value> {
        let arrays: Vec<usize> =
            (0..ids.len()).filter(|&k| !is_scalar(self.module[self.at.0][ids[k]].shape())).collect();
        let of = |list: &[InstructionId]| arrays.iter().map(|&k| list[k]).collect::<Vec<_>>();
        let values: Vec<Value> = arrays.iter().map(|&k| operands[k].clone()).collect();
        self.common_stride(&of(ids), &values).map(Value::Rows)
    }

    /// Returns the number of arrays of a reduction, whose initial values are fixed.
    fn arrays(&self, ids: &[InstructionId], operands: &[Value]) -> Result<usize> {
        let arrays = ids.len() / 2;
        self.expect_fixed(&operands[arrays..])?;
        Ok(arrays)
    }

    pub(super) fn expect_fixed(&self, operands: &[Value]) -> Result<()> {
        if operands.iter().all(Value::is_fixed) {
            return Ok(());
        }
        Err(self.dependence("an operand that is the same for all rows depends on the batch"))
    }

    /// Returns the batch's place in an operand.
    pub(super) fn axis_of(&self, id: InstructionId, value: &Value) -> Result<Axis> {
        let stride = value.stride().ok_or_else(|| self.dependence("its rows cannot be told apart"))?;
        self.axis(self.array(id)?, stride)
    }

    /// Returns the batch's distance in arrays of equal sizes. Arrays that do not depend on the
    /// batch are the same for all rows.
    fn common_stride(&self, ids: &[InstructionId], values: &[Value]) -> Result<i64> {
        let known = values.iter().find_map(Value::stride);
        let stride = known.ok_or_else(|| self.dependence("its rows cannot be told apart"))?;
        for (&id, value) in ids.iter().zip(values) {
            match value {
                Value::Rows(own) if *own == stride => {}
                Value::Fixed if self.is_uniform((self.at.0, id), stride) => {}
                Value::Fixed => {
                    return Err(self.dependence("a value that differs between rows meets the batch"));
                }
                _ => return Err(self.dependence("the batch is in different dimensions of its operands")),
            }
        }
        Ok(stride)
    }

    /// Returns the batch's place in arrays of which it is the same dimension. Their other
    /// dimensions may differ.
    pub(super) fn common_axis(&self, ids: &[InstructionId], values: &[Value]) -> Result<Axis> {
        let known = ids.iter().zip(values).find(|(_, value)| value.stride().is_some());
        let (&first, value) = known.ok_or_else(|| self.dependence("its rows cannot be told apart"))?;
        let axis = self.axis_of(first, value)?;
        for (&id, value) in ids.iter().zip(values) {
            self.expect_at(id, value, axis)?;
        }
        Ok(axis)
    }

    /// Fails unless the batch is at this place of an operand, or the operand is the same along it.
    pub(super) fn expect_at(&self, id: InstructionId, value: &Value, axis: Axis) -> Result<()> {
        let Value::Rows(stride) = self.at_axis(self.array(id)?, axis)? else { return Ok(()) };
        match value {
            Value::Rows(own) if *own == stride => Ok(()),
            Value::Fixed if self.is_uniform((self.at.0, id), stride) => Ok(()),
            Value::Fixed => Err(self.dependence("a value that differs between rows meets the batch")),
            _ => Err(self.dependence("the batch is in different dimensions of its operands")),
        }
    }

    /// Fails if the batch is among the last dimensions.
    fn before_last(&self, id: InstructionId, axis: Axis, count: usize) -> Result<()> {
        if axis.dimension + count < self.array(id)?.rank() + usize::from(count == 0) {
            return Ok(());
        }
        Err(self.dependence(ALONG))
    }

    /// Returns the value of a result, or of all elements of one, with the batch at this place.
    fn of_results(&self, shape: &Shape, axis: Axis) -> Result<Value> {
        match shape {
            Shape::Array(array) => self.at_axis(array, axis),
            Shape::Tuple(elements) => {
                let elements = elements.iter().map(|element| self.of_results(element, axis));
                Ok(Value::Tuple(elements.collect::<std::result::Result<_, Dependence>>()?))
            }
            Shape::Token => Ok(Value::Fixed),
        }
    }
}
