//! Constants, and values that pass through.

use super::Row;
use crate::convert::{Array, Op, Value};
use crate::tensor::Constant;
use support::{Error, Result};
use tf::foreign::ty;

pub(super) const ROWS: &[Row] = &[("Constant", constant), ("Identity", identity)];

fn constant(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let attributes = op.attributes();
    let found = attributes.iter().find(|(name, _)| name.starts_with("value") || *name == "sparse_value");
    let Some((name, value)) = found else { return Err(Error::invalid("the node has no value")) };
    let external = &mut *op.converter.external;
    let constant = match *name {
        "value" => {
            let tensor = value.t.as_ref().ok_or_else(|| Error::invalid("the value must be a tensor"))?;
            Constant::read(tensor, external)?
        }
        "sparse_value" => {
            let sparse = value.sparse_tensor.as_ref();
            Constant::read_sparse(
                sparse.ok_or_else(|| Error::invalid("expected a sparse tensor"))?,
                external,
            )?
        }
        "value_int" => Constant::of_longs(&[], &[value.i]),
        "value_ints" => Constant::of_longs(&[value.ints.len() as i64], &value.ints),
        "value_float" => Constant::of_floats(&[], &[value.f]),
        "value_floats" => Constant::of_floats(&[value.floats.len() as i64], &value.floats),
        "value_string" | "value_strings" => {
            return Err(Error::unsupported(
                "strings are not supported: only numbers and bool can be compiled",
            ));
        }
        other => return Err(Error::invalid(format!("attribute '{other}' is unknown"))),
    };
    let base = op.name.clone();
    let array = op.converter.constant(&mut op.frame.body, &base, constant)?;
    op.set_array(array)
}

/// A value under another name. A constant stays one.
pub(super) fn identity(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let value = op.value(0)?;
    op.set(0, value);
    Ok(())
}

/// A copy of an array that has a node of its own.
pub(super) fn copy(op: &mut Op<'_, '_, '_>, array: &Array) -> Result<Array> {
    let value = op.node("Identity", std::slice::from_ref(&array.value), [ty("T", array.data_type)])?;
    Ok(Array { value, ..array.clone() })
}

/// The value as an array.
pub(super) fn array_of(value: Value) -> Result<Array> {
    match value {
        Value::Array(array) => Ok(array),
        Value::Sequence(..) => Err(Error::unsupported("a sequence is not supported here")),
        Value::Absent => Err(Error::unsupported("an optional value without contents is not supported here")),
    }
}
