//! Rules rooted at `broadcast`.

use super::{Rule, replacement};
use hlo::{Computation, InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "broadcast-of-broadcast", root: Opcode::Broadcast, apply: broadcast_of_broadcast },
    Rule { name: "broadcast-to-the-same", root: Opcode::Broadcast, apply: broadcast_to_the_same },
    Rule { name: "broadcast-of-splat", root: Opcode::Broadcast, apply: broadcast_of_splat },
];

/// `broadcast(broadcast(x, p), q) => broadcast(x, q[p])`. Exact for every input.
fn broadcast_of_broadcast(computation: &mut Computation, outer: InstructionId) -> Option<InstructionId> {
    let Op::Broadcast { dimensions: q } = computation[outer].op() else { return None };
    let inner = computation[outer].operands()[0];
    let Op::Broadcast { dimensions: p } = computation[inner].op() else { return None };
    let dimensions = p.iter().map(|&d| q[d]).collect();
    let operand = computation[inner].operands()[0];
    Some(replacement(computation, outer, Op::Broadcast { dimensions }, &[operand]))
}

/// `broadcast(x) => x` if nothing is added, `=> reshape(x)` if only dimensions of size 1 are. Exact for every input.
fn broadcast_to_the_same(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let Op::Broadcast { dimensions } = computation[id].op() else { return None };
    let operand = computation[id].operands()[0];
    let (from, to) = (computation[operand].shape().as_array()?, computation[id].shape().as_array()?);
    if !dimensions.is_sorted() || from.element_count() != to.element_count() || !from.is_static() {
        return None;
    }
    if from == to {
        return Some(operand);
    }
    Some(replacement(computation, id, Op::Reshape {}, &[operand]))
}

/// `broadcast(constant of equal elements) => broadcast(scalar constant)`. Exact for every input.
fn broadcast_of_splat(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let operand = computation[id].operands()[0];
    let Op::Constant { literal } = computation[operand].op() else { return None };
    let shape = literal.array_shape();
    if shape.rank() == 0 || shape.element_count() == 0 || !literal.is_splat() {
        return None;
    }
    let scalar = shape::ArrayShape::new(shape.element_type, &[]);
    let bytes = literal.bytes().slice(..shape.element_type.byte_size());
    let literal = shape::Literal::from_bytes(scalar.clone(), bytes)?;
    let metadata = computation[operand].metadata().clone();
    let scalar = computation.add("", Op::Constant { literal }, scalar.into(), &[], metadata);
    Some(replacement(computation, id, Op::Broadcast { dimensions: Vec::new() }, &[scalar]))
}
