//! Rules rooted at `slice`, `pad`, `concatenate` and `reverse`.

use super::Rule;
use hlo::{Computation, InstructionId, Op, Opcode, PaddingDimension};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "slice-of-everything", root: Opcode::Slice, apply: slice_of_everything },
    Rule { name: "pad-with-nothing", root: Opcode::Pad, apply: pad_with_nothing },
    Rule { name: "concatenate-of-one", root: Opcode::Concatenate, apply: concatenate_of_one },
];

/// `slice(x) => x` if it takes all of x. Exact for every input.
fn slice_of_everything(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let operand = computation[id].operands()[0];
    (computation[operand].shape() == computation[id].shape()).then_some(operand)
}

/// `pad(x, value) => x` if every padding is 0. Exact for every input.
fn pad_with_nothing(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let Op::Pad { padding } = computation[id].op() else { return None };
    let nothing = padding.dimensions.iter().all(|d| *d == PaddingDimension::default());
    nothing.then(|| computation[id].operands()[0])
}

/// `concatenate(x) => x`. Exact for every input.
fn concatenate_of_one(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let [operand] = computation[id].operands() else { return None };
    Some(*operand)
}
