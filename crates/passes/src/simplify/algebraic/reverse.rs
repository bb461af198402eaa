//! Rules rooted at `reverse`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "reverse-of-reverse", root: Is(Opcode::Reverse), apply: reverse_of_reverse },
    Rule { name: "reverse-that-moves-nothing", root: Is(Opcode::Reverse), apply: reverse_that_moves_nothing },
];

/// `reverse(reverse(x, d), e) => reverse(x, dimensions in exactly one of d and e)`. Exact for every
/// input.
fn reverse_of_reverse(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Reverse { dimensions: outer } = graph[id].op() else { return None };
    let operand = graph.operand(id);
    let Op::Reverse { dimensions: inner } = graph[operand].op() else { return None };
    let rank = graph.array(id).rank();
    let dimensions = (0..rank).filter(|d| outer.contains(d) != inner.contains(d)).collect();
    let source = graph.operand(operand);
    Some(graph.replacement(id, Op::Reverse { dimensions }, &[source]))
}

/// `reverse(x) => x` if all reversed dimensions have size 1. Exact for every input.
fn reverse_that_moves_nothing(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Reverse { dimensions } = graph[id].op() else { return None };
    dimensions.iter().all(|&d| graph.array(id).size(d) == 1).then(|| graph.operand(id))
}
