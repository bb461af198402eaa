//! Rules rooted at `add` and `subtract`.

use super::graph::{Graph, is_integer_zero, is_number};
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::Scalar;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "add-of-zero", root: Is(Opcode::Add), apply: add_of_zero },
    Rule { name: "add-of-constants", root: Is(Opcode::Add), apply: add_of_constants },
    Rule { name: "subtract-of-zero", root: Is(Opcode::Subtract), apply: subtract_of_zero },
    Rule { name: "subtract-of-itself", root: Is(Opcode::Subtract), apply: subtract_of_itself },
];

/// `x + 0 => x` for integers, `x + -0.0 => x` for floats (+0.0 would change -0.0). Exact for every
/// input.
fn add_of_zero(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let is_negative_zero = |scalar| matches!(scalar, Scalar::Float(v) if v.to_bits() == (-0.0f64).to_bits());
    graph.beside_splat(id, |scalar| is_integer_zero(scalar) || is_negative_zero(scalar))
}

/// `(x + a) + b => x + (a + b)` for integers, where a and b are constants or broadcasts of
/// constants. Exact for every input.
fn add_of_constants(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    if !graph.array(id).element_type.is_integer() {
        return None;
    }
    let (sum, b) = beside_constant(graph, id)?;
    if graph[sum].opcode() != Opcode::Add || !graph.has_one_user(sum) {
        return None;
    }
    let (x, a) = beside_constant(graph, sum)?;
    if is_constant(graph, x) {
        return None;
    }
    let total = sum_of_constants(graph, id, a, b)?;
    Some(graph.replacement(id, Op::Add {}, &[x, total]))
}

/// The operands of a binary instruction, that which is a constant second.
fn beside_constant(graph: &Graph<'_>, id: InstructionId) -> Option<(InstructionId, InstructionId)> {
    let &[lhs, rhs] = graph[id].operands() else { return None };
    if is_constant(graph, rhs) {
        return Some((lhs, rhs));
    }
    is_constant(graph, lhs).then_some((rhs, lhs))
}

/// True for constants and broadcasts of constants.
fn is_constant(graph: &Graph<'_>, id: InstructionId) -> bool {
    let is_broadcast = graph[id].opcode() == Opcode::Broadcast;
    let source = if is_broadcast { graph.operand(id) } else { id };
    graph[source].opcode() == Opcode::Constant
}

/// The sum of two constants in place of `id`, where it has no more elements than one of them.
fn sum_of_constants(
    graph: &mut Graph<'_>,
    id: InstructionId,
    a: InstructionId,
    b: InstructionId,
) -> Option<InstructionId> {
    if [a, b].iter().any(|&constant| graph[constant].opcode() == Opcode::Constant) {
        return Some(graph.replacement(id, Op::Add {}, &[a, b]));
    }
    let (narrow, wide) = if rank_of_source(graph, a) == 0 { (a, b) } else { (b, a) };
    let small = graph.array(graph.operand(wide)).clone();
    let summand = if graph[narrow].op() == graph[wide].op() {
        graph.operand(narrow)
    } else if rank_of_source(graph, narrow) == 0 {
        let scalar = graph.operand(narrow);
        graph.helper(id, Op::Broadcast { dimensions: Vec::new() }, small.clone(), &[scalar])
    } else {
        return None;
    };
    let (op, source) = (graph[wide].op().clone(), graph.operand(wide));
    let sum = graph.helper(id, Op::Add {}, small, &[source, summand]);
    Some(graph.replacement(id, op, &[sum]))
}

/// Rank of what a broadcast reads.
fn rank_of_source(graph: &Graph<'_>, broadcast: InstructionId) -> usize {
    graph.array(graph.operand(broadcast)).rank()
}

/// `x - 0 => x`, for floats +0.0 only (-0.0 would change -0.0). Exact for every input.
fn subtract_of_zero(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[lhs, rhs] = graph[id].operands() else { return None };
    graph.splat(rhs).is_some_and(|scalar| is_number(scalar, 0)).then_some(lhs)
}

/// `x - x => 0` for integers. Exact for every input.
fn subtract_of_itself(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[lhs, rhs] = graph[id].operands() else { return None };
    let element_type = graph.array(id).element_type;
    if lhs != rhs || !element_type.is_integer() {
        return None;
    }
    let zero = if element_type.is_signed_integer() { Scalar::Signed(0) } else { Scalar::Unsigned(0) };
    Some(graph.filled(id, zero))
}
