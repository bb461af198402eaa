//! Rules rooted at `reshape`, `copy` and `bitcast`.

use super::{Rule, replacement};
use hlo::{Computation, InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "reshape-of-reshape", root: Opcode::Reshape, apply: reshape_of_reshape },
    Rule { name: "reshape-to-the-same", root: Opcode::Reshape, apply: reshape_to_the_same },
    Rule { name: "reshape-of-scalar-broadcast", root: Opcode::Reshape, apply: reshape_of_scalar_broadcast },
];

/// `reshape(reshape(x)) => reshape(x)`. Exact for every input.
fn reshape_of_reshape(computation: &mut Computation, outer: InstructionId) -> Option<InstructionId> {
    let inner = computation[outer].operands()[0];
    if !matches!(computation[inner].op(), Op::Reshape {}) {
        return None;
    }
    let operand = computation[inner].operands()[0];
    Some(replacement(computation, outer, Op::Reshape {}, &[operand]))
}

/// `reshape(x) => x` if the shape is x's. Exact for every input.
fn reshape_to_the_same(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let operand = computation[id].operands()[0];
    (computation[operand].shape() == computation[id].shape()).then_some(operand)
}

/// `reshape(broadcast(scalar)) => broadcast(scalar)`. Exact for every input.
fn reshape_of_scalar_broadcast(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let broadcast = computation[id].operands()[0];
    if !matches!(computation[broadcast].op(), Op::Broadcast { .. }) {
        return None;
    }
    let scalar = computation[broadcast].operands()[0];
    if computation[scalar].shape().as_array()?.rank() != 0 {
        return None;
    }
    Some(replacement(computation, id, Op::Broadcast { dimensions: Vec::new() }, &[scalar]))
}
