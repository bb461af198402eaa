//! Inlines calls.

use crate::pass::{Changed, Pass};
use hlo::{ComputationId, Module, Op};
use support::{Error, Result};

/// Upper bound of the instructions that one pass inlines. Their number could double with each level
/// of calls.
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

/// Inlines the computation that `callee_of` returns for an instruction's op.
pub(crate) fn inline_where(
    module: &mut Module,
    callee_of: impl Fn(&Op) -> Option<ComputationId>,
) -> Result<Changed> {
    let mut changed = Changed::No;
    let mut count = 0usize;
    for id in module.post_order() {
        let mut changed_here = false;
        for instruction in module[id].post_order() {
            let Some(callee) = callee_of(module[id][instruction].op()) else { continue };
            let callee = module[callee].clone();
            count = count.saturating_add(callee.id_count());
            if count > MAX_INLINED {
                return Err(Error::unsupported(format!(
                    "inlining '{}' and other calls would add more than {MAX_INLINED} instructions; use fewer or smaller calls",
                    module[id][instruction].name()
                )));
            }
            let arguments = module[id][instruction].operands().to_vec();
            module.computation_mut(id).inline(instruction, &callee, &arguments);
            changed_here = true;
        }
        if changed_here {
            crate::simplify::dce::sweep(module.computation_mut(id));
            changed = Changed::Yes;
        }
    }
    Ok(changed)
}
