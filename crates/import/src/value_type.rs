//! The types of values that a loop carries or that the branches of a conditional return: which arrays a value is made
//! of, and which value such arrays make.

use crate::importer::Importer;
use crate::value::Value;
use hlo::InstructionId;
use shape::ArrayShape;
use support::{Error, Result};

/// What a value that passes from one computation into another is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// An array.
    Array(ArrayShape),
    /// Something that no instruction stands for: the handle of a resource, or nothing at all.
    Same(Value),
}

/// The type of a value of the computation being built.
pub(crate) fn value_type(importer: &Importer<'_>, value: Value) -> ValueType {
    match value {
        Value::Array(id) => ValueType::Array(importer.scope_ref().shape(id).expect_array().clone()),
        other => ValueType::Same(other),
    }
}

/// The arrays that a value is made of, in a fixed order.
pub(crate) fn leaves(_importer: &Importer<'_>, value: Value) -> Vec<InstructionId> {
    match value {
        Value::Array(id) => vec![id],
        _ => Vec::new(),
    }
}

/// The value of a type that arrays make, as many as [`leaves`] gives.
pub(crate) fn rebuild(
    _importer: &mut Importer<'_>,
    value_type: &ValueType,
    leaves: &[InstructionId],
) -> Value {
    match value_type {
        ValueType::Array(_) => Value::Array(leaves[0]),
        ValueType::Same(value) => *value,
    }
}

/// The least type that values of both types can have.
pub(crate) fn join(a: &ValueType, b: &ValueType) -> Result<ValueType> {
    if a == b {
        return Ok(a.clone());
    }
    Err(match (a, b) {
        (ValueType::Array(a), ValueType::Array(b)) => {
            Error::invalid(format!("it is {a} in one place and {b} in another"))
        }
        (ValueType::Same(a), ValueType::Same(b)) => {
            Error::unsupported(format!("it is {} in one place and {} in another", a.kind(), b.kind()))
        }
        _ => Error::unsupported("it is an array in one place but not in another"),
    })
}

/// The value as one of a type that [`join`] made of its own.
pub(crate) fn coerce(_importer: &mut Importer<'_>, value: Value, _value_type: &ValueType) -> Result<Value> {
    Ok(value)
}
