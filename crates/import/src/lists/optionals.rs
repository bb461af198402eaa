//! Optionals.
//!
//! An optional is a list of at most one element. Gradients of conditionals use optionals: a branch
//! that did not run leaves none, and nothing reads it.

use crate::lists::element_ops::zero_list;
use crate::lists::sums::rebuilt;
use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::values::list::{Bounds, Content, ElementType, Length, List, ListType};
use crate::values::value::Value;
use crate::values::value_type::ValueType;
use hlo::{ComparisonDirection, InstructionId};
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule_values("OptionalNone", optional_none),
    rule_values("OptionalFromValue", optional_from_value).types("Toutput_types", ALL_AND_VARIANTS),
    rule_values("OptionalGetValue", optional_get_value).types("output_types", ALL_AND_VARIANTS),
    rule("OptionalHasValue", optional_has_value),
];

/// `OptionalNone()`.
fn optional_none(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let none = zero_list(ElementType::Unknown(None), 0);
    Ok(vec![cx.new_list(none)])
}

/// `OptionalFromValue(x)`.
fn optional_from_value(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    if cx.inputs().len() != 1 {
        return Err(Error::unsupported("optionals of several components are not supported"));
    }
    let component = match cx.value(0)? {
        // Handles of resources are the same value wherever they come from.
        same @ (Value::Resource(_) | Value::Stack(_) | Value::TensorArray(_) | Value::Opaque) => {
            return Ok(vec![same]);
        }
        _ => cx.element_input(0)?,
    };
    let mut inner = zero_list(ElementType::Unknown(None), 0);
    cx.push(&mut inner, component)?;
    let mut buffers = Vec::new();
    if !inner.is_open() {
        for leaf in inner.leaves() {
            let sizes = [&[1], &cx.sizes(leaf)[..]].concat();
            buffers.push(cx.reshape(leaf, &sizes)?);
        }
    }
    let bounds = Bounds { branch: branch(cx), ..Bounds::default() };
    let choice = ListType { bounds, ..inner.list_type() };
    let some = List {
        element: ElementType::OneOf(vec![choice]),
        content: Content::Buffers(buffers),
        ..zero_list(ElementType::Unknown(None), 1)
    };
    Ok(vec![cx.new_list(some)])
}

/// `OptionalGetValue(optional)`. The result is unspecified if there is no value.
fn optional_get_value(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    if !matches!(cx.value(0)?, Value::List(_)) {
        return Ok(vec![cx.value(0)?]);
    }
    let optional = cx.list(0)?;
    let shapes = cx.attributes().shapes("output_shapes")?;
    let shape = shapes.into_iter().next().unwrap_or(tf::PartialShape::UNKNOWN);
    let data_type = cx.attributes().types("output_types")?.into_iter().next();
    let ElementType::OneOf(choices) = &optional.element else {
        // There never was a value.
        let sizes = shape
            .sizes()
            .ok_or_else(|| cx.invalid("the optional never has a value, and its shape is unknown"))?;
        let element_type = cx.output_type(0)?;
        return Ok(vec![Value::Array(cx.splat(element_type, &sizes, 0.0)?)]);
    };
    let fits = |choice: &ListType| match &choice.element {
        ElementType::Array(array) | ElementType::Named(array, _) => {
            data_type.and_then(|t| t.base().primitive_type()) == Some(array.element_type)
                && is_compatible(&shape, &array.sizes())
        }
        _ => data_type == Some(tf::DataType::Variant),
    };
    let fitting: Vec<usize> = (0..choices.len()).filter(|&k| fits(&choices[k])).collect();
    let of_branch = |branch: Option<usize>| -> Vec<usize> {
        fitting.iter().copied().filter(|&k| choices[k].bounds.branch == branch).collect()
    };
    // The gradient of a branch is the branch with the same number, and reads the value that the
    // branch left.
    let place = match (fitting.as_slice(), of_branch(branch(cx)).as_slice(), of_branch(None).as_slice()) {
        ([], ..) => return Err(cx.invalid("the optional never has a value of the type that is read")),
        ([place], ..) | (_, [place], _) | (_, [], [place]) => *place,
        _ => {
            return Err(Error::unsupported(
                "the optional holds one of several values, which are indistinguishable because the graph does not declare \
                 their shapes; give the branches of the conditional static shapes",
            ));
        }
    };
    let choice = choices[place].clone();
    let before: usize = choices[..place].iter().map(|choice| choice.leaves().len()).sum();
    let parts = match &optional.content {
        Content::Buffers(_) if optional.is_open() => cx.placeholders(&ValueType::List(choice.clone()))?,
        Content::Buffers(buffers) => {
            let mut parts = Vec::new();
            for &buffer in &buffers[before..before + choice.leaves().len()] {
                parts.push(cx.row(buffer, Length::Known(0))?);
            }
            parts
        }
        _ => return Err(Error::internal("an optional of a known type without buffers")),
    };
    let list = rebuilt(cx, &choice, &parts)?;
    Ok(vec![cx.read_element(&list, Length::Known(0), &list.element)?])
}

/// Returns the number of the innermost branch being built.
fn branch(cx: &NodeContext<'_, '_>) -> Option<usize> {
    cx.branch()
}

/// True if sizes match those that the graph declares.
fn is_compatible(declared: &tf::PartialShape, sizes: &[i64]) -> bool {
    declared.dimensions.as_ref().is_none_or(|declared| {
        declared.len() == sizes.len() && declared.iter().zip(sizes).all(|(d, s)| d.is_none_or(|d| d == *s))
    })
}

/// `OptionalHasValue(optional)`.
fn optional_has_value(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let optional = cx.list(0)?;
    match optional.length {
        Length::Known(length) => Ok(cx.scalar(PrimitiveType::Pred, if length > 0 { 1.0 } else { 0.0 })),
        Length::Dynamic(length) => cx.compare_scalar(ComparisonDirection::Gt, length, 0.0),
    }
}
