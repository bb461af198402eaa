//! Shapes of messages as text.

use super::messages::{LayoutProto, ShapeProto};
use super::text_form::list;
use super::{TOKEN, TUPLE};
use shape::{PrimitiveType, Shape};
use support::{Error, Result};

/// `xla.PrimitiveType`'s number for an opaque type.
const OPAQUE: i32 = 14;

/// `xla.PrimitiveType`'s number for the memory of an array.
pub(super) const BUFFER: i32 = 34;

/// XLA's size of a dynamic dimension without a bound.
pub(super) const UNBOUNDED: i64 = i64::MIN;

/// XLA's mark of a tile's dimension that is combined with the next one.
pub(super) const COMBINED: i64 = i64::MIN;

/// Maximum nesting depth of tuples.
const MAX_DEPTH: usize = 100;

/// Returns the shape in XLA's text, without a row-major layout.
pub(super) fn shape_text(shape: &ShapeProto, depth: usize) -> Result<String> {
    if depth > MAX_DEPTH {
        return Err(Error::unsupported(format!("tuples nest deeper than {MAX_DEPTH} levels")));
    }
    match shape.element_type {
        TUPLE => {
            let elements = shape.tuple_shapes.iter().map(|element| shape_text(element, depth + 1));
            Ok(format!("({})", elements.collect::<Result<Vec<_>>>()?.join(", ")))
        }
        TOKEN => Ok("token[]".to_owned()),
        OPAQUE => Ok("opaque[]".to_owned()),
        BUFFER => match &shape.tuple_shapes[..] {
            [array] => Ok(format!("b({})", shape_text(array, depth + 1)?)),
            _ => Err(Error::invalid("expected one array in a buffer")),
        },
        number => {
            let element = element_type(number)?;
            let size = |(index, size): (usize, &i64)| match shape.is_dynamic_dimension.get(index) {
                Some(true) if *size == UNBOUNDED => "?".to_owned(),
                Some(true) => format!("<={size}"),
                _ => size.to_string(),
            };
            let sizes: Vec<String> = shape.dimensions.iter().enumerate().map(size).collect();
            let mut text = format!("{element}[{}]", sizes.join(","));
            if let Some(layout) = &shape.layout {
                let order = &layout.minor_to_major;
                let is_row_major = order.iter().rev().copied().eq(0..order.len() as i64);
                let rest = layout_rest(layout, depth)?;
                if !rest.is_empty() {
                    text.push_str(&format!("{{{}:{rest}}}", list(order)));
                } else if !is_row_major {
                    text.push_str(&format!("{{{}}}", list(order)));
                }
            }
            Ok(text)
        }
    }
}

/// Returns the parts of a layout other than the order of the dimensions: `T(8,128)(2,1)E(4)S(1)`.
fn layout_rest(layout: &LayoutProto, depth: usize) -> Result<String> {
    let mut text = String::new();
    if !layout.tiles.is_empty() {
        text.push('T');
        for tile in &layout.tiles {
            let size = |size: &i64| if *size == COMBINED { "*".to_owned() } else { size.to_string() };
            let sizes: Vec<String> = tile.dimensions.iter().map(size).collect();
            text.push_str(&format!("({})", sizes.join(",")));
        }
    }
    // An alignment of one element has no effect.
    let alignment = Some(layout.tail_padding_alignment_in_elements).filter(|alignment| *alignment != 1);
    push_numbers(&mut text, &[('L', alignment.unwrap_or(0))]);
    let types = [('#', layout.index_primitive_type), ('*', layout.pointer_primitive_type)];
    for (letter, number) in types.into_iter().filter(|(_, number)| *number != 0) {
        text.push_str(&format!("{letter}({})", element_type(number)?));
    }
    push_numbers(&mut text, &[('E', layout.element_size_in_bits), ('S', layout.memory_space)]);
    if !layout.split_configs.is_empty() {
        text.push_str("SC");
        for split in &layout.split_configs {
            text.push_str(&format!("({}:{})", split.dimension, list(&split.split_indices)));
        }
    }
    if let Some(physical) = &layout.physical_shape {
        text.push_str(&format!("P({})", shape_text(physical, depth + 1)?));
    }
    push_numbers(&mut text, &[('M', layout.dynamic_shape_metadata_prefix_bytes)]);
    Ok(text)
}

/// `L(2)` for each number that is not 0.
fn push_numbers(text: &mut String, numbers: &[(char, i64)]) {
    for (letter, number) in numbers.iter().filter(|(_, number)| *number != 0) {
        text.push_str(&format!("{letter}({number})"));
    }
}

/// Returns the element type with a number.
pub(super) fn element_type(number: i32) -> Result<PrimitiveType> {
    let mut types = PrimitiveType::ALL.into_iter();
    let element = types.find(|element| *element as i32 == number);
    element.ok_or_else(|| Error::unsupported(format!("unknown element type {number} of XLA's PrimitiveType")))
}

/// Returns the shape of a message.
pub(super) fn read_shape(shape: &ShapeProto) -> Result<Shape> {
    crate::text::parse_shape(&shape_text(shape, 0)?)
}
