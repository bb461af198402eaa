//! Rules rooted at `convert`, `copy` and `negate`.

use super::Rule;
use hlo::{Computation, InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "convert-to-the-same", root: Opcode::Convert, apply: to_the_same },
    Rule { name: "bitcast-convert-to-the-same", root: Opcode::BitcastConvert, apply: to_the_same },
    Rule { name: "copy", root: Opcode::Copy, apply: to_the_same },
    Rule { name: "negate-of-negate", root: Opcode::Negate, apply: twice },
    Rule { name: "not-of-not", root: Opcode::Not, apply: twice },
];

/// `convert(x) => x` if the type is x's. Exact for every input.
fn to_the_same(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let operand = computation[id].operands()[0];
    (computation[operand].shape() == computation[id].shape()).then_some(operand)
}

/// `negate(negate(x)) => x`, `not(not(x)) => x`. Exact for every input: one flips the sign bit, the other all bits.
fn twice(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let inner = computation[id].operands()[0];
    let same = matches!(
        (computation[id].op(), computation[inner].op()),
        (Op::Negate {}, Op::Negate {}) | (Op::Not {}, Op::Not {})
    );
    same.then(|| computation[inner].operands()[0])
}
