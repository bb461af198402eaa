//! Gives each computation a single caller.

use crate::pass::{Changed, Pass};
use hlo::{ComputationId, InstructionId, Module, Op};
use std::collections::BTreeSet;
use support::{Error, Result};

/// Upper bound of the instructions in copies. Copies of the callees of copies could double with
/// each level.
const MAX_COPIED: usize = 1 << 20;

/// Gives each `call`, `while`, and `conditional`, and each branch of a conditional, its own copy of
/// its callee, because the values of a computation are assigned memory only once.
pub struct FlattenCallGraph;

impl Pass for FlattenCallGraph {
    fn name(&self) -> &'static str {
        "flatten-call-graph"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = Changed::No;
        let mut seen: BTreeSet<ComputationId> = BTreeSet::new();
        let mut callers = vec![module.entry()];
        let mut copied = 0usize;
        while let Some(caller) = callers.pop() {
            let calls = |op: &Op| matches!(op, Op::Call { .. } | Op::While { .. } | Op::Conditional { .. });
            let instructions: Vec<(InstructionId, Op)> = module[caller]
                .instructions()
                .filter(|(_, instruction)| calls(instruction.op()))
                .map(|(id, instruction)| (id, instruction.op().clone()))
                .collect();
            for (id, mut op) in instructions {
                op.map_called_computations(|callee| {
                    let mut own = callee;
                    if !seen.insert(callee) && copied <= MAX_COPIED {
                        copied += module[callee].id_count();
                        own = module.add_computation(module[callee].clone());
                        seen.insert(own);
                        changed = Changed::Yes;
                    }
                    callers.push(own);
                    own
                });
                if copied > MAX_COPIED {
                    let name = module[caller][id].name();
                    return Err(Error::unsupported(format!(
                        "copying the callees of '{name}' and others would add more than {MAX_COPIED} instructions; use fewer or smaller calls"
                    )));
                }
                module.computation_mut(caller).set_op(id, op);
            }
        }
        Ok(changed)
    }
}
