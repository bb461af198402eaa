//! Rules rooted at `multiply`.

use super::graph::{Graph, is_integer_zero, is_number};
use super::{Root::Is, Rule};
use hlo::{InstructionId, Opcode};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "multiply-by-one", root: Is(Opcode::Multiply), apply: multiply_by_one },
    Rule { name: "multiply-by-zero", root: Is(Opcode::Multiply), apply: multiply_by_zero },
];

/// `x * 1 => x`, except for complex numbers, whose infinities would become NaN. Exact for every
/// input.
fn multiply_by_one(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    graph.beside_splat(id, |scalar| is_number(scalar, 1))
}

/// `x * 0 => 0` for integers. Exact for every input.
fn multiply_by_zero(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    graph.beside_splat(id, is_integer_zero)?;
    let operands = graph[id].operands();
    operands.iter().copied().find(|&o| graph.splat(o).is_some_and(is_integer_zero))
}
