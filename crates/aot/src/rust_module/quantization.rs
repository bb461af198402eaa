//! Constants and methods of quantized arrays.

use super::types::{element, nested, slice_type};
use super::{Field, RUNTIME};
use crate::header::quoted;

/// Returns the constants for scale and zero point of a quantized array; nothing for others.
pub(super) fn constants(kind: &str, field: &Field<'_>) -> String {
    let Some(quantized) = field.quantized else { return String::new() };
    let id = quoted(&field.id.to_string());
    format!(
        "/// Scale of {kind} {id}: real = scale * (stored - zero point).\npub const {}: f32 = {};\n\
         /// Zero point of {kind} {id}.\npub const {}: i32 = {};\n",
        field.constant("SCALE"),
        quantized.scale(),
        field.constant("ZERO_POINT"),
        quantized.zero_point
    )
}

/// Returns the method that converts floats to the integers of a quantized array.
pub(super) fn quantize(kind: &str, field: &Field<'_>) -> String {
    let Some((low, high)) = field.quantized.and_then(|quantized| quantized.range) else {
        return String::new();
    };
    let (name, rank) = (&field.name, field.shape.rank());
    let (to, from) = match field.rows() {
        None => (flat_mut(&format!("self.memory.{name}"), rank), flat("values", rank)),
        Some(_) => (flat_slice_mut(&format!("self.{name}_mut()"), rank), flat_slice("values", rank)),
    };
    let (id, floats) = (quoted(&field.id.to_string()), floats(field));
    let (scale, zero_point) = (field.constant("SCALE"), field.constant("ZERO_POINT"));
    format!(
        "/// Writes {kind} {id}, each element the integer nearest to a real number. Halves are\n\
         /// rounded away from zero. Numbers beyond the type's range become its nearest end, and\n\
         /// NaN becomes the zero point.\n\
         pub fn quantize_{name}(&mut self, values: &{floats}) {{\n\
         for (stored, value) in {to}.iter_mut().zip({from}) {{\n\
         *stored = {RUNTIME}::quantize(*value, Self::{scale}, Self::{zero_point}, {low}, {high}) as {};\n}}\n}}\n",
        element(field.shape.element_type)
    )
}

/// Returns the method that converts the integers of a quantized array to floats.
pub(super) fn dequantize(kind: &str, field: &Field<'_>) -> String {
    if field.quantized.is_none_or(|quantized| quantized.range.is_none()) {
        return String::new();
    }
    let (name, rank) = (&field.name, field.shape.rank());
    let (from, to) = match field.rows() {
        None => (flat(&format!("self.memory.{name}"), rank), flat_mut("values", rank)),
        Some(_) => (flat_slice(&format!("self.{name}()"), rank), flat_slice_mut("values", rank)),
    };
    let (id, floats) = (quoted(&field.id.to_string()), floats(field));
    let (scale, zero_point) = (field.constant("SCALE"), field.constant("ZERO_POINT"));
    format!(
        "/// Copies {kind} {id} as real numbers.\n\
         pub fn dequantize_{name}(&self, values: &mut {floats}) {{\n\
         for (value, stored) in {to}.iter_mut().zip({from}) {{\n\
         *value = {RUNTIME}::dequantize(i32::from(*stored), Self::{scale}, Self::{zero_point});\n}}\n}}\n"
    )
}

/// Returns the type of the caller's real numbers.
fn floats(field: &Field<'_>) -> String {
    if field.rows().is_some() { slice_type("f32", field.shape) } else { nested("f32", field.shape) }
}

/// Returns an expression for the elements of a slice of nested arrays as a slice.
fn flat_slice(slice: &str, rank: usize) -> String {
    format!("{slice}{}", ".as_flattened()".repeat(rank - 1))
}

/// Like [`flat_slice`], to write.
fn flat_slice_mut(slice: &str, rank: usize) -> String {
    format!("{slice}{}", ".as_flattened_mut()".repeat(rank - 1))
}

/// Returns an expression for the elements of a nested array as a slice.
fn flat(array: &str, rank: usize) -> String {
    match rank {
        0 => format!("::core::slice::from_ref(&*{array})"),
        1 => format!("{array}.as_slice()"),
        _ => format!("{array}{}", ".as_flattened()".repeat(rank - 1)),
    }
}

/// Like [`flat`], to write.
fn flat_mut(array: &str, rank: usize) -> String {
    match rank {
        0 => format!("::core::slice::from_mut(&mut *{array})"),
        1 => format!("{array}.as_mut_slice()"),
        _ => format!("{array}{}", ".as_flattened_mut()".repeat(rank - 1)),
    }
}
