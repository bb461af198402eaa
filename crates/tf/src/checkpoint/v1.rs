//! Version 1 checkpoints: table files whose values hold the tensors. The value of the empty key
//! lists the tensors.

use super::slices::{self, Region};
use super::{Value, damaged, table};
use crate::proto::{SavedSlice, SavedSliceMeta, SavedTensorSlices, TensorProto, TensorSliceProto};
use crate::tensor::Tensor;
use crate::{DataType, text, wire};
use bytes::Bytes;
use prost::Message;
use shape::ArrayShape;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// Maximum size of the list of tensors. Decoding takes a multiple of it.
const MAX_HEAD: usize = 8 << 20;

/// Maximum size of the encoded location of a part.
const MAX_SLICE: usize = 8 << 10;

/// Value of a nonempty key. Decoding ignores a head (tag 1), which belongs only to the empty key.
#[derive(Clone, PartialEq, Message)]
struct SavedTensorData {
    #[prost(message, optional, tag = "2")]
    data: Option<SavedSlice>,
}

/// A tensor stored in version 1 files.
pub(super) struct Stored {
    meta: SavedSliceMeta,
    parts: Vec<Part>,
}

/// A box of a tensor: the encoded TensorProto, which omits type and shape, and its location in the
/// files.
struct Part {
    slice: TensorSliceProto,
    data: Bytes,
    file: PathBuf,
    at: usize,
}

/// Reads the tensors of several files, as written by a sharded saver.
pub(super) fn read(files: &[(PathBuf, Bytes)]) -> Result<BTreeMap<String, Stored>> {
    let mut tensors: BTreeMap<String, Stored> = BTreeMap::new();
    let mut data = Vec::new();
    for (path, file) in files {
        read_file(path, file, &mut tensors, &mut data).map_err(|e| at_file(e, path))?;
    }
    for (name, part) in data {
        // Parts of tensors that no head lists are ignored.
        if let Some(stored) = tensors.get_mut(&name) {
            stored.parts.push(part);
        }
    }
    Ok(tensors)
}

fn at_file(error: Error, path: &Path) -> Error {
    error.context(format!("checkpoint file '{}'", path.display()))
}

fn read_file(
    path: &Path,
    file: &Bytes,
    tensors: &mut BTreeMap<String, Stored>,
    data: &mut Vec<(String, Part)>,
) -> Result<()> {
    for entry in table::entries(file)? {
        let is_head = entry.key.is_empty();
        if is_head && entry.value.len() > MAX_HEAD {
            return Err(damaged(entry.at, "the list of tensors is larger than the limit of 8 MiB"));
        }
        let decoded = if is_head {
            SavedTensorSlices::decode(entry.value)
        } else {
            SavedTensorData::decode(entry.value)
                .map(|SavedTensorData { data }| SavedTensorSlices { meta: None, data })
        };
        let slices = decoded.map_err(|e| damaged(entry.at, &e.to_string()))?;
        if is_head {
            for meta in slices.meta.unwrap_or_default().tensor {
                match tensors.get_mut(&meta.name) {
                    Some(known) if known.meta.shape == meta.shape && known.meta.r#type == meta.r#type => {
                        known.meta.slice.extend(meta.slice);
                    }
                    Some(_) => {
                        let what =
                            format!("tensor '{}' has a different type or shape in another file", meta.name);
                        return Err(damaged(entry.at, &what));
                    }
                    None => {
                        tensors.insert(meta.name.clone(), Stored { meta, parts: Vec::new() });
                    }
                }
            }
        } else if let Some(part) = slices.data {
            let slice = if part.slice.len() <= MAX_SLICE {
                TensorSliceProto::decode(part.slice).map_err(|e| damaged(entry.at, &e.to_string()))?
            } else {
                return Err(damaged(entry.at, "a part has too many dimensions"));
            };
            data.push((part.name, Part { slice, data: part.data, file: path.to_owned(), at: entry.at }));
        }
    }
    Ok(())
}

impl Stored {
    /// Type and sizes of the whole tensor.
    pub(super) fn tensor_type(&self) -> Result<(DataType, Vec<i64>)> {
        super::tensor_type(self.meta.r#type, self.meta.shape.as_ref())
    }

    /// Value of the whole tensor.
    pub(super) fn value(&self) -> Result<Value> {
        let (data_type, sizes) = self.tensor_type()?;
        let regions = self.regions(&sizes)?;
        if !slices::tile(&regions, &sizes) {
            return Err(Error::invalid(
                "the parts do not cover the tensor; check for missing checkpoint files",
            ));
        }
        if let ([part], [region]) = (self.parts.as_slice(), regions.as_slice()) {
            return part.value(data_type, region);
        }
        let element_type = super::element_type(data_type)?;
        let parts = self.parts.iter().zip(regions).map(|(part, region)| {
            let bytes = part.value(data_type, &region)?.array()?.bytes().clone();
            Ok((region, bytes))
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Ok(Value::Array(data_type, slices::join(&ArrayShape::new(element_type, &sizes), &parts)?))
    }

    /// Region of each part. Returns an error if a part lies outside the tensor.
    fn regions(&self, sizes: &[i64]) -> Result<Vec<Region>> {
        if self.parts.len() > slices::MAX_SLICES {
            return Err(Error::invalid(format!(
                "stored in {} parts, more than the limit of {}",
                self.parts.len(),
                slices::MAX_SLICES
            )));
        }
        let region = |part: &Part| {
            Region::new(&part.slice, sizes)
                .ok_or_else(|| at_file(damaged(part.at, "a part lies outside its tensor"), &part.file))
        };
        self.parts.iter().map(region).collect()
    }
}

impl Part {
    fn value(&self, data_type: DataType, region: &Region) -> Result<Value> {
        self.elements(data_type, region).map_err(|e| at_file(e, &self.file))
    }

    fn elements(&self, data_type: DataType, region: &Region) -> Result<Value> {
        let decoded = wire::decode::<TensorProto>(self.data.clone(), &text::TENSOR);
        let mut proto = decoded.map_err(|e| damaged(self.at, &e))?;
        proto.dtype = data_type.number();
        proto.tensor_shape = Some(super::shape_proto(&region.sizes));
        if data_type == DataType::String {
            if proto.string_val.len() as i64 != region.count() {
                return Err(damaged(self.at, "the number of strings does not match the tensor's shape"));
            }
            return Ok(Value::Strings(region.sizes.clone(), proto.string_val));
        }
        super::element_type(data_type)?;
        let tensor = Tensor::new(&proto)?;
        if tensor.fill_bytes() > 0 {
            return Err(damaged(self.at, "fewer elements than the tensor's shape requires"));
        }
        Ok(Value::Array(data_type, tensor.literal()?))
    }
}
