//! Building from the inputs of a node.

use crate::node::context::NodeContext;
use hlo::{InstructionId, Op};
use support::Result;

impl NodeContext<'_, '_> {
    /// Returns both inputs of a binary op, broadcast.
    pub(crate) fn binary_inputs(&mut self) -> Result<(InstructionId, InstructionId)> {
        let (a, b) = (self.input(0)?, self.input(1)?);
        let (a, b) = self.reconciled(a, b)?;
        self.broadcast_pair(a, b)
    }

    /// Builds a binary op on the broadcast inputs.
    pub(crate) fn binary(&mut self, op: Op) -> Result<InstructionId> {
        let (a, b) = self.binary_inputs()?;
        self.op(op, &[a, b])
    }

    /// Builds a unary op on the only input.
    pub(crate) fn unary(&mut self, op: Op) -> Result<InstructionId> {
        let x = self.input(0)?;
        self.op(op, &[x])
    }
}
