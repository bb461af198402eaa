//! Rules rooted at `transpose`.

use super::{Rule, replacement};
use hlo::{Computation, InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "transpose-of-transpose", root: Opcode::Transpose, apply: transpose_of_transpose },
    Rule { name: "transpose-that-moves-nothing", root: Opcode::Transpose, apply: transpose_that_moves_nothing },
];

/// `transpose(transpose(x, p), q) => transpose(x, p[q])`. Exact for every input: moves data only.
fn transpose_of_transpose(computation: &mut Computation, outer: InstructionId) -> Option<InstructionId> {
    let Op::Transpose { dimensions: q } = computation[outer].op() else { return None };
    let inner = computation[outer].operands()[0];
    let Op::Transpose { dimensions: p } = computation[inner].op() else { return None };
    let dimensions = q.iter().map(|&d| p[d]).collect();
    let operand = computation[inner].operands()[0];
    Some(replacement(computation, outer, Op::Transpose { dimensions }, &[operand]))
}

/// `transpose(x) => reshape(x)` if only dimensions of size 1 change their places, `=> x` if none does. Exact for every
/// input.
fn transpose_that_moves_nothing(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let Op::Transpose { dimensions } = computation[id].op() else { return None };
    let operand = computation[id].operands()[0];
    if dimensions.iter().copied().eq(0..dimensions.len()) {
        return Some(operand);
    }
    let shape = computation[operand].shape().as_array()?;
    let moved: Vec<usize> = dimensions.iter().copied().filter(|&d| shape.size(d) != 1).collect();
    if !moved.is_sorted() || !shape.is_static() {
        return None;
    }
    Some(replacement(computation, id, Op::Reshape {}, &[operand]))
}
