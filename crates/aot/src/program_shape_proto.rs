//! `xla.ProgramShapeProto` in protobuf's wire format, as XLA serializes it: static dimensions,
//! row-major layouts.

use shape::{ArrayShape, ProgramShape, Shape};

/// XLA's enumerators of the types that are not element types.
const TUPLE: u64 = 13;
const TOKEN: u64 = 17;

/// Serializes the message: parameters (1), result (2), parameter names (3).
pub(crate) fn encode(program_shape: &ProgramShape) -> Vec<u8> {
    let mut out = Vec::new();
    for parameter in &program_shape.parameters {
        bytes_field(&mut out, 1, &encode_shape(parameter));
    }
    bytes_field(&mut out, 2, &encode_shape(&program_shape.result));
    for name in &program_shape.parameter_names {
        bytes_field(&mut out, 3, name.as_bytes());
    }
    out
}

/// Serializes `ShapeProto`: element type (2), dimensions (3), tuple shapes (4), layout (5), dynamic
/// bits (6).
fn encode_shape(shape: &Shape) -> Vec<u8> {
    let mut out = Vec::new();
    match shape {
        Shape::Array(array) => encode_array(&mut out, array),
        Shape::Tuple(elements) => {
            varint_field(&mut out, 2, TUPLE);
            for element in elements {
                bytes_field(&mut out, 4, &encode_shape(element));
            }
        }
        Shape::Token => varint_field(&mut out, 2, TOKEN),
    }
    out
}

fn encode_array(out: &mut Vec<u8>, array: &ArrayShape) {
    varint_field(out, 2, array.element_type as u64);
    // A size is never negative, so the unsigned number has the same bits.
    packed_field(out, 3, array.sizes().into_iter().map(|size| size as u64));
    let row_major = || (0..array.rank()).rev().collect();
    let minor_to_major =
        array.layout.as_ref().map_or_else(row_major, |layout| layout.minor_to_major.to_vec());
    let mut layout = Vec::new();
    packed_field(&mut layout, 1, minor_to_major.into_iter().map(|dimension| dimension as u64));
    bytes_field(out, 5, &layout);
    packed_field(out, 6, array.dimensions.iter().map(|dimension| u64::from(dimension.is_dynamic)));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_field(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes_field(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a packed repeated field, or nothing if it is empty.
fn packed_field(out: &mut Vec<u8>, field: u64, values: impl ExactSizeIterator<Item = u64>) {
    if values.len() == 0 {
        return;
    }
    let mut packed = Vec::new();
    values.for_each(|value| varint(&mut packed, value));
    bytes_field(out, field, &packed);
}
