//! Constants that replace variables, in the same encoding as TensorFlow's Python.

use crate::DataType;
use crate::checkpoint::{Value, shape_proto};
use crate::proto::{AttrValue, NodeDef, TensorProto, attr_value};
use shape::{Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Smallest size in bytes that `tensor_content` must not have.
const MAX_CONTENT: usize = 1 << 31;

/// Creates a `Const` node.
pub(crate) fn node(name: &str, value: &Value) -> Result<NodeDef> {
    let tensor = tensor(value).map_err(|e| e.context(format!("variable '{name}'")))?;
    let attr = BTreeMap::from([
        ("dtype".to_owned(), AttrValue::from(attr_value::Value::Type(value.data_type().number()))),
        ("value".to_owned(), attr_value::Value::Tensor(Box::new(tensor)).into()),
    ]);
    Ok(NodeDef { name: name.to_owned(), op: "Const".to_owned(), attr, ..NodeDef::default() })
}

/// Encodes a value. Several real numbers are stored as bytes. A single number, bools, complex
/// numbers, and types smaller than a byte are stored in the field for their type.
fn tensor(value: &Value) -> Result<TensorProto> {
    let mut proto = TensorProto {
        dtype: value.data_type().number(),
        tensor_shape: Some(shape_proto(&value.sizes())),
        ..TensorProto::default()
    };
    match value {
        Value::Strings(_, strings) => proto.string_val = strings.clone(),
        Value::Array(data_type, literal) => numbers(*data_type, literal, &mut proto)?,
    }
    Ok(proto)
}

fn numbers(data_type: DataType, literal: &Literal, proto: &mut TensorProto) -> Result<()> {
    use PrimitiveType::*;
    let shape = literal.array_shape();
    let typed = matches!(shape.element_type, Pred | C64 | C128 | S4 | U4 | S2 | U2);
    if shape.element_count() > 1 && !typed {
        if literal.bytes().len() >= MAX_CONTENT {
            return Err(Error::invalid("Cannot create a tensor proto whose content is larger than 2GB."));
        }
        proto.tensor_content = literal.bytes().clone();
        return Ok(());
    }
    let bits16 =
        |bytes: &[u8]| bytes.chunks_exact(2).map(|c| i32::from(u16::from_le_bytes([c[0], c[1]]))).collect();
    match shape.element_type {
        F16 | Bf16 => proto.half_val = bits16(literal.bytes()),
        float if float.is_minifloat() => proto.float8_val = literal.bytes().clone(),
        F32 => proto.float_val = literal.to_vec().unwrap_or_default(),
        F64 => proto.double_val = literal.to_vec().unwrap_or_default(),
        S64 => proto.int64_val = literal.to_vec().unwrap_or_default(),
        U32 => proto.uint32_val = literal.to_vec().unwrap_or_default(),
        U64 => proto.uint64_val = literal.to_vec().unwrap_or_default(),
        Pred => proto.bool_val = literal.to_vec().unwrap_or_default(),
        C64 | C128 => {
            for scalar in literal.scalars() {
                let Scalar::Complex(re, im) = scalar else { continue };
                match shape.element_type {
                    C64 => proto.scomplex_val.extend([re as f32, im as f32]),
                    _ => proto.dcomplex_val.extend([re, im]),
                }
            }
        }
        _ => {
            for scalar in literal.scalars() {
                proto.int_val.push(match scalar {
                    Scalar::Signed(value) => value as i32,
                    Scalar::Unsigned(value) => value as i32,
                    _ => {
                        return Err(Error::internal(format!(
                            "expected an integer, got an element of {data_type}"
                        )));
                    }
                });
            }
        }
    }
    Ok(())
}
