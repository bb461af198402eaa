//! `.safetensors`: the length of a JSON header, the header, and the bytes of the tensors one after
//! another.
//!
//! The layout follows the format's description (github.com/huggingface/safetensors). The header
//! maps each name to `dtype`, `shape`, and `data_offsets`, and `__metadata__` to strings. The
//! tensors cover the rest of the file without holes. Tensors share the file's bytes.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use shape::{ArrayShape, Literal, PrimitiveType, index};
use std::collections::BTreeMap;
use std::ops::Range;
use support::{Error, Result};

/// Maximum size of the header. Parsing takes a multiple of it.
const MAX_HEADER: u64 = 16 << 20;

/// Alignment of the tensor data in the file, in bytes.
const ALIGNMENT: usize = 8;

/// Name of the metadata entry, which is not a tensor.
const METADATA: &str = "__metadata__";

/// An open file.
pub struct Safetensors {
    data: Bytes,
    tensors: BTreeMap<String, Entry>,
}

struct Entry {
    dtype: String,
    sizes: Vec<i64>,
    range: Range<usize>,
}

impl Safetensors {
    /// Reads the header and checks that the tensors are contiguous. Types are checked when a tensor
    /// is read.
    pub fn open(file: Bytes) -> Result<Self> {
        let length = file.get(..8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let length = length.filter(|&length| length <= MAX_HEADER && length <= file.len() as u64 - 8);
        let length = length.ok_or_else(|| bad("its header is cut off or larger than 16 MiB"))?;
        let start = 8 + length as usize;
        let header: Map<String, Value> = serde_json::from_slice(&file[8..start])
            .map_err(|e| bad(&format!("invalid JSON in the header: {e}")))?;
        let data = file.slice(start..);
        let mut tensors = BTreeMap::new();
        for (name, value) in header.into_iter().filter(|(name, _)| name != METADATA) {
            let entry = entry(&value, data.len())
                .ok_or_else(|| bad(&format!("the entry of '{name}' is malformed")))?;
            tensors.insert(name, entry);
        }
        let mut ranges: Vec<&Range<usize>> = tensors.values().map(|entry| &entry.range).collect();
        ranges.sort_by_key(|range| (range.start, range.end));
        let mut end = 0;
        for range in ranges {
            if range.start != end {
                return Err(bad(&format!("its tensors overlap or leave a hole at byte {end} of the data")));
            }
            end = range.end;
        }
        if end != data.len() {
            return Err(bad(&format!(
                "its tensors end at byte {end} of the data, the file has {}",
                data.len()
            )));
        }
        Ok(Self { data, tensors })
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// True if the file has a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Reads the tensor of this name, if there is one.
    pub fn get(&self, name: &str) -> Result<Option<Literal>> {
        let Some(entry) = self.tensors.get(name) else { return Ok(None) };
        let tensor = || {
            let element_type = element_type(&entry.dtype).ok_or_else(|| {
                Error::unsupported(format!(
                    "elements of type {} are not read; store it as another type",
                    entry.dtype
                ))
            })?;
            let shape = ArrayShape::new(element_type, &entry.sizes);
            let mut bytes = self.data.slice(entry.range.clone());
            if element_type == PrimitiveType::Pred && bytes.iter().any(|&byte| byte > 1) {
                bytes = bytes.iter().map(|&byte| u8::from(byte != 0)).collect::<Vec<u8>>().into();
            }
            let (has, shown) = (bytes.len(), shape.clone());
            Literal::from_bytes(shape, bytes)
                .ok_or_else(|| bad(&format!("{shown} needs {} bytes, it has {has}", shown.byte_size())))
        };
        tensor().map(Some).map_err(|e| e.context(format!("tensor '{name}'")))
    }
}

/// Parses an entry of the header and checks its sizes and range.
fn entry(value: &Value, data: usize) -> Option<Entry> {
    let dtype = value.get("dtype")?.as_str()?.to_owned();
    let sizes = value.get("shape")?.as_array()?.iter();
    let sizes: Vec<i64> = sizes.map(|size| size.as_i64().filter(|&size| size >= 0)).collect::<Option<_>>()?;
    index::element_count(&sizes)?.checked_mul(16)?;
    let offsets = value.get("data_offsets")?.as_array()?;
    let [start, end] = offsets.as_slice() else { return None };
    let start = usize::try_from(start.as_u64()?).ok()?;
    let end = usize::try_from(end.as_u64()?).ok()?;
    (start <= end && end <= data).then_some(Entry { dtype, sizes, range: start..end })
}

/// Creates a file of these tensors: widest types first, so that each tensor is aligned, then by
/// name. The output is deterministic. Returns an error for types that the format does not support.
pub fn write_safetensors(tensors: &BTreeMap<String, Literal>) -> Result<Vec<u8>> {
    let mut order: Vec<(&String, &Literal)> = tensors.iter().collect();
    let width = |literal: &Literal| literal.array_shape().element_type.byte_size();
    order.sort_by_key(|(_, literal)| std::cmp::Reverse(width(literal)));
    let mut header = Map::new();
    let mut end = 0;
    for (name, literal) in &order {
        let shape = literal.array_shape();
        let dtype = dtype(shape.element_type).filter(|_| *name != METADATA).ok_or_else(|| {
            Error::unsupported(format!("'{name}' of {shape} cannot be stored as safetensors; use .npz"))
        })?;
        let start = end;
        end += literal.bytes().len();
        header.insert(
            (*name).clone(),
            json!({"dtype": dtype, "shape": shape.sizes(), "data_offsets": [start, end]}),
        );
    }
    let mut text = Value::Object(header).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(ALIGNMENT), b' ');
    let mut file = Vec::with_capacity(8 + text.len() + end);
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text);
    order.iter().for_each(|(_, literal)| file.extend_from_slice(literal.bytes()));
    Ok(file)
}

/// Supported types of the format, with their names.
const TYPES: [(&str, PrimitiveType); 16] = [
    ("BOOL", PrimitiveType::Pred),
    ("U8", PrimitiveType::U8),
    ("I8", PrimitiveType::S8),
    ("F8_E5M2", PrimitiveType::F8e5m2),
    ("F8_E4M3", PrimitiveType::F8e4m3fn),
    ("I16", PrimitiveType::S16),
    ("U16", PrimitiveType::U16),
    ("F16", PrimitiveType::F16),
    ("BF16", PrimitiveType::Bf16),
    ("I32", PrimitiveType::S32),
    ("U32", PrimitiveType::U32),
    ("F32", PrimitiveType::F32),
    ("C64", PrimitiveType::C64),
    ("F64", PrimitiveType::F64),
    ("I64", PrimitiveType::S64),
    ("U64", PrimitiveType::U64),
];

fn element_type(dtype: &str) -> Option<PrimitiveType> {
    TYPES.iter().find(|(name, _)| *name == dtype).map(|(_, element_type)| *element_type)
}

fn dtype(element_type: PrimitiveType) -> Option<&'static str> {
    TYPES.iter().find(|(_, known)| *known == element_type).map(|(name, _)| *name)
}

fn bad(why: &str) -> Error {
    Error::invalid(format!("malformed .safetensors: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensors() -> BTreeMap<String, Literal> {
        BTreeMap::from([
            ("a/flags".to_owned(), Literal::from_elements(&[3], &[true, false, true])),
            ("layer/kernel".to_owned(), Literal::from_elements(&[2, 2], &[1.5f32, -0.0, 3.0, 4.0])),
            ("step".to_owned(), Literal::scalar(7i64)),
            ("zero".to_owned(), Literal::from_elements::<f32>(&[0, 2], &[])),
        ])
    }

    fn file(header: &str, data: &[u8]) -> Bytes {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend(data);
        file.into()
    }

    /// Written by version 0.4 of the Python package `safetensors` for `{"a": numpy.array([1, 2],
    /// "int16")}` with metadata.
    #[test]
    fn a_file_of_the_python_package_is_read() {
        let header =
            r#"{"__metadata__":{"by":"me"},"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}}       "#;
        let read = Safetensors::open(file(header, &[1, 0, 2, 0])).unwrap();
        assert_eq!(read.names().collect::<Vec<_>>(), ["a"]);
        assert_eq!(read.get("a").unwrap(), Some(Literal::from_elements(&[2], &[1i16, 2])));
        assert_eq!(read.get("b").unwrap(), None);
    }

    #[test]
    fn what_is_written_is_read_again_and_aligned() {
        let written = write_safetensors(&tensors()).unwrap();
        assert_eq!(written, write_safetensors(&tensors()).unwrap());
        let header = u64::from_le_bytes(written[..8].try_into().unwrap()) as usize;
        assert_eq!(header % 8, 0);
        assert_eq!(written[8 + header..8 + header + 8], 7i64.to_le_bytes());
        let read = Safetensors::open(written.into()).unwrap();
        assert_eq!(read.names().collect::<Vec<_>>(), ["a/flags", "layer/kernel", "step", "zero"]);
        for (name, literal) in tensors() {
            assert_eq!(read.get(&name).unwrap(), Some(literal), "{name}");
        }
    }

    #[test]
    fn malformed_files_are_refused_with_a_reason() {
        let refused = |file: Bytes| Safetensors::open(file).err().unwrap().to_string();
        let entry = |range: &str| format!(r#"{{"a":{{"dtype":"U8","shape":[2],"data_offsets":{range}}}}}"#);
        assert!(
            refused(Bytes::from_static(b"\xff\xff\xff\xff\xff\xff\xff\xff")).contains("larger than 16 MiB")
        );
        assert!(refused(Bytes::from_static(b"abc")).contains("cut off"));
        assert!(refused(file("[1]", &[])).contains("invalid JSON"));
        assert!(refused(file(&"[".repeat(100_000), &[])).contains("invalid JSON"));
        assert!(refused(file(&entry("[0,2]"), &[1])).contains("'a' is malformed"));
        assert!(refused(file(&entry("[1,3]"), &[1, 2, 3])).contains("hole at byte 0"));
        assert!(refused(file(&entry("[0,2]"), &[1, 2, 3])).contains("the file has 3"));
        assert!(
            refused(file(&entry("[0,2]").replace("[2]", "[4611686018427387904,4]"), &[1, 2]))
                .contains("malformed")
        );
        let short = Safetensors::open(file(&entry("[0,3]"), &[1, 2, 3])).unwrap();
        assert!(short.get("a").unwrap_err().to_string().contains("needs 2 bytes, it has 3"));
        let other = Safetensors::open(file(&entry("[0,2]").replace("U8", "F4"), &[1, 2])).unwrap();
        assert!(other.get("a").unwrap_err().to_string().contains("type F4"));
        let complex = BTreeMap::from([(
            "c".to_owned(),
            Literal::from_bytes(ArrayShape::new(PrimitiveType::C128, &[]), vec![0; 16].into()).unwrap(),
        )]);
        assert!(write_safetensors(&complex).unwrap_err().to_string().contains("use .npz"));
    }
}
