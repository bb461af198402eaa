//! Sequences and optional values, whose lengths and contents are known when compiling.

use super::Row;
use super::constants::{array_of, copy};
use crate::convert::{Array, Op, Value, element_type};
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{int, ty};

pub(super) const ROWS: &[Row] = &[
    ("ConcatFromSequence", concatenate),
    ("Optional", optional),
    ("OptionalGetElement", get_element),
    ("OptionalHasElement", has_element),
    ("SequenceAt", at),
    ("SequenceConstruct", construct),
    ("SequenceEmpty", empty),
    ("SequenceErase", erase),
    ("SequenceInsert", insert),
    ("SequenceLength", length),
    ("SequenceMap", map),
    ("SplitToSequence", split),
];

fn sequence(op: &Op<'_, '_, '_>, k: usize) -> Result<(DataType, Vec<Array>)> {
    match op.value(k)? {
        Value::Sequence(data_type, arrays) => Ok((data_type, arrays)),
        _ => Err(Error::invalid(format!("input {k} must be a sequence"))),
    }
}

/// The position that an input states, from 0 to `limit`.
fn position(op: &Op<'_, '_, '_>, k: usize, limit: usize, length: usize) -> Result<usize> {
    let position = op.constant_longs(k)?.and_then(|values| values.first().copied()).ok_or_else(|| {
        Error::unsupported(
            "the position in a sequence must be a constant: sequences exist only when compiling",
        )
    })?;
    let wrapped = if position < 0 { position.saturating_add(length as i64) } else { position };
    usize::try_from(wrapped).ok().filter(|&position| position < limit).ok_or_else(|| {
        Error::invalid(format!("position {position} is out of range for a sequence of {length} elements"))
    })
}

fn construct(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let arrays: Vec<Array> = (0..op.input_count()).map(|k| op.input(k)).collect::<Result<_>>()?;
    let first = arrays.first().ok_or_else(|| Error::invalid("the op has no inputs"))?.data_type;
    if arrays.iter().any(|array| array.data_type != first) {
        return Err(Error::invalid("the elements of a sequence must have the same type"));
    }
    op.set(0, Value::Sequence(first, arrays));
    Ok(())
}

fn empty(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let data_type = op.type_attribute("dtype")?.unwrap_or(DataType::Float);
    op.set(0, Value::Sequence(data_type, Vec::new()));
    Ok(())
}

fn at(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (_, arrays) = sequence(op, 0)?;
    let position = position(op, 1, arrays.len(), arrays.len())?;
    op.set_array(arrays[position].clone())
}

fn erase(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (data_type, mut arrays) = sequence(op, 0)?;
    let last = arrays.len().checked_sub(1);
    let last = last.ok_or_else(|| Error::invalid("the sequence has no elements"))?;
    let position =
        if op.optional_value(1).is_some() { position(op, 1, arrays.len(), arrays.len())? } else { last };
    arrays.remove(position);
    op.set(0, Value::Sequence(data_type, arrays));
    Ok(())
}

fn insert(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (data_type, mut arrays) = sequence(op, 0)?;
    let element = op.input(1)?;
    if element.data_type != data_type {
        return Err(Error::invalid(format!(
            "a {} does not fit a sequence of {data_type}",
            element.data_type
        )));
    }
    let count = arrays.len();
    let position = if op.optional_value(2).is_some() { position(op, 2, count + 1, count)? } else { count };
    arrays.insert(position, element);
    op.set(0, Value::Sequence(data_type, arrays));
    Ok(())
}

fn length(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (_, arrays) = sequence(op, 0)?;
    let length = op.long(arrays.len() as i64)?;
    op.set_array(length)
}

fn concatenate(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (data_type, arrays) = sequence(op, 0)?;
    let axis = op.attribute("axis").map(|attribute| attribute.i);
    let axis = axis.ok_or_else(|| Error::invalid("attribute 'axis' is missing"))?;
    let values: Vec<_> = arrays.iter().map(|array| array.value.clone()).collect();
    if values.is_empty() {
        return Err(Error::invalid("the sequence has no elements"));
    }
    let is_new_axis = op.int("new_axis", 0) != 0;
    if let ([array], false) = (&arrays[..], is_new_axis) {
        let array = copy(op, array)?;
        return op.set_array(array);
    }
    let count = int("N", values.len() as i64);
    let y = if is_new_axis {
        op.node("Pack", &values, [ty("T", data_type), count, int("axis", axis)])?
    } else {
        let axis = op.long(axis)?;
        let values = [&values[..], &[axis.value]].concat();
        op.node("ConcatV2", &values, [ty("T", data_type), ty("Tidx", DataType::Int64), count])?
    };
    op.set_array(Array::new(y, data_type))
}

/// Parts of an array along an axis, whose number must be known.
fn split(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let axis = op.int("axis", 0);
    let size = x.sizes.as_ref().and_then(|sizes| {
        let axis = if axis < 0 { axis + sizes.len() as i64 } else { axis };
        sizes.get(usize::try_from(axis).ok()?).copied()
    });
    let unknown = || {
        Error::unsupported(
            "the number of parts of a sequence must be known: state the sizes of the input and a constant split",
        )
    };
    let (parts, keeps) = match op.optional(1)? {
        None => {
            (vec![1; usize::try_from(size.ok_or_else(unknown)?).unwrap_or(0)], op.int("keepdims", 1) != 0)
        }
        Some(split) => {
            let constant = split.constant.ok_or_else(unknown)?;
            let values = constant.longs().ok_or_else(unknown)?;
            if constant.sizes.is_empty() {
                let (part, size) = (values[0], size.ok_or_else(unknown)?);
                if part < 1 {
                    return Err(Error::invalid(format!("a part of {part} elements is too small")));
                }
                let whole = vec![part; usize::try_from(size / part).unwrap_or(0)];
                let rest = if size % part == 0 { Vec::new() } else { vec![size % part] };
                ([whole, rest].concat(), true)
            } else {
                (values, true)
            }
        }
    };
    if parts.len() > 1 << 16 {
        return Err(Error::unsupported(format!("a sequence of {} parts is too long", parts.len())));
    }
    let (sizes, axis_value) = (op.longs(&parts)?, op.int32(i32::try_from(axis).unwrap_or(i32::MAX))?);
    let attributes =
        [ty("T", x.data_type), ty("Tlen", DataType::Int64), int("num_split", parts.len() as i64)];
    let values = op.add("SplitV", &[x.value.clone(), sizes.value, axis_value.value], attributes)?;
    let mut arrays = Vec::new();
    for value in values {
        let value = if keeps {
            value
        } else {
            let attributes = [ty("T", x.data_type), tf::foreign::ints("squeeze_dims", &[axis])];
            op.node("Squeeze", &[value], attributes)?
        };
        arrays.push(Array::new(value, x.data_type));
    }
    op.set(0, Value::Sequence(x.data_type, arrays));
    Ok(())
}

/// Applies a subgraph to the elements of sequences, one after the other.
fn map(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let body = op.graph("body")?;
    let (_, first) = sequence(op, 0)?;
    let mut results: Vec<Option<(DataType, Vec<Array>)>> = vec![None; body.output.len()];
    for k in 0..first.len() {
        let mut inputs = Vec::new();
        for input in 0..op.input_count() {
            inputs.push(match op.value(input)? {
                Value::Sequence(_, arrays) => {
                    Value::Array(arrays.get(k).cloned().ok_or_else(|| {
                        Error::invalid("the sequences must have the same number of elements")
                    })?)
                }
                other => other,
            });
        }
        let values = op.converter.subgraph(op.frame, body, inputs)?;
        for (result, value) in results.iter_mut().zip(values) {
            let array = array_of(value)?;
            let array = copy(op, &array)?;
            result.get_or_insert((array.data_type, Vec::new())).1.push(array);
        }
    }
    for (k, result) in results.into_iter().enumerate() {
        let (data_type, arrays) = match (result, body.output[k].r#type.as_ref()) {
            (Some(result), _) => result,
            (None, Some(stated)) => (element_type(stated)?, Vec::new()),
            (None, None) => return Err(Error::invalid("the type of the results is not stated")),
        };
        op.set(k, Value::Sequence(data_type, arrays));
    }
    Ok(())
}

fn optional(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let value = match (op.optional_value(0).cloned(), op.attribute("type")) {
        (Some(value), _) => value,
        (None, Some(attribute)) => {
            let stated = attribute.tp.as_ref();
            {
                element_type(stated.ok_or_else(|| Error::invalid("the type is not stated"))?)?;
                Value::Absent
            }
        }
        (None, None) => return Err(Error::invalid("an optional value needs contents or a type")),
    };
    op.set(0, value);
    Ok(())
}

fn get_element(op: &mut Op<'_, '_, '_>) -> Result<()> {
    match op.value(0)? {
        Value::Absent => Err(Error::invalid("the optional value has no contents")),
        value => {
            op.set(0, value);
            Ok(())
        }
    }
}

fn has_element(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let has = !matches!(op.optional_value(0), None | Some(Value::Absent));
    let has = op.scalar(DataType::Bool, if has { 1.0 } else { 0.0 })?;
    op.set_array(has)
}
