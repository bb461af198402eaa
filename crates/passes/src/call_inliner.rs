//! Puts the bodies of calls in their places.

use crate::{Changed, Pass};
use hlo::{Module, Op};
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
                    module.computation_mut(id).inline(instruction, &callee, &arguments);
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
