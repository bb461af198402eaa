//! Rules rooted at `power`.

use super::graph::{Graph, is_number};
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "power-of-one", root: Is(Opcode::Power), apply: power_of_one },
    Rule { name: "power-of-two", root: Is(Opcode::Power), apply: power_of_two },
];

/// `power(x, 1) => x`, except for complex numbers. Exact for every input.
fn power_of_one(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[base, exponent] = graph[id].operands() else { return None };
    graph.splat(exponent).is_some_and(|scalar| is_number(scalar, 1)).then_some(base)
}

/// `power(x, 2) => x * x`, except for complex numbers. Exact for every input for which `power` is
/// exact: the product is the correctly rounded square.
fn power_of_two(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[base, exponent] = graph[id].operands() else { return None };
    let is_two = graph.splat(exponent).is_some_and(|scalar| is_number(scalar, 2));
    is_two.then(|| graph.replacement(id, Op::Multiply {}, &[base, base]))
}
