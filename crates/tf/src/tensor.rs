//! Tensors in all encodings that TensorFlow writes.
//!
//! The raw encoding, `tensor_content`, shares the file's bytes. The typed encoding stores elements
//! in the `*_val` field for the type. If it stores fewer elements than the shape has, the last one
//! is repeated. If it stores none, all elements are zero.

use crate::proto::TensorProto;
use crate::{DataType, PartialShape};
use bytes::Bytes;
use shape::{ArrayShape, Literal, PrimitiveType, index};
use support::{Error, Result};

/// Limit for the bytes of the elements that a tensor does not store.
pub(crate) const MAX_FILL_BYTES: u64 = 256 << 20;

/// Limit for the strings in a tensor.
const MAX_STRINGS: u64 = 1 << 20;

/// A tensor proto with checked type and shape. Its elements are not decoded yet.
pub(crate) struct Tensor<'a> {
    proto: &'a TensorProto,
    data_type: DataType,
    sizes: Vec<i64>,
    count: u64,
}

impl<'a> Tensor<'a> {
    /// Checks type and shape.
    pub(crate) fn new(proto: &'a TensorProto) -> Result<Self> {
        let data_type = DataType::from_number(proto.dtype).filter(|t| !t.is_ref()).ok_or_else(|| {
            Error::invalid(format!("the tensor's dtype {} is not a valid data type", proto.dtype))
        })?;
        let shape = match &proto.tensor_shape {
            Some(shape) => PartialShape::from_proto(shape)?,
            None => PartialShape::known(&[]),
        };
        let sizes = shape
            .sizes()
            .ok_or_else(|| Error::invalid(format!("the tensor's shape {shape} is not fully defined")))?;
        let count = index::element_count(&sizes)
            .ok_or_else(|| Error::invalid(format!("the tensor's shape {shape} is too large")))?;
        Ok(Self { proto, data_type, sizes, count: count.unsigned_abs() })
    }

    /// Type of the elements.
    pub(crate) fn data_type(&self) -> DataType {
        self.data_type
    }

    /// Sizes of the shape.
    pub(crate) fn sizes(&self) -> &[i64] {
        &self.sizes
    }

    /// Bytes of the elements that [`Self::literal`] adds to those that the file stores. 0 for
    /// non-numeric types.
    pub(crate) fn fill_bytes(&self) -> u64 {
        if !self.proto.tensor_content.is_empty() {
            return 0;
        }
        let Some(element_type) = self.data_type.primitive_type() else { return 0 };
        self.count.saturating_sub(self.stored() as u64).saturating_mul(element_type.byte_size() as u64)
    }

    /// Decodes the elements.
    pub(crate) fn literal(&self) -> Result<Literal> {
        let element_type = self.element_type()?;
        let shape = ArrayShape::new(element_type, &self.sizes);
        let content = &self.proto.tensor_content;
        let data = if content.is_empty() {
            if self.fill_bytes() > MAX_FILL_BYTES {
                return Err(Error::invalid(format!(
                    "the tensor {shape} stores only {} elements and repeats the last one for {} bytes, but at most {} MiB are \
                     supported",
                    self.stored(),
                    self.fill_bytes(),
                    MAX_FILL_BYTES >> 20
                )));
            }
            Bytes::from(self.typed_elements(element_type, self.count))
        } else if content.len() as u64 == shape.byte_size() {
            normalized(element_type, content)
        } else {
            return Err(Error::invalid(format!(
                "the tensor's content has {} bytes, but its shape {shape} requires {}",
                content.len(),
                shape.byte_size()
            )));
        };
        Literal::from_bytes(shape, data)
            .ok_or_else(|| Error::internal("the bytes of a tensor do not match its shape"))
    }

    /// Returns the common element and the shape if a typed encoding stores at most one element for
    /// several.
    pub(crate) fn splat(&self) -> Result<Option<(Literal, ArrayShape)>> {
        let element_type = self.element_type()?;
        if !self.proto.tensor_content.is_empty() || self.stored() > 1 || self.count <= 1 {
            return Ok(None);
        }
        let data = self.typed_elements(element_type, 1);
        let scalar = Literal::from_bytes(ArrayShape::new(element_type, &[]), data.into())
            .ok_or_else(|| Error::internal("the bytes of a scalar do not match its type"))?;
        Ok(Some((scalar, ArrayShape::new(element_type, &self.sizes))))
    }

    /// Elements of a tensor of strings.
    pub(crate) fn strings(&self) -> Result<Vec<Bytes>> {
        if self.data_type != DataType::String {
            return Err(Error::invalid(format!("expected a tensor of type string, got {}", self.data_type)));
        }
        if self.count > MAX_STRINGS {
            return Err(Error::invalid(format!(
                "the tensor has {} strings, but at most {MAX_STRINGS} are supported",
                self.count
            )));
        }
        let last = self.proto.string_val.last().cloned().unwrap_or_default();
        let mut strings = self.proto.string_val.clone();
        strings.resize(self.count as usize, last);
        Ok(strings)
    }

    fn element_type(&self) -> Result<PrimitiveType> {
        self.data_type.primitive_type().ok_or_else(|| {
            Error::unsupported(format!("expected a tensor of numbers or bools, got {}", self.data_type))
        })
    }

    /// Number of elements stored in the field for the type.
    fn stored(&self) -> usize {
        use DataType::*;
        let p = self.proto;
        match self.data_type {
            Float => p.float_val.len(),
            Double => p.double_val.len(),
            Int64 => p.int64_val.len(),
            Bool => p.bool_val.len(),
            Complex64 => p.scomplex_val.len() / 2,
            Complex128 => p.dcomplex_val.len() / 2,
            Half | Bfloat16 => p.half_val.len(),
            Uint32 => p.uint32_val.len(),
            Uint64 => p.uint64_val.len(),
            Float8e5m2 | Float8e4m3fn => p.float8_val.len(),
            String => p.string_val.len(),
            _ => p.int_val.len(),
        }
    }

    /// The first `count` elements of the typed encoding, little-endian.
    fn typed_elements(&self, element_type: PrimitiveType, count: u64) -> Vec<u8> {
        use PrimitiveType::*;
        let p = self.proto;
        let count = count as usize;
        match element_type {
            F32 => fill(&p.float_val, count, |v| v.to_le_bytes()),
            F64 => fill(&p.double_val, count, |v| v.to_le_bytes()),
            S64 => fill(&p.int64_val, count, |v| v.to_le_bytes()),
            Pred => fill(&p.bool_val, count, |v| [u8::from(v)]),
            C64 => fill::<_, 8>(&pairs(&p.scomplex_val), count, |[re, im]: [f32; 2]| {
                concat(re.to_le_bytes(), im.to_le_bytes())
            }),
            C128 => fill::<_, 16>(&pairs(&p.dcomplex_val), count, |[re, im]: [f64; 2]| {
                concat(re.to_le_bytes(), im.to_le_bytes())
            }),
            F16 | Bf16 => fill(&p.half_val, count, |v| (v as u16).to_le_bytes()),
            U32 => fill(&p.uint32_val, count, |v| v.to_le_bytes()),
            U64 => fill(&p.uint64_val, count, |v| v.to_le_bytes()),
            S32 => fill(&p.int_val, count, |v| v.to_le_bytes()),
            S16 | U16 => fill(&p.int_val, count, |v| (v as u16).to_le_bytes()),
            S8 | U8 => fill(&p.int_val, count, |v| [v as u8]),
            float if float.is_minifloat() => fill(&p.float8_val, count, |v| [v]),
            subbyte => {
                let data = fill(&p.int_val, count, |v| [v as u8]);
                normalized(subbyte, &data.into()).to_vec()
            }
        }
    }
}

/// Encodes `count` elements: those of `values`, followed by repetitions of the last one, or zeros
/// if `values` is empty.
fn fill<T: Copy, const N: usize>(values: &[T], count: usize, encode: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    let stored = values.len().min(count);
    let mut data = Vec::with_capacity(count * N);
    values[..stored].iter().for_each(|&v| data.extend_from_slice(&encode(v)));
    match values.last() {
        Some(&last) if stored < count => {
            let last = encode(last);
            if last.iter().all(|&b| b == last[0]) {
                data.resize(count * N, last[0]);
            } else {
                (stored..count).for_each(|_| data.extend_from_slice(&last));
            }
            data
        }
        Some(_) => data,
        None => vec![0; count * N],
    }
}

fn pairs<T: Copy>(values: &[T]) -> Vec<[T; 2]> {
    values.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
}

fn concat<const N: usize, const M: usize>(first: [u8; N], second: [u8; N]) -> [u8; M] {
    std::array::from_fn(|i| if i < N { first[i] } else { second[i - N] })
}

/// Normalizes bytes to the representation of literals: a bool is 0 or 1, and types smaller than a
/// byte are sign- or zero-extended. Copies the bytes only if one of them changes.
pub(crate) fn normalized(element_type: PrimitiveType, bytes: &Bytes) -> Bytes {
    let normal: fn(u8) -> u8 = match element_type {
        PrimitiveType::Pred => |b| u8::from(b != 0),
        PrimitiveType::S4 => |b| ((b << 4) as i8 >> 4) as u8,
        PrimitiveType::S2 => |b| ((b << 6) as i8 >> 6) as u8,
        PrimitiveType::U4 => |b| b & 15,
        PrimitiveType::U2 => |b| b & 3,
        _ => return bytes.clone(),
    };
    if bytes.iter().all(|&b| normal(b) == b) {
        return bytes.clone();
    }
    bytes.iter().map(|&b| normal(b)).collect::<Vec<u8>>().into()
}
