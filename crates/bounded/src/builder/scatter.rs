//! Scatters. Updates with indices out of range are dropped, as in XLA.

use crate::builder::reducer::Reducer;
use crate::builder::{Builder, list};
use hlo::{InstructionId, Op, ScatterDimensionNumbers};
use shape::PrimitiveType;
use support::Result;

/// The representation of the indices of a scatter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Indices {
    /// The last dimension of the indices has one component for each leading dimension of the
    /// buffer.
    Vectors,
    /// Each index is a position along the buffer's first dimension.
    Scalars,
}

impl Builder {
    /// Combines `updates` into `buffer` at `indices`. A scalar update is broadcast.
    pub fn scatter(
        &mut self,
        buffer: InstructionId,
        indices: InstructionId,
        mut updates: InstructionId,
        kind: Indices,
        reducer: Reducer,
    ) -> Result<InstructionId> {
        let (sizes, index_sizes) = (self.sizes(buffer), self.sizes(indices));
        self.check(!sizes.is_empty(), || {
            "expected a target of one or more dimensions, got a scalar".to_owned()
        })?;
        let (rows, depth) = match (kind, index_sizes.split_last()) {
            (Indices::Scalars, _) => (&index_sizes[..], 1),
            (Indices::Vectors, Some((&depth, rows))) => (rows, depth.max(0) as usize),
            (Indices::Vectors, None) => {
                return Err(self.invalid("indices: expected one or more dimensions, got a scalar"));
            }
        };
        self.check(depth <= sizes.len(), || {
            format!("index vectors of {depth} elements exceed the rank of a target of shape {}", list(&sizes))
        })?;
        let expected = [rows, &sizes[depth..]].concat();
        let update_sizes = self.sizes(updates);
        if update_sizes.is_empty() && !expected.is_empty() {
            updates = self.broadcast(updates, &expected, &[])?;
        } else {
            self.check(update_sizes == expected, || {
                format!(
                    "updates: expected shape {} (indices {}, target {}), got {}",
                    list(&expected),
                    list(&index_sizes),
                    list(&sizes),
                    list(&update_sizes)
                )
            })?;
        }
        if expected.contains(&0) || rows.contains(&0) {
            return Ok(buffer);
        }
        let element_type = self.element_type(buffer);
        // Adding truth values is `or`, as in TensorFlow.
        let reducer = match (reducer, element_type) {
            (Reducer::Add, PrimitiveType::Pred) => Reducer::Or,
            (reducer, _) => reducer,
        };
        let to_apply = self.reducer(reducer, element_type)?;
        let scatter_dimension_numbers = ScatterDimensionNumbers {
            update_window_dims: (rows.len()..expected.len()).collect(),
            inserted_window_dims: (0..depth).collect(),
            scatter_dims_to_operand_dims: (0..depth).collect(),
            index_vector_dim: rows.len(),
            ..Default::default()
        };
        let op = Op::Scatter {
            scatter_dimension_numbers,
            indices_are_sorted: false,
            unique_indices: false,
            to_apply,
        };
        self.op(op, &[buffer, indices, updates])
    }

    /// Combines rows of `updates` into the rows of `buffer` given by the vector `indices`.
    pub fn scatter_rows(
        &mut self,
        buffer: InstructionId,
        indices: InstructionId,
        updates: InstructionId,
        reducer: Reducer,
    ) -> Result<InstructionId> {
        self.scatter(buffer, indices, updates, Indices::Scalars, reducer)
    }
}
