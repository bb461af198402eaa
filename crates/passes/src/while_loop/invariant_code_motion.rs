//! Computes loop-invariant values before the loop.

use super::Loop;
use super::outside::{Outside, invariant_instructions};
use crate::pass::{Changed, Pass};
use hlo::{Computation, ComputationId, InstructionId, Module, Op, Opcode, Traits};
use std::collections::BTreeSet;
use support::Result;

/// Moves instructions that depend only on constants and loop invariants before the loop. Their
/// results become state elements. Exact for every input.
///
/// Values that are cheaper to compute than to store stay: constants, fills, reshapes, and
/// arithmetic on single integers. Values that would be larger than their operands, beyond a limit,
/// stay, too.
pub struct WhileLoopInvariantCodeMotion;

impl Pass for WhileLoopInvariantCodeMotion {
    fn name(&self) -> &'static str {
        "while-loop-invariant-code-motion"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        // Instructions that leave an inner loop may leave the outer one next.
        for site in Loop::sites(module) {
            let Some(while_loop) = Loop::at(module, site) else { continue };
            let invariant_elements = while_loop.invariants(module);
            let in_body = hoisted(&module[while_loop.body], &invariant_elements);
            let in_condition = hoisted(&module[while_loop.condition], &invariant_elements);
            if in_body.is_empty() && in_condition.is_empty() {
                continue;
            }
            let mut while_loop = while_loop.exclusive(module);
            for (is_body, hoisted) in [(true, in_body), (false, in_condition)] {
                let id = if is_body { while_loop.body } else { while_loop.condition };
                let mut outside = Outside::new(while_loop, id);
                for instruction in hoisted {
                    let value = outside.copy(module, instruction);
                    hoist(module, &mut while_loop, id, instruction, value);
                }
                crate::simplify::dce::sweep(module.computation_mut(id));
            }
            changed = true;
        }
        Ok(changed.into())
    }
}

/// A result of up to this many bytes may be larger than its operands.
const MAX_INFLATED_BYTES: u64 = 1 << 20;

/// Replaces an instruction by a read of a new state element with its value.
fn hoist(
    module: &mut Module,
    while_loop: &mut Loop,
    id: ComputationId,
    instruction: InstructionId,
    value: InstructionId,
) {
    let element = while_loop.add_element(module, value);
    let read = while_loop.read(module, id, element);
    module.computation_mut(id).replace_all_uses(instruction, read);
}

/// The instructions to move: invariant instructions that are read by instructions that stay.
fn hoisted(computation: &Computation, invariant_elements: &BTreeSet<usize>) -> Vec<InstructionId> {
    let invariant = invariant_instructions(computation, invariant_elements);
    // Invariant instructions that stay because they are cheap.
    let mut staying = BTreeSet::new();
    let mut hoisted = Vec::new();
    for id in computation.post_order().into_iter().rev().filter(|id| invariant.contains(id)) {
        let stays = |user: &InstructionId| !invariant.contains(user) || staying.contains(user);
        let is_read = computation[id].users().iter().any(stays) || computation.root() == id;
        if !is_read {
            continue;
        }
        if is_worth_it(computation, &invariant, id) {
            hoisted.push(id);
        } else {
            staying.insert(id);
        }
    }
    hoisted.reverse();
    hoisted
}

fn is_worth_it(computation: &Computation, invariant: &BTreeSet<InstructionId>, id: InstructionId) -> bool {
    let instruction = &computation[id];
    let shape = instruction.shape().expect_array();
    let is_cheap = match instruction.op() {
        Op::Constant { .. }
        | Op::Iota { .. }
        | Op::Broadcast { .. }
        | Op::Reshape {}
        | Op::GetTupleElement { .. } => true,
        op => {
            let is_integer = !shape.element_type.is_floating_point() && !shape.element_type.is_complex();
            let is_simple = op.opcode().traits().contains(Traits::ELEMENTWISE)
                || matches!(op.opcode(), Opcode::Clamp | Opcode::Slice | Opcode::DynamicSlice);
            is_integer && is_simple && shape.element_count() == 1
        }
    };
    if is_cheap {
        return false;
    }
    let bytes = shape.byte_size();
    bytes <= MAX_INFLATED_BYTES || bytes <= leaf_bytes(computation, invariant, id)
}

/// Bytes of the state elements from which an invariant instruction derives.
fn leaf_bytes(computation: &Computation, invariant: &BTreeSet<InstructionId>, id: InstructionId) -> u64 {
    let mut seen = BTreeSet::new();
    let mut pending = vec![id];
    let mut bytes = 0u64;
    while let Some(id) = pending.pop() {
        if !invariant.contains(&id) || !seen.insert(id) {
            continue;
        }
        if hlo::analysis::state_element(computation, id).is_some() {
            bytes = bytes.saturating_add(computation[id].shape().byte_size());
        } else {
            pending.extend(computation[id].operands());
        }
    }
    bytes
}
