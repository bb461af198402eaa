//! Tensor lists: values that hold tensors. A change copies a list only if it is shared.

use super::{Context, Row};
use crate::value::List;
use crate::value::list_of;
use crate::value::rows;
use crate::value::{Tensor, Value};
use shape::PrimitiveType;
use std::sync::Arc;
use support::{Error, Result};
use tf::proto::attr_value::Value as Attr;
use tf::{DataType, PartialShape};

pub(super) const OPS: &[Row] = &[
    ("EmptyTensorList", |cx| {
        let max_elements = cx.integer(1)?;
        let list = new_list(cx, 0, max_elements)?;
        push_list(cx, list);
        Ok(())
    }),
    ("TensorListReserve", |cx| {
        let count = cx.integer(1)?;
        let list = new_list(cx, checked_count(count)?, -1)?;
        push_list(cx, list);
        Ok(())
    }),
    ("TensorListPushBack", push_back),
    ("TensorListPopBack", pop_back),
    ("TensorListLength", |cx| {
        let length = list_of(cx.input(0)?)?.elements.len();
        cx.push(Tensor::scalar(length as i32)?);
        Ok(())
    }),
    ("TensorListElementShape", element_shape),
    ("TensorListGetItem", |cx| {
        let list = list_of(cx.input(0)?)?.clone();
        let at = checked_index(&list, cx.integer(1)?)?;
        let value = element(&list, at, &shape_input(cx, 2)?)?;
        cx.push(value);
        Ok(())
    }),
    ("TensorListSetItem", set_item),
    ("TensorListResize", |cx| {
        let count = checked_count(cx.integer(1)?)?;
        let mut list = take_list(cx)?;
        resize(Arc::make_mut(&mut list), count)?;
        cx.push(Value::List(list));
        Ok(())
    }),
    ("TensorListStack", stack),
    ("TensorListGather", gather),
    ("TensorListFromTensor", |cx| {
        let rows = rows::unstack(&cx.tensor(0)?)?;
        let mut list = new_list_of(cx, shape_input(cx, 1)?, 0, -1)?;
        list.elements = rows.into_iter().map(|row| Some(row.into())).collect();
        push_list(cx, list);
        Ok(())
    }),
    ("TensorListScatterV2", scatter),
    ("TensorListScatterIntoExistingList", scatter_into),
    ("TensorListConcatV2", concat),
    ("TensorListSplit", split),
    ("TensorListConcatLists", |cx| {
        let (first, second) = (list_of(cx.input(0)?)?, list_of(cx.input(1)?)?);
        let count = checked_count((first.elements.len() + second.elements.len()) as i64)?;
        check_room(count)?;
        let elements = first.elements.iter().chain(&second.elements).cloned().collect();
        let list = List { elements, depth: first.depth.max(second.depth), ..first.as_ref().clone() };
        push_list(cx, list);
        Ok(())
    }),
];

/// Ops of any type that run here only for lists. For numbers they are kernels.
pub(super) const OF_VARIANTS: &[Row] = &[
    ("AddN", add_n),
    ("ZerosLike", |cx| {
        let list = zeros_like(list_of(cx.input(0)?)?)?;
        push_list(cx, list);
        Ok(())
    }),
];

/// A list of zeros of the same shapes. Unset elements stay unset.
fn zeros_like(list: &List) -> Result<List> {
    let elements = list.elements.iter().map(|element| match element {
        None => Ok(None),
        Some(Value::List(inner)) => Ok(Some(Value::List(Arc::new(zeros_like(inner)?)))),
        Some(value) => {
            let shape = value.tensor()?.shape().clone();
            Ok(Some(rows::zeros(shape.element_type, &shape.sizes())?.into()))
        }
    });
    Ok(List { elements: elements.collect::<Result<_>>()?, ..list.clone() })
}

fn add_n(cx: &mut Context<'_>) -> Result<()> {
    let lists: Vec<Arc<List>> =
        cx.inputs.iter().map(|value| list_of(value).cloned()).collect::<Result<_>>()?;
    let (first, rest) = lists.split_first().ok_or_else(|| Error::invalid("the sum has no operands"))?;
    let mut sum = first.as_ref().clone();
    for list in rest {
        sum = add_lists(cx, &sum, list)?;
    }
    push_list(cx, sum);
    Ok(())
}

/// The elementwise sum of two lists. An element unset in one list is taken from the other.
fn add_lists(cx: &Context<'_>, a: &List, b: &List) -> Result<List> {
    if a.elements.len() != b.elements.len() || a.data_type != b.data_type {
        return Err(Error::invalid(format!(
            "Trying to add two lists of tensors with different lengths: {} and {}",
            a.elements.len(),
            b.elements.len()
        )));
    }
    let elements = a.elements.iter().zip(&b.elements).map(|(x, y)| match (x, y) {
        (None, other) | (other, None) => Ok(other.clone()),
        (Some(Value::List(x)), Some(Value::List(y))) => Ok(Some(Value::List(Arc::new(add_lists(cx, x, y)?)))),
        (Some(x), Some(y)) => {
            let attributes = [("T", Attr::Type(a.data_type.number()))];
            let types = [a.data_type; 2];
            cx.compiled("AddV2", attributes, &types, a.data_type, vec![x.clone(), y.clone()]).map(Some)
        }
    });
    let elements = elements.collect::<Result<_>>()?;
    let element_shape = merge_shapes(&a.element_shape, &b.element_shape)?;
    Ok(List { elements, element_shape, depth: a.depth.max(b.depth), ..a.clone() })
}

/// Maximum number of elements of a list.
const MAX_ELEMENTS: i64 = 1 << 28;

fn checked_count(count: i64) -> Result<usize> {
    match count {
        0..=MAX_ELEMENTS => Ok(count as usize),
        _ => Err(Error::invalid(format!("expected a list length of 0 to {MAX_ELEMENTS}, got {count}"))),
    }
}

/// Maximum nesting depth of lists, because list operations recurse.
const MAX_DEPTH: usize = 1000;

/// Fails if there is not enough memory for `count` elements.
fn check_room(count: usize) -> Result<()> {
    let bytes = count.saturating_mul(size_of::<Option<Value>>()) as u64;
    support::check_memory(bytes, format_args!("a list of {count} elements"))
}

/// Shortens a list, or extends it with unset elements.
fn resize(list: &mut List, count: usize) -> Result<()> {
    check_room(count)?;
    list.elements.resize(count, None);
    Ok(())
}

/// Nesting depth of a list after it gets an element.
fn depth_with(list: &List, element: &Value) -> Result<usize> {
    let depth = match element {
        Value::List(inner) => list.depth.max(inner.depth + 1),
        _ => list.depth,
    };
    if depth <= MAX_DEPTH {
        Ok(depth)
    } else {
        Err(Error::unsupported(format!(
            "lists are nested more than {MAX_DEPTH} levels deep; put the elements of all levels into one list"
        )))
    }
}

fn checked_index(list: &List, index: i64) -> Result<usize> {
    usize::try_from(index).ok().filter(|&at| at < list.elements.len()).ok_or_else(|| {
        Error::invalid(format!(
            "Trying to access element {index} in a list with {} elements.",
            list.elements.len()
        ))
    })
}

/// Shape stated by input `k`. A scalar means unknown rank, a negative size an unknown size.
fn shape_input(cx: &Context<'_>, k: usize) -> Result<PartialShape> {
    let tensor = cx.tensor(k)?;
    let sizes = tensor.to_i64s()?;
    if tensor.shape().rank() == 0 {
        return Ok(PartialShape::UNKNOWN);
    }
    Ok(PartialShape { dimensions: Some(sizes.iter().map(|&size| (size >= 0).then_some(size)).collect()) })
}

fn new_list(cx: &Context<'_>, count: usize, max_elements: i64) -> Result<List> {
    new_list_of(cx, shape_input(cx, 0)?, count, max_elements)
}

fn new_list_of(
    cx: &Context<'_>,
    element_shape: PartialShape,
    count: usize,
    max_elements: i64,
) -> Result<List> {
    let data_type = cx.node.attributes.ty("element_dtype")?;
    check_room(count)?;
    Ok(List { data_type, element_shape, max_elements, depth: 0, elements: vec![None; count] })
}

fn push_list(cx: &mut Context<'_>, list: List) {
    cx.push(Value::List(Arc::new(list)));
}

/// Removes the list at input 0 from the inputs, so that it can be changed in place.
fn take_list(cx: &mut Context<'_>) -> Result<Arc<List>> {
    list_of(cx.input(0)?)?;
    match cx.inputs.remove(0) {
        Value::List(list) => Ok(list),
        _ => Err(Error::internal("the list at input 0 has disappeared")),
    }
}

/// Merges what two partial shapes know. Fails if they contradict each other.
fn merge_shapes(a: &PartialShape, b: &PartialShape) -> Result<PartialShape> {
    let (Some(x), Some(y)) = (&a.dimensions, &b.dimensions) else {
        return Ok(if a.dimensions.is_some() { a.clone() } else { b.clone() });
    };
    let fits = |(x, y): (&Option<i64>, &Option<i64>)| x.is_none() || y.is_none() || x == y;
    if x.len() != y.len() || !x.iter().zip(y).all(fits) {
        return Err(Error::invalid(format!(
            "incompatible shapes in a list: expected elements of shape {b}, got {a}"
        )));
    }
    Ok(PartialShape { dimensions: Some(x.iter().zip(y).map(|(x, y)| x.or(*y)).collect()) })
}

fn primitive(list: &List) -> Result<PrimitiveType> {
    list.data_type.primitive_type().ok_or_else(|| {
        Error::unsupported(format!(
            "cannot convert a list of {} to a tensor; only lists of numbers and bool are supported",
            list.data_type
        ))
    })
}

/// The element at `at`, or zeros if it is unset.
fn element(list: &List, at: usize, expected: &PartialShape) -> Result<Value> {
    if let Some(value) = &list.elements[at] {
        return Ok(value.clone());
    }
    if list.data_type == DataType::Variant {
        return Err(Error::invalid(format!("element {at} of a list of lists is not set")));
    }
    let mut shape = merge_shapes(&list.element_shape, expected)?;
    for other in list.elements.iter().flatten() {
        if shape.sizes().is_none() {
            shape = merge_shapes(&shape, &PartialShape::known(&super::arrays::sizes(other)?))?;
        }
    }
    let sizes = shape.sizes().ok_or_else(|| {
        Error::invalid(format!(
            "Trying to read an uninitialized tensor but element_shape is not fully defined: {shape}"
        ))
    })?;
    Ok(rows::zeros(primitive(list)?, &sizes)?.into())
}

fn check_element(list: &List, value: &Value) -> Result<()> {
    if let Value::Tensor(tensor) = value {
        let sizes = tensor.shape().sizes();
        if !list.element_shape.allows(&sizes) {
            return Err(Error::invalid(format!(
                "Tried to set a tensor with incompatible shape at a list index. Item element shape: {} list shape: {}",
                PartialShape::known(&sizes),
                list.element_shape
            )));
        }
    }
    Ok(())
}

fn push_back(cx: &mut Context<'_>) -> Result<()> {
    let value = cx.input(1)?.clone();
    let mut list = take_list(cx)?;
    check_element(&list, &value)?;
    if list.max_elements >= 0 && list.elements.len() as i64 >= list.max_elements {
        return Err(Error::invalid(format!(
            "Tried to push item into a full list, list size: {} max_num_elements: {}",
            list.elements.len(),
            list.max_elements
        )));
    }
    let depth = depth_with(&list, &value)?;
    let changed = Arc::make_mut(&mut list);
    changed.depth = depth;
    changed.elements.push(Some(value));
    cx.push(Value::List(list));
    Ok(())
}

fn pop_back(cx: &mut Context<'_>) -> Result<()> {
    let expected = shape_input(cx, 1)?;
    let mut list = take_list(cx)?;
    let last = list.elements.len().checked_sub(1);
    let last = last.ok_or_else(|| Error::invalid("Trying to pop from an empty list."))?;
    let value = element(&list, last, &expected)?;
    Arc::make_mut(&mut list).elements.pop();
    cx.push(Value::List(list));
    cx.push(value);
    Ok(())
}

fn element_shape(cx: &mut Context<'_>) -> Result<()> {
    let wide = cx.node.attributes.ty("shape_type")? == DataType::Int64;
    let shape = list_of(cx.input(0)?)?.element_shape.clone();
    let tensor = match shape.dimensions {
        None => Tensor::integers(wide, &[], &[-1])?,
        Some(sizes) => {
            let sizes: Vec<i64> = sizes.into_iter().map(|size| size.unwrap_or(-1)).collect();
            Tensor::integers(wide, &[sizes.len() as i64], &sizes)?
        }
    };
    cx.push(tensor);
    Ok(())
}

fn set_item(cx: &mut Context<'_>) -> Result<()> {
    let (index, value) = (cx.integer(1)?, cx.input(2)?.clone());
    let resizes = cx.node.attributes.bool_or("resize_if_index_out_of_bounds", false)?;
    let mut list = take_list(cx)?;
    check_element(&list, &value)?;
    if resizes && index >= list.elements.len() as i64 {
        let count = checked_count(index.saturating_add(1))?;
        resize(Arc::make_mut(&mut list), count)?;
    }
    let at = checked_index(&list, index)?;
    let depth = depth_with(&list, &value)?;
    let changed = Arc::make_mut(&mut list);
    changed.depth = depth;
    changed.elements[at] = Some(value);
    cx.push(Value::List(list));
    Ok(())
}

/// Stacks the elements at some positions into one tensor.
fn stacked(list: &List, places: impl Iterator<Item = usize>, expected: &PartialShape) -> Result<Tensor> {
    let rows = places.map(|at| element(list, at, expected)?.tensor());
    let rows: Vec<Tensor> = rows.collect::<Result<_>>()?;
    let sizes = match rows.first() {
        Some(row) => row.shape().sizes(),
        None => {
            let shape = merge_shapes(&list.element_shape, expected)?;
            let unknown = || {
                Error::invalid(format!(
                    "Tried to stack elements of an empty list with non-fully-defined element_shape: {shape}"
                ))
            };
            shape.sizes().ok_or_else(unknown)?
        }
    };
    if !expected.allows(&sizes) {
        return Err(Error::invalid(format!(
            "expected list elements of shape {expected}, got {}",
            PartialShape::known(&sizes)
        )));
    }
    rows::stack(primitive(list)?, &sizes, &rows)
}

fn stack(cx: &mut Context<'_>) -> Result<()> {
    let list = list_of(cx.input(0)?)?.clone();
    let expected = cx.node.attributes.int_or("num_elements", -1)?;
    if expected >= 0 && expected != list.elements.len() as i64 {
        return Err(Error::invalid(format!(
            "Operation expected a list with {expected} elements but got a list with {} elements.",
            list.elements.len()
        )));
    }
    let tensor = stacked(&list, 0..list.elements.len(), &shape_input(cx, 1)?)?;
    cx.push(tensor);
    Ok(())
}

fn gather(cx: &mut Context<'_>) -> Result<()> {
    let list = list_of(cx.input(0)?)?.clone();
    let places: Vec<usize> =
        cx.integers(1)?.into_iter().map(|index| checked_index(&list, index)).collect::<Result<_>>()?;
    let tensor = stacked(&list, places.into_iter(), &shape_input(cx, 2)?)?;
    cx.push(tensor);
    Ok(())
}

/// Writes rows to positions of a list, extending it if necessary.
fn put(list: &mut List, rows: Vec<Tensor>, places: &[i64]) -> Result<()> {
    if rows.len() != places.len() {
        return Err(Error::invalid(format!(
            "cannot scatter {} rows to {} indices",
            rows.len(),
            places.len()
        )));
    }
    for (row, &place) in rows.into_iter().zip(places) {
        let value = Value::from(row);
        check_element(list, &value)?;
        let at = checked_count(place)?;
        if at >= list.elements.len() {
            resize(list, at + 1)?;
        }
        list.elements[at] = Some(value);
    }
    Ok(())
}

/// `TensorListScatterV2(tensor, indices, element_shape, num_elements)`.
fn scatter(cx: &mut Context<'_>) -> Result<()> {
    let rows = rows::unstack(&cx.tensor(0)?)?;
    let places = cx.integers(1)?;
    let count = cx.integer(3)?;
    let mut list = new_list_of(cx, shape_input(cx, 2)?, checked_count(count.max(0))?, -1)?;
    if count >= 0 && places.iter().any(|&place| place >= count) {
        return Err(Error::invalid(format!(
            "an index of the scatter is not less than num_elements ({count})"
        )));
    }
    put(&mut list, rows, &places)?;
    push_list(cx, list);
    Ok(())
}

/// `TensorListScatterIntoExistingList(list, tensor, indices)`.
fn scatter_into(cx: &mut Context<'_>) -> Result<()> {
    let rows = rows::unstack(&cx.tensor(1)?)?;
    let places = cx.integers(2)?;
    let mut list = take_list(cx)?;
    put(Arc::make_mut(&mut list), rows, &places)?;
    cx.push(Value::List(list));
    Ok(())
}

/// `TensorListConcatV2(list, element_shape, leading_dims)`: concatenates the elements and returns
/// their lengths.
fn concat(cx: &mut Context<'_>) -> Result<()> {
    let list = list_of(cx.input(0)?)?.clone();
    let expected = shape_input(cx, 1)?;
    let leading = cx.integers(2)?;
    let mut parts = Vec::new();
    for at in 0..list.elements.len() {
        let shape = match (&list.elements[at], leading.get(at), &expected.dimensions) {
            (None, Some(&length), Some(sizes)) if !sizes.is_empty() => {
                let mut sizes = sizes.clone();
                sizes[0] = Some(length);
                PartialShape { dimensions: Some(sizes) }
            }
            _ => PartialShape::UNKNOWN,
        };
        parts.push(element(&list, at, &shape)?.tensor()?);
    }
    let mut lengths = Vec::new();
    let mut sizes: Option<Vec<i64>> = None;
    for part in &parts {
        let part_sizes = part.shape().sizes();
        let Some((&length, rest)) = part_sizes.split_first() else {
            return Err(Error::invalid("cannot concatenate scalars of a list; stack them instead"));
        };
        lengths.push(length);
        match &mut sizes {
            None => sizes = Some(part_sizes.clone()),
            Some(sizes) if sizes[1..] == *rest => sizes[0] += length,
            Some(_) => return Err(Error::invalid("cannot concatenate elements of different shapes")),
        }
    }
    let sizes = match sizes {
        Some(sizes) => sizes,
        None => {
            let shape = merge_shapes(&list.element_shape, &expected)?;
            let mut dimensions = shape.dimensions.clone().unwrap_or_default();
            if let Some(first) = dimensions.first_mut() {
                *first = Some(0);
            }
            let known: Option<Vec<i64>> = dimensions.into_iter().collect();
            known.filter(|sizes| !sizes.is_empty()).ok_or_else(|| {
                Error::invalid(format!("cannot concatenate an empty list with element shape {shape}"))
            })?
        }
    };
    let tensor = rows::concatenated(primitive(&list)?, &sizes, &parts)?;
    cx.push(tensor);
    cx.push(Tensor::from_elements(&[lengths.len() as i64], &lengths)?);
    Ok(())
}

/// `TensorListSplit(tensor, element_shape, lengths)`.
fn split(cx: &mut Context<'_>) -> Result<()> {
    let parts = split_rows(&cx.tensor(0)?, &cx.integers(2)?)?;
    let mut list = new_list_of(cx, shape_input(cx, 1)?, 0, -1)?;
    for part in parts {
        let value = Value::from(part);
        check_element(&list, &value)?;
        list.elements.push(Some(value));
    }
    push_list(cx, list);
    Ok(())
}

/// Splits a tensor into pieces with these numbers of rows, which must add up to all of its rows.
pub(super) fn split_rows(tensor: &Tensor, lengths: &[i64]) -> Result<Vec<Tensor>> {
    let sizes = tensor.shape().sizes();
    let sum = lengths.iter().try_fold(0i64, |sum, &length| sum.checked_add(length).filter(|_| length >= 0));
    let Some((&rows, row)) = sizes.split_first().filter(|(rows, _)| sum == Some(**rows)) else {
        return Err(Error::invalid(format!(
            "cannot split a tensor {} into {lengths:?} rows",
            tensor.shape()
        )));
    };
    let each = tensor.bytes().len().checked_div(rows as usize).unwrap_or(0);
    let mut at = 0;
    let pieces = lengths.iter().map(|&length| {
        let mut sizes = vec![length];
        sizes.extend(row);
        let bytes = &tensor.bytes()[at..at + each * length as usize];
        at += bytes.len();
        let shape = shape::ArrayShape::new(tensor.shape().element_type, &sizes);
        Ok(Tensor::new(shape.into(), crate::buffer::Buffer::from_bytes(bytes)?))
    });
    pieces.collect()
}
