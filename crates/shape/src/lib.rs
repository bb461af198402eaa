//! Element types, shapes and literals, as XLA has them, and index arithmetic over them.
//!
//! A shape knows no graph; a literal is bytes plus a shape. All arrays are row-major unless a layout says otherwise.

mod float_format;
pub mod index;
mod literal;
mod primitive_type;
mod scalar;
mod shape;

pub use float_format::{FloatFormat, Specials};
pub use literal::Literal;
pub use primitive_type::PrimitiveType;
pub use scalar::{NativeType, Scalar};
pub use shape::{ArrayShape, CarriedLayout, Dimension, Layout, ProgramShape, Shape, ShapeIndex};
