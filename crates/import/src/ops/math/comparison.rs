//! Comparisons.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{broadcast_sizes, list};
use hlo::{ComparisonDirection, InstructionId};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Equal", |cx| equality(cx, ComparisonDirection::Eq)).types("T", ALL),
    rule("NotEqual", |cx| equality(cx, ComparisonDirection::Ne)).types("T", ALL),
    rule("Less", |cx| order(cx, ComparisonDirection::Lt)).types("T", REAL),
    rule("LessEqual", |cx| order(cx, ComparisonDirection::Le)).types("T", REAL),
    rule("Greater", |cx| order(cx, ComparisonDirection::Gt)).types("T", REAL),
    rule("GreaterEqual", |cx| order(cx, ComparisonDirection::Ge)).types("T", REAL),
    rule("ApproximateEqual", approximate_equal).types("T", NUMBERS_AND_QUANTIZED),
];

fn order(cx: &mut NodeContext<'_, '_>, direction: ComparisonDirection) -> Result<InstructionId> {
    let (x, y) = cx.binary_inputs()?;
    cx.compare(direction, x, y)
}

/// `x == y` or `x != y`. With `incompatible_shape_error = false`, tensors whose shapes do not
/// broadcast are unequal as a whole.
fn equality(cx: &mut NodeContext<'_, '_>, direction: ComparisonDirection) -> Result<InstructionId> {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    if broadcast_sizes(&cx.sizes(x), &cx.sizes(y)).is_none()
        && !cx.attributes().bool_or("incompatible_shape_error", true)?
    {
        let differs = direction == ComparisonDirection::Ne;
        return Ok(cx.scalar(PrimitiveType::Pred, if differs { 1.0 } else { 0.0 }));
    }
    order(cx, direction)
}

/// `|x - y| < tolerance`, with the tolerance rounded to the type.
fn approximate_equal(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let (x_sizes, y_sizes) = (cx.sizes(x), cx.sizes(y));
    cx.check(x_sizes == y_sizes, || {
        format!("Incompatible shapes: {} vs. {}", list(&x_sizes), list(&y_sizes))
    })?;
    let difference = cx.sub(x, y)?;
    let distance = if cx.element_type(difference).is_unsigned_integer() {
        difference
    } else {
        cx.op(hlo::Op::Abs {}, &[difference])?
    };
    let tolerance = f64::from(cx.attributes().float("tolerance")?);
    cx.compare_scalar(ComparisonDirection::Lt, distance, tolerance)
}
