//! Division and remainders, and products that are 0 if a factor is.
//!
//! Division of integers by 0 is as in XLA: all bits of the quotient are set, and the remainder is
//! the dividend.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Div", |cx| cx.binary(Op::Divide {})).types("T", NUMBERS),
    rule("RealDiv", |cx| cx.binary(Op::Divide {})).types("T", NUMBERS),
    rule("TruncateDiv", truncate_div).types("T", NUMBERS),
    rule("FloorDiv", floor_div).types("T", REAL),
    rule("Mod", |cx| cx.binary(Op::Remainder {})).types("T", FLOATS_AND_INDICES),
    rule("TruncateMod", |cx| cx.binary(Op::Remainder {})).types("T", FLOATS_AND_INDICES),
    rule("FloorMod", floor_mod).types("T", REAL),
    rule("Reciprocal", reciprocal).types("T", SIGNED_NUMBERS),
    rule("Inv", reciprocal).types("T", SIGNED_NUMBERS),
    rule("DivNoNan", |cx| unless_zero(cx, Which::Second, Op::Divide {}, None)).types("T", FLOATS_AND_COMPLEX),
    rule("MulNoNan", |cx| unless_zero(cx, Which::Second, Op::Multiply {}, None))
        .types("T", FLOATS_AND_COMPLEX),
    rule("Xdivy", |cx| unless_zero(cx, Which::First, Op::Divide {}, None)).types("T", FLOATS_AND_COMPLEX),
    rule("Xlogy", |cx| unless_zero(cx, Which::First, Op::Multiply {}, Some(Op::Log {})))
        .types("T", FLOATS_AND_COMPLEX),
    rule("Xlog1py", |cx| unless_zero(cx, Which::First, Op::Multiply {}, Some(Op::Log1p {})))
        .types("T", FLOATS_AND_COMPLEX),
];

/// `TruncateDiv(x, y) = trunc(x / y)`. Complex quotients are not truncated.
fn truncate_div(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let quotient = cx.binary(Op::Divide {})?;
    if !cx.element_type(quotient).is_floating_point() {
        return Ok(quotient);
    }
    let negative = cx.compare_scalar(ComparisonDirection::Lt, quotient, 0.0)?;
    let (up, down) = (cx.op(Op::Ceil {}, &[quotient])?, cx.op(Op::Floor {}, &[quotient])?);
    cx.select(negative, up, down)
}

/// `FloorDiv(x, y) = floor(x / y)`. bfloat16 is divided in float32, so that rounding cannot reach
/// the next integer.
fn floor_div(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (mut x, mut y) = cx.binary_inputs()?;
    let element_type = cx.element_type(x);
    if element_type == PrimitiveType::Bf16 {
        (x, y) = (cx.convert(x, PrimitiveType::F32)?, cx.convert(y, PrimitiveType::F32)?);
    }
    let quotient = cx.div(x, y)?;
    if element_type.is_floating_point() {
        let floor = cx.op(Op::Floor {}, &[quotient])?;
        return cx.convert(floor, element_type);
    }
    if element_type.is_unsigned_integer() {
        return Ok(quotient);
    }
    let product = cx.mul(quotient, y)?;
    let inexact = cx.compare(ComparisonDirection::Ne, product, x)?;
    let signs_differ = signs_differ(cx, x, y)?;
    let round_down = cx.op(Op::And {}, &[inexact, signs_differ])?;
    let below = cx.add_scalar(quotient, -1.0)?;
    cx.select(round_down, below, quotient)
}

fn signs_differ(cx: &mut NodeContext<'_, '_>, x: InstructionId, y: InstructionId) -> Result<InstructionId> {
    let x_negative = cx.compare_scalar(ComparisonDirection::Lt, x, 0.0)?;
    let y_negative = cx.compare_scalar(ComparisonDirection::Lt, y, 0.0)?;
    cx.compare(ComparisonDirection::Ne, x_negative, y_negative)
}

/// `FloorMod(x, y)`: the remainder with the sign of `y`.
fn floor_mod(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, y) = cx.binary_inputs()?;
    let remainder = cx.op(Op::Remainder {}, &[x, y])?;
    if cx.element_type(x).is_unsigned_integer() {
        return Ok(remainder);
    }
    let not_zero = cx.compare_scalar(ComparisonDirection::Ne, remainder, 0.0)?;
    let signs_differ = signs_differ(cx, remainder, y)?;
    let wrap = cx.op(Op::And {}, &[not_zero, signs_differ])?;
    let wrapped = cx.add(remainder, y)?;
    cx.select(wrap, wrapped, remainder)
}

/// `1 / x`.
fn reciprocal(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let one = cx.splat_like(x, 1.0)?;
    cx.div(one, x)
}

enum Which {
    First,
    Second,
}

/// `0` if the chosen operand is 0, otherwise `x op f(y)`.
fn unless_zero(
    cx: &mut NodeContext<'_, '_>,
    which: Which,
    op: Op,
    function: Option<Op>,
) -> Result<InstructionId> {
    let (x, y) = cx.binary_inputs()?;
    let tested = match which {
        Which::First => x,
        Which::Second => y,
    };
    let is_zero = cx.compare_scalar(ComparisonDirection::Eq, tested, 0.0)?;
    let factor = match function {
        Some(function) => cx.op(function, &[y])?,
        None => y,
    };
    let value = cx.op(op, &[x, factor])?;
    let zero = cx.splat_like(value, 0.0)?;
    cx.select(is_zero, zero, value)
}
