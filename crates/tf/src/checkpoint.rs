//! Checkpoints: the values of variables by name, in both of TensorFlow's formats.
//!
//! Files are memory-mapped, and arrays share their bytes where the format allows it. Checksums are
//! verified for every table block and every tensor that is used. Errors for damaged files name the
//! file, the tensor, and the offset.

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

/// Limit for the number of version 1 files that a pattern may match.
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

/// Value of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Numbers.
    Array(DataType, Literal),
    /// Sizes and row-major elements of a string tensor.
    Strings(Vec<i64>, Vec<Bytes>),
}

impl Value {
    /// Element type.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Array(data_type, _) => *data_type,
            Self::Strings(..) => DataType::String,
        }
    }

    /// Dimension sizes.
    pub fn sizes(&self) -> Vec<i64> {
        match self {
            Self::Array(_, literal) => literal.array_shape().sizes(),
            Self::Strings(sizes, _) => sizes.clone(),
        }
    }

    /// Returns the numbers, or an error for strings.
    pub fn array(&self) -> Result<&Literal> {
        match self {
            Self::Array(_, literal) => Ok(literal),
            Self::Strings(..) => Err(Error::unsupported("expected a numeric type, got string")),
        }
    }
}

impl Checkpoint {
    /// Opens a checkpoint by the path that TensorFlow uses for it. For version 2, which is tried
    /// first, this is the common prefix of the files. For version 1, it is the file itself or a
    /// pattern such as `model-?????-of-00002`.
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

    /// True if [`Self::open`] would find files for this path.
    pub fn exists(path: &Path) -> bool {
        with_suffix(path, ".index").is_file() || matching_files(path).is_ok_and(|files| !files.is_empty())
    }

    /// Names of all tensors, in order.
    pub fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match &self.format {
            Format::V1(tensors) => Box::new(tensors.keys().map(String::as_str)),
            Format::V2(bundle) => Box::new(bundle.tensors.keys().map(String::as_str)),
        }
    }

    /// True if the checkpoint has a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        match &self.format {
            Format::V1(tensors) => tensors.contains_key(name),
            Format::V2(bundle) => bundle.tensors.contains_key(name),
        }
    }

    /// Type and sizes of a tensor. Does not read its elements.
    pub fn tensor_type(&self, name: &str) -> Result<Option<(DataType, Vec<i64>)>> {
        let found = match &self.format {
            Format::V1(tensors) => tensors.get(name).map(v1::Stored::tensor_type),
            Format::V2(bundle) => {
                bundle.tensors.get(name).map(|entry| tensor_type(entry.dtype, entry.shape.as_ref()))
            }
        };
        found.transpose().map_err(|e| self.at_tensor(name, e))
    }

    /// Value of a tensor, joined if it is stored in parts. `None` if the checkpoint has no tensor
    /// of this name.
    pub fn value(&self, name: &str) -> Result<Option<Value>> {
        let found = match &self.format {
            Format::V1(tensors) => tensors.get(name).map(v1::Stored::value),
            Format::V2(bundle) => bundle.tensors.get(name).map(|entry| bundle.value(name, entry)),
        };
        found.transpose().map_err(|e| self.at_tensor(name, e))
    }

    /// Type and elements of a numeric tensor. `None` if the checkpoint has no tensor of this name.
    pub fn tensor(&self, name: &str) -> Result<Option<(DataType, Literal)>> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        let literal = value.array().map_err(|e| self.at_tensor(name, e))?.clone();
        Ok(Some((value.data_type(), literal)))
    }

    /// Value that a restore op returns for a tensor: all of it if `shape_and_slice` is empty,
    /// otherwise the given box, such as `10 4 0,5:-`.
    pub fn restore(&self, name: &str, shape_and_slice: &str) -> Result<Option<Value>> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        if shape_and_slice.is_empty() {
            return Ok(Some(value));
        }
        let error =
            |what: &str| self.at_tensor(name, Error::invalid(format!("the part '{shape_and_slice}' {what}")));
        let (sizes, slice) = slices::parse(shape_and_slice)
            .ok_or_else(|| error("is malformed; expected the form '10 4 0,5:-'"))?;
        if sizes != value.sizes() {
            return Err(error(&format!("does not match the tensor's shape {:?}", value.sizes())));
        }
        let region = slices::Region::new(&slice, &sizes).ok_or_else(|| error("lies outside the tensor"))?;
        let cut = slices::cut(value.array().map_err(|e| self.at_tensor(name, e))?, &region);
        Ok(Some(Value::Array(value.data_type(), cut?)))
    }

    /// Contents of a version 2 checkpoint, with partitioned tensors as separate parts. The parts in
    /// one file need not cover a whole tensor.
    ///
    /// # Errors
    /// Fails for version 1 checkpoints and for damaged files.
    pub fn stored(&self) -> Result<Vec<Saved>> {
        let Format::V2(bundle) = &self.format else {
            return Err(Error::unsupported(format!(
                "{}: expected a version 2 checkpoint, got version 1",
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

/// Files that a path refers to: the file itself, or the matches of its last component as a pattern.
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
        return Err(Error::invalid(format!(
            "pattern '{}' matches more than {MAX_FILES} files",
            path.display()
        )));
    }
    files.sort();
    Ok(files)
}

/// True if a name matches a pattern: `?` is any character, `*` any number of characters.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Position of the last star, and length of the name prefix that it ends.
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

/// Creates an error about the bytes at a file offset. The caller adds the file name.
fn damaged(at: usize, what: &str) -> Error {
    Error::invalid(format!("the file is damaged at byte {at}: {what}"))
}

/// Type and sizes of a stored tensor.
fn tensor_type(number: i32, shape: Option<&TensorShapeProto>) -> Result<(DataType, Vec<i64>)> {
    let data_type = DataType::from_number(number)
        .filter(|data_type| !data_type.is_ref())
        .ok_or_else(|| Error::invalid(format!("unknown data type number {number}")))?;
    let shape = shape.map_or(Ok(PartialShape::known(&[])), PartialShape::from_proto)?;
    let sizes = shape.sizes().ok_or_else(|| Error::invalid("unknown shape"))?;
    index::element_count(&sizes)
        .and_then(|count| count.checked_mul(16))
        .ok_or_else(|| Error::invalid(format!("shape {shape} is too large")))?;
    Ok((data_type, sizes))
}

/// Encodes a fully known shape.
pub(crate) fn shape_proto(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}

fn element_type(data_type: DataType) -> Result<PrimitiveType> {
    data_type
        .primitive_type()
        .ok_or_else(|| Error::unsupported(format!("expected a numeric type, got {data_type}")))
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
