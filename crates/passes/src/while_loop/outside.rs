//! Computes loop-invariant values before the loop.

use super::Loop;
use hlo::{Computation, ComputationId, Instruction, InstructionId, Module, Op};
use std::collections::{BTreeMap, BTreeSet};

/// Copies, in the caller, of instructions of a loop's condition or body. Each is copied once.
pub(super) struct Outside {
    while_loop: Loop,
    computation: ComputationId,
    copies: BTreeMap<InstructionId, InstructionId>,
}

impl Outside {
    pub(super) fn new(while_loop: Loop, computation: ComputationId) -> Self {
        Self { while_loop, computation, copies: BTreeMap::new() }
    }

    /// The copy of an instruction from [`invariant_instructions`].
    pub(super) fn copy(&mut self, module: &mut Module, id: InstructionId) -> InstructionId {
        let mut pending = vec![id];
        while let Some(&current) = pending.last() {
            if self.copies.contains_key(&current) {
                pending.pop();
                continue;
            }
            let computation = &module[self.computation];
            let copy = match hlo::analysis::state_element(computation, current) {
                Some(element) => self.while_loop.start(module, element),
                None => {
                    let original: &Instruction = &computation[current];
                    let missing = original.operands().iter().filter(|o| !self.copies.contains_key(o));
                    let missing: Vec<InstructionId> = missing.copied().collect();
                    if !missing.is_empty() {
                        pending.extend(missing);
                        continue;
                    }
                    let operands: Vec<InstructionId> =
                        original.operands().iter().map(|o| self.copies[o]).collect();
                    let (name, op) = (original.name().to_owned(), original.op().clone());
                    let (shape, metadata) = (original.shape().clone(), original.metadata().clone());
                    module.computation_mut(self.while_loop.caller).add(&name, op, shape, &operands, metadata)
                }
            };
            self.copies.insert(current, copy);
        }
        self.copies[&id]
    }
}

/// The arrays in a condition or body that derive from constants and invariant elements.
pub(super) fn invariant_instructions(
    computation: &Computation,
    invariant_elements: &BTreeSet<usize>,
) -> BTreeSet<InstructionId> {
    let mut invariant = BTreeSet::new();
    for id in computation.post_order() {
        let is_invariant = match hlo::analysis::state_element(computation, id) {
            Some(element) => invariant_elements.contains(&element),
            None => {
                is_movable(&computation[id])
                    && computation[id].operands().iter().all(|operand| invariant.contains(operand))
            }
        };
        let is_array = computation[id].shape().as_array().is_some_and(|shape| shape.is_static());
        if is_invariant && is_array {
            invariant.insert(id);
        }
    }
    invariant
}

/// True if an instruction may be computed elsewhere. Nothing in HLO traps, so speculative execution
/// is safe, too.
fn is_movable(instruction: &Instruction) -> bool {
    let stays = matches!(
        instruction.op(),
        Op::Parameter { .. }
            | Op::Tuple {}
            | Op::GetTupleElement { .. }
            | Op::While { .. }
            | Op::Conditional { .. }
            | Op::Call { .. }
            | Op::CustomCall { .. }
            | Op::Fusion { .. }
            | Op::OptimizationBarrier {}
            | Op::AfterAll {}
    );
    !stays && !instruction.has_effect()
}
