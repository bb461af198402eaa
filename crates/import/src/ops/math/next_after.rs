//! The neighbors of floating-point numbers.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{PrimitiveType, Scalar, Shape};
use support::Result;

pub(crate) const RULES: &[Rule] = &[rule("NextAfter", next_after).types("T", FLOATS)];

/// `NextAfter(x, y)`: the number next to `x` in the direction of `y`. It is `y` if they are equal,
/// and NaN if either is.
///
/// The bits of a number without its sign increase away from 0.
fn next_after(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, y) = cx.binary_inputs()?;
    let sizes = cx.sizes(x);
    let element_type = cx.element_type(x);
    let bits_type = match element_type.bit_width() {
        16 => PrimitiveType::U16,
        32 => PrimitiveType::U32,
        _ => PrimitiveType::U64,
    };
    let sign = 1u64 << (element_type.bit_width() - 1);
    let bits_shape = Shape::array(bits_type, &sizes);
    let bits = |cx: &mut NodeContext<'_, '_>, x| cx.op_shaped(&bits_shape, Op::BitcastConvert {}, &[x]);
    let constant = |cx: &mut NodeContext<'_, '_>, value: u64| {
        let shape = shape::ArrayShape::new(bits_type, &[]);
        let literal = cx.literal(shape::Literal::from_scalars(shape, [Scalar::Unsigned(value)]));
        cx.broadcast(literal, &sizes, &[])
    };
    let (x_bits, y_bits) = (bits(cx, x)?, bits(cx, y)?);
    let (sign, one, zero) = (constant(cx, sign)?, constant(cx, 1)?, constant(cx, 0)?);
    let all_but_sign = cx.op(Op::Not {}, &[sign])?;
    let magnitude = cx.op(Op::And {}, &[x_bits, all_but_sign])?;
    let x_sign = cx.op(Op::And {}, &[x_bits, sign])?;
    let is_zero = cx.compare(ComparisonDirection::Eq, magnitude, zero)?;
    // From 0, the next number is the smallest one with the sign of `y`.
    let y_sign = cx.op(Op::And {}, &[y_bits, sign])?;
    let from_zero = cx.op(Op::Or {}, &[y_sign, one])?;
    let is_less = cx.compare(ComparisonDirection::Lt, x, y)?;
    let is_negative = cx.compare(ComparisonDirection::Ne, x_sign, zero)?;
    let is_away = cx.compare(ComparisonDirection::Ne, is_less, is_negative)?;
    let (further, nearer) = (cx.add(magnitude, one)?, cx.sub(magnitude, one)?);
    let next = cx.select(is_away, further, nearer)?;
    let next = cx.op(Op::Or {}, &[next, x_sign])?;
    let next = cx.select(is_zero, from_zero, next)?;
    let is_equal = cx.compare(ComparisonDirection::Eq, x, y)?;
    let next = cx.select(is_equal, y_bits, next)?;
    let next = cx.op_shaped(&Shape::array(element_type, &sizes), Op::BitcastConvert {}, &[next])?;
    // The sum is NaN if either is.
    let sum = cx.add(x, y)?;
    let x_is_nan = cx.compare(ComparisonDirection::Ne, x, x)?;
    let y_is_nan = cx.compare(ComparisonDirection::Ne, y, y)?;
    let is_nan = cx.op(Op::Or {}, &[x_is_nan, y_is_nan])?;
    cx.select(is_nan, sum, next)
}
