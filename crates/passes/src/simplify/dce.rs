//! Dead code elimination.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module};
use std::collections::BTreeSet;
use support::{IdSet, Result};

/// Removes instructions that neither the root nor an effect needs, and unreachable computations.
pub struct DeadCodeElimination;

impl Pass for DeadCodeElimination {
    fn name(&self) -> &'static str {
        "dce"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in module.post_order() {
            changed |= sweep(module.computation_mut(id));
        }
        changed |= module.remove_unreachable_computations();
        Ok(changed.into())
    }
}

/// Removes the dead instructions of a computation, users before operands. Returns true if there
/// were any.
pub(crate) fn sweep(computation: &mut Computation) -> bool {
    let live: IdSet<InstructionId> = computation.post_order().into_iter().collect();
    let dead: Vec<InstructionId> =
        computation.opcodes().map(|(id, _)| id).filter(|&id| !live.contains(id)).collect();
    let mut unused: Vec<InstructionId> =
        dead.iter().copied().filter(|&id| computation[id].users().is_empty()).collect();
    while let Some(id) = unused.pop() {
        let operands: BTreeSet<InstructionId> = computation[id].operands().iter().copied().collect();
        computation.remove(id);
        let is_unused =
            |operand: &InstructionId| !live.contains(*operand) && computation[*operand].users().is_empty();
        unused.extend(operands.into_iter().filter(is_unused));
    }
    !dead.is_empty()
}
