//! Computes equal things once.

use crate::{Changed, Pass};
use hlo::{Instruction, InstructionId, Module, Op, Traits};
use std::collections::BTreeMap;
use support::Result;

/// `f(a), f(a) => f(a)` for instructions of equal op, operands and shape, for every input.
pub struct CommonSubexpressionElimination;

impl Pass for CommonSubexpressionElimination {
    fn name(&self) -> &'static str {
        "cse"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in module.post_order() {
            let computation = module.computation_mut(id);
            // Candidates by opcode and operands; payloads are compared, since constants have no cheap order.
            let mut seen: BTreeMap<(hlo::Opcode, Vec<InstructionId>), Vec<InstructionId>> = BTreeMap::new();
            for instruction in computation.post_order() {
                let current = &computation[instruction];
                if !may_merge(current) {
                    continue;
                }
                let key = (current.opcode(), current.operands().to_vec());
                let candidates = seen.entry(key).or_default();
                let equal = candidates.iter().copied().find(|&other| {
                    let other = &computation[other];
                    other.shape() == current.shape() && other.op() == current.op()
                });
                match equal {
                    Some(other) => {
                        computation.replace_all_uses(instruction, other);
                        changed = true;
                    }
                    None if candidates.len() < MAX_CANDIDATES => candidates.push(instruction),
                    None => {}
                }
            }
        }
        Ok(changed.into())
    }
}

/// So many different constants are compared with a new one; beyond it, equal ones may stay.
const MAX_CANDIDATES: usize = 256;

fn may_merge(instruction: &Instruction) -> bool {
    let effect = instruction.opcode().traits().contains(Traits::SIDE_EFFECT);
    let custom = matches!(instruction.op(), Op::Parameter { .. } | Op::CustomCall { .. });
    !effect && !custom
}
