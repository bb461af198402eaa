//! Rules rooted at `and`, `or`, and `not`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{ComparisonDirection, ComparisonType, InstructionId, Op, Opcode};
use shape::Scalar;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "and-of-itself", root: Is(Opcode::And), apply: of_itself },
    Rule { name: "or-of-itself", root: Is(Opcode::Or), apply: of_itself },
    Rule { name: "and-of-constant", root: Is(Opcode::And), apply: of_constant },
    Rule { name: "or-of-constant", root: Is(Opcode::Or), apply: of_constant },
    Rule { name: "not-of-compare", root: Is(Opcode::Not), apply: not_of_compare },
];

/// `and(x, x) => x`, `or(x, x) => x`. Exact for every input.
fn of_itself(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[lhs, rhs] = graph[id].operands() else { return None };
    (lhs == rhs).then_some(lhs)
}

/// `and(x, true) => x`, `and(x, false) => false`, `or(x, false) => x`, `or(x, true) => true`, for
/// `pred`. Exact for every input.
fn of_constant(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let neutral = Scalar::Pred(matches!(graph[id].op(), Op::And {}));
    if let Some(other) = graph.beside_splat(id, |scalar| scalar == neutral) {
        return Some(other);
    }
    let is_absorbing = |&o: &InstructionId| matches!(graph.splat(o), Some(Scalar::Pred(_)));
    graph[id].operands().iter().copied().find(is_absorbing)
}

/// `not(compare(x, y)) => compare(x, y)` with the opposite direction: any direction for integers
/// and in the total order, otherwise only EQ and NE, because NaN is neither less nor greater. Exact
/// for every input.
fn not_of_compare(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    use ComparisonDirection::*;
    let inner = graph.operand(id);
    let Op::Compare { direction, comparison_type } = *graph[inner].op() else { return None };
    let operands = graph[inner].operands().to_vec();
    let element_type = graph.array(operands[0]).element_type;
    let is_total = comparison_type == ComparisonType::TotalOrder
        || !(element_type.is_floating_point() || element_type.is_complex());
    let direction = match direction {
        Eq => Ne,
        Ne => Eq,
        _ if !is_total => return None,
        Ge => Lt,
        Gt => Le,
        Le => Gt,
        Lt => Ge,
    };
    Some(graph.replacement(id, Op::Compare { direction, comparison_type }, &operands))
}
