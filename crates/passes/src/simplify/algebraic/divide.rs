//! Rules rooted at `divide`.

use super::graph::{Graph, is_number};
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::{PrimitiveType, Scalar};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "divide-by-one", root: Is(Opcode::Divide), apply: divide_by_one },
    Rule { name: "divide-by-power-of-two", root: Is(Opcode::Divide), apply: divide_by_power_of_two },
];

/// `x / 1 => x`, except for complex numbers. Exact for every input.
fn divide_by_one(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[lhs, rhs] = graph[id].operands() else { return None };
    graph.splat(rhs).is_some_and(|scalar| is_number(scalar, 1)).then_some(lhs)
}

/// `x / 2^n => x * 2^-n` for floats if 2^-n is a normal number: both round the same quotient. Exact
/// for every input.
fn divide_by_power_of_two(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[lhs, rhs] = graph[id].operands() else { return None };
    let Scalar::Float(divisor) = graph.splat(rhs)? else { return None };
    let largest_exponent = match graph.array(id).element_type {
        PrimitiveType::F64 => 1022,
        PrimitiveType::F32 | PrimitiveType::Bf16 => 126,
        PrimitiveType::F16 => 14,
        _ => return None,
    };
    let (mantissa, exponent) =
        (divisor.to_bits() & ((1 << 52) - 1), (divisor.to_bits() >> 52 & 0x7ff) as i64 - 1023);
    if mantissa != 0 || !(-largest_exponent..=largest_exponent).contains(&exponent) {
        return None;
    }
    let reciprocal = graph.filled(rhs, Scalar::Float(1.0 / divisor));
    Some(graph.replacement(id, Op::Multiply {}, &[lhs, reciprocal]))
}
