//! Writes version 2 checkpoints: one index, one data file, and the text file that names the latest checkpoint.

use super::{crc32c, table};
use crate::DataType;
use crate::proto::{BundleEntryProto, BundleHeaderProto, VersionDef};
use prost::Message;
use prost::encoding::encode_varint;
use shape::Literal;
use std::collections::BTreeMap;
use support::{Error, Result};

/// A block of the index is closed when it is larger.
const BLOCK_BYTES: usize = 256 << 10;

/// Every so many entries a key is written whole, so that readers can search.
const RESTART_INTERVAL: usize = 16;

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
    let mut data = Vec::new();
    let mut index = TableWriter::default();
    let version = VersionDef { producer: 1, ..VersionDef::default() };
    let header = BundleHeaderProto { num_shards: 1, endianness: 0, version: Some(version) };
    index.add(b"", &header.encode_to_vec());
    for (name, literal) in tensors {
        if name.is_empty() || name.starts_with('\0') {
            return Err(Error::invalid(format!("{name:?} cannot be the name of a checkpoint's tensor")));
        }
        let shape = literal.array_shape();
        let data_type = DataType::ALL.iter().find(|t| t.primitive_type() == Some(shape.element_type));
        let data_type = data_type.ok_or_else(|| {
            Error::unsupported(format!("'{name}': a checkpoint cannot hold elements of {shape}"))
        })?;
        let entry = BundleEntryProto {
            dtype: data_type.number(),
            shape: Some(super::shape_proto(&shape.sizes())),
            shard_id: 0,
            offset: data.len() as i64,
            size: literal.bytes().len() as i64,
            crc32c: crc32c::masked(literal.bytes()),
            slices: Vec::new(),
        };
        data.extend_from_slice(literal.bytes());
        index.add(name.as_bytes(), &entry.encode_to_vec());
    }
    Ok(Bundle { index: index.finish(), data })
}

/// A table file in the making; keys come in order.
#[derive(Default)]
struct TableWriter {
    file: Vec<u8>,
    block: BlockWriter,
    blocks: BlockWriter,
    last_key: Vec<u8>,
}

impl TableWriter {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.block.add(key, value);
        key.clone_into(&mut self.last_key);
        if self.block.bytes.len() >= BLOCK_BYTES {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        if self.block.count > 0 {
            let handle = write_block(&mut self.file, std::mem::take(&mut self.block));
            self.blocks.add(&self.last_key, &handle);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.close_block();
        let mut footer = write_block(&mut self.file, BlockWriter::default());
        footer.extend(write_block(&mut self.file, self.blocks));
        footer.resize(table::FOOTER - 8, 0);
        self.file.extend(footer);
        self.file.extend(table::MAGIC.to_le_bytes());
        self.file
    }
}

/// Appends a block with its trailer; gives back its encoded place.
fn write_block(file: &mut Vec<u8>, block: BlockWriter) -> Vec<u8> {
    let start = file.len();
    file.extend(block.finish());
    let mut handle = Vec::new();
    encode_varint(start as u64, &mut handle);
    encode_varint((file.len() - start) as u64, &mut handle);
    // Not compressed.
    file.push(0);
    let checksum = crc32c::masked(&file[start..]);
    file.extend(checksum.to_le_bytes());
    handle
}

#[derive(Default)]
struct BlockWriter {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    count: usize,
    last_key: Vec<u8>,
}

impl BlockWriter {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = if self.count.is_multiple_of(RESTART_INTERVAL) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            self.last_key.iter().zip(key).take_while(|(a, b)| a == b).count()
        };
        for size in [shared, key.len() - shared, value.len()] {
            encode_varint(size as u64, &mut self.bytes);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        key.clone_into(&mut self.last_key);
        self.count += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        if self.restarts.is_empty() {
            self.restarts.push(0);
        }
        let count = self.restarts.len() as u32;
        for number in self.restarts.into_iter().chain([count]) {
            self.bytes.extend(number.to_le_bytes());
        }
        self.bytes
    }
}
