//! Literals from `xla.LiteralProto`.

use super::messages::LiteralProto;
use super::shape_text::element_type;
use super::{TUPLE, literal};
use shape::index::{indices, linear_index};
use shape::{ArrayShape, Literal, NativeType, PrimitiveType};
use support::{Error, Result};

/// Returns the value of a message, converted to row-major order.
pub(super) fn read_literal(message: &LiteralProto) -> Result<Literal> {
    let shape = message.shape.as_ref().ok_or_else(|| Error::invalid("missing shape of a literal"))?;
    if shape.element_type == TUPLE {
        let elements = message.tuple_literals.iter().map(read_literal);
        return Ok(Literal::Tuple(elements.collect::<Result<_>>()?));
    }
    let element = element_type(shape.element_type)?;
    if shape.dimensions.iter().any(|size| *size < 0) {
        return Err(Error::invalid("a literal has a negative size"));
    }
    let array = ArrayShape::new(element, &shape.dimensions);
    let bytes = elements(message, element);
    if bytes.len() as u64 != array.byte_size() {
        return Err(Error::invalid(format!("{} bytes do not match a literal of shape {array}", bytes.len())));
    }
    let order: Vec<i64> =
        shape.layout.as_ref().map(|layout| layout.minor_to_major.clone()).unwrap_or_default();
    let is_row_major = order.iter().rev().copied().eq(0..order.len() as i64);
    let bytes = if is_row_major { bytes } else { row_major(&array, &order, &bytes)? };
    Literal::from_bytes(array, bytes.into())
        .ok_or_else(|| Error::internal("expected the number of bytes to match the literal's shape"))
}

/// Converts elements to row-major order; `order` lists the dimensions, fastest first.
fn row_major(shape: &ArrayShape, order: &[i64], bytes: &[u8]) -> Result<Vec<u8>> {
    let rank = shape.rank();
    let mut seen = vec![false; rank];
    let major_to_minor: Option<Vec<usize>> = order
        .iter()
        .rev()
        .map(|&dimension| {
            let dimension = usize::try_from(dimension).ok().filter(|d| *d < rank && !seen[*d])?;
            seen[dimension] = true;
            Some(dimension)
        })
        .collect();
    let Some(major_to_minor) = major_to_minor.filter(|order| order.len() == rank) else {
        return Err(Error::invalid("the layout of a literal does not permute its dimensions"));
    };
    let sizes = shape.sizes();
    let stored_sizes: Vec<i64> = major_to_minor.iter().map(|&dimension| sizes[dimension]).collect();
    let width = shape.element_type.byte_size();
    let mut sorted = Vec::with_capacity(bytes.len());
    let mut position = vec![0; rank];
    for index in indices(&sizes) {
        major_to_minor.iter().zip(&mut position).for_each(|(&dimension, place)| *place = index[dimension]);
        let start = linear_index(&stored_sizes, &position) as usize * width;
        sorted.extend_from_slice(&bytes[start..start + width]);
    }
    Ok(sorted)
}

fn raw<T: NativeType>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(std::mem::size_of_val(values));
    values.iter().for_each(|value| value.write_le(&mut bytes));
    bytes
}

/// Returns the bytes of a literal's elements, from the field for its type.
fn elements(message: &LiteralProto, element: PrimitiveType) -> Vec<u8> {
    match element {
        PrimitiveType::Pred => message.preds.iter().map(|&value| u8::from(value)).collect(),
        PrimitiveType::S32 => raw(&message.s32s),
        PrimitiveType::S64 => raw(&message.s64s),
        PrimitiveType::U32 => raw(&message.u32s),
        PrimitiveType::U64 => raw(&message.u64s),
        PrimitiveType::F32 => raw(&message.f32s),
        PrimitiveType::F64 => raw(&message.f64s),
        PrimitiveType::C64 => raw(&message.c64s),
        PrimitiveType::C128 => raw(&message.c128s),
        narrow => literal::bytes_of(message, narrow).to_vec(),
    }
}
