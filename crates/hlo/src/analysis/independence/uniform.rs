//! Values that are the same for all rows of the batch.

use super::{Axis, Rows, axis, is_scalar};
use crate::{ComputationId, InstructionId, Op, Traits};
use shape::Literal;
use shape::index::row_major_strides;

/// Maximum number of instructions between a value and what it is made of.
const MAX_STEPS: usize = 64;

impl Rows<'_> {
    /// True if a value that does not depend on the batch is the same in all rows. `stride` is the
    /// distance between rows in it.
    pub(super) fn is_uniform(&self, place: (ComputationId, InstructionId), stride: i64) -> bool {
        self.uniform(place, stride, MAX_STEPS)
    }

    fn uniform(&self, place: (ComputationId, InstructionId), stride: i64, steps: usize) -> bool {
        let (computation, id) = place;
        let instructions = &self.module[computation];
        let instruction = &instructions[id];
        let (Some(steps), Some(shape)) = (steps.checked_sub(1), instruction.shape().as_array()) else {
            return false;
        };
        let Some(own) = axis(&shape.sizes(), stride, self.size) else { return false };
        let operands = instruction.operands();
        let stride_of = |operand: InstructionId, dimension: usize| {
            let shape = instructions[operand].shape().as_array()?;
            Some(row_major_strides(&shape.sizes()).get(dimension)? * own.inner)
        };
        let along = |operand: InstructionId, dimension: usize| {
            stride_of(operand, dimension)
                .is_some_and(|stride| self.uniform((computation, operand), stride, steps))
        };
        match instruction.op() {
            Op::Constant { literal } => is_uniform_literal(literal, own, self.size),
            Op::Iota { iota_dimension } => *iota_dimension != own.dimension,
            Op::Broadcast { dimensions } => {
                let source = dimensions.iter().position(|&d| d == own.dimension);
                source.is_none_or(|source| along(operands[0], source))
            }
            Op::Reshape {} | Op::Bitcast {} | Op::OptimizationBarrier {} | Op::Reverse { .. } => {
                self.uniform((computation, operands[0]), stride, steps)
            }
            Op::Transpose { dimensions } => along(operands[0], dimensions[own.dimension]),
            Op::Slice { slice } => {
                let part = slice[own.dimension];
                let whole = instructions[operands[0]].shape().as_array().map(|s| s.size(own.dimension));
                part.start == 0
                    && part.stride == 1
                    && Some(part.limit) == whole
                    && along(operands[0], own.dimension)
            }
            Op::Pad { padding } => {
                padding.dimensions[own.dimension] == crate::PaddingDimension::default()
                    && along(operands[0], own.dimension)
            }
            Op::Concatenate { dimension } => {
                *dimension != own.dimension && operands.iter().all(|&operand| along(operand, own.dimension))
            }
            op if op.opcode().traits().contains(Traits::ELEMENTWISE) || matches!(op, Op::Clamp {}) => {
                operands.iter().all(|&operand| {
                    is_scalar(instructions[operand].shape())
                        || self.uniform((computation, operand), stride, steps)
                })
            }
            Op::GetTupleElement { index } => match instructions[operands[0]].op() {
                Op::Tuple {} => {
                    let element = instructions[operands[0]].operands()[*index];
                    self.uniform((computation, element), stride, steps)
                }
                Op::Parameter { number: 0 } => match self.origins.get(&(computation, *index)) {
                    Some(&origin) => self.uniform(origin, stride, steps),
                    // Counts as rows from now on; its initial value is checked at the end.
                    None if self.bodies.contains(&computation) => {
                        self.promoted.borrow_mut().insert((computation, *index), stride);
                        true
                    }
                    None => false,
                },
                _ => false,
            },
            _ => false,
        }
    }
}

/// True if the elements of a constant are the same in all rows.
fn is_uniform_literal(literal: &Literal, axis: Axis, size: i64) -> bool {
    if literal.is_splat() {
        return true;
    }
    let sizes = literal.array_shape().sizes();
    let bytes = literal.bytes();
    let inner: i64 = sizes[axis.dimension + 1..].iter().product();
    let row = (inner * axis.inner) as usize * literal.array_shape().element_type.byte_size();
    let batch = row * size as usize;
    row > 0
        && bytes.len().is_multiple_of(batch)
        && bytes.chunks_exact(batch).all(|rows| rows.chunks_exact(row).all(|next| next == &rows[..row]))
}
