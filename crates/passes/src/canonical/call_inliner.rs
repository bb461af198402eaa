//! Puts the bodies of calls in their places.

use crate::pass::{Changed, Pass};
use hlo::{ComputationId, Module, Op};
use support::{Error, Result};

/// How many instructions the bodies may have together that one pass puts into their places: they could double with each level.
const MAX_INLINED: usize = 1 << 20;

/// `call(a, b), to_apply=f => f's body`, for every input.
pub struct CallInliner;

impl Pass for CallInliner {
    fn name(&self) -> &'static str {
        "call-inliner"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        inline_where(module, |op| match *op {
            Op::Call { to_apply } => Some(to_apply),
            _ => None,
        })
    }
}

/// Puts bodies into the places of the instructions that a computation is found for.
pub(crate) fn inline_where(
    module: &mut Module,
    callee_of: impl Fn(&Op) -> Option<ComputationId>,
) -> Result<Changed> {
    let mut changed = Changed::No;
    let mut count = 0usize;
    for id in module.post_order() {
        let mut inlined = false;
        for instruction in module[id].post_order() {
            let Some(callee) = callee_of(module[id][instruction].op()) else { continue };
            let callee = module[callee].clone();
            count = count.saturating_add(callee.id_count());
            if count > MAX_INLINED {
                return Err(Error::unsupported(format!(
                    "'{}' and others put more instructions into their places than {MAX_INLINED}; call less often",
                    module[id][instruction].name()
                )));
            }
            let arguments = module[id][instruction].operands().to_vec();
            module.computation_mut(id).inline(instruction, &callee, &arguments);
            inlined = true;
        }
        if inlined {
            crate::simplify::dce::sweep(module.computation_mut(id));
            changed = Changed::Yes;
        }
    }
    Ok(changed)
}
