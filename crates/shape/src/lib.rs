//! Element types, shapes, and literals with XLA's semantics, and index arithmetic over them.
//!
//! Shapes are independent of graphs. A literal is bytes plus a shape. All arrays are row-major
//! unless a layout says otherwise.

mod float_format;
pub mod index;
mod literal;
mod primitive_type;
mod quantization;
mod scalar;
mod shape;

pub use float_format::{FloatFormat, Specials};
pub use literal::Literal;
pub use primitive_type::PrimitiveType;
pub use quantization::Quantization;
pub use scalar::{NativeType, Scalar};
pub use shape::{ArrayShape, CarriedLayout, Dimension, Layout, ProgramShape, Shape, ShapeIndex};
