//! Ops on values that are no arrays: sums and zeros of tensor lists, and optionals.
//!
//! An optional is a list of at most one element, which is what the gradients of conditionals need: a branch that did not
//! run leaves nothing, and nobody reads that.

use crate::lists::element_ops::zero_list;
use crate::lists::list::{Bounds, Content, ElementType, Length, List, ListType};
use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::values::value::Value;
use crate::values::value_type::{ValueType, rebuild};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule_values("AddN", add_n).types("T", SUMMABLE),
    rule_values("ZerosLike", zeros_like).types("T", ALL_AND_VARIANTS),
    rule_values("OptionalNone", optional_none),
    rule_values("OptionalFromValue", optional_from_value).types("Toutput_types", ALL_AND_VARIANTS),
    rule_values("OptionalGetValue", optional_get_value).types("output_types", ALL_AND_VARIANTS),
    rule("OptionalHasValue", optional_has_value),
];

/// `AddN(x0, x1, ...)`: of lists the sums of their elements.
fn add_n(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    if cx.inputs.iter().all(|input| !matches!(input, Value::List(_))) {
        return Ok(vec![Value::Array(crate::ops::math::arithmetic::add_n(cx)?)]);
    }
    let mut sum = cx.list(0)?;
    for k in 1..cx.inputs.len() {
        let other = cx.list(k)?;
        sum = add_lists(cx, sum, other)?;
    }
    Ok(vec![cx.new_list(sum)])
}

fn add_lists(cx: &mut NodeContext<'_, '_>, a: List, b: List) -> Result<List> {
    if let (Length::Known(x), Length::Known(y)) = (a.length, b.length) {
        cx.check(x == y || a.is_open() || b.is_open(), || {
            format!("lists of different lengths cannot be added: {x} and {y}")
        })?;
    }
    let (from_a, from_b) = (a.list_type(), b.list_type());
    let joined = from_a.join(&from_b)?;
    // Zeros change nothing.
    let has_none = |list: &List| matches!(list.content, Content::Empty | Content::Zeros);
    if has_none(&b) || has_none(&a) {
        let kept = if has_none(&b) { &a } else { &b };
        if kept.list_type() == joined {
            return Ok(kept.clone());
        }
        return cx.coerced(kept, &ListType { content: kept.list_type().content, ..joined });
    }
    if let Some(sum) = add_only(cx, &a, &b, &joined)? {
        return Ok(sum);
    }
    let wanted = ListType { content: Content::Buffers(()), ..joined };
    let (a, b) = (cx.coerced(&a, &wanted)?, cx.coerced(&b, &wanted)?);
    if a.is_open() {
        return Ok(a);
    }
    let parts = a.leaves().into_iter().zip(b.leaves()).collect::<Vec<_>>();
    let sums = sum_leaves(cx, &wanted, &parts)?;
    rebuilt(cx, &wanted, &sums)
}

/// The sum of two lists, one of which has a single element that is not zeros: only that is added. The gradient of a read
/// in a loop is such a list, and is added to the others in each iteration.
fn add_only(cx: &mut NodeContext<'_, '_>, a: &List, b: &List, joined: &ListType) -> Result<Option<List>> {
    let (all, only) = match (&a.only, &b.only) {
        (_, Some(only)) => (a, only),
        (Some(only), None) => (b, only),
        (None, None) => return Ok(None),
    };
    if !matches!(joined.element, ElementType::Array(_)) || joined.is_open() {
        return Ok(None);
    }
    let wanted = ListType { content: Content::Buffers(()), ..joined.clone() };
    let mut sum = cx.coerced(all, &wanted)?;
    let (Content::Buffers(buffers), (position, parts)) = (&mut sum.content, only) else { return Ok(None) };
    let ([buffer], [part]) = (buffers.as_mut_slice(), parts.as_slice()) else { return Ok(None) };
    let old = cx.row(*buffer, *position)?;
    let new = cx.add(old, *part)?;
    *buffer = cx.with_row(*buffer, *position, new)?;
    sum.only = None;
    Ok(Some(sum))
}

/// The leaves of the sum of two lists of one type.
fn sum_leaves(
    cx: &mut NodeContext<'_, '_>,
    list: &ListType,
    parts: &[(InstructionId, InstructionId)],
) -> Result<Vec<InstructionId>> {
    let mut sums = Vec::new();
    let is_length = leaf_is_length(list);
    for (&(a, b), is_length) in parts.iter().zip(is_length) {
        // An element that was never written is a list without elements, whatever it is added to.
        let op = if is_length { Op::Maximum {} } else { Op::Add {} };
        sums.push(cx.op(op, &[a, b])?);
    }
    Ok(sums)
}

/// For each leaf of a list whether it is a length.
fn leaf_is_length(list: &ListType) -> Vec<bool> {
    let mut leaves = match (&list.content, &list.element) {
        (Content::Buffers(()), ElementType::Array(_)) => vec![false],
        (Content::Buffers(()), ElementType::List(inner)) => leaf_is_length(inner),
        (Content::Buffers(()), ElementType::OneOf(choices)) => {
            choices.iter().flat_map(leaf_is_length).collect()
        }
        _ => Vec::new(),
    };
    if list.length.is_none() {
        leaves.push(true);
    }
    leaves
}

fn rebuilt(cx: &mut NodeContext<'_, '_>, list: &ListType, leaves: &[InstructionId]) -> Result<List> {
    match rebuild(cx.importer, &ValueType::List(list.clone()), leaves) {
        Value::List(id) => Ok(cx.importer.lists[id].clone()),
        other => Err(Error::internal(format!("a list became {}", other.kind()))),
    }
}

/// `ZerosLike(x)`: of a list one of as many zeros.
fn zeros_like(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    if !matches!(cx.value(0)?, Value::List(_)) {
        let x = cx.input(0)?;
        return Ok(vec![Value::Array(cx.splat_like(x, 0.0)?)]);
    }
    let mut list = cx.list(0)?;
    let (ElementType::List(_) | ElementType::OneOf(_)) = list.element else {
        if !matches!(list.content, Content::Empty) {
            list.content = Content::Zeros;
        }
        list.only = None;
        return Ok(vec![cx.new_list(list)]);
    };
    // The lists in it keep their lengths.
    let list_type = list.list_type();
    if list.is_open() {
        return Ok(vec![cx.new_list(list)]);
    }
    let mut zeros = Vec::new();
    for (leaf, is_length) in list.leaves().into_iter().zip(leaf_is_length(&list_type)) {
        zeros.push(if is_length { leaf } else { cx.splat_like(leaf, 0.0)? });
    }
    let list = rebuilt(cx, &list_type, &zeros)?;
    Ok(vec![cx.new_list(list)])
}

/// `OptionalNone()`.
fn optional_none(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let none = zero_list(ElementType::Unknown(None), 0);
    Ok(vec![cx.new_list(none)])
}

/// `OptionalFromValue(x)`.
fn optional_from_value(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    if cx.inputs.len() != 1 {
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

/// `OptionalGetValue(optional)`; whatever if there is none.
fn optional_get_value(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    if !matches!(cx.value(0)?, Value::List(_)) {
        return Ok(vec![cx.value(0)?]);
    }
    let optional = cx.list(0)?;
    let shapes = cx.node.attributes.shapes("output_shapes")?;
    let shape = shapes.into_iter().next().unwrap_or(tf::PartialShape::UNKNOWN);
    let data_type = cx.node.attributes.types("output_types")?.into_iter().next();
    let ElementType::OneOf(choices) = &optional.element else {
        // There never was a value.
        let sizes = shape.sizes().ok_or_else(|| cx.invalid("the optional never has a value"))?;
        let element_type = cx.output_type(0)?;
        return Ok(vec![Value::Array(cx.splat(element_type, &sizes, 0.0)?)]);
    };
    let fits = |choice: &ListType| match &choice.element {
        ElementType::Array(array) => {
            data_type.and_then(|t| t.base().primitive_type()) == Some(array.element_type)
                && is_compatible(&shape, &array.sizes())
        }
        _ => data_type == Some(tf::DataType::Variant),
    };
    let fitting: Vec<usize> = (0..choices.len()).filter(|&k| fits(&choices[k])).collect();
    let of_branch = |branch: Option<usize>| -> Vec<usize> {
        fitting.iter().copied().filter(|&k| choices[k].bounds.branch == branch).collect()
    };
    // The gradient of a branch is the branch of the same number, and reads what that left.
    let place = match (fitting.as_slice(), of_branch(branch(cx)).as_slice(), of_branch(None).as_slice()) {
        ([], ..) => return Err(cx.invalid("the optional never has a value of the type that is read")),
        ([place], ..) | (_, [place], _) | (_, [], [place]) => *place,
        _ => {
            return Err(Error::unsupported(
                "the optional holds one of several values, which cannot be told apart because the graph does not say \
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
        _ => return Err(Error::internal("an optional of a known type has no buffers")),
    };
    let list = rebuilt(cx, &choice, &parts)?;
    Ok(vec![cx.read_element(&list, Length::Known(0), &list.element)?])
}

/// The number of the innermost branch that is being built.
fn branch(cx: &NodeContext<'_, '_>) -> Option<usize> {
    cx.importer.scopes.iter().rev().find_map(|scope| scope.branch)
}

/// Whether sizes are those that the graph declares, as far as it does.
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
