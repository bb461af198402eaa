//! Writes version 1 checkpoints: one table file whose values hold the tensors in their typed
//! fields.

use super::saved::{Key, Saved};
use super::table_writer::TableWriter;
use super::{Value, shape_proto, slices};
use crate::DataType;
use crate::proto::slice_extent::Extent;
use crate::proto::{
    SavedSlice, SavedSliceMeta, SavedTensorSliceMeta, SavedTensorSlices, TensorProto, TensorSliceProto,
    VersionDef,
};
use bytes::Bytes;
use prost::Message;
use shape::Literal;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Maximum size of one message, set by the format.
const MAX_MESSAGE: usize = (1 << 31) - 1;

/// Creates the file of a version 1 checkpoint. Deterministic: the same tensors give the same bytes.
///
/// # Errors
/// Fails like [`write_v2_parts`](super::write_v2_parts), and for types that version 1 does not
/// support.
pub fn write_v1(tensors: &[Saved]) -> Result<Vec<u8>> {
    let mut head = SavedTensorSliceMeta {
        tensor: Vec::new(),
        versions: Some(VersionDef { producer: 1, ..VersionDef::default() }),
    };
    let mut values: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for Key { saved, part } in super::saved::in_order(tensors)? {
        let name = &saved.name;
        let (sizes, slice) = match part {
            Some(part) => (part.sizes, part.slice),
            None => {
                let sizes = saved.value.sizes();
                let extent = vec![Extent { start: 0, length: None }; sizes.len()];
                (sizes, TensorSliceProto { extent })
            }
        };
        match head.tensor.last_mut().filter(|meta| meta.name == *name) {
            Some(meta) => meta.slice.push(slice.clone()),
            None => head.tensor.push(SavedSliceMeta {
                name: name.clone(),
                shape: Some(shape_proto(&sizes)),
                r#type: saved.value.data_type().number(),
                slice: vec![slice.clone()],
            }),
        }
        let data = elements(&saved.value).map_err(|error| error.context(format!("'{name}'")))?;
        let data = SavedSlice {
            name: name.clone(),
            slice: slice.encode_to_vec().into(),
            data: data.encode_to_vec().into(),
        };
        let value = SavedTensorSlices { meta: None, data: Some(data) }.encode_to_vec();
        if value.len() > MAX_MESSAGE {
            return Err(Error::unsupported(format!(
                "'{name}' exceeds the limit of 2 GiB for a tensor in a version 1 checkpoint; save it with SaveV2"
            )));
        }
        values.insert(slices::key(name, &slice), value);
    }
    let mut table = TableWriter::default();
    table.add(b"", &SavedTensorSlices { meta: Some(head), data: None }.encode_to_vec());
    for (key, value) in values {
        table.add(&key, &value);
    }
    Ok(table.finish())
}

/// Stores the elements in the field for their type.
fn elements(value: &Value) -> Result<TensorProto> {
    let mut proto = TensorProto::default();
    let (data_type, literal) = match value {
        Value::Strings(_, strings) => {
            proto.string_val.clone_from(strings);
            return Ok(proto);
        }
        Value::Array(data_type, literal) => (*data_type, literal),
    };
    match data_type {
        DataType::Float => proto.float_val = words(literal, f32::from_le_bytes),
        DataType::Double => proto.double_val = words(literal, f64::from_le_bytes),
        DataType::Complex64 => proto.scomplex_val = words(literal, f32::from_le_bytes),
        DataType::Complex128 => proto.dcomplex_val = words(literal, f64::from_le_bytes),
        DataType::Int64 => proto.int64_val = words(literal, i64::from_le_bytes),
        DataType::Int32 | DataType::Qint32 => proto.int_val = words(literal, i32::from_le_bytes),
        DataType::Int16 | DataType::Qint16 => {
            proto.int_val = words(literal, |bytes| i16::from_le_bytes(bytes).into());
        }
        DataType::Uint16 | DataType::Quint16 => {
            proto.int_val = words(literal, |bytes| u16::from_le_bytes(bytes).into());
        }
        DataType::Int8 | DataType::Qint8 => {
            proto.int_val = words(literal, |bytes| i8::from_le_bytes(bytes).into())
        }
        DataType::Uint8 | DataType::Quint8 => proto.int_val = words(literal, |[byte]: [u8; 1]| byte.into()),
        DataType::Bool => proto.bool_val = words(literal, |[byte]: [u8; 1]| byte != 0),
        // Bit patterns of the numbers.
        DataType::Half => proto.half_val = words(literal, |bytes| u16::from_le_bytes(bytes).into()),
        other => {
            return Err(Error::unsupported(format!(
                "version 1 checkpoints do not support type {other}; save with SaveV2"
            )));
        }
    }
    Ok(proto)
}

/// Converts each group of `N` bytes to a number.
fn words<const N: usize, T>(literal: &Literal, word: impl Fn([u8; N]) -> T) -> Vec<T> {
    let bytes: &Bytes = literal.bytes();
    bytes.as_chunks::<N>().0.iter().map(|&bytes| word(bytes)).collect()
}
