//! Rules rooted at `broadcast`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "broadcast-of-broadcast", root: Is(Opcode::Broadcast), apply: broadcast_of_broadcast },
    Rule { name: "broadcast-to-the-same", root: Is(Opcode::Broadcast), apply: broadcast_to_the_same },
    Rule { name: "broadcast-of-reshape", root: Is(Opcode::Broadcast), apply: broadcast_of_reshape },
    Rule { name: "broadcast-of-splat", root: Is(Opcode::Broadcast), apply: broadcast_of_splat },
];

/// `broadcast(broadcast(x, p), q) => broadcast(x, q[p])`. Exact for every input.
fn broadcast_of_broadcast(graph: &mut Graph<'_>, outer: InstructionId) -> Option<InstructionId> {
    let Op::Broadcast { dimensions: q } = graph[outer].op() else { return None };
    let inner = graph[outer].operands()[0];
    let Op::Broadcast { dimensions: p } = graph[inner].op() else { return None };
    let dimensions = p.iter().map(|&d| q[d]).collect();
    let operand = graph[inner].operands()[0];
    Some(graph.replacement(outer, Op::Broadcast { dimensions }, &[operand]))
}

/// `broadcast(x) => x` if it adds no dimensions, `=> reshape(x)` if it adds only dimensions of size
/// 1. Exact for every input.
fn broadcast_to_the_same(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Broadcast { dimensions } = graph[id].op() else { return None };
    let operand = graph[id].operands()[0];
    let (from, to) = (graph[operand].shape().as_array()?, graph[id].shape().as_array()?);
    if !dimensions.is_sorted() || from.element_count() != to.element_count() || !from.is_static() {
        return None;
    }
    if from == to {
        return Some(operand);
    }
    Some(graph.replacement(id, Op::Reshape {}, &[operand]))
}

/// `broadcast(reshape(x)) => broadcast(x)` if the reshape only adds dimensions of size 1. Exact for
/// every input.
fn broadcast_of_reshape(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Broadcast { dimensions } = graph[id].op() else { return None };
    let reshape = graph.operand(id);
    let Op::Reshape {} = graph[reshape].op() else { return None };
    let source = graph.operand(reshape);
    let positions = added_ones(&graph.array(source).sizes(), &graph.array(reshape).sizes())?;
    let dimensions = positions.into_iter().map(|d| dimensions[d]).collect();
    Some(graph.replacement(id, Op::Broadcast { dimensions }, &[source]))
}

/// The position in `to` of each dimension of `from`, if `to` is `from` with dimensions of size 1
/// added.
fn added_ones(from: &[i64], to: &[i64]) -> Option<Vec<usize>> {
    let mut positions = Vec::with_capacity(from.len());
    for (d, &size) in to.iter().enumerate() {
        if from.get(positions.len()) == Some(&size) {
            positions.push(d);
        } else if size != 1 {
            return None;
        }
    }
    (positions.len() == from.len()).then_some(positions)
}

/// `broadcast(constant with equal elements) => broadcast(scalar constant)`. Exact for every input.
fn broadcast_of_splat(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let operand = graph[id].operands()[0];
    let Op::Constant { literal } = graph[operand].op() else { return None };
    let shape = literal.array_shape();
    if shape.rank() == 0 || shape.element_count() == 0 || !literal.is_splat() {
        return None;
    }
    let scalar = shape::ArrayShape::new(shape.element_type, &[]);
    let bytes = literal.bytes().slice(..shape.element_type.byte_size());
    let literal = shape::Literal::from_bytes(scalar.clone(), bytes)?;
    let metadata = graph[operand].metadata().clone();
    let scalar = graph.add("", Op::Constant { literal }, scalar.into(), &[], metadata);
    Some(graph.replacement(id, Op::Broadcast { dimensions: Vec::new() }, &[scalar]))
}
