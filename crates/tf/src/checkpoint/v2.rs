//! Version 2 checkpoints ("tensor bundles"): a table file `.index` that maps each tensor to its
//! location in the `.data-*` files.

use super::saved::Saved;
use super::slices::{self, Region};
use super::{Value, crc32c, damaged, table, with_suffix};
use crate::proto::{BundleEntryProto, BundleHeaderProto};
use crate::tensor::normalized;
use crate::{DataType, source};
use bytes::Bytes;
use prost::Message;
use prost::encoding::decode_varint;
use shape::{ArrayShape, Literal};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// Maximum size of an encoded index entry. Decoding takes a multiple of it.
const MAX_ENTRY: usize = 1 << 20;

/// Index format version that this reader supports.
const VERSION: i32 = 1;

/// An open bundle.
pub(super) struct Bundle {
    /// Whole tensors by name.
    pub(super) tensors: BTreeMap<String, BundleEntryProto>,
    /// Parts of tensors by [`slices::key`].
    parts: BTreeMap<Vec<u8>, BundleEntryProto>,
    /// Mapped data files that the entries refer to.
    shards: BTreeMap<i32, (PathBuf, Bytes)>,
}

impl Bundle {
    /// Opens the bundle with a given prefix.
    pub(super) fn open(prefix: &Path) -> Result<Self> {
        let index = with_suffix(prefix, ".index");
        let bytes = source::read_bytes(&index)?;
        Self::read(prefix, &bytes).map_err(|e| e.context(format!("checkpoint file '{}'", index.display())))
    }

    fn read(prefix: &Path, index: &Bytes) -> Result<Self> {
        let mut entries = table::entries(index)?.into_iter();
        let header = entries.next().filter(|entry| entry.key.is_empty());
        let header = header.ok_or_else(|| damaged(0, "the index header is missing"))?;
        let at = header.at;
        let header = BundleHeaderProto::decode(header.value).map_err(|e| damaged(at, &e.to_string()))?;
        if header.endianness != 0 {
            return Err(Error::unsupported(
                "the checkpoint is in big-endian byte order; save it again on a little-endian machine",
            ));
        }
        if header.version.as_ref().is_some_and(|version| version.min_consumer > VERSION) {
            return Err(Error::unsupported("the checkpoint uses a format later than version 2"));
        }
        if !(1..=99_999).contains(&header.num_shards) {
            return Err(damaged(at, "the number of data files is out of range"));
        }
        let mut bundle = Self { tensors: BTreeMap::new(), parts: BTreeMap::new(), shards: BTreeMap::new() };
        for table::Entry { key, value, at } in entries {
            if value.len() > MAX_ENTRY {
                return Err(damaged(at, "an index entry is larger than the limit of 1 MiB"));
            }
            let entry = BundleEntryProto::decode(value).map_err(|e| damaged(at, &e.to_string()))?;
            if !(0..header.num_shards).contains(&entry.shard_id) {
                let what = format!(
                    "tensor '{}' refers to the nonexistent data file {}",
                    key.escape_ascii(),
                    entry.shard_id
                );
                return Err(damaged(at, &what));
            }
            if entry.slices.is_empty() && !bundle.shards.contains_key(&entry.shard_id) {
                let suffix = format!(".data-{:05}-of-{:05}", entry.shard_id, header.num_shards);
                let path = with_suffix(prefix, &suffix);
                let data = source::read_bytes(&path)?;
                bundle.shards.insert(entry.shard_id, (path, data));
            }
            if key[0] == 0 {
                bundle.parts.insert(key, entry);
            } else {
                let name = String::from_utf8(key);
                let name = name.map_err(|_| damaged(at, "the name of a tensor is not UTF-8"))?;
                bundle.tensors.insert(name, entry);
            }
        }
        Ok(bundle)
    }

    /// Value of a whole tensor.
    pub(super) fn value(&self, name: &str, entry: &BundleEntryProto) -> Result<Value> {
        if entry.slices.is_empty() {
            return self.stored(entry);
        }
        let (data_type, sizes) = super::tensor_type(entry.dtype, entry.shape.as_ref())?;
        if entry.slices.len() > slices::MAX_SLICES {
            return Err(Error::invalid(format!(
                "stored in {} parts, more than the limit of {}",
                entry.slices.len(),
                slices::MAX_SLICES
            )));
        }
        let regions = entry.slices.iter().map(|slice| Region::new(slice, &sizes));
        let regions = regions.collect::<Option<Vec<_>>>();
        let regions = regions.filter(|regions| slices::tile(regions, &sizes));
        let regions = regions.ok_or_else(|| Error::invalid("the parts do not cover the tensor"))?;
        let element_type = super::element_type(data_type)?;
        let parts = entry.slices.iter().zip(regions).map(|(slice, region)| {
            let part = self.parts.get(&slices::key(name, slice));
            let part =
                part.ok_or_else(|| Error::invalid(format!("the part at {:?} is missing", region.starts)))?;
            let (part_type, part_sizes) = super::tensor_type(part.dtype, part.shape.as_ref())?;
            if part_type != data_type || part_sizes != region.sizes || !part.slices.is_empty() {
                return Err(Error::invalid(format!(
                    "the part at {:?} has a different type or shape",
                    region.starts
                )));
            }
            Ok((region, self.stored(part)?.array()?.bytes().clone()))
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Ok(Value::Array(data_type, slices::join(&ArrayShape::new(element_type, &sizes), &parts)?))
    }

    /// Stored values of a tensor: the whole tensor, or its parts.
    pub(super) fn stored_parts(&self, name: &str, entry: &BundleEntryProto) -> Result<Vec<Saved>> {
        if entry.slices.is_empty() {
            return Ok(vec![Saved::whole(name, self.stored(entry)?)]);
        }
        let (_, sizes) = super::tensor_type(entry.dtype, entry.shape.as_ref())?;
        let parts = entry.slices.iter().take(slices::MAX_SLICES).map(|slice| {
            let part = self.parts.get(&slices::key(name, slice));
            let part = part.ok_or_else(|| Error::invalid("a part of the tensor is missing"))?;
            Ok(Saved {
                name: name.to_owned(),
                shape_and_slice: slices::text(&sizes, slice),
                value: self.stored(part)?,
            })
        });
        parts.collect()
    }

    /// Reads the value of an entry from its data file and verifies the checksum. Arrays share the
    /// file's bytes.
    fn stored(&self, entry: &BundleEntryProto) -> Result<Value> {
        let (path, data) = self
            .shards
            .get(&entry.shard_id)
            .ok_or_else(|| Error::internal("a data file of a checkpoint is not mapped"))?;
        let read = || {
            let (data_type, sizes) = super::tensor_type(entry.dtype, entry.shape.as_ref())?;
            let range = usize::try_from(entry.offset).ok().zip(usize::try_from(entry.size).ok());
            let range = range.and_then(|(offset, size)| Some(offset..offset.checked_add(size)?));
            let range = range.filter(|range| range.end <= data.len()).ok_or_else(|| {
                damaged(
                    data.len(),
                    &format!(
                        "the tensor's {} bytes at {} extend past the end of the file",
                        entry.size, entry.offset
                    ),
                )
            })?;
            let (at, bytes) = (range.start, data.slice(range));
            if data_type == DataType::String {
                return strings(&bytes, sizes, entry.crc32c, at);
            }
            let element_type = super::element_type(data_type)?;
            if !crc32c::fits(entry.crc32c, crc32c::masked(&bytes)) {
                return Err(damaged(at, "wrong checksum of the tensor at this offset"));
            }
            let shape = ArrayShape::new(element_type, &sizes);
            let literal = Literal::from_bytes(shape, normalized(element_type, &bytes))
                .ok_or_else(|| damaged(at, "the tensor's byte count does not match its shape"))?;
            Ok(Value::Array(data_type, literal))
        };
        read().map_err(|e| e.context(format!("checkpoint file '{}'", path.display())))
    }
}

/// Decodes a string tensor: the length of each string, a checksum of the lengths, then the bytes.
/// The overall checksum covers the lengths as fixed-width integers.
fn strings(bytes: &Bytes, sizes: Vec<i64>, checksum: u32, at: usize) -> Result<Value> {
    let cut = || damaged(at, "a string tensor is truncated");
    let count = sizes.iter().product::<i64>();
    // Every length takes at least one byte.
    if count as u64 > bytes.len() as u64 {
        return Err(cut());
    }
    let mut rest: &[u8] = bytes;
    let mut crc = 0;
    let mut lengths = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let length = decode_varint(&mut rest).map_err(|_| cut())?;
        crc = match u32::try_from(length) {
            Ok(short) => crc32c::extend(crc, &short.to_le_bytes()),
            Err(_) => crc32c::extend(crc, &length.to_le_bytes()),
        };
        lengths.push(usize::try_from(length).map_err(|_| cut())?);
    }
    let stored = rest.first_chunk::<4>().ok_or_else(cut)?;
    if !crc32c::fits(u32::from_le_bytes(*stored), crc32c::mask(crc)) {
        return Err(damaged(at, "wrong checksum of the string lengths at this offset"));
    }
    crc = crc32c::extend(crc, stored);
    rest = &rest[4..];
    if !crc32c::fits(checksum, crc32c::mask(crc32c::extend(crc, rest))) {
        return Err(damaged(at, "wrong checksum of the strings at this offset"));
    }
    let mut start = bytes.len() - rest.len();
    let mut all = Vec::with_capacity(lengths.len());
    for length in lengths {
        let end = start.checked_add(length).filter(|&end| end <= bytes.len()).ok_or_else(cut)?;
        all.push(bytes.slice(start..end));
        start = end;
    }
    if start != bytes.len() {
        return Err(damaged(at, "a string tensor has trailing bytes"));
    }
    Ok(Value::Strings(sizes, all))
}
