//! Checkpoints: the values of variables by name, in both of TensorFlow's formats.
//!
//! Files are mapped, and arrays share their bytes where the format allows it. Every block of a table and every tensor that is
//! used is compared with its checksum: damage is an error that names file, tensor and offset.

mod crc32c;
mod object_graph;
mod saved;
mod slices;
mod table;
mod table_writer;
mod v1;
mod v2;
mod write;
mod write_v1;

use crate::proto::{Dim, TensorShapeProto};
use crate::{DataType, PartialShape, source};
use bytes::Bytes;
use shape::{Literal, PrimitiveType, index};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Code, Coded as _, Error, Result};

pub use object_graph::OBJECT_GRAPH_KEY;
pub use saved::Saved;
pub use write::{Bundle, write_v2, write_v2_parts};
pub use write_v1::write_v1;

/// The most files of a version 1 checkpoint that a pattern may name.
const MAX_FILES: usize = 10_000;

/// An open checkpoint.
pub struct Checkpoint {
    path: PathBuf,
    format: Format,
}

enum Format {
    V1(BTreeMap<String, v1::Stored>),
    V2(v2::Bundle),
}

/// The value of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Numbers.
    Array(DataType, Literal),
    /// Sizes and row-major elements of a tensor of strings.
    Strings(Vec<i64>, Vec<Bytes>),
}

impl Value {
    /// Its type.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Array(data_type, _) => *data_type,
            Self::Strings(..) => DataType::String,
        }
    }

    /// Its sizes.
    pub fn sizes(&self) -> Vec<i64> {
        match self {
            Self::Array(_, literal) => literal.array_shape().sizes(),
            Self::Strings(sizes, _) => sizes.clone(),
        }
    }

    /// The numbers; an error for strings.
    pub fn array(&self) -> Result<&Literal> {
        match self {
            Self::Array(_, literal) => Ok(literal),
            Self::Strings(..) => Err(Error::unsupported("it has type string, which holds no numbers")),
        }
    }
}

impl Checkpoint {
    /// Opens the checkpoint of a path as TensorFlow names it: the common beginning of the files for version 2, which comes
    /// first; for version 1 the file itself, or a pattern of files such as `model-?????-of-00002`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::read(path).coded(Code::Checkpoint)
    }

    fn read(path: &Path) -> Result<Self> {
        let format = if with_suffix(path, ".index").is_file() {
            Format::V2(v2::Bundle::open(path)?)
        } else {
            let files = matching_files(path)?;
            if files.is_empty() {
                return Err(Error::invalid(format!("Input checkpoint '{}' doesn't exist!", path.display())));
            }
            let read = |path: PathBuf| source::read_bytes(&path).map(|bytes| (path, bytes));
            let files = files.into_iter().map(read).collect::<Result<Vec<_>>>()?;
            Format::V1(v1::read(&files)?)
        };
        Ok(Self { path: path.to_owned(), format })
    }

    /// Whether there are files for [`Self::open`].
    pub fn exists(path: &Path) -> bool {
        with_suffix(path, ".index").is_file() || matching_files(path).is_ok_and(|files| !files.is_empty())
    }

    /// The names of all tensors, in order.
    pub fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match &self.format {
            Format::V1(tensors) => Box::new(tensors.keys().map(String::as_str)),
            Format::V2(bundle) => Box::new(bundle.tensors.keys().map(String::as_str)),
        }
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        match &self.format {
            Format::V1(tensors) => tensors.contains_key(name),
            Format::V2(bundle) => bundle.tensors.contains_key(name),
        }
    }

    /// Type and sizes of a tensor; its elements are not looked at.
    pub fn tensor_type(&self, name: &str) -> Result<Option<(DataType, Vec<i64>)>> {
        let found = match &self.format {
            Format::V1(tensors) => tensors.get(name).map(v1::Stored::tensor_type),
            Format::V2(bundle) => {
                bundle.tensors.get(name).map(|entry| tensor_type(entry.dtype, entry.shape.as_ref()))
            }
        };
        found.transpose().map_err(|e| self.at_tensor(name, e))
    }

    /// The value of a tensor, put together if it is stored in parts; `None` if there is none of this name.
    pub fn value(&self, name: &str) -> Result<Option<Value>> {
        let found = match &self.format {
            Format::V1(tensors) => tensors.get(name).map(v1::Stored::value),
            Format::V2(bundle) => bundle.tensors.get(name).map(|entry| bundle.value(name, entry)),
        };
        found.transpose().map_err(|e| self.at_tensor(name, e))
    }

    /// The type and elements of a tensor of numbers; `None` if there is none of this name.
    pub fn tensor(&self, name: &str) -> Result<Option<(DataType, Literal)>> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        let literal = value.array().map_err(|e| self.at_tensor(name, e))?.clone();
        Ok(Some((value.data_type(), literal)))
    }

    /// What a restoring op gives for a tensor: all of it if `shape_and_slice` is empty, else the box that it says, such as
    /// `10 4 0,5:-`.
    pub fn restore(&self, name: &str, shape_and_slice: &str) -> Result<Option<Value>> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        if shape_and_slice.is_empty() {
            return Ok(Some(value));
        }
        let error =
            |what: &str| self.at_tensor(name, Error::invalid(format!("the part '{shape_and_slice}' {what}")));
        let (sizes, slice) = slices::parse(shape_and_slice).ok_or_else(|| error("is not understood"))?;
        if sizes != value.sizes() {
            return Err(error(&format!("is of another shape than the tensor's {:?}", value.sizes())));
        }
        let region =
            slices::Region::new(&slice, &sizes).ok_or_else(|| error("lies outside of the tensor"))?;
        let cut = slices::cut(value.array().map_err(|e| self.at_tensor(name, e))?, &region);
        Ok(Some(Value::Array(value.data_type(), cut?)))
    }

    /// What a version 2 checkpoint stores, tensor by tensor, parts as parts: those of one file need not make whole tensors.
    ///
    /// # Errors
    /// Checkpoints of version 1, and what is damaged.
    pub fn stored(&self) -> Result<Vec<Saved>> {
        let Format::V2(bundle) = &self.format else {
            return Err(Error::unsupported(format!(
                "{} is of version 1; version 2 is wanted",
                self.describe()
            )));
        };
        let mut all = Vec::new();
        for (name, entry) in &bundle.tensors {
            all.extend(bundle.stored_parts(name, entry).map_err(|e| self.at_tensor(name, e))?);
        }
        Ok(all)
    }

    fn describe(&self) -> String {
        format!("checkpoint '{}'", self.path.display())
    }

    fn at_tensor(&self, name: &str, error: Error) -> Error {
        error.context(format!("tensor '{name}' of {}", self.describe())).coded(Code::Checkpoint)
    }
}

/// The files that a path means: itself, or what its last part matches as a pattern.
fn matching_files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let pattern = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !pattern.contains(['?', '*']) {
        return Ok(Vec::new());
    }
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| matches(pattern.as_bytes(), name.as_bytes()))
        .map(|name| path.with_file_name(name))
        .filter(|file| file.is_file())
        .take(MAX_FILES + 1)
        .collect();
    if files.len() > MAX_FILES {
        return Err(Error::invalid(format!("'{}' names more than {MAX_FILES} files", path.display())));
    }
    files.sort();
    Ok(files)
}

/// Whether a name matches a pattern: `?` is any character, `*` any number of them.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last star stands, and how much of the name it has taken.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// An error about the bytes at an offset of a file, which the caller names.
fn damaged(at: usize, what: &str) -> Error {
    Error::invalid(format!("the file is damaged at byte {at}: {what}"))
}

/// Type and sizes of a stored tensor.
fn tensor_type(number: i32, shape: Option<&TensorShapeProto>) -> Result<(DataType, Vec<i64>)> {
    let data_type = DataType::from_number(number)
        .filter(|data_type| !data_type.is_ref())
        .ok_or_else(|| Error::invalid(format!("its type has the number {number}, which is no data type")))?;
    let shape = shape.map_or(Ok(PartialShape::known(&[])), PartialShape::from_proto)?;
    let sizes = shape.sizes().ok_or_else(|| Error::invalid("its shape is not known"))?;
    index::element_count(&sizes)
        .and_then(|count| count.checked_mul(16))
        .ok_or_else(|| Error::invalid(format!("its shape {shape} is too large")))?;
    Ok((data_type, sizes))
}

/// The proto of a shape that is known in full.
pub(crate) fn shape_proto(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}

fn element_type(data_type: DataType) -> Result<PrimitiveType> {
    data_type
        .primitive_type()
        .ok_or_else(|| Error::unsupported(format!("it has type {data_type}, which holds no numbers")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_shells_do() {
        for (pattern, name, expected) in [
            ("model-?????-of-00002", "model-00001-of-00002", true),
            ("model-?????-of-00002", "model-001-of-00002", false),
            ("a*b*c", "a-b-b-cc", true),
            ("a*b*c", "a-b-d", false),
            ("*", "", true),
            ("x", "xy", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
