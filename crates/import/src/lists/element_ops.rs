//! Tensor lists: TF 2's values that hold a sequence of tensors. This file contains the ops on
//! single elements; `whole_ops` contains those on whole lists.
//!
//! Positions out of range are clamped, as in XLA. Elements that were never written are zeros.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::values::list::{Bounds, Content, ElementType, Length, List};
use crate::values::value::Value;
use bounded::list as in_words;
use hlo::InstructionId;
use shape::Literal;
use support::{Code, Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule_values("EmptyTensorList", empty).types("element_dtype", ALL_AND_VARIANTS),
    rule_values("TensorListReserve", reserve).types("element_dtype", ALL_AND_VARIANTS),
    rule_values("TensorListPushBack", push_back).types("element_dtype", ALL_AND_VARIANTS),
    rule_values("TensorListPopBack", pop_back).types("element_dtype", ALL_AND_VARIANTS),
    rule_values("TensorListSetItem", set_item).types("element_dtype", ALL_AND_VARIANTS),
    rule_values("TensorListGetItem", get_item).types("element_dtype", ALL_AND_VARIANTS),
    rule_values("TensorListResize", resize),
    rule("TensorListLength", length),
    rule("TensorListElementShape", element_shape),
];

/// `EmptyTensorList(element_shape, max_num_elements)`.
fn empty(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let sizes = cx.declared_sizes(0)?;
    let element = cx.element_of(sizes)?;
    let limit = cx.constant_element(1, 0)?.filter(|&limit| limit >= 0);
    let bounds = Bounds { limit, ..Bounds::default() };
    let list = List {
        element,
        capacity: Some(0),
        content: Content::Empty,
        length: Length::Known(0),
        bounds,
        only: None,
    };
    Ok(vec![cx.new_list(list)])
}

/// `TensorListReserve(element_shape, num_elements)`: zeros. There is room for the largest number
/// that follows from open sizes.
fn reserve(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let sizes = cx.declared_sizes(0)?;
    let element = cx.element_of(sizes)?;
    let open = match cx.position_input(1)? {
        Length::Dynamic(id) if cx.has_named_sizes() => cx.range(id).high.map(|most| (id, most)),
        _ => None,
    };
    let count = open.map_or_else(|| cx.constant_i64(1), |(_, most)| Ok(most.max(0)))?;
    let fits = (0..=i64::from(i32::MAX)).contains(&count);
    cx.check(fits, || format!("num_elements: expected an int32 >= 0, got {count}"))?;
    let mut list = zero_list(element, count);
    if let Some((length, _)) = open {
        list.length = Length::Dynamic(length);
    }
    Ok(vec![cx.new_list(list)])
}

/// A list of elements that were never written.
pub(crate) fn zero_list(element: ElementType, length: i64) -> List {
    List {
        element,
        capacity: Some(length),
        content: if length > 0 { Content::Zeros } else { Content::Empty },
        length: Length::Known(length),
        bounds: Bounds { most: length, ..Bounds::default() },
        only: None,
    }
}

/// `TensorListPushBack(list, element)`.
fn push_back(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let mut list = cx.list(0)?;
    let element = cx.element_input(1)?;
    cx.push(&mut list, element)?;
    Ok(vec![cx.new_list(list)])
}

/// `TensorListPopBack(list, element_shape)`: the list without its last element, and that element.
fn pop_back(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let list = cx.list(0)?;
    let element = cx.element_or_declared(&list, 1)?;
    let is_entry = cx.level() == 0;
    cx.check(!(is_entry && list.length == Length::Known(0)), || "the list is empty".to_owned())?;
    let (rest, value) = cx.pop(&list, &element)?;
    Ok(vec![cx.new_list(rest), value])
}

/// `TensorListSetItem(list, index, element)`.
fn set_item(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let mut list = cx.list(0)?;
    let index = cx.position_input(1)?;
    let element = cx.element_input(2)?;
    if cx.attributes().bool_or("resize_if_index_out_of_bounds", false)? {
        make_longer(cx, &mut list, index)?;
    }
    cx.write_element(&mut list, index, element)?;
    Ok(vec![cx.new_list(list)])
}

/// Extends a list so that it has an element at a position.
fn make_longer(cx: &mut NodeContext<'_, '_>, list: &mut List, index: Length) -> Result<()> {
    let highest = match index {
        Length::Known(index) => Some(index),
        Length::Dynamic(id) => cx.range(id).high,
    };
    if let (Length::Known(length), Some(highest)) = (list.length, highest)
        && highest < length
    {
        return Ok(());
    }
    if let (Length::Known(_), Length::Known(index)) = (list.length, index) {
        return cx.resize(list, Length::Known(index.saturating_add(1)));
    }
    if list.capacity.is_some() {
        let Some(highest) = highest else {
            return Err(Error::unsupported(format!(
                "the index up to which the list grows has no upper bound{}; create the TensorArray with a constant size and \
                 without dynamic_size, or bound the loop around it",
                index_origins(cx, index)
            )).coded(Code::LoopBound));
        };
        cx.reserve_always(list, highest.saturating_add(1))?;
        list.count_more((highest.saturating_add(1) - list.bounds.most).max(0));
    }
    if let Content::Empty = list.content {
        list.content = Content::Zeros;
    }
    let end = cx.moved(index, 1)?;
    list.length = cx.later(list.length, end)?;
    Ok(())
}

/// Describes the origins of an index, for messages.
fn index_origins(cx: &NodeContext<'_, '_>, index: Length) -> String {
    let Length::Dynamic(id) = index else { return String::new() };
    match cx.origins(id).as_slice() {
        [] => String::new(),
        origins => format!(" (it depends on {})", origins.join(", ")),
    }
}

/// `TensorListGetItem(list, index, element_shape)`.
fn get_item(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let list = cx.list(0)?;
    let index = cx.position_input(1)?;
    let element = cx.element_or_declared(&list, 2)?;
    Ok(vec![cx.read_element(&list, index, &element)?])
}

/// `TensorListResize(list, size)`. A size about which nothing is known at compile time cannot
/// extend a list beyond its capacity. Ops with such sizes restore an earlier length of the list.
fn resize(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let mut list = cx.list(0)?;
    let size = cx.position_input(1)?;
    if let Length::Known(size) = size {
        cx.check(size >= 0, || format!("expected a size >= 0, got {size}"))?;
    }
    cx.resize(&mut list, size)?;
    Ok(vec![cx.new_list(list)])
}

/// `TensorListLength(list)`, an `int32`.
fn length(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let list = cx.list(0)?;
    cx.length(&list)
}

/// `TensorListElementShape(list)`: the known sizes, with -1 for unknown ones, or only -1 if the
/// rank is unknown.
fn element_shape(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let list = cx.list(0)?;
    let shape_type = cx.type_attribute("shape_type")?;
    match &list.element {
        ElementType::Array(shape) => cx.integers(shape_type, &shape.sizes()),
        ElementType::Named(shape, names) => {
            let named = |d: usize| if names[d].is_some() { -1 } else { shape.size(d) };
            let sizes: Vec<i64> = (0..shape.rank()).map(named).collect();
            cx.integers(shape_type, &sizes)
        }
        ElementType::Unknown(Some(sizes)) => cx.integers(shape_type, sizes),
        ElementType::List(_) | ElementType::OneOf(_) => cx.integers(shape_type, &[]),
        ElementType::Unknown(None) => Ok(cx.scalar(shape_type, -1.0)),
    }
}

/// Returns the positions at an input, if they are known at compile time.
pub(crate) fn known_positions(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<Option<Vec<i64>>> {
    let id = cx.input(k)?;
    let sizes = cx.sizes(id);
    cx.check(sizes.len() == 1, || {
        format!("input {k}: expected a vector of positions, got shape {}", in_words(&sizes))
    })?;
    Ok(cx.fold(id).as_ref().and_then(Literal::to_i64s))
}
