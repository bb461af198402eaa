//! Rules rooted at `iota`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::{PrimitiveType, Scalar};

pub(super) const RULES: &[Rule] = &[Rule { name: "iota-of-one", root: Is(Opcode::Iota), apply: iota_of_one }];

/// `iota() => 0` along a dimension of size 1, except for complex numbers. Exact.
fn iota_of_one(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Iota { iota_dimension } = *graph[id].op() else { return None };
    let shape = graph.array(id);
    let zero = match shape.element_type {
        PrimitiveType::Pred => return None,
        t if t.is_signed_integer() => Scalar::Signed(0),
        t if t.is_integer() => Scalar::Unsigned(0),
        t if t.is_floating_point() => Scalar::Float(0.0),
        _ => return None,
    };
    (shape.size(iota_dimension) == 1).then(|| graph.filled(id, zero))
}
