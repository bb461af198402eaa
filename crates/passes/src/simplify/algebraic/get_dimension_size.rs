//! Rules rooted at `get-dimension-size`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::Scalar;

pub(super) const RULES: &[Rule] =
    &[Rule { name: "size-of-static", root: Is(Opcode::GetDimensionSize), apply: size_of_static }];

/// `get-dimension-size(x) => n` if `x` has static dimensions. Exact.
fn size_of_static(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::GetDimensionSize { dimension } = *graph[id].op() else { return None };
    let size = graph.array(graph[id].operands()[0]).size(dimension);
    Some(graph.filled(id, Scalar::Signed(size)))
}
