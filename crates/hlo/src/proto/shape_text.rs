//! Shapes of messages as text.

use super::messages::ShapeProto;
use super::read_module::list;
use super::{TOKEN, TUPLE};
use shape::{PrimitiveType, Shape};
use support::{Error, Result};

/// `xla.PrimitiveType`'s number for what nothing is known of.
const OPAQUE: i32 = 14;

/// How deep tuples may nest.
const MAX_DEPTH: usize = 100;

/// The shape as XLA's text has it, without a layout that is row by row.
pub(super) fn shape_text(shape: &ShapeProto, depth: usize) -> Result<String> {
    if depth > MAX_DEPTH {
        return Err(Error::unsupported(format!("tuples nest deeper than {MAX_DEPTH}")));
    }
    match shape.element_type {
        TUPLE => {
            let elements = shape.tuple_shapes.iter().map(|element| shape_text(element, depth + 1));
            Ok(format!("({})", elements.collect::<Result<Vec<_>>>()?.join(", ")))
        }
        TOKEN => Ok("token[]".to_owned()),
        OPAQUE => Ok("opaque[]".to_owned()),
        number => {
            let element = element_type(number)?;
            let size = |(index, size): (usize, &i64)| match shape.is_dynamic_dimension.get(index) {
                Some(true) if *size == i64::MIN => "?".to_owned(),
                Some(true) => format!("<={size}"),
                _ => size.to_string(),
            };
            let sizes: Vec<String> = shape.dimensions.iter().enumerate().map(size).collect();
            let mut text = format!("{element}[{}]", sizes.join(","));
            if let Some(layout) = &shape.layout {
                let order = &layout.minor_to_major;
                let is_row_major = order.iter().rev().copied().eq(0..order.len() as i64);
                if !is_row_major {
                    text.push_str(&format!("{{{}}}", list(order)));
                }
            }
            Ok(text)
        }
    }
}

/// The element type of a number.
pub(super) fn element_type(number: i32) -> Result<PrimitiveType> {
    let mut known = PrimitiveType::ALL.into_iter();
    let found = known.find(|element| *element as i32 == number);
    found.ok_or_else(|| Error::unsupported(format!("element type {number} of XLA's PrimitiveType")))
}

/// The shape of a message.
pub(super) fn read_shape(shape: &ShapeProto) -> Result<Shape> {
    crate::text::parse_shape(&shape_text(shape, 0)?)
}
