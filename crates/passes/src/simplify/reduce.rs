//! Rules rooted at `reduce`.

use super::{Rule, replacement};
use hlo::{Computation, InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] =
    &[Rule { name: "reduce-over-nothing", root: Opcode::Reduce, apply: reduce_over_nothing }];

/// `reduce(x, init), dimensions={} => x`. Exact for every input of a computation whose neutral element is `init`, as
/// XLA requires of every reduction.
fn reduce_over_nothing(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let Op::Reduce { dimensions, .. } = computation[id].op() else { return None };
    let [operand, _] = *computation[id].operands() else { return None };
    if !dimensions.is_empty() {
        return None;
    }
    let same = computation[operand].shape() == computation[id].shape();
    Some(if same { operand } else { replacement(computation, id, Op::Reshape {}, &[operand]) })
}
