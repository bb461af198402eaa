//! Builds the bodies of fusions.

use hlo::{Computation, ComputationId, FusionKind, InstructionId, Module, Op, OpMetadata};
use shape::Shape;
use std::collections::BTreeMap;

/// A fused computation under construction: parameters, then copies of instructions.
pub(super) struct FusedBody {
    computation: Computation,
    /// The counterparts, in this body, of the caller's values.
    copies: BTreeMap<InstructionId, InstructionId>,
}

impl FusedBody {
    /// Starts a body with a parameter for each operand.
    pub(super) fn new(caller: &Computation, operands: &[InstructionId]) -> Self {
        let mut body = Self { computation: Computation::new("fused_computation"), copies: BTreeMap::new() };
        for &operand in operands {
            body.parameter(caller, operand);
        }
        body
    }

    /// Adds the next parameter, which represents a value of the caller.
    pub(super) fn parameter(&mut self, caller: &Computation, operand: InstructionId) -> InstructionId {
        let number = self.computation.parameters().len();
        let (op, shape) = (Op::Parameter { number }, caller[operand].shape().clone());
        let name = format!("param_{number}");
        let parameter = self.computation.add(&name, op, shape, &[], OpMetadata::default());
        self.copies.insert(operand, parameter);
        parameter
    }

    /// Returns the counterpart of a value of the caller, if it exists.
    pub(super) fn get(&self, id: InstructionId) -> Option<InstructionId> {
        self.copies.get(&id).copied()
    }

    /// Makes `copy` the counterpart of a value of the caller.
    pub(super) fn set(&mut self, id: InstructionId, copy: InstructionId) {
        self.copies.insert(id, copy);
    }

    /// Copies one instruction, given its operands in this body.
    pub(super) fn copy_one(
        &mut self,
        from: &Computation,
        id: InstructionId,
        operands: &[InstructionId],
    ) -> InstructionId {
        let original = &from[id];
        let (op, shape) = (original.op().clone(), original.shape().clone());
        self.computation.add(original.name(), op, shape, operands, original.metadata().clone())
    }

    /// Copies an instruction and everything upstream of it, operands first, without recursion.
    pub(super) fn copy(&mut self, caller: &Computation, root: InstructionId) -> InstructionId {
        let mut stack = vec![(root, 0)];
        while let Some((id, next)) = stack.pop() {
            if self.copies.contains_key(&id) {
                continue;
            }
            if let Some(&operand) = caller[id].operands().get(next) {
                stack.push((id, next + 1));
                stack.push((operand, 0));
                continue;
            }
            let operands: Vec<InstructionId> = caller[id].operands().iter().map(|o| self.copies[o]).collect();
            let copy = self.copy_one(caller, id, &operands);
            self.copies.insert(id, copy);
        }
        self.copies[&root]
    }

    /// Adds a reshape.
    pub(super) fn reshape(&mut self, operand: InstructionId, shape: Shape) -> InstructionId {
        self.computation.add("", Op::Reshape {}, shape, &[operand], OpMetadata::default())
    }

    /// Ends the body with these results: one root, or a tuple of several.
    pub(super) fn finish(mut self, results: &[InstructionId]) -> Computation {
        let root = if let [root] = results {
            *root
        } else {
            let shapes = results.iter().map(|&result| self.computation[result].shape().clone()).collect();
            self.computation.add("", Op::Tuple {}, Shape::Tuple(shapes), results, OpMetadata::default())
        };
        self.computation.set_root(root);
        self.computation
    }
}

/// Adds a fusion of a kind to a computation.
pub(super) fn add_fusion(
    module: &mut Module,
    caller: ComputationId,
    kind: FusionKind,
    body: Computation,
    operands: &[InstructionId],
    metadata: OpMetadata,
) -> InstructionId {
    let shape = body[body.root()].shape().clone();
    let calls = module.add_computation(body);
    module.computation_mut(caller).add("fusion", Op::fusion(kind, calls), shape, operands, metadata)
}

/// Replaces results by those of a fusion; returns their replacements.
pub(super) fn replace_results(
    caller: &mut Computation,
    fusion: InstructionId,
    results: &[InstructionId],
) -> Vec<InstructionId> {
    let is_tuple = results.len() != 1;
    let mut replace = |(index, &result): (usize, &InstructionId)| {
        let mut new = fusion;
        if is_tuple {
            let (shape, metadata) = (caller[result].shape().clone(), caller[result].metadata().clone());
            new = caller.add("", Op::GetTupleElement { index }, shape, &[fusion], metadata);
        }
        caller.replace_all_uses(result, new);
        new
    };
    results.iter().enumerate().map(&mut replace).collect()
}

/// True for a comparison of positions, and of scalars in every element. It is faster to compare
/// again than to read the mask.
pub(super) fn is_mask(computation: &Computation, id: InstructionId) -> bool {
    let is_generated = |&operand: &InstructionId| match computation[operand].op() {
        Op::Iota { .. } => true,
        Op::Broadcast { dimensions } => dimensions.is_empty(),
        _ => false,
    };
    matches!(computation[id].op(), Op::Compare { .. }) && computation[id].operands().iter().all(is_generated)
}
