//! Types and constants.

use crate::External;
use crate::proto::{SparseTensorProto, StringStringEntryProto, TensorProto};
use bytes::Bytes;
use shape::{ArrayShape, Literal};
use support::{Error, Result};
use tf::DataType;

/// Most bytes of a constant that the file does not contain as they are.
const MOST_EXPANDED_BYTES: u64 = 1 << 30;

/// Number of a type with elements of text.
pub(crate) const STRING: i32 = 8;

/// Names of ONNX's types by number.
const NAMES: [&str; 27] = [
    "undefined",
    "float",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "string",
    "bool",
    "float16",
    "double",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
    "bfloat16",
    "float8e4m3fn",
    "float8e4m3fnuz",
    "float8e5m2",
    "float8e5m2fnuz",
    "uint4",
    "int4",
    "float4e2m1",
    "float8e8m0",
    "uint2",
    "int2",
];

/// The type with a number of ONNX's enum.
pub(crate) fn data_type(number: i32) -> Result<DataType> {
    use DataType::*;
    Ok(match number {
        1 => Float,
        2 => Uint8,
        3 => Int8,
        4 => Uint16,
        5 => Int16,
        6 => Int32,
        7 => Int64,
        9 => Bool,
        10 => Half,
        11 => Double,
        12 => Uint32,
        13 => Uint64,
        14 => Complex64,
        15 => Complex128,
        16 => Bfloat16,
        17 => Float8e4m3fn,
        19 => Float8e5m2,
        21 => Uint4,
        22 => Int4,
        25 => Uint2,
        26 => Int2,
        STRING => {
            return Err(Error::unsupported(
                "strings are not supported: only numbers and bool can be compiled",
            ));
        }
        _ => {
            let name = usize::try_from(number).ok().and_then(|number| NAMES.get(number));
            return Err(match name {
                Some(&"undefined") | None => Error::invalid(format!("type {number} does not exist")),
                Some(name) => Error::unsupported(format!("type {name} is not supported")),
            });
        }
    })
}

/// A constant.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    pub(crate) data_type: DataType,
    pub(crate) sizes: Vec<i64>,
    /// Elements in row-major order, at least one byte each.
    pub(crate) bytes: Bytes,
}

impl Constant {
    /// A truth value without dimensions.
    pub(crate) fn of_truth(truth: bool) -> Self {
        Self { data_type: DataType::Bool, sizes: Vec::new(), bytes: vec![u8::from(truth)].into() }
    }

    /// A vector of 64-bit integers.
    pub(crate) fn of_longs(sizes: &[i64], values: &[i64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { data_type: DataType::Int64, sizes: sizes.to_vec(), bytes: bytes.into() }
    }

    /// A vector of 32-bit integers.
    pub(crate) fn of_ints(values: &[i32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { data_type: DataType::Int32, sizes: vec![values.len() as i64], bytes: bytes.into() }
    }

    /// Numbers of 32 bits.
    pub(crate) fn of_floats(sizes: &[i64], values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { data_type: DataType::Float, sizes: sizes.to_vec(), bytes: bytes.into() }
    }

    /// Number of elements.
    pub(crate) fn count(&self) -> usize {
        self.sizes.iter().product::<i64>() as usize
    }

    /// The elements of a constant of floats.
    pub(crate) fn reals(&self) -> Result<Vec<f64>> {
        let element = self.data_type.primitive_type();
        let literal = element.and_then(|element| {
            Literal::from_bytes(ArrayShape::new(element, &self.sizes), self.bytes.clone())
        });
        literal.and_then(|literal| literal.floats()).ok_or_else(|| Error::invalid("expected floats"))
    }

    /// The integers, if the constant is a scalar or vector of them.
    pub(crate) fn longs(&self) -> Option<Vec<i64>> {
        match self.data_type {
            DataType::Int64 => Some(
                self.bytes
                    .chunks_exact(8)
                    .map(|b| i64::from_le_bytes(b.try_into().expect("eight")))
                    .collect(),
            ),
            DataType::Int32 => Some(
                self.bytes
                    .chunks_exact(4)
                    .map(|b| i64::from(i32::from_le_bytes(b.try_into().expect("four"))))
                    .collect(),
            ),
            _ => None,
        }
    }

    /// The value of a condition.
    pub(crate) fn truth(&self) -> Option<bool> {
        match (self.data_type, &self.bytes[..]) {
            (DataType::Bool, [byte]) => Some(*byte != 0),
            _ => None,
        }
    }

    /// Reads a tensor. `external` reads files next to the model.
    ///
    /// Errors: `invalid` for sizes that do not fit the data; they do not name the tensor.
    pub(crate) fn read(tensor: &TensorProto, external: &mut External<'_>) -> Result<Self> {
        let data_type = data_type(tensor.data_type)?;
        let sizes = tensor.dims.clone();
        let element = data_type.primitive_type().ok_or_else(|| Error::unsupported("not a number"))?;
        let count = element_count(&sizes)?;
        let bits = u64::from(element.bit_width());
        // Elements of few bits share a byte in the file.
        let (packed, stored) = match bits {
            _ if data_type == DataType::Bool => (count, count),
            2 | 4 => (count.saturating_mul(bits).div_ceil(8), count),
            bits => (count.saturating_mul(bits / 8), count.saturating_mul(bits / 8)),
        };
        let raw = match tensor.data_location {
            0 if !tensor.raw_data.is_empty() || count == 0 => Some(tensor.raw_data.clone()),
            0 => None,
            1 => Some(external_bytes(&tensor.external_data, packed, external)?),
            other => return Err(Error::invalid(format!("data_location {other} does not exist"))),
        };
        let bytes = match raw {
            Some(raw) => raw,
            None => typed(tensor, data_type)?,
        };
        if bytes.len() as u64 != packed {
            return Err(Error::invalid(format!(
                "{} bytes of data do not fit {data_type}{sizes:?}, which takes {packed}",
                bytes.len()
            )));
        }
        if packed == stored {
            return Ok(Self { data_type, sizes, bytes });
        }
        if stored > MOST_EXPANDED_BYTES {
            return Err(Error::unsupported(format!("{stored} elements of {bits} bits are too many")));
        }
        let (per_byte, is_signed) = (8 / bits, element.is_signed_integer());
        let unpacked = (0..count).map(|k| {
            let byte = bytes[(k / per_byte) as usize];
            let shift = (k % per_byte * bits) as u32;
            let top = byte << (8 - bits as u32 - shift);
            if is_signed { ((top as i8) >> (8 - bits)) as u8 } else { top >> (8 - bits) }
        });
        Ok(Self { data_type, sizes, bytes: unpacked.collect::<Vec<u8>>().into() })
    }

    /// Reads a sparse tensor as a dense one.
    pub(crate) fn read_sparse(sparse: &SparseTensorProto, external: &mut External<'_>) -> Result<Self> {
        let (Some(values), Some(indices)) = (&sparse.values, &sparse.indices) else {
            return Err(Error::invalid("a sparse tensor needs values and indices"));
        };
        let (values, indices) = (Self::read(values, external)?, Self::read(indices, external)?);
        let width = values.data_type.primitive_type().map_or(1, |element| element.byte_size());
        let count = element_count(&sparse.dims)?;
        let size = count.saturating_mul(width as u64);
        if size > MOST_EXPANDED_BYTES {
            return Err(Error::unsupported(format!("a sparse tensor of {size} bytes is too large")));
        }
        let positions = indices.longs().ok_or_else(|| Error::invalid("indices must be int64"))?;
        let rank = sparse.dims.len();
        let number = element_count(&values.sizes)? as usize;
        let is_linear = indices.sizes.len() == 1;
        let per_value = if is_linear { 1 } else { rank };
        if positions.len() != number * per_value {
            return Err(Error::invalid("a sparse tensor needs one index for each value"));
        }
        let mut bytes = vec![0u8; size as usize];
        for k in 0..number {
            let position = if is_linear {
                positions[k]
            } else {
                let index = &positions[k * rank..(k + 1) * rank];
                if index.iter().zip(&sparse.dims).any(|(at, size)| !(0..*size).contains(at)) {
                    return Err(Error::invalid("an index of a sparse tensor is out of range"));
                }
                index.iter().zip(&sparse.dims).fold(0, |linear, (at, size)| linear * size + at)
            };
            let position = u64::try_from(position).ok().filter(|&position| position < count);
            let position =
                position.ok_or_else(|| Error::invalid("an index of a sparse tensor is out of range"))?;
            let (from, to) = (k * width, position as usize * width);
            bytes[to..to + width].copy_from_slice(&values.bytes[from..from + width]);
        }
        Ok(Self { data_type: values.data_type, sizes: sparse.dims.clone(), bytes: bytes.into() })
    }
}

/// The number of elements of a shape.
fn element_count(sizes: &[i64]) -> Result<u64> {
    let product = sizes.iter().try_fold(1u64, |product, &size| {
        product.checked_mul(u64::try_from(size).ok()?).filter(|&product| product < 1 << 56)
    });
    product.ok_or_else(|| Error::invalid(format!("{sizes:?} is not a valid shape")))
}

/// The elements of a tensor without raw data, in the field for its type.
fn typed(tensor: &TensorProto, data_type: DataType) -> Result<Bytes> {
    use DataType::*;
    let TensorProto { float_data, int32_data, int64_data, double_data, uint64_data, .. } = tensor;
    let bytes: Vec<u8> = match data_type {
        Float | Complex64 => float_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Double | Complex128 => double_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Int64 => int64_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Uint64 => uint64_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Uint32 => uint64_data.iter().flat_map(|&value| (value as u32).to_le_bytes()).collect(),
        Int32 => int32_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Int16 | Uint16 | Half | Bfloat16 => {
            int32_data.iter().flat_map(|&value| (value as u16).to_le_bytes()).collect()
        }
        Bool => int32_data.iter().map(|&value| u8::from(value != 0)).collect(),
        _ => int32_data.iter().map(|&value| value as u8).collect(),
    };
    Ok(bytes.into())
}

/// The bytes of a tensor in another file.
fn external_bytes(
    entries: &[StringStringEntryProto],
    needed: u64,
    external: &mut External<'_>,
) -> Result<Bytes> {
    let value = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str());
    let number = |key: &str| {
        let parse = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| Error::invalid(format!("{key} '{text}' of external data is not a number")))
        };
        value(key).map(parse).transpose()
    };
    let location = value("location").ok_or_else(|| Error::invalid("external data needs a location"))?;
    let is_inside = !location.is_empty()
        && !location.starts_with(['/', '\\'])
        && !location.contains([':', '\0'])
        && location.split(['/', '\\']).all(|part| part != "..");
    if !is_inside {
        return Err(Error::invalid(format!(
            "external data '{location}' is outside of the folder of the model: use a relative path without '..'"
        )));
    }
    let offset = number("offset")?.unwrap_or(0);
    let length = number("length")?.unwrap_or(needed);
    let file = external(location)?;
    let end = offset.checked_add(length).filter(|&end| end <= file.len() as u64);
    let end = end.ok_or_else(|| {
        Error::invalid(format!(
            "external data '{location}' has {} bytes, but {length} bytes from {offset} on are needed",
            file.len()
        ))
    })?;
    Ok(file.slice(offset as usize..end as usize))
}
