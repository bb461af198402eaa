//! Rules rooted at `add` and `subtract`.

use super::graph::{Graph, is_integer_zero, is_number};
use super::{Root::Is, Rule};
use hlo::{InstructionId, Opcode};
use shape::Scalar;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "add-of-zero", root: Is(Opcode::Add), apply: add_of_zero },
    Rule { name: "subtract-of-zero", root: Is(Opcode::Subtract), apply: subtract_of_zero },
    Rule { name: "subtract-of-itself", root: Is(Opcode::Subtract), apply: subtract_of_itself },
];

/// `x + 0 => x` for integers, `x + -0.0 => x` for floats (+0.0 would change -0.0). Exact for every
/// input.
fn add_of_zero(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let is_negative_zero = |scalar| matches!(scalar, Scalar::Float(v) if v.to_bits() == (-0.0f64).to_bits());
    graph.beside_splat(id, |scalar| is_integer_zero(scalar) || is_negative_zero(scalar))
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
