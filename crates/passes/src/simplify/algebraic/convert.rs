//! Rules rooted at `convert`, `bitcast-convert`, `copy`, `negate`, and `not`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::PrimitiveType;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "convert-to-the-same", root: Is(Opcode::Convert), apply: to_the_same },
    Rule { name: "convert-of-convert", root: Is(Opcode::Convert), apply: convert_of_convert },
    Rule { name: "bitcast-convert-to-the-same", root: Is(Opcode::BitcastConvert), apply: to_the_same },
    Rule { name: "copy", root: Is(Opcode::Copy), apply: to_the_same },
    Rule { name: "negate-of-negate", root: Is(Opcode::Negate), apply: twice },
    Rule { name: "not-of-not", root: Is(Opcode::Not), apply: twice },
];

/// `convert(x) => x` if the type is that of x. Exact for every input.
fn to_the_same(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let operand = graph[id].operands()[0];
    (graph[operand].shape() == graph[id].shape()).then_some(operand)
}

/// `negate(negate(x)) => x`, `not(not(x)) => x`. Exact for every input: one flips the sign bit, the
/// other all bits.
fn twice(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let inner = graph[id].operands()[0];
    let same = matches!(
        (graph[id].op(), graph[inner].op()),
        (Op::Negate {}, Op::Negate {}) | (Op::Not {}, Op::Not {})
    );
    same.then(|| graph[inner].operands()[0])
}

/// `convert(convert(x)) => convert(x)` if the intermediate type holds every value of x's type.
/// Conversions from floats saturate where those from integers wrap, so for an integer converted to
/// a float and to an integer, the last type must hold the values, too. Exact for every input.
fn convert_of_convert(graph: &mut Graph<'_>, outer: InstructionId) -> Option<InstructionId> {
    let inner = graph.operand(outer);
    let Op::Convert {} = graph[inner].op() else { return None };
    let source = graph.operand(inner);
    let element_type = |id: InstructionId| graph.array(id).element_type;
    let (narrow, wide, last) = (element_type(source), element_type(inner), element_type(outer));
    let wraps_instead = wide.is_floating_point() && !narrow.is_floating_point() && last.is_integer();
    if !holds(wide, narrow) || (wraps_instead && !holds(last, narrow)) {
        return None;
    }
    if graph[source].shape() == graph[outer].shape() {
        return Some(source);
    }
    Some(graph.replacement(outer, Op::Convert {}, &[source]))
}

/// True if `wide` holds every value of `narrow`. Always false for complex numbers.
fn holds(wide: PrimitiveType, narrow: PrimitiveType) -> bool {
    let Some((exponent, mantissa)) = float_format(wide) else {
        let (w, n) = (wide.bit_width(), narrow.bit_width());
        return match (wide, narrow) {
            // The only bit of `s1` is its sign.
            (_, PrimitiveType::Pred) => wide.is_unsigned_integer() || wide.is_signed_integer() && w > 1,
            (a, b) if a.is_signed_integer() && b.is_signed_integer() => w >= n,
            (a, b) if a.is_unsigned_integer() && b.is_unsigned_integer() => w >= n,
            (a, b) if a.is_signed_integer() && b.is_unsigned_integer() => w > n,
            _ => false,
        };
    };
    match float_format(narrow) {
        Some((e, m)) => e <= exponent && m <= mantissa,
        None if narrow.is_complex() || narrow.is_floating_point() => false,
        // All integers below 2^bits, and -2^(bits - 1): this requires as many digits, and an
        // exponent that reaches them.
        None => narrow.bit_width() <= mantissa + 1 && 1 << (exponent - 1) > narrow.bit_width(),
    }
}

/// Exponent and mantissa bits of the formats with infinities.
fn float_format(element_type: PrimitiveType) -> Option<(u32, u32)> {
    let format = element_type.float_format().filter(|format| format.has_infinity())?;
    Some((format.exponent_bits, format.mantissa_bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrimitiveType::*;

    #[test]
    fn a_type_holds_another_if_no_value_is_rounded() {
        for (wide, narrow) in [
            (F32, Bf16),
            (F32, F16),
            (F16, F8e5m2),
            (F64, S32),
            (F32, S16),
            (F32, U16),
            (Bf16, S8),
            (S32, U16),
            (S64, Pred),
            (U1, Pred),
            (S2, Pred),
            (F16, Pred),
            (F8e5m2, U2),
        ] {
            assert!(holds(wide, narrow), "{wide} holds {narrow}");
        }
        for (wide, narrow) in [
            (F16, Bf16),
            (Bf16, F16),
            (F32, S32),
            (F64, S64),
            (F16, U16),
            (F16, S16),
            (S32, U32),
            (U64, S8),
            (U16, U32),
            (S32, F16),
            (Pred, S2),
            (S1, Pred),
            (C64, F32),
            (F32, C64),
            (F64, F8e4m3fn),
            (Pred, F32),
        ] {
            assert!(!holds(wide, narrow), "{wide} does not hold {narrow}");
        }
    }
}
