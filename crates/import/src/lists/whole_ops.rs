//! Ops on whole tensor lists: conversion from and to tensors, splitting, and concatenation.

use crate::lists::element_ops::{known_positions, zero_list};
use crate::lists::elements::unnamed;
use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_values};
use crate::values::list::{Bounds, Content, ElementType, Length, List, ListType};
use crate::values::value::Value;
use crate::values::value_type::names;
use bounded::list as in_words;
use bounded::{Indices, Reducer};
use hlo::{InstructionId, Op};
use shape::{ArrayShape, Literal};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule_values("TensorListFromTensor", from_tensor).types("element_dtype", ALL_AND_VARIANTS),
    rule_values("TensorListStack", stack).types("element_dtype", ALL_AND_VARIANTS),
    rule_values("TensorListGather", gather).types("element_dtype", ALL),
    rule_values("TensorListScatter", scatter_new).types("element_dtype", ALL),
    rule_values("TensorListScatterV2", scatter_new).types("element_dtype", ALL),
    rule_values("TensorListScatterIntoExistingList", scatter_into).types("element_dtype", ALL),
    rule_values("TensorListConcat", |cx| concat(cx, None)).types("element_dtype", ALL),
    rule_values("TensorListConcatV2", |cx| concat(cx, Some(1))).types("element_dtype", ALL),
    rule_values("TensorListSplit", split).types("element_dtype", ALL),
    rule_values("TensorListConcatLists", concat_lists).types("element_dtype", ALL_AND_VARIANTS),
    rule_values("TensorListPushBackBatch", push_back_batch).types("element_dtype", ALL),
];

/// Returns a list whose elements are the rows of an array.
fn rows_of(cx: &mut NodeContext<'_, '_>, tensor: InstructionId) -> Result<List> {
    let shape = cx.array(tensor);
    let sizes = shape.sizes();
    let Some((&count, rest)) = sizes.split_first() else {
        return Err(cx.invalid("expected a tensor of rank 1 or more, got a scalar"));
    };
    let length = if shape.dimensions[0].is_dynamic {
        Length::Dynamic(cx.true_size(tensor, 0)?)
    } else {
        Length::Known(count)
    };
    let (element, tensor) = match names(cx, tensor) {
        // Only the number of rows is open.
        _ if shape.dimensions[1..].iter().all(|d| !d.is_dynamic) => {
            (ElementType::Array(ArrayShape::new(shape.element_type, rest)), cx.split(tensor)?.data)
        }
        Some(names) => {
            let row = ArrayShape {
                dimensions: shape.dimensions[1..].to_vec(),
                ..ArrayShape::new(shape.element_type, &[])
            };
            (ElementType::Named(row, names[1..].to_vec()), cx.split(tensor)?.data)
        }
        None => return Err(unnamed(&shape)),
    };
    Ok(List {
        element,
        capacity: Some(count),
        content: Content::Buffers(vec![tensor]),
        length,
        bounds: Bounds { most: count, ..Bounds::default() },
        only: None,
    })
}

/// Like [`rows_of`], for an array whose number of rows must be known.
fn known_rows_of(cx: &mut NodeContext<'_, '_>, tensor: InstructionId) -> Result<List> {
    let list = rows_of(cx, tensor)?;
    if let Length::Dynamic(_) = list.length {
        return Err(unnamed(&cx.array(tensor)));
    }
    Ok(list)
}

/// `TensorListFromTensor(tensor, element_shape)`.
fn from_tensor(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    // A vector of lists is already a list of lists.
    if let list @ Value::List(_) = cx.value(0)? {
        return Ok(vec![list]);
    }
    let tensor = cx.input(0)?;
    let list = rows_of(cx, tensor)?;
    check_declared(cx, &list.element, 1)?;
    Ok(vec![cx.new_list(list)])
}

/// Rejects elements that do not match the shape that an input declares.
fn check_declared(cx: &mut NodeContext<'_, '_>, element: &ElementType, k: usize) -> Result<()> {
    let (Some(declared), ElementType::Array(shape) | ElementType::Named(shape, _)) =
        (cx.declared_sizes(k)?, element)
    else {
        return Ok(());
    };
    let sizes = shape.sizes();
    let fits = declared.len() == sizes.len()
        && declared.iter().zip(&sizes).all(|(&declared, &size)| declared == -1 || declared == size);
    cx.check(fits, || {
        format!(
            "the declared shape of elements is {}, but they have {}",
            in_words(&declared),
            in_words(&sizes)
        )
    })
}

/// Stacks `count` elements along a new leading dimension.
fn stacked(
    cx: &mut NodeContext<'_, '_>,
    list: &List,
    shape: &ArrayShape,
    count: i64,
) -> Result<InstructionId> {
    let sizes = [&[count], &shape.sizes()[..]].concat();
    match &list.content {
        Content::Buffers(_) if list.is_open() => cx.placeholder(&ArrayShape::new(shape.element_type, &sizes)),
        Content::Buffers(buffers) => {
            let [buffer] = buffers.as_slice() else {
                return Err(Error::internal("expected one buffer for a list of arrays"));
            };
            let available = cx.sizes(*buffer)[0];
            let head = cx.slice_in(*buffer, 0, 0, count.min(available))?;
            cx.pad_end(head, 0, (count - available).max(0))
        }
        Content::Uniform(literal) => {
            let element = cx.literal(literal.clone());
            cx.repeat(element, &[count])
        }
        Content::Empty | Content::Zeros => cx.zeros(shape.element_type, &sizes),
    }
}

/// Gives true sizes to an array of elements: those of its leading dimensions, and the named ones of
/// elements.
fn with_sizes_of(
    cx: &mut NodeContext<'_, '_>,
    whole: InstructionId,
    lead: &[Option<InstructionId>],
    element: &ElementType,
) -> Result<InstructionId> {
    let mut sizes = lead.to_vec();
    match element {
        ElementType::Named(_, names) => {
            sizes.extend(names.iter().map(|name| name.map(|position| cx.size_parameter(position))));
        }
        _ => sizes.resize(cx.rank(whole), None),
    }
    cx.bounded(whole, &sizes)
}

/// Returns the shape of a list's elements, completed by the shape that an input declares.
fn array_element(cx: &mut NodeContext<'_, '_>, list: &List, k: usize) -> Result<ArrayShape> {
    match cx.element_or_declared(list, k)? {
        element @ (ElementType::Array(_) | ElementType::Named(..)) => {
            check_declared(cx, &element, k)?;
            Ok(element.leaves().remove(0))
        }
        ElementType::List(_) | ElementType::OneOf(_) => Err(Error::unsupported("cannot convert a list of lists to an array")),
        ElementType::Unknown(_) => Err(cx.invalid(
            "the shape of the elements is unknown: the list has no element yet and declares no shape; set element_shape of the \
             list or of the TensorArray",
        )),
    }
}

/// `TensorListStack(list, element_shape)`.
fn stack(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let list = cx.list(0)?;
    let declared = cx.attributes().int_or("num_elements", -1)?;
    if cx.attributes().ty("element_dtype")?.base() == tf::DataType::Variant {
        return Ok(vec![cx.value(0)?]);
    }
    if let Length::Known(length) = list.length {
        cx.check(declared < 0 || declared == length, || {
            format!("expected a list of {declared} elements (num_elements), got {length}")
        })?;
    }
    let (count, size) = match (list.length, list.capacity) {
        _ if declared >= 0 => (declared, None),
        (Length::Dynamic(length), Some(capacity)) if cx.has_named_sizes() => (capacity, Some(length)),
        _ => (cx.known_length(&list)?, None),
    };
    let shape = array_element(cx, &list, 1)?;
    let stacked = stacked(cx, &list, &shape, count)?;
    Ok(vec![Value::Array(with_sizes_of(cx, stacked, &[size], &list.element)?)])
}

/// `TensorListGather(list, indices, element_shape)`.
fn gather(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let list = cx.list(0)?;
    let indices = cx.input(1)?;
    let index_sizes = cx.sizes(indices);
    cx.check(index_sizes.len() == 1, || {
        format!("indices: expected a vector, got shape {}", in_words(&index_sizes))
    })?;
    let shape = array_element(cx, &list, 2)?;
    // With a buffer, its capacity serves instead of a known length, because indices are within the
    // list.
    let count = match (&list.content, list.length) {
        (Content::Buffers(_), _) if !list.is_open() => list.capacity.unwrap_or(0),
        (_, Length::Known(length)) => length,
        _ => 1,
    };
    let whole = stacked(cx, &list, &shape, count)?;
    let gathered = cx.gather_along(whole, indices, 0, 0)?;
    let size = cx.split(indices)?.sizes[0];
    let gathered = cx.split(gathered)?.data;
    Ok(vec![Value::Array(with_sizes_of(cx, gathered, &[size], &list.element)?)])
}

/// `TensorListScatter(tensor, indices, element_shape)`, V2 with `num_elements`: writes row `i` to
/// position `indices[i]`.
fn scatter_new(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let tensor = cx.input(0)?;
    let rows = known_rows_of(cx, tensor)?;
    check_declared(cx, &rows.element, 2)?;
    let declared = if cx.inputs().len() > 3 { cx.constant_i64(3)? } else { -1 };
    let highest = match known_positions(cx, 1)? {
        Some(positions) => {
            cx.check(positions.iter().all(|&p| p >= 0 && (declared < 0 || p < declared)), || {
                format!("the indices {} are not all positions in the list", in_words(&positions))
            })?;
            positions.into_iter().max().unwrap_or(-1)
        }
        None if declared >= 0 => -1,
        None => {
            let indices = cx.input(1)?;
            return Err(cx.not_constant(1, indices));
        }
    };
    let list = zero_list(rows.element.clone(), declared.max(highest.saturating_add(1)));
    let list = scattered(cx, list, tensor)?;
    Ok(vec![cx.new_list(list)])
}

/// `TensorListScatterIntoExistingList(list, tensor, indices)`. Run-time indices must be within the
/// list.
fn scatter_into(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let mut list = cx.list(0)?;
    list.only = None;
    let tensor = cx.input(1)?;
    let rows = known_rows_of(cx, tensor)?;
    if let Some(positions) = known_positions(cx, 2)? {
        let end = positions.iter().copied().max().unwrap_or(-1).saturating_add(1);
        match list.length {
            Length::Known(length) if length < end => cx.resize(&mut list, Length::Known(end))?,
            Length::Known(_) => {}
            Length::Dynamic(_) => {
                cx.reserve(&mut list, end)?;
                list.count_more((end - list.bounds.most).max(0));
                list.length = cx.later(list.length, Length::Known(end))?;
            }
        }
    }
    list.element = list.element.join(&rows.element)?;
    let mut inputs = cx.inputs().to_vec();
    inputs.swap(1, 2);
    let list = cx.with_inputs(inputs, |cx| scattered(cx, list, tensor))?;
    Ok(vec![cx.new_list(list)])
}

/// Writes the rows of a tensor to the positions of input 1.
fn scattered(cx: &mut NodeContext<'_, '_>, list: List, tensor: InstructionId) -> Result<List> {
    let (count, element) = (cx.sizes(tensor)[0], list.element.clone());
    let positions = known_positions(cx, 1)?;
    let indices = cx.input(1)?;
    let index_count = cx.sizes(indices)[0];
    cx.check(index_count == count, || {
        format!("expected one index for each of the tensor's {count} rows, got {index_count}")
    })?;
    let in_order = positions.is_some_and(|p| p.iter().copied().eq(0..count));
    if in_order && list.capacity == Some(count) {
        return Ok(List { content: Content::Buffers(vec![tensor]), only: None, ..list });
    }
    let mut list =
        cx.coerced(&list, &ListType { content: Content::Buffers(()), element, ..list.list_type() })?;
    if let (Content::Buffers(buffers), false) = (&mut list.content, list.capacity == Some(0))
        && let [buffer] = buffers.as_mut_slice()
    {
        *buffer = cx.scatter(*buffer, indices, tensor, Indices::Scalars, Reducer::Replace)?;
    }
    Ok(list)
}

/// `TensorListConcat(list)`: concatenates the elements along their leading dimension, and returns
/// its size in each.
fn concat(cx: &mut NodeContext<'_, '_>, declared: Option<usize>) -> Result<Vec<Value>> {
    let list = cx.list(0)?;
    let count = cx.known_length(&list)?;
    let shape = match (declared, &list.element) {
        (_, ElementType::Array(shape)) => shape.clone(),
        (_, ElementType::Named(shape, _)) => return Err(unnamed(shape)),
        (Some(k), _) => array_element(cx, &list, k)?,
        (None, _) => {
            let sizes = cx.attributes().shape_or("element_shape", tf::PartialShape::UNKNOWN)?.sizes();
            match cx.element_of(sizes)? {
                ElementType::Array(shape) => shape,
                _ => return Err(cx.invalid("the shape of the list's elements is unknown; set element_shape")),
            }
        }
    };
    let sizes = shape.sizes();
    let Some((&rows, rest)) = sizes.split_first() else {
        return Err(cx.invalid("expected elements of rank 1 or more, got scalars"));
    };
    let stacked = stacked(cx, &list, &shape, count)?;
    let whole = count.checked_mul(rows).ok_or_else(|| cx.invalid("the result is too large"))?;
    let joined = cx.reshape(stacked, &[&[whole], rest].concat())?;
    let rows = cx.literal(Literal::scalar(rows));
    let lengths = cx.broadcast(rows, &[count], &[])?;
    Ok(vec![Value::Array(joined), Value::Array(lengths)])
}

/// `TensorListSplit(tensor, element_shape, lengths)`: splits a tensor into parts of equal size.
fn split(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let tensor = cx.input(0)?;
    let lengths = cx.constant_i64s(2)?;
    let sizes = cx.sizes(tensor);
    let Some((&whole, rest)) = sizes.split_first() else {
        return Err(cx.invalid("expected a tensor of rank 1 or more, got a scalar"));
    };
    let size = lengths.first().copied().unwrap_or(0);
    if lengths.iter().any(|&length| length != size) {
        return Err(Error::unsupported(format!(
            "the sizes {} of the parts differ; all elements of a list must have one shape",
            in_words(&lengths)
        )));
    }
    let count = lengths.len() as i64;
    cx.check(size >= 0 && size.checked_mul(count) == Some(whole), || {
        format!(
            "the sizes {} of the parts do not add up to the leading dimension of {}",
            in_words(&lengths),
            in_words(&sizes)
        )
    })?;
    let parts = cx.reshape(tensor, &[&[count, size], rest].concat())?;
    let list = known_rows_of(cx, parts)?;
    Ok(vec![cx.new_list(list)])
}

/// `TensorListConcatLists(a, b)`: the elements of both.
fn concat_lists(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (a, b) = (cx.list(0)?, cx.list(1)?);
    let joined = a.list_type().join(&b.list_type())?;
    let target = |list: &List| {
        let own = list.list_type();
        ListType { capacity: own.capacity, length: own.length, ..joined.clone() }
    };
    let (mut list, tail) = (cx.coerced(&a, &target(&a))?, cx.coerced(&b, &target(&b))?);
    let length = match (a.length, b.length) {
        (Length::Known(a), Length::Known(b)) => Length::Known(a.saturating_add(b)),
        (Length::Known(known), other) | (other, Length::Known(known)) => cx.moved(other, known)?,
        (Length::Dynamic(a), Length::Dynamic(b)) => Length::Dynamic(cx.add(a, b)?),
    };
    if list.is_open() || tail.is_open() {
        list.capacity = None;
        if let Content::Buffers(buffers) = &mut list.content {
            buffers.clear();
        }
    } else {
        // The length of the second list and its maximum may differ. Reserve room for the maximum.
        let capacity = required_capacity(&list, tail.bounds.most);
        cx.reserve(&mut list, capacity)?;
        if let (Content::Buffers(into), Content::Buffers(from)) = (&mut list.content, &tail.content) {
            for (into, &from) in into.iter_mut().zip(from) {
                *into = write_rows(cx, *into, from, tail.bounds.most, a.length)?;
            }
        }
    }
    list.length = length;
    list.only = None;
    list.count_more(tail.bounds.most);
    Ok(vec![cx.new_list(list)])
}

/// Returns the maximum number of elements of a list after `more` are added.
fn required_capacity(list: &List, more: i64) -> i64 {
    let most = if let Length::Known(length) = list.length { length } else { list.bounds.most };
    most.saturating_add(more)
}

/// Returns an array with the first `count` rows of another written at a position.
fn write_rows(
    cx: &mut NodeContext<'_, '_>,
    into: InstructionId,
    rows: InstructionId,
    count: i64,
    position: Length,
) -> Result<InstructionId> {
    let (capacity, available) = (cx.sizes(into)[0], cx.sizes(rows)[0]);
    let count = count.clamp(0, available.min(capacity));
    if count == 0 {
        return Ok(into);
    }
    let rows = cx.slice_in(rows, 0, 0, count)?;
    let position = cx.position(position)?;
    let zero = cx.literal(Literal::scalar(0i32));
    let mut operands = vec![into, rows, position];
    operands.extend((1..cx.rank(into)).map(|_| zero));
    cx.op(Op::DynamicUpdateSlice {}, &operands)
}

/// `TensorListPushBackBatch(lists, tensor)`: pushes row `i` to list `i` of a vector of lists.
fn push_back_batch(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let lists = cx.list(0)?;
    let tensor = cx.input(1)?;
    let count = cx.known_length(&lists)?;
    let rows = known_rows_of(cx, tensor)?;
    cx.check(rows.capacity == Some(count), || {
        format!(
            "expected one row for each of the {count} lists, got a tensor of shape {:?}",
            cx.sizes(tensor)
        )
    })?;
    let mut batch = zero_list(ElementType::Unknown(None), 0);
    for i in 0..count {
        let Value::List(id) = cx.read_element(&lists, Length::Known(i), &lists.element)? else {
            return Err(cx.invalid("input 0: expected a vector of lists"));
        };
        let mut one = cx[id].clone();
        let row = cx.read_element(&rows, Length::Known(i), &rows.element)?;
        cx.push(&mut one, row)?;
        let one = cx.new_list(one);
        cx.push(&mut batch, one)?;
    }
    Ok(vec![cx.new_list(batch)])
}

/// Packs lists into a vector of lists, which is a list of lists.
pub(crate) fn pack_lists(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let mut batch = zero_list(ElementType::Unknown(None), 0);
    for k in 0..cx.inputs().len() {
        let one = cx.value(k)?;
        cx.push(&mut batch, one)?;
    }
    Ok(vec![cx.new_list(batch)])
}

/// Unpacks a vector of lists.
pub(crate) fn unpack_lists(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let lists = cx.list(0)?;
    let count = cx.known_length(&lists)?;
    let outputs = cx.node().output_types.len();
    cx.check(usize::try_from(count) == Ok(outputs), || {
        format!("the node has {outputs} outputs, but the vector has {count} lists")
    })?;
    (0..count).map(|i| cx.read_element(&lists, Length::Known(i), &lists.element)).collect()
}
