//! Tensors: types, sizes, contents, and quantization.

use super::{Budget, Buffers, Quantization, Tensor, index};
use crate::sparse;
use bytes::Bytes;
use flatbuffer::Table;
use shape::index::element_count;
use shape::{ArrayShape, Literal, PrimitiveType};
use support::{Error, Result};
use tf::DataType;

/// Most dimensions of a tensor.
const MOST_DIMENSIONS: usize = 32;

/// Reads a tensor.
pub(super) fn tensor(table: &Table<'_>, buffers: &Buffers<'_>, budget: &mut Budget) -> Result<Tensor> {
    let (data_type, bits) = data_type(table.i8(1, 0)?)?;
    let sizes = sizes(&table.i32s(0)?)?;
    let signature: Vec<i64> = table.i32s(7)?.into_iter().map(i64::from).collect();
    if !signature.is_empty() && signature.len() != sizes.len() {
        return Err(Error::invalid("its shape and its shape signature have different ranks"));
    }
    let element = data_type.primitive_type();
    let quantization = match table.table(4)? {
        Some(table) if element.is_some_and(PrimitiveType::is_integer) => quantization(&table, &sizes)?,
        _ => None,
    };
    let range = match (data_type, bits) {
        (DataType::Int8, Some(bits)) => -(1 << (bits - 1))..=(1 << (bits - 1)) - 1,
        (DataType::Uint8, Some(bits)) => 0..=(1 << bits) - 1,
        (DataType::Int8, None) => -128..=127,
        (DataType::Uint8, None) => 0..=255,
        (DataType::Int16, _) => -32768..=32767,
        _ => i64::from(i32::MIN)..=i64::from(i32::MAX),
    };
    let mut zeros = quantization.iter().flat_map(|quantization| &quantization.zero_points);
    if let Some(zero) = zeros.find(|zero| !range.contains(*zero)) {
        return Err(Error::invalid(format!("zero point {zero} is out of range for {data_type}")));
    }
    budget.take_parts(quantization.as_ref().map_or(0, |quantization| quantization.scales.len()))?;
    let mut contents = buffers.contents(table.u32(2, 0)?)?;
    if let (Some(bytes), Some(element)) = (&contents, element) {
        contents = Some(match table.table(6)? {
            None => dense(bytes, &sizes, element, bits)?,
            Some(_) if bits.is_some() => {
                return Err(Error::unsupported("a sparse tensor of integers of few bits is not supported"));
            }
            Some(sparsity) => sparse::dense(&sparsity, bytes, &sizes, element.byte_size())?.into(),
        });
        let is_copied = bits.is_some() || table.table(6)?.is_some();
        budget.take_bytes(contents.as_ref().filter(|_| is_copied).map_or(0, Bytes::len))?;
    }
    Ok(Tensor {
        name: budget.text(table, 3)?,
        data_type,
        sizes,
        open: signature.iter().map(|&size| size < 0).collect(),
        quantization,
        bits,
        contents,
        is_variable: table.bool(5, false)?,
    })
}

/// The type of a tensor, and the number of bits if several elements share a byte.
fn data_type(number: i8) -> Result<(DataType, Option<u32>)> {
    const TYPES: [DataType; 21] = [
        DataType::Float,
        DataType::Half,
        DataType::Int32,
        DataType::Uint8,
        DataType::Int64,
        DataType::String,
        DataType::Bool,
        DataType::Int16,
        DataType::Complex64,
        DataType::Int8,
        DataType::Double,
        DataType::Complex128,
        DataType::Uint64,
        DataType::Resource,
        DataType::Variant,
        DataType::Uint32,
        DataType::Uint16,
        DataType::Int8,
        DataType::Bfloat16,
        DataType::Int8,
        DataType::Uint8,
    ];
    // INT4, INT2, and UINT4.
    const BITS: [(i8, u32); 3] = [(17, 4), (19, 2), (20, 4)];
    let found = usize::try_from(number).ok().and_then(|number| TYPES.get(number));
    let data_type = found.ok_or_else(|| {
        Error::unsupported(format!("type {number} of a tensor is unknown: it is newer than this compiler"))
    })?;
    let bits = BITS.iter().find(|(narrow, _)| *narrow == number).map(|(_, bits)| *bits);
    Ok((*data_type, bits))
}

fn sizes(shape: &[i32]) -> Result<Vec<i64>> {
    if shape.len() > MOST_DIMENSIONS {
        return Err(Error::unsupported(format!(
            "{} dimensions are too many: the limit is {MOST_DIMENSIONS}",
            shape.len()
        )));
    }
    let sizes: Vec<i64> = shape.iter().map(|&size| i64::from(size)).collect();
    if sizes.iter().any(|&size| size < 0) || element_count(&sizes).is_none_or(|count| count > 1 << 48) {
        return Err(Error::invalid(format!("shape {shape:?} is not possible")));
    }
    Ok(sizes)
}

/// Checks the contents of a constant, and gives each element of few bits a byte.
fn dense(contents: &Bytes, sizes: &[i64], element: PrimitiveType, bits: Option<u32>) -> Result<Bytes> {
    let count = element_count(sizes).expect("sizes were checked") as usize;
    let bytes = match bits {
        Some(bits) => count.div_ceil(8 / bits as usize),
        None => count * element.byte_size(),
    };
    if contents.len() != bytes {
        return Err(Error::invalid(format!(
            "its contents have {} bytes, but its shape needs {bytes}",
            contents.len()
        )));
    }
    let Some(bits) = bits else { return Ok(contents.clone()) };
    // The first element is in the lowest bits.
    let unpacked = contents.iter().flat_map(|&byte| {
        (1..=8 / bits).map(move |k| {
            let at_top = byte << (8 - k * bits);
            if element.is_signed_integer() {
                ((at_top as i8) >> (8 - bits)) as u8
            } else {
                at_top >> (8 - bits)
            }
        })
    });
    Ok(unpacked.take(count).collect::<Vec<u8>>().into())
}

/// The quantization of a tensor; `None` if the table describes none.
fn quantization(table: &Table<'_>, sizes: &[i64]) -> Result<Option<Quantization>> {
    match table.u8(4, 0)? {
        0 => {}
        BLOCKWISE => return Ok(None),
        _ => return Err(Error::unsupported("custom quantization is not supported")),
    }
    let scales = table.f32s(2)?;
    if scales.is_empty() {
        return Ok(None);
    }
    if let Some(scale) = scales.iter().find(|scale| !(scale.is_finite() && **scale > 0.0)) {
        return Err(Error::invalid(format!("scale {scale} is not a positive number")));
    }
    let dimension = table.i32(6, 0)?;
    let mut zero_points = table.i64s(3)?;
    if zero_points.is_empty() {
        zero_points = vec![0; scales.len()];
    }
    if scales.len() > 1 {
        let size = usize::try_from(dimension).ok().and_then(|dimension| sizes.get(dimension));
        if size.is_none_or(|&size| size != scales.len() as i64) {
            return Err(Error::invalid(format!(
                "{} scales do not fit dimension {dimension} of shape {sizes:?}",
                scales.len()
            )));
        }
        if zero_points.len() == 1 {
            zero_points = vec![zero_points[0]; scales.len()];
        }
    }
    if zero_points.len() != scales.len() {
        return Err(Error::invalid(format!(
            "{} scales have {} zero points",
            scales.len(),
            zero_points.len()
        )));
    }
    Ok(Some(Quantization { scales, zero_points, dimension: usize::try_from(dimension).unwrap_or(0) }))
}

/// Number of the details of a blockwise quantization.
const BLOCKWISE: u8 = 2;

/// The blockwise quantization of a matrix, whose scales are another tensor. Kernels ignore its zero
/// points.
pub(super) fn blockwise(
    table: &Table<'_>,
    tensors: &[Tensor],
    number: usize,
) -> Result<Option<Quantization>> {
    let Some(table) = table.table(4)?.filter(|table| table.u8(4, 0).is_ok_and(|kind| kind == BLOCKWISE))
    else {
        return Ok(None);
    };
    let wrong = || Error::invalid(format!("tensor {number}: its blocks do not fit its shape"));
    let details = table.table(5)?.ok_or_else(wrong)?;
    let scales = &tensors[index(details.i32(0, 0)?, tensors.len(), "tensor of scales")?];
    let block = i64::from(details.i32(2, 0)?);
    let [rows, columns] = tensors[number].sizes[..] else { return Err(wrong()) };
    if block <= 0 || columns % block != 0 {
        return Err(wrong());
    }
    let count = rows * (columns / block);
    let element = scales.data_type.primitive_type().filter(|element| element.is_floating_point());
    let literal = match (element, &scales.contents) {
        (Some(element), Some(contents)) => {
            Literal::from_bytes(ArrayShape::new(element, &scales.sizes), contents.clone())
        }
        _ => None,
    };
    let literal = literal.filter(|literal| literal.scalars().len() as i64 == count).ok_or_else(wrong)?;
    Ok(Some(Quantization {
        scales: literal.scalars().map(|scale| scale.as_f64().unwrap_or(0.0) as f32).collect(),
        zero_points: vec![0; count as usize],
        dimension: 0,
    }))
}
