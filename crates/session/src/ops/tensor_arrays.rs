//! TensorFlow 1 tensor arrays (version 3): a handle, and a flow value that orders the operations.

use super::lists::split_rows;
use super::{Context, Row};
use crate::lock::lock;
use crate::value::rows;
use crate::value::{Handle, Place, TensorArray, TensorArrayState};
use crate::value::{Tensor, Value};
use std::sync::{Arc, Mutex};
use support::{Error, Result};
use tf::PartialShape;
use tf::proto::attr_value::Value as Attr;

pub(super) const OPS: &[Row] = &[
    ("TensorArrayV3", create),
    ("TensorArrayGradV3", gradient),
    ("TensorArrayWriteV3", |cx| {
        let (array, index, value) = (array(cx)?, cx.integer(1)?, cx.tensor(2)?);
        write(cx, &array, index, value)?;
        flow(cx, 3)
    }),
    ("TensorArrayReadV3", |cx| {
        let (array, index) = (array(cx)?, cx.integer(1)?);
        let value = read(&array, index)?;
        cx.push(value);
        Ok(())
    }),
    ("TensorArrayGatherV3", gather),
    ("TensorArrayScatterV3", |cx| {
        let array = array(cx)?;
        let (places, rows) = (cx.integers(1)?, rows::unstack(&cx.tensor(2)?)?);
        if places.len() != rows.len() {
            return Err(Error::invalid(format!(
                "cannot scatter {} rows to {} indices",
                rows.len(),
                places.len()
            )));
        }
        for (place, row) in places.into_iter().zip(rows) {
            write(cx, &array, place, row)?;
        }
        flow(cx, 3)
    }),
    ("TensorArrayConcatV3", concat),
    ("TensorArraySplitV3", |cx| {
        let array = array(cx)?;
        let parts = split_rows(&cx.tensor(1)?, &cx.integers(2)?)?;
        for (k, part) in parts.into_iter().enumerate() {
            write(cx, &array, k as i64, part)?;
        }
        flow(cx, 3)
    }),
    ("TensorArraySizeV3", |cx| {
        let size = lock(&array(cx)?.state).places.len();
        cx.push(Tensor::scalar(size as i32)?);
        Ok(())
    }),
    ("TensorArrayCloseV3", |cx| {
        let array = array(cx)?;
        let mut state = lock(&array.state);
        state.is_closed = true;
        state.places.clear();
        Ok(())
    }),
];

/// Maximum number of elements.
const MAX_PLACES: i64 = 1 << 28;

/// Fails if there is not enough memory for `count` elements.
fn check_room(count: i64) -> Result<()> {
    let bytes = count.unsigned_abs().saturating_mul(size_of::<Place>() as u64);
    support::check_memory(bytes, format_args!("a tensor array of {count} elements"))
}

fn array(cx: &Context<'_>) -> Result<Arc<TensorArray>> {
    match cx.input(0)? {
        Value::Resource(Handle::TensorArray(array)) => Ok(array.clone()),
        other => Err(Error::invalid(format!("expected a tensor array, got {}", other.kind()))),
    }
}

/// Forwards the flow value at input `k`.
fn flow(cx: &mut Context<'_>, k: usize) -> Result<()> {
    let flow = cx.input(k)?.clone();
    cx.push(flow);
    Ok(())
}

fn create(cx: &mut Context<'_>) -> Result<()> {
    let attributes = &cx.node.attributes;
    let size = cx.integer(0)?;
    if !(0..=MAX_PLACES).contains(&size) {
        return Err(Error::invalid(format!("expected a tensor array size of 0 to {MAX_PLACES}, got {size}")));
    }
    check_room(size)?;
    let element_shape = attributes.shape_or("element_shape", PartialShape::UNKNOWN)?;
    let state = TensorArrayState::new(vec![Place::default(); size as usize], element_shape);
    let array = TensorArray {
        name: cx.node.name.clone(),
        data_type: attributes.ty("dtype")?,
        is_dynamic: attributes.bool_or("dynamic_size", false)?,
        clear_after_read: attributes.bool_or("clear_after_read", true)?,
        is_uniform: attributes.bool_or("identical_element_shapes", false)?,
        sums: false,
        state: Mutex::new(state),
    };
    cx.push(Value::Resource(Handle::TensorArray(Arc::new(array))));
    cx.push(Tensor::scalar(0f32)?);
    Ok(())
}

/// Creates the gradient array of an array. It has the same size, and repeated writes accumulate.
fn gradient(cx: &mut Context<'_>) -> Result<()> {
    let source = cx.node.attributes.text("source")?.to_owned();
    let array = array(cx)?;
    let mut state = lock(&array.state);
    check_open(&array, &state)?;
    check_room(state.places.len() as i64)?;
    let places = state.places.iter().map(|place| Place { sizes: place.sizes.clone(), ..Place::default() });
    let places = places.collect();
    let element_shape = state.element_shape.clone();
    let gradient = state.gradients.entry(source.clone()).or_insert_with(|| {
        let state = TensorArrayState::new(places, element_shape);
        Arc::new(TensorArray {
            name: format!("{}@{source}", array.name),
            data_type: array.data_type,
            is_dynamic: false,
            clear_after_read: array.clear_after_read,
            is_uniform: array.is_uniform,
            sums: true,
            state: Mutex::new(state),
        })
    });
    let gradient = gradient.clone();
    drop(state);
    cx.push(Value::Resource(Handle::TensorArray(gradient)));
    flow(cx, 1)
}

fn check_open(array: &TensorArray, state: &TensorArrayState) -> Result<()> {
    if !state.is_closed {
        Ok(())
    } else {
        Err(Error::invalid(format!("TensorArray {} has already been closed.", array.name)))
    }
}

fn write(cx: &Context<'_>, array: &TensorArray, index: i64, value: Tensor) -> Result<()> {
    if array.data_type.primitive_type() != Some(value.shape().element_type) {
        return Err(Error::invalid(format!(
            "TensorArray {}: expected an element of {}, got {}",
            array.name,
            array.data_type,
            value.shape()
        )));
    }
    let sizes = value.shape().sizes();
    let mut state = lock(&array.state);
    check_open(array, &state)?;
    let count = state.places.len();
    let out_of_range = || {
        Error::invalid(format!(
            "TensorArray {}: Tried to write to index {index} but array is not resizeable and size is: {count}",
            array.name
        ))
    };
    let at = usize::try_from(index).map_err(|_| out_of_range())?;
    if at >= count {
        if !array.is_dynamic || index >= MAX_PLACES {
            return Err(out_of_range());
        }
        check_room(index + 1)?;
        state.places.resize(at + 1, Place::default());
    }
    if !state.element_shape.allows(&sizes) {
        return Err(Error::invalid(format!(
            "TensorArray {}: Could not write to TensorArray index {index} because the value shape is {} which is \
             incompatible with the TensorArray's inferred element shape: {}",
            array.name,
            PartialShape::known(&sizes),
            state.element_shape
        )));
    }
    // Unwritten elements are zeros of the first element's shape.
    if array.is_uniform && state.element_shape.sizes().is_none() {
        state.element_shape = PartialShape::known(&sizes);
    }
    let known = state.places[at].value.clone();
    let value = match known {
        None => value,
        Some(_) if !array.sums => {
            return Err(Error::invalid(format!(
                "TensorArray {}: Could not write to TensorArray index {index} because it has already been written to.",
                array.name
            )));
        }
        Some(known) => {
            let attributes = [("T", Attr::Type(array.data_type.number()))];
            let types = [array.data_type; 2];
            let sum =
                cx.compiled("AddV2", attributes, &types, array.data_type, vec![known.into(), value.into()])?;
            sum.tensor()?
        }
    };
    state.places[at] = Place { value: Some(value), cleared: false, sizes: Some(sizes) };
    Ok(())
}

fn read(array: &TensorArray, index: i64) -> Result<Value> {
    let mut state = lock(&array.state);
    check_open(array, &state)?;
    let count = state.places.len();
    let at = usize::try_from(index).ok().filter(|&at| at < count).ok_or_else(|| {
        Error::invalid(format!(
            "TensorArray {}: Tried to read from index {index} but array size is: {count}",
            array.name
        ))
    })?;
    let element_shape = state.element_shape.clone();
    let place = &mut state.places[at];
    if place.cleared {
        return Err(Error::invalid(format!(
            "TensorArray {}: Could not read index {index} twice because it was cleared after a previous read (perhaps \
             try setting clear_after_read = false?).",
            array.name
        )));
    }
    let value = match &place.value {
        Some(value) => value.clone(),
        None => {
            // A gradient that was never written is zero.
            let sizes = place
                .sizes
                .clone()
                .or(element_shape.sizes())
                .filter(|_| array.sums || element_shape.sizes().is_some());
            let sizes = sizes.ok_or_else(|| {
                Error::invalid(format!(
                    "TensorArray {}: Could not read from TensorArray index {index}. Furthermore, the element shape is \
                     not fully defined: {element_shape}. It is possible you are working with a resizeable TensorArray \
                     and stop_gradients is not allowing the gradients to be written.",
                    array.name
                ))
            })?;
            let element_type = array.data_type.primitive_type();
            rows::zeros(
                element_type
                    .ok_or_else(|| Error::unsupported("a tensor array that does not hold numbers"))?,
                &sizes,
            )?
        }
    };
    if array.clear_after_read {
        place.value = None;
        place.cleared = true;
    }
    Ok(value.into())
}

fn gather(cx: &mut Context<'_>) -> Result<()> {
    let array = array(cx)?;
    let places = cx.integers(1)?;
    let values = places.iter().map(|&place| read(&array, place)?.tensor());
    let values: Vec<Tensor> = values.collect::<Result<_>>()?;
    let declared = cx.node.attributes.shape_or("element_shape", PartialShape::UNKNOWN)?;
    let row = match values.first() {
        Some(value) => value.shape().sizes(),
        None => {
            let known = declared.sizes().or_else(|| lock(&array.state).element_shape.sizes());
            known.ok_or_else(|| {
                Error::invalid(format!(
                    "TensorArray {}: cannot gather no elements because the element shape is unknown",
                    array.name
                ))
            })?
        }
    };
    let element_type = array.data_type.primitive_type();
    let element_type =
        element_type.ok_or_else(|| Error::unsupported("a tensor array that does not hold numbers"))?;
    let tensor = rows::stack(element_type, &row, &values)?;
    cx.push(tensor);
    Ok(())
}

fn concat(cx: &mut Context<'_>) -> Result<()> {
    let array = array(cx)?;
    let count = lock(&array.state).places.len() as i64;
    let values: Vec<Tensor> = (0..count).map(|place| read(&array, place)?.tensor()).collect::<Result<_>>()?;
    let mut lengths: Vec<i64> = Vec::new();
    let mut sizes: Option<Vec<i64>> = None;
    for value in &values {
        let value_sizes = value.shape().sizes();
        let Some((&length, rest)) = value_sizes.split_first() else {
            return Err(Error::invalid(format!(
                "TensorArray {}: cannot concatenate scalars; stack them instead",
                array.name
            )));
        };
        lengths.push(length);
        match &mut sizes {
            None => sizes = Some(value_sizes.clone()),
            Some(sizes) if sizes[1..] == *rest => sizes[0] += length,
            Some(_) => {
                return Err(Error::invalid(format!(
                    "TensorArray {} has inconsistent shapes: {} and others",
                    array.name,
                    value.shape()
                )));
            }
        }
    }
    let sizes = sizes.ok_or_else(|| {
        Error::invalid(format!("TensorArray {} has no elements to concatenate", array.name))
    })?;
    let element_type = array.data_type.primitive_type();
    let element_type =
        element_type.ok_or_else(|| Error::unsupported("a tensor array that does not hold numbers"))?;
    cx.push(rows::concatenated(element_type, &sizes, &values)?);
    cx.push(Tensor::from_elements(&[lengths.len() as i64], &lengths)?);
    Ok(())
}
