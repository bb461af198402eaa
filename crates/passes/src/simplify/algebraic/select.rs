//! Rules rooted at `select`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::Scalar;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "select-of-constant", root: Is(Opcode::Select), apply: select_of_constant },
    Rule { name: "select-of-equals", root: Is(Opcode::Select), apply: select_of_equals },
    Rule { name: "select-of-select", root: Is(Opcode::Select), apply: select_of_select },
    Rule { name: "select-of-not", root: Is(Opcode::Select), apply: select_of_not },
    Rule { name: "select-of-true-and-false", root: Is(Opcode::Select), apply: select_of_true_and_false },
];

/// `select(true, x, y) => x`, `select(false, x, y) => y`. Exact for every input.
fn select_of_constant(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[predicate, on_true, on_false] = graph[id].operands() else { return None };
    let Scalar::Pred(choice) = graph.splat(predicate)? else { return None };
    Some(if choice { on_true } else { on_false })
}

/// `select(p, x, x) => x`. Exact for every input.
fn select_of_equals(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[_, on_true, on_false] = graph[id].operands() else { return None };
    (on_true == on_false).then_some(on_true)
}

/// `select(p, select(p, x, y), z) => select(p, x, z)`, `select(p, x, select(p, y, z)) => select(p,
/// x, z)`. Exact for every input.
fn select_of_select(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[predicate, on_true, on_false] = graph[id].operands() else { return None };
    let inner = |branch: InstructionId, place: usize| match graph[branch].op() {
        Op::Select {} if graph[branch].operands()[0] == predicate => Some(graph[branch].operands()[place]),
        _ => None,
    };
    let (inner_true, inner_false) = (inner(on_true, 1), inner(on_false, 2));
    inner_true.or(inner_false)?;
    let operands = [predicate, inner_true.unwrap_or(on_true), inner_false.unwrap_or(on_false)];
    Some(graph.replacement(id, Op::Select {}, &operands))
}

/// `select(not(p), x, y) => select(p, y, x)`. Exact for every input.
fn select_of_not(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[predicate, on_true, on_false] = graph[id].operands() else { return None };
    let Op::Not {} = graph[predicate].op() else { return None };
    let predicate = graph.operand(predicate);
    Some(graph.replacement(id, Op::Select {}, &[predicate, on_false, on_true]))
}

/// `select(p, true, false) => p`, `select(p, false, true) => not(p)`, if p has the result's shape.
/// Exact for every input.
fn select_of_true_and_false(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[predicate, on_true, on_false] = graph[id].operands() else { return None };
    if graph[predicate].shape() != graph[id].shape() {
        return None;
    }
    match (graph.splat(on_true)?, graph.splat(on_false)?) {
        (Scalar::Pred(true), Scalar::Pred(false)) => Some(predicate),
        (Scalar::Pred(false), Scalar::Pred(true)) => Some(graph.replacement(id, Op::Not {}, &[predicate])),
        _ => None,
    }
}
