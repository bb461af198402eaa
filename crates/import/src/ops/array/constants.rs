//! Constants, and arrays filled with one value.

use crate::lists::element_ops::zero_list;
use crate::lists::sums;
use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::values::list::ElementType;
use crate::values::value::Value;
use bounded::{bounds, run_time};
use hlo::InstructionId;
use shape::{ArrayShape, Literal};
use support::Result;
use tf::DataType;

pub(crate) const RULES: &[Rule] = &[
    rule_values("Const", constant).types("dtype", ALL_AND_STRINGS),
    rule("_EagerConst", |cx| cx.input(0)).types("T", ALL),
    rule("Fill", fill).types("T", ALL),
    rule("OnesLike", |cx| like(cx, 1.0)).types("T", BOOL_AND_NUMBERS),
    rule("Empty", empty).types("dtype", ALL),
    rule_values("FakeParam", fake_param).types("dtype", ALL_AND_VARIANTS),
    rule_values("ZerosLike", zeros_like).types("T", ALL_AND_VARIANTS),
];

/// Minimum number of equal elements of a constant to represent it as a broadcast.
const SPLAT_ELEMENTS: i64 = 32;

/// Returns the tensor of the node. Strings have no value, but may flow to nodes that do not read
/// them.
fn constant(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let attributes = &cx.attributes();
    if attributes.ty("dtype")? == DataType::String {
        return Ok(vec![Value::Opaque]);
    }
    let id = match attributes.tensor_is_splat("value")? {
        Some((element, shape)) => splat(cx, element, &shape)?,
        None => {
            let literal = attributes.tensor("value")?;
            let shape = literal.array_shape().clone();
            if shape.element_count() >= SPLAT_ELEMENTS && literal.is_splat() {
                splat(cx, first_element(&literal), &shape)?
            } else {
                cx.literal(literal)
            }
        }
    };
    Ok(vec![Value::Array(id)])
}

fn first_element(literal: &Literal) -> Literal {
    let element_type = literal.array_shape().element_type;
    let bytes = literal.bytes().slice(..element_type.byte_size());
    Literal::from_bytes(ArrayShape::new(element_type, &[]), bytes)
        .expect("the size of an element differs from that of its type")
}

fn splat(cx: &mut NodeContext<'_, '_>, element: Literal, shape: &ArrayShape) -> Result<InstructionId> {
    let element = element.reshape(&[]).unwrap_or(element);
    let scalar = cx.literal(element);
    cx.broadcast(scalar, &shape.sizes(), &[])
}

/// `Fill(dims, value)`: an array of shape `dims` with every element equal to `value`.
fn fill(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let requested = cx.bounded_sizes(0)?;
    let sizes = bounds(&requested);
    let value = cx.input(1)?;
    let value_sizes = cx.sizes(value);
    let scalar = shape::index::element_count(&value_sizes) == Some(1);
    cx.check(scalar, || format!("value: expected a scalar, got shape {value_sizes:?}"))?;
    let value = cx.reshape(value, &[])?;
    let filled = cx.broadcast(value, &sizes, &[])?;
    cx.bounded(filled, &run_time(&requested))
}

/// Returns zeros or ones of the input's shape.
fn like(cx: &mut NodeContext<'_, '_>, value: f64) -> Result<InstructionId> {
    let x = cx.input(0)?;
    cx.splat_like(x, value)
}

/// `ZerosLike(x)` of an array or a list.
fn zeros_like(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    if matches!(cx.value(0)?, Value::List(_)) {
        return sums::zeros_like(cx);
    }
    Ok(vec![Value::Array(like(cx, 0.0)?)])
}

/// `Empty(shape)`: uninitialized in TensorFlow, zeros here.
fn empty(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let element_type = cx.type_attribute("dtype")?;
    cx.splat(element_type, &sizes, 0.0)
}

/// The result of a branch of a conditional where the other branch has an intermediate value: zeros,
/// or an empty list.
fn fake_param(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    if cx.attributes().ty("dtype")? == DataType::Variant {
        let none = zero_list(ElementType::Unknown(None), 0);
        return Ok(vec![cx.new_list(none)]);
    }
    let shape = cx.attributes().shape("shape")?;
    let sizes = shape.sizes();
    let sizes =
        sizes.ok_or_else(|| cx.invalid(format!("the shape {shape} is not fully known at compile time")))?;
    let element_type = cx.type_attribute("dtype")?;
    Ok(vec![Value::Array(cx.splat(element_type, &sizes, 0.0)?)])
}
