//! Writes version 2 checkpoints: one index, one data file, and the text file that names the latest checkpoint.

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

/// The files of a checkpoint, the same bytes for the same tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// For `<prefix>.index`.
    pub index: Vec<u8>,
    /// For `<prefix>.data-00000-of-00001`.
    pub data: Vec<u8>,
}

impl Bundle {
    /// What the files are called behind the prefix, and their contents.
    pub fn files(&self) -> [(&'static str, &[u8]); 2] {
        [(".data-00000-of-00001", &self.data), (".index", &self.index)]
    }

    /// The text of the file `checkpoint` of a directory, from which `tf.train.latest_checkpoint` takes the prefix: `name`
    /// is its last part.
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

/// Makes the files of a checkpoint of these tensors. Names are keys as they are; `Saver.restore` takes the names of
/// variables. Fails for names and types that TensorFlow does not have.
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

/// The same of tensors of every kind, strings and parts of larger tensors among them.
///
/// # Errors
/// Fails for a name that occurs twice, save with different parts, and for parts that do not fit to their tensor or to each other.
pub fn write_v2_parts(tensors: &[Saved]) -> Result<Bundle> {
    let mut data = Vec::new();
    // Keys of parts begin with a zero byte, so they come before all names.
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

/// Appends a value to the data file; what the index says of it.
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

/// Appends the lengths of strings, a checksum of them, and the strings; the checksum of it all, for which the lengths count as
/// numbers of four bytes, or of eight if they need them.
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
    let of_lengths = crc32c::mask(crc).to_le_bytes();
    data.extend_from_slice(&of_lengths);
    crc = crc32c::extend(crc, &of_lengths);
    for string in strings {
        data.extend_from_slice(string);
        crc = crc32c::extend(crc, string);
    }
    crc32c::mask(crc)
}
