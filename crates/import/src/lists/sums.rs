//! Sums and zeros of tensor lists, which gradients need.

use crate::node::context::NodeContext;
use crate::values::list::{Content, ElementType, Length, List, ListType};
use crate::values::value::Value;
use crate::values::value_type::{ValueType, rebuild};
use hlo::{InstructionId, Op};
use support::{Error, Result};

/// `AddN(x0, x1, ...)` of lists: sums their elements.
pub(crate) fn add_n(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let mut sum = cx.list(0)?;
    for k in 1..cx.inputs().len() {
        let other = cx.list(k)?;
        sum = add_lists(cx, sum, other)?;
    }
    Ok(vec![cx.new_list(sum)])
}

fn add_lists(cx: &mut NodeContext<'_, '_>, a: List, b: List) -> Result<List> {
    if let (Length::Known(x), Length::Known(y)) = (a.length, b.length) {
        cx.check(x == y || a.is_open() || b.is_open(), || {
            format!("cannot add lists of different lengths: {x} and {y}")
        })?;
    }
    let (from_a, from_b) = (a.list_type(), b.list_type());
    let joined = from_a.join(&from_b)?;
    // Adding zeros changes nothing.
    let is_zero = |list: &List| matches!(list.content, Content::Empty | Content::Zeros);
    if is_zero(&b) || is_zero(&a) {
        let other = if is_zero(&b) { &a } else { &b };
        if other.list_type() == joined {
            return Ok(other.clone());
        }
        return cx.coerced(other, &ListType { content: other.list_type().content, ..joined });
    }
    if let Some(sum) = add_only(cx, &a, &b, &joined)? {
        return Ok(sum);
    }
    let target = ListType { content: Content::Buffers(()), ..joined };
    let (a, b) = (cx.coerced(&a, &target)?, cx.coerced(&b, &target)?);
    if a.is_open() {
        return Ok(a);
    }
    let parts = a.leaves().into_iter().zip(b.leaves()).collect::<Vec<_>>();
    let sums = sum_leaves(cx, &target, &parts)?;
    rebuilt(cx, &target, &sums)
}

/// Returns the sum of two lists if one of them has a single nonzero element, by adding only that
/// element. The gradient of a read in a loop is such a list, and is added in each iteration.
fn add_only(cx: &mut NodeContext<'_, '_>, a: &List, b: &List, joined: &ListType) -> Result<Option<List>> {
    let (all, only) = match (&a.only, &b.only) {
        (_, Some(only)) => (a, only),
        (Some(only), None) => (b, only),
        (None, None) => return Ok(None),
    };
    if !matches!(joined.element, ElementType::Array(_) | ElementType::Named(..)) || joined.is_open() {
        return Ok(None);
    }
    let target = ListType { content: Content::Buffers(()), ..joined.clone() };
    let mut sum = cx.coerced(all, &target)?;
    let (Content::Buffers(buffers), (position, parts)) = (&mut sum.content, only) else { return Ok(None) };
    let ([buffer], [part]) = (buffers.as_mut_slice(), parts.as_slice()) else { return Ok(None) };
    let old = cx.row(*buffer, *position)?;
    let new = cx.add(old, *part)?;
    *buffer = cx.with_row(*buffer, *position, new)?;
    sum.only = None;
    Ok(Some(sum))
}

/// Returns the leaves of the sum of two lists of one type.
fn sum_leaves(
    cx: &mut NodeContext<'_, '_>,
    list: &ListType,
    parts: &[(InstructionId, InstructionId)],
) -> Result<Vec<InstructionId>> {
    let mut sums = Vec::new();
    let is_length = leaf_is_length(list);
    for (&(a, b), is_length) in parts.iter().zip(is_length) {
        // An element that was never written is an empty list, so the sum has the length of the
        // other operand.
        let op = if is_length { Op::Maximum {} } else { Op::Add {} };
        sums.push(cx.op(op, &[a, b])?);
    }
    Ok(sums)
}

/// For each leaf of a list, whether it is a length.
fn leaf_is_length(list: &ListType) -> Vec<bool> {
    let mut leaves = match (&list.content, &list.element) {
        (Content::Buffers(()), ElementType::Array(_) | ElementType::Named(..)) => vec![false],
        (Content::Buffers(()), ElementType::List(inner)) => leaf_is_length(inner),
        (Content::Buffers(()), ElementType::OneOf(choices)) => {
            choices.iter().flat_map(leaf_is_length).collect()
        }
        _ => Vec::new(),
    };
    if list.has_length() {
        leaves.push(true);
    }
    leaves
}

pub(crate) fn rebuilt(
    cx: &mut NodeContext<'_, '_>,
    list: &ListType,
    leaves: &[InstructionId],
) -> Result<List> {
    match rebuild(cx, &ValueType::List(list.clone()), leaves) {
        Value::List(id) => Ok(cx[id].clone()),
        other => Err(Error::internal(format!("a list became {}", other.kind()))),
    }
}

/// `ZerosLike(x)` of a list: a list of the same length, with zeros.
pub(crate) fn zeros_like(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let mut list = cx.list(0)?;
    let (ElementType::List(_) | ElementType::OneOf(_)) = list.element else {
        if !matches!(list.content, Content::Empty) {
            list.content = Content::Zeros;
        }
        list.only = None;
        return Ok(vec![cx.new_list(list)]);
    };
    // Nested lists keep their lengths.
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
