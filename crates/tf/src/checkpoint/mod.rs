//! Checkpoints: the values of variables by name.
//!
//! Version 1 is one table file whose values hold the tensors. Version 2, a "tensor bundle", is a table file `.index` that
//! says where in the files `.data-*` each tensor lies.

mod crc32c;
mod table;

use crate::proto::{
    BundleEntryProto, BundleHeaderProto, SavedSliceMeta, SavedTensorSlices, TensorProto, TensorSliceProto,
};
use crate::tensor::Tensor;
use crate::{DataType, PartialShape, source};
use bytes::Bytes;
use prost::Message;
use shape::{ArrayShape, Literal};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// What freezing says about variables that are stored in parts.
const PARTITIONED: &str = "Models containing partition variables cannot be converted from checkpoint files. Please pass \
                           in a SavedModel using the flag --input_saved_model_dir.";

/// An open checkpoint.
pub struct Checkpoint {
    path: PathBuf,
    tensors: BTreeMap<String, Stored>,
}

/// How a tensor is stored.
enum Stored {
    /// Its elements and what the checkpoint's head says about it.
    V1(Option<Box<TensorProto>>, SavedSliceMeta),
    /// The bytes of its file, and where it lies in them.
    V2(Bytes, BundleEntryProto),
}

impl Checkpoint {
    /// Opens the checkpoint of a path as TensorFlow names it: the file itself for version 1, the files' common beginning
    /// for version 2.
    pub fn open(path: &Path) -> Result<Self> {
        let at_file = |e: Error| e.context(format!("checkpoint '{}'", path.display()));
        let index = with_suffix(path, ".index");
        let tensors = if path.is_file() {
            read_v1(source::read_bytes(path)?)
        } else if index.is_file() {
            read_v2(path, source::read_bytes(&index)?)
        } else {
            return Err(Error::invalid(format!("Input checkpoint '{}' doesn't exist!", path.display())));
        };
        Ok(Self { path: path.to_owned(), tensors: tensors.map_err(at_file)? })
    }

    /// The names of all tensors, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The type and elements of a tensor; `None` if there is none of this name.
    pub fn tensor(&self, name: &str) -> Result<Option<(DataType, Literal)>> {
        let Some(stored) = self.tensors.get(name) else { return Ok(None) };
        let tensor = match stored {
            Stored::V1(data, meta) => v1_tensor(data.as_deref(), meta),
            Stored::V2(data, entry) => v2_tensor(data, entry),
        };
        tensor
            .map(Some)
            .map_err(|e| e.context(format!("tensor '{name}' of checkpoint '{}'", self.path.display())))
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn corrupt(what: &str) -> Error {
    Error::invalid(format!("the file is damaged: {what}"))
}

fn read_v1(file: Bytes) -> Result<BTreeMap<String, Stored>> {
    let mut tensors = BTreeMap::new();
    let mut data = Vec::new();
    for (key, value) in table::entries(&file)? {
        let slices = SavedTensorSlices::decode(value).map_err(|e| corrupt(&e.to_string()))?;
        if key.is_empty() {
            for meta in slices.meta.unwrap_or_default().tensor {
                tensors.insert(meta.name.clone(), Stored::V1(None, meta));
            }
        } else if let Some(slice) = slices.data {
            data.push(slice);
        }
    }
    for slice in data {
        // A slice that is a part only is told by the head, which lists several.
        if let Some(Stored::V1(stored, _)) = tensors.get_mut(&slice.name) {
            *stored = slice.data.map(Box::new);
        }
    }
    Ok(tensors)
}

fn v1_tensor(data: Option<&TensorProto>, meta: &SavedSliceMeta) -> Result<(DataType, Literal)> {
    if meta.slice.len() > 1 || !meta.slice.iter().all(is_whole) {
        return Err(Error::unsupported(PARTITIONED));
    }
    let data = data.ok_or_else(|| corrupt("it has no elements for this tensor"))?;
    // The elements come without type and shape, which stand in the head.
    let mut proto = data.clone();
    proto.dtype = meta.r#type;
    proto.tensor_shape = meta.shape.clone();
    let tensor = Tensor::new(&proto)?;
    if tensor.fill_bytes() > 0 {
        return Err(corrupt("it has fewer elements than the tensor's shape"));
    }
    Ok((tensor.data_type(), tensor.literal()?))
}

/// Whether every extent is its whole dimension.
fn is_whole(slice: &TensorSliceProto) -> bool {
    slice.extent.iter().all(|extent| extent.length.is_none())
}

fn read_v2(path: &Path, index: Bytes) -> Result<BTreeMap<String, Stored>> {
    let mut entries = table::entries(&index)?.into_iter();
    let header = match entries.next() {
        Some((key, value)) if key.is_empty() => BundleHeaderProto::decode(value),
        _ => return Err(corrupt("the index has no header")),
    };
    let header = header.map_err(|e| corrupt(&e.to_string()))?;
    if header.endianness != 0 {
        return Err(Error::unsupported("a checkpoint in big-endian byte order"));
    }
    if !(1..=99_999).contains(&header.num_shards) {
        return Err(corrupt("the number of data files is out of range"));
    }
    let mut shards: BTreeMap<i32, Bytes> = BTreeMap::new();
    let mut tensors = BTreeMap::new();
    for (key, value) in entries {
        // Keys that are no names belong to parts of tensors.
        let Ok(name) = String::from_utf8(key) else { continue };
        let entry = BundleEntryProto::decode(value).map_err(|e| corrupt(&e.to_string()))?;
        if !(0..header.num_shards).contains(&entry.shard_id) {
            return Err(corrupt(&format!("tensor '{name}' lies in data file {}", entry.shard_id)));
        }
        let data = match shards.get(&entry.shard_id) {
            Some(data) => data.clone(),
            None => {
                let suffix = format!(".data-{:05}-of-{:05}", entry.shard_id, header.num_shards);
                let data = source::read_bytes(&with_suffix(path, &suffix))?;
                shards.entry(entry.shard_id).or_insert(data).clone()
            }
        };
        tensors.insert(name, Stored::V2(data, entry));
    }
    Ok(tensors)
}

fn v2_tensor(data: &Bytes, entry: &BundleEntryProto) -> Result<(DataType, Literal)> {
    if !entry.slices.is_empty() {
        return Err(Error::unsupported(PARTITIONED));
    }
    let data_type = DataType::from_number(entry.dtype).ok_or_else(|| corrupt("it has no data type"))?;
    let element_type = data_type
        .primitive_type()
        .ok_or_else(|| Error::unsupported(format!("it has type {data_type}, which holds no numbers")))?;
    let shape = entry.shape.as_ref().map_or(Ok(PartialShape::known(&[])), PartialShape::from_proto)?;
    let sizes = shape.sizes().ok_or_else(|| corrupt("its shape is not known"))?;
    let bytes = usize::try_from(entry.offset)
        .ok()
        .zip(usize::try_from(entry.size).ok())
        .and_then(|(offset, size)| Some(offset..offset.checked_add(size)?))
        .filter(|range| range.end <= data.len())
        .map(|range| data.slice(range))
        .ok_or_else(|| corrupt("it lies beyond the end of its data file"))?;
    if crc32c::masked(&bytes) != entry.crc32c {
        return Err(corrupt("its checksum is wrong"));
    }
    let literal = Literal::from_bytes(ArrayShape::new(element_type, &sizes), bytes)
        .ok_or_else(|| corrupt("its number of bytes is not that of its shape"))?;
    Ok((data_type, literal))
}
