//! Puts the bodies of calls in their places.

use crate::{Changed, Pass};
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use std::collections::BTreeMap;
use support::Result;

/// `call(a, b), to_apply=f => f's body`, for every input.
pub struct CallInliner;

impl Pass for CallInliner {
    fn name(&self) -> &'static str {
        "call-inliner"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in module.post_order() {
            let mut inlined = false;
            for instruction in module[id].post_order() {
                if let Op::Call { to_apply } = *module[id][instruction].op() {
                    let callee = module[to_apply].clone();
                    let arguments = module[id][instruction].operands().to_vec();
                    inline(module, id, instruction, &callee, &arguments);
                    inlined = true;
                }
            }
            if inlined {
                crate::dce::sweep(module.computation_mut(id));
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// Replaces an instruction by a computation's body, applied to these arguments. The instruction stays behind, dead.
pub(crate) fn inline(
    module: &mut Module,
    id: ComputationId,
    instruction: InstructionId,
    callee: &Computation,
    arguments: &[InstructionId],
) {
    let caller = module.computation_mut(id);
    let mut copies: BTreeMap<InstructionId, InstructionId> = BTreeMap::new();
    for inner in callee.post_order() {
        let original = &callee[inner];
        let copy = match original.op() {
            Op::Parameter { number } => arguments[*number],
            op => {
                let operands: Vec<InstructionId> = original.operands().iter().map(|o| copies[o]).collect();
                let (shape, metadata) = (original.shape().clone(), original.metadata().clone());
                caller.add(original.name(), op.clone(), shape, &operands, metadata)
            }
        };
        copies.insert(inner, copy);
    }
    caller.replace_all_uses(instruction, copies[&callee.root()]);
}
