//! Rules rooted at `compare`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{ComparisonDirection, InstructionId, Op, Opcode};
use shape::{PrimitiveType, Scalar};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "compare-of-itself", root: Is(Opcode::Compare), apply: compare_of_itself },
    Rule {
        name: "compare-of-pred-and-constant",
        root: Is(Opcode::Compare),
        apply: compare_of_pred_and_constant,
    },
];

/// `compare(x, x) => true` for EQ, GE, and LE, `=> false` for NE, GT, and LT, for integers and
/// `pred`. Exact for every input.
fn compare_of_itself(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    use ComparisonDirection::*;
    let Op::Compare { direction, .. } = *graph[id].op() else { return None };
    let &[lhs, rhs] = graph[id].operands() else { return None };
    let element_type = graph.array(lhs).element_type;
    if lhs != rhs || !(element_type.is_integer() || element_type == PrimitiveType::Pred) {
        return None;
    }
    Some(graph.filled(id, Scalar::Pred(matches!(direction, Eq | Ge | Le))))
}

/// `p == true => p`, `p != false => p`, `p == false => not(p)`, `p != true => not(p)`. Exact for
/// every input.
fn compare_of_pred_and_constant(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Compare { direction, .. } = *graph[id].op() else { return None };
    let when = match direction {
        ComparisonDirection::Eq => true,
        ComparisonDirection::Ne => false,
        _ => return None,
    };
    if let Some(other) = graph.beside_splat(id, |scalar| scalar == Scalar::Pred(when)) {
        return Some(other);
    }
    let other = graph.beside_splat(id, |scalar| scalar == Scalar::Pred(!when))?;
    Some(graph.replacement(id, Op::Not {}, &[other]))
}
