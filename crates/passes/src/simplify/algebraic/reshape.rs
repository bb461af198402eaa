//! Rules rooted at `reshape`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::ArrayShape;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "reshape-of-reshape", root: Is(Opcode::Reshape), apply: reshape_of_reshape },
    Rule { name: "reshape-to-the-same", root: Is(Opcode::Reshape), apply: reshape_to_the_same },
    Rule { name: "reshape-of-broadcast", root: Is(Opcode::Reshape), apply: reshape_of_broadcast },
];

/// `reshape(reshape(x)) => reshape(x)`. Exact for every input.
fn reshape_of_reshape(graph: &mut Graph<'_>, outer: InstructionId) -> Option<InstructionId> {
    let inner = graph[outer].operands()[0];
    if !matches!(graph[inner].op(), Op::Reshape {}) {
        return None;
    }
    let operand = graph[inner].operands()[0];
    Some(graph.replacement(outer, Op::Reshape {}, &[operand]))
}

/// `reshape(x) => x` if the shape is that of x. Exact for every input.
fn reshape_to_the_same(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let operand = graph[id].operands()[0];
    (graph[operand].shape() == graph[id].shape()).then_some(operand)
}

/// `reshape(broadcast(x)) => broadcast(reshape(x))` if both reshapes only add and drop dimensions
/// of size 1; always for a scalar. Exact for every input.
fn reshape_of_broadcast(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let broadcast = graph.operand(id);
    let Op::Broadcast { dimensions } = graph[broadcast].op() else { return None };
    let source = graph.operand(broadcast);
    if graph.array(source).rank() == 0 {
        return Some(graph.broadcast_scalar(id, source));
    }
    let (from, to) = (graph.array(broadcast).sizes(), graph.array(id).sizes());
    let wide = |sizes: &[i64]| -> Vec<usize> { (0..sizes.len()).filter(|&d| sizes[d] != 1).collect() };
    let (wide_from, wide_to) = (wide(&from), wide(&to));
    let same =
        wide_from.len() == wide_to.len() && wide_from.iter().zip(&wide_to).all(|(&a, &b)| from[a] == to[b]);
    if !same {
        return None;
    }
    // The remaining dimensions of x are those of size other than 1, in order.
    let mut moved = Vec::new();
    let mut sizes = Vec::new();
    for &d in dimensions.iter().filter(|&&d| from[d] != 1) {
        let position = wide_from.iter().position(|&wide| wide == d)?;
        moved.push(wide_to[position]);
        sizes.push(from[d]);
    }
    let shape = ArrayShape::new(graph.array(id).element_type, &sizes);
    let mut operand = source;
    if sizes.len() != graph.array(source).rank() {
        operand = graph.helper(id, Op::Reshape {}, shape, &[source]);
    }
    Some(graph.replacement(id, Op::Broadcast { dimensions: moved }, &[operand]))
}
