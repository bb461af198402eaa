//! Comparisons and selections.

use crate::builder::operations::broadcast_sizes;
use crate::node::context::{NodeContext, list};
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
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
    rule("ApproximateEqual", approximate_equal).types("T", NUMBERS_AND_QUANTISED),
    rule("Select", select).types("T", ALL),
    rule("SelectV2", select_v2).types("T", ALL),
];

fn order(cx: &mut NodeContext<'_, '_>, direction: ComparisonDirection) -> Result<InstructionId> {
    let (x, y) = cx.binary_inputs()?;
    cx.compare(direction, x, y)
}

/// `x == y` or `x != y`. With `incompatible_shape_error = false`, tensors whose shapes do not broadcast are unequal as a
/// whole.
fn equality(cx: &mut NodeContext<'_, '_>, direction: ComparisonDirection) -> Result<InstructionId> {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    if broadcast_sizes(&cx.sizes(x), &cx.sizes(y)).is_none()
        && !cx.node.attributes.bool_or("incompatible_shape_error", true)?
    {
        let differs = direction == ComparisonDirection::Ne;
        return Ok(cx.scalar(PrimitiveType::Pred, if differs { 1.0 } else { 0.0 }));
    }
    order(cx, direction)
}

/// `|x - y| < tolerance`, the tolerance rounded to the type.
fn approximate_equal(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let (x_sizes, y_sizes) = (cx.sizes(x), cx.sizes(y));
    cx.check(x_sizes == y_sizes, || {
        format!("Incompatible shapes: {} vs. {}", list(&x_sizes), list(&y_sizes))
    })?;
    let difference = cx.sub(x, y)?;
    let distance = match cx.element_type(difference).is_unsigned_integer() {
        true => difference,
        false => cx.op(hlo::Op::Abs {}, &[difference])?,
    };
    let tolerance = f64::from(cx.node.attributes.float("tolerance")?);
    cx.compare_scalar(ComparisonDirection::Lt, distance, tolerance)
}

/// `Select(cond, x, y)`: `cond` is a scalar, has the shape of `x`, or is a vector over its first dimension.
fn select(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (cond, x, y) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (cond_sizes, sizes, y_sizes) = (cx.sizes(cond), cx.sizes(x), cx.sizes(y));
    cx.check(sizes == y_sizes, || {
        format!("'then' and 'else' must have the same shape: {} vs. {}", list(&sizes), list(&y_sizes))
    })?;
    if cond_sizes.is_empty() || cond_sizes == sizes {
        return cx.select(cond, x, y);
    }
    let by_row = cond_sizes.len() == 1 && sizes.first() == cond_sizes.first();
    cx.check(by_row, || {
        format!(
            "'cond' must be a scalar, have the shape {} of 'then', or be a vector over its first dimension, but has \
             shape {}",
            list(&sizes),
            list(&cond_sizes)
        )
    })?;
    let cond = cx.broadcast(cond, &sizes, &[0])?;
    cx.select(cond, x, y)
}

/// `SelectV2(cond, x, y)`, all three broadcast.
fn select_v2(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (cond, x, y) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let sizes = cx.broadcast_sizes(&cx.sizes(x), &cx.sizes(y))?;
    let sizes = cx.broadcast_sizes(&sizes, &cx.sizes(cond))?;
    let (x, y) = (cx.broadcast_to(x, &sizes)?, cx.broadcast_to(y, &sizes)?);
    // A scalar condition chooses for all elements at once.
    let cond = if cx.rank(cond) == 0 { cond } else { cx.broadcast_to(cond, &sizes)? };
    cx.select(cond, x, y)
}
