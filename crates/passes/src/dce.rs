//! Removes what nobody needs.

use crate::{Changed, Pass};
use hlo::{Computation, InstructionId, Module};
use std::collections::BTreeSet;
use support::Result;

/// Removes instructions that neither the root nor an effect needs, and computations that nobody calls.
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

/// Removes the dead instructions of a computation, users before operands.
pub(crate) fn sweep(computation: &mut Computation) -> bool {
    let live: BTreeSet<InstructionId> = computation.post_order().into_iter().collect();
    let mut dead: Vec<InstructionId> =
        computation.instructions().map(|(id, _)| id).filter(|id| !live.contains(id)).collect();
    let changed = !dead.is_empty();
    while !dead.is_empty() {
        let before = dead.len();
        dead.retain(|&id| {
            let is_needed = !computation[id].users().is_empty();
            if !is_needed {
                computation.remove(id);
            }
            is_needed
        });
        assert!(dead.len() < before, "dead instructions form no cycle");
    }
    changed
}
