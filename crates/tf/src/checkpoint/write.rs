//! Writes version 2 checkpoints: one index, one data file, and the text file that names the latest
//! checkpoint.

use super::saved::{Key, Saved};
use super::{Value, crc32c, slices, table_writer::TableWriter};
use crate::DataType;
use crate::proto::{BundleEntryProto, BundleHeaderProto, VersionDef};
use bytes::Bytes;
use prost::Message;
use prost::encoding::encode_varint;
use shape::Literal;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Files of a checkpoint. Deterministic: the same tensors give the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Contents of `<prefix>.index`.
    pub index: Vec<u8>,
    /// Contents of `<prefix>.data-00000-of-00001`.
    pub data: Vec<u8>,
}

impl Bundle {
    /// File name suffixes, appended to the prefix, with the contents.
    pub fn files(&self) -> [(&'static str, &[u8]); 2] {
        [(".data-00000-of-00001", &self.data), (".index", &self.index)]
    }

    /// Text of the file `checkpoint` of a directory, from which `tf.train.latest_checkpoint` reads
    /// the prefix. `name` is the last component of the prefix.
    pub fn state(name: &str) -> String {
        let quoted: String = name
            .bytes()
            .map(|byte| match byte {
                b'"' | b'\\' => format!("\\{}", char::from(byte)),
                b' '..=b'~' => char::from(byte).to_string(),
                _ => format!("\\{byte:03o}"),
            })
            .collect();
        format!("model_checkpoint_path: \"{quoted}\"\nall_model_checkpoint_paths: \"{quoted}\"\n")
    }
}

/// Creates the files of a checkpoint. The names become the keys unchanged; `Saver.restore` uses the
/// names of variables as keys.
///
/// # Errors
/// Fails for names and types that TensorFlow does not support.
pub fn write_v2(tensors: &BTreeMap<String, Literal>) -> Result<Bundle> {
    let saved = tensors.iter().map(|(name, literal)| {
        let shape = literal.array_shape();
        let data_type = DataType::ALL.iter().find(|t| t.primitive_type() == Some(shape.element_type));
        let data_type = data_type.ok_or_else(|| {
            Error::unsupported(format!("'{name}': a checkpoint cannot hold elements of {shape}"))
        })?;
        Ok(Saved::whole(name, Value::Array(*data_type, literal.clone())))
    });
    write_v2_parts(&saved.collect::<Result<Vec<_>>>()?)
}

/// Creates the files of a checkpoint from tensors of every kind, including strings and parts of
/// larger tensors.
///
/// # Errors
/// Fails for a name that occurs twice, except with different parts, and for parts that do not fit
/// their tensor or each other.
pub fn write_v2_parts(tensors: &[Saved]) -> Result<Bundle> {
    let mut data = Vec::new();
    // Keys of parts begin with a zero byte, so they sort before all names.
    let mut entries: BTreeMap<Vec<u8>, BundleEntryProto> = BTreeMap::new();
    for Key { saved, part, .. } in super::saved::in_order(tensors)? {
        let name = saved.name.as_str();
        let is_part = part.as_ref().filter(|part| part.region.sizes != part.sizes);
        let entry = stored(&saved.value, &mut data);
        let key = match is_part {
            None => name.as_bytes().to_vec(),
            Some(part) => {
                let whole = entries.entry(name.as_bytes().to_vec()).or_insert_with(|| BundleEntryProto {
                    dtype: entry.dtype,
                    shape: Some(super::shape_proto(&part.sizes)),
                    ..BundleEntryProto::default()
                });
                whole.slices.push(part.slice.clone());
                slices::key(name, &part.slice)
            }
        };
        entries.insert(key, entry);
    }
    let mut index = TableWriter::default();
    let version = VersionDef { producer: 1, ..VersionDef::default() };
    let header = BundleHeaderProto { num_shards: 1, endianness: 0, version: Some(version) };
    index.add(b"", &header.encode_to_vec());
    for (key, entry) in entries {
        index.add(&key, &entry.encode_to_vec());
    }
    Ok(Bundle { index: index.finish(), data })
}

/// Appends a value to the data file. Returns its index entry.
fn stored(value: &Value, data: &mut Vec<u8>) -> BundleEntryProto {
    let offset = data.len();
    let crc32c = match value {
        Value::Array(_, literal) => {
            data.extend_from_slice(literal.bytes());
            crc32c::masked(literal.bytes())
        }
        Value::Strings(_, strings) => append_strings(strings, data),
    };
    BundleEntryProto {
        dtype: value.data_type().number(),
        shape: Some(super::shape_proto(&value.sizes())),
        shard_id: 0,
        offset: offset as i64,
        size: (data.len() - offset) as i64,
        crc32c,
        slices: Vec::new(),
    }
}

/// Appends the lengths of strings, a checksum of the lengths, and the strings. Returns the overall
/// checksum, which covers each length as a 4-byte integer, or as an 8-byte integer if it does not
/// fit.
fn append_strings(strings: &[Bytes], data: &mut Vec<u8>) -> u32 {
    let mut crc = 0;
    for string in strings {
        let length = string.len() as u64;
        encode_varint(length, data);
        crc = match u32::try_from(length) {
            Ok(short) => crc32c::extend(crc, &short.to_le_bytes()),
            Err(_) => crc32c::extend(crc, &length.to_le_bytes()),
        };
    }
    let lengths_crc = crc32c::mask(crc).to_le_bytes();
    data.extend_from_slice(&lengths_crc);
    crc = crc32c::extend(crc, &lengths_crc);
    for string in strings {
        data.extend_from_slice(string);
        crc = crc32c::extend(crc, string);
    }
    crc32c::mask(crc)
}
