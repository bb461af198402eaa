//! Builds a computation with inferred shapes.

use crate::computation::Computation;
use crate::ids::InstructionId;
use crate::infer::infer_shape;
use crate::instruction::OpMetadata;
use crate::module::Module;
use crate::opcode::Op;
use shape::{Literal, Shape};
use support::Result;

/// A computation under construction. All added instructions get the current metadata.
#[derive(Debug)]
pub struct ComputationBuilder {
    computation: Computation,
    metadata: OpMetadata,
}

impl ComputationBuilder {
    /// Starts an empty computation.
    pub fn new(name: impl Into<String>) -> Self {
        Self { computation: Computation::new(name), metadata: OpMetadata::default() }
    }

    /// Sets the metadata of the instructions that are added from now on.
    pub fn set_metadata(&mut self, metadata: OpMetadata) {
        self.metadata = metadata;
    }

    /// Returns the instructions built so far.
    pub fn computation(&self) -> &Computation {
        &self.computation
    }

    /// Returns the shape of an instruction.
    pub fn shape(&self, id: InstructionId) -> &Shape {
        self.computation[id].shape()
    }

    /// Adds the next parameter.
    pub fn parameter(&mut self, name: &str, shape: Shape) -> InstructionId {
        let number = self.computation.parameters().len();
        self.computation.add(name, Op::Parameter { number }, shape, &[], self.metadata.clone())
    }

    /// Adds a constant.
    pub fn constant(&mut self, literal: Literal) -> InstructionId {
        let shape = literal.shape();
        self.computation.add("", Op::Constant { literal }, shape, &[], self.metadata.clone())
    }

    /// Adds an instruction whose shape follows from its operands (see [`infer_shape`] for the
    /// exceptions). `module` contains the computations that `op` calls. An error names the operands
    /// that do not match.
    pub fn op(&mut self, module: &Module, op: Op, operands: &[InstructionId]) -> Result<InstructionId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| self.computation[id].shape()).collect();
        let shape = infer_shape(module, &op, &shapes, None)?;
        Ok(self.computation.add("", op, shape, operands, self.metadata.clone()))
    }

    /// Adds an instruction with an explicit shape; returns an error if the operands do not permit
    /// it.
    pub fn op_with_shape(
        &mut self,
        module: &Module,
        shape: Shape,
        op: Op,
        operands: &[InstructionId],
    ) -> Result<InstructionId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| self.computation[id].shape()).collect();
        let shape = infer_shape(module, &op, &shapes, Some(&shape))?;
        Ok(self.computation.add("", op, shape, operands, self.metadata.clone()))
    }

    /// Adds a copy of a computation's body, applied to these arguments. Returns the copy of the
    /// root.
    pub fn body(&mut self, callee: &Computation, arguments: &[InstructionId]) -> InstructionId {
        self.computation.add_body(callee, arguments)
    }

    /// Sets the root and returns the computation.
    pub fn finish(mut self, root: InstructionId) -> Computation {
        self.computation.set_root(root);
        self.computation
    }
}
