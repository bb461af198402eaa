//! Simplifies accesses to tuples.

use crate::pass::{Changed, Pass};
use hlo::{Module, Op};
use support::Result;

/// `get-tuple-element(tuple(a, b), index=1) => b`, for every input.
pub struct TupleSimplifier;

impl Pass for TupleSimplifier {
    fn name(&self) -> &'static str {
        "tuple-simplifier"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in module.post_order() {
            let computation = module.computation_mut(id);
            for instruction in computation.post_order() {
                let Op::GetTupleElement { index } = *computation[instruction].op() else { continue };
                let tuple = computation[instruction].operands()[0];
                if matches!(computation[tuple].op(), Op::Tuple {}) {
                    let element = computation[tuple].operands()[index];
                    computation.replace_all_uses(instruction, element);
                    changed = true;
                }
            }
        }
        Ok(changed.into())
    }
}
