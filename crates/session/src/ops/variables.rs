//! Ops on whole variables: reading, assigning, and queries.

use super::{Context, Row, arrays};
use crate::value::{Tensor, Value};
use support::{Error, Result};

pub(super) const OPS: &[Row] = &[
    ("ReadVariableOp", |cx| {
        let value = cx.input(0)?.variable()?.read()?;
        cx.push(value);
        Ok(())
    }),
    ("AssignVariableOp", |cx| {
        let value = cx.input(1)?.clone();
        cx.input(0)?.variable()?.assign(value, true)
    }),
    ("Assign", assign),
    ("VarIsInitializedOp", is_initialized),
    ("IsVariableInitialized", is_initialized),
    ("VariableShape", |cx| {
        let sizes = arrays::sizes(&cx.input(0)?.variable()?.read()?)?;
        let tensor = Tensor::integers(arrays::is_wide(cx)?, &[sizes.len() as i64], &sizes)?;
        cx.push(tensor);
        Ok(())
    }),
    ("DestroyResourceOp", |cx| {
        let ignores = cx.node.attributes.bool_or("ignore_lookup_error", true)?;
        let variable = cx.input(0)?.variable()?;
        if variable.destroy() || ignores { Ok(()) } else { Err(variable.uninitialized()) }
    }),
    ("TemporaryVariable", |cx| {
        let variable = cx.shared.resources.variable(cx.node)?;
        let data_type = variable.data_type();
        let sizes = cx.node.attributes.shape("shape")?.sizes();
        let (Some(element_type), Some(sizes)) = (data_type.primitive_type(), sizes) else {
            return Err(Error::unsupported(format!(
                "unsupported temporary variable of {data_type}; expected a type of numbers and a known shape"
            )));
        };
        let shape = shape::ArrayShape::new(element_type, &sizes);
        support::check_memory(shape.byte_size(), "a temporary variable")?;
        let zeros = crate::buffer::Buffer::zeroed(shape.byte_size() as usize)?;
        variable.assign(Tensor::new(shape.into(), zeros).into(), false)?;
        cx.push(Value::Reference(variable));
        Ok(())
    }),
    ("DestroyTemporaryVariable", |cx| {
        let variable = cx.input(0)?.variable()?.clone();
        let value = variable.read()?;
        cx.shared.resources.remove(&variable);
        cx.push(value);
        Ok(())
    }),
];

/// TensorFlow 1 assignment, which returns the reference.
fn assign(cx: &mut Context<'_>) -> Result<()> {
    // The original `Variable` op states [] for an unknown shape.
    let check = cx.node.attributes.bool_or("validate_shape", true)?;
    let reference = cx.input(0)?.clone();
    let variable = reference.variable()?;
    variable.assign(cx.input(1)?.clone(), check && variable.states_shape())?;
    cx.push(reference);
    Ok(())
}

fn is_initialized(cx: &mut Context<'_>) -> Result<()> {
    let has_value = cx.input(0)?.variable()?.get().is_some();
    cx.push(Tensor::scalar(has_value)?);
    Ok(())
}
