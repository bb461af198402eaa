//! Simplifies control flow whose condition is constant.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op};
use support::Result;

/// `conditional(constant, a, b) => the selected branch's body`, for every input.
pub struct ConditionalSimplifier;

impl Pass for ConditionalSimplifier {
    fn name(&self) -> &'static str {
        "simplify-conditional"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let mut changed_here = false;
            for instruction in module[id].post_order() {
                let Some(branch) = known_branch(&module[id], instruction) else { continue };
                let Op::Conditional { branch_computations } = module[id][instruction].op() else { continue };
                let callee = module[branch_computations[branch]].clone();
                let argument = module[id][instruction].operands()[branch + 1];
                module.computation_mut(id).inline(instruction, &callee, &[argument]);
                changed_here = true;
            }
            if changed_here {
                crate::simplify::dce::sweep(module.computation_mut(id));
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// The branch that a constant selects: 0 for true and 1 for false, or the index, clamped to the
/// last branch.
fn known_branch(computation: &Computation, instruction: InstructionId) -> Option<usize> {
    let Op::Conditional { branch_computations } = computation[instruction].op() else { return None };
    let Op::Constant { literal } = computation[computation[instruction].operands()[0]].op() else {
        return None;
    };
    match literal.scalar_at(0) {
        shape::Scalar::Pred(value) => Some(usize::from(!value)),
        other => {
            let last = branch_computations.len() - 1;
            Some(usize::try_from(other.as_i64()?).map_or(last, |index| index.min(last)))
        }
    }
}
