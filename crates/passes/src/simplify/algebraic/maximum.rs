//! Rules rooted at `maximum` and `minimum`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::{PrimitiveType, Scalar};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "maximum-of-itself", root: Is(Opcode::Maximum), apply: of_itself },
    Rule { name: "minimum-of-itself", root: Is(Opcode::Minimum), apply: of_itself },
    Rule { name: "maximum-of-lowest", root: Is(Opcode::Maximum), apply: of_bound },
    Rule { name: "minimum-of-highest", root: Is(Opcode::Minimum), apply: of_bound },
];

/// `maximum(x, x) => x`, `minimum(x, x) => x`. Exact for every input.
fn of_itself(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[lhs, rhs] = graph[id].operands() else { return None };
    (lhs == rhs).then_some(lhs)
}

/// `maximum(x, lowest) => x`, `minimum(x, highest) => x`; for floats, these are the infinities.
/// Exact for every input: NaN is preserved.
fn of_bound(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let is_maximum = matches!(graph[id].op(), Op::Maximum {});
    let element_type = graph.array(id).element_type;
    graph.beside_splat(id, |scalar| is_bound(element_type, scalar, is_maximum))
}

fn is_bound(element_type: PrimitiveType, scalar: Scalar, lowest: bool) -> bool {
    let bits = element_type.bit_width();
    match (scalar, lowest) {
        (Scalar::Pred(value), _) => value != lowest,
        (Scalar::Signed(value), true) => value == i64::MIN >> (64 - bits),
        (Scalar::Signed(value), false) => value == i64::MAX >> (64 - bits),
        (Scalar::Unsigned(value), true) => value == 0,
        (Scalar::Unsigned(value), false) => value == u64::MAX >> (64 - bits),
        (Scalar::Float(value), true) => value == f64::NEG_INFINITY,
        (Scalar::Float(value), false) => value == f64::INFINITY,
        (Scalar::Complex(..), _) => false,
    }
}
