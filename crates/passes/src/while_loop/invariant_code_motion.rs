//! What is the same in every iteration is computed before the loop.

use super::Loop;
use super::outside::{Outside, invariant_instructions};
use crate::pass::{Changed, Pass};
use hlo::{Computation, ComputationId, InstructionId, Module, Op, Opcode, Traits};
use std::collections::BTreeSet;
use support::Result;

/// Moves instructions that depend on constants and on what the loop keeps before the loop; their results become elements
/// of the state. Exact for every input.
///
/// What is cheaper to make than to keep stays: constants, fills, reshapes, arithmetic on single integers; so does what
/// would be larger than what it is made of, beyond a limit.
pub struct WhileLoopInvariantCodeMotion;

impl Pass for WhileLoopInvariantCodeMotion {
    fn name(&self) -> &'static str {
        "while-loop-invariant-code-motion"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        // What leaves an inner loop may leave the outer one next.
        for site in Loop::sites(module) {
            let Some(found) = Loop::at(module, site) else { continue };
            let kept = found.invariants(module);
            let in_body = hoisted(&module[found.body], &kept);
            let in_condition = hoisted(&module[found.condition], &kept);
            if in_body.is_empty() && in_condition.is_empty() {
                continue;
            }
            let mut found = found.exclusive(module);
            for (is_body, hoisted) in [(true, in_body), (false, in_condition)] {
                let id = if is_body { found.body } else { found.condition };
                let mut outside = Outside::new(found, id);
                for instruction in hoisted {
                    let value = outside.copy(module, instruction);
                    hoist(module, &mut found, id, instruction, value);
                }
                crate::simplify::dce::sweep(module.computation_mut(id));
            }
            changed = true;
        }
        Ok(changed.into())
    }
}

/// A result of so many bytes may be larger than what it is made of.
const MAX_INFLATED_BYTES: u64 = 1 << 20;

/// Reads an instruction's value from a new element of the state.
fn hoist(
    module: &mut Module,
    found: &mut Loop,
    id: ComputationId,
    instruction: InstructionId,
    value: InstructionId,
) {
    let element = found.add_element(module, value);
    let read = found.read(module, id, element);
    module.computation_mut(id).replace_all_uses(instruction, read);
}

/// The instructions to be moved: those that others read which are not.
fn hoisted(computation: &Computation, kept: &BTreeSet<usize>) -> Vec<InstructionId> {
    let invariant = invariant_instructions(computation, kept);
    // Those that stay although they could move, since they are cheap.
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

/// Bytes of the elements of the state that an invariant instruction is made of.
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
