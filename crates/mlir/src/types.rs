//! Types of values.

use crate::attribute::Attribute;
use shape::PrimitiveType;

/// The type of a value, or a type in an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// A number: `i1` is `pred`, `i32` and `si32` are `s32`, `ui8` is `u8`, `complex<f32>` is
    /// `c64`.
    Scalar(PrimitiveType),
    /// `index`.
    Index,
    /// `none`.
    None,
    /// `tensor<2x?xf32>`.
    Tensor(TensorType),
    /// `tuple<tensor<f32>, !stablehlo.token>`.
    Tuple(Vec<Type>),
    /// `!stablehlo.token`.
    Token,
    /// `(tensor<f32>) -> tensor<f32>`.
    Function {
        /// The types of the arguments.
        inputs: Vec<Type>,
        /// The types of the results.
        results: Vec<Type>,
    },
    /// `!quant.uniform<i8:f32, 0.5:3>`.
    Quantized(Box<Quantization>),
    /// An unsupported type, as spelled.
    Other(String),
}

impl Type {
    /// Returns the tensor type, if it is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Returns the type of a rank-0 tensor with elements of this type.
    pub fn scalar_tensor(self) -> Self {
        Self::Tensor(TensorType { sizes: Vec::new(), element: Box::new(self), encoding: None })
    }
}

/// A ranked tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorType {
    /// The sizes, `None` for `?`.
    pub sizes: Vec<Option<i64>>,
    /// The element type.
    pub element: Box<Type>,
    /// The attribute after the element type, such as the bounds of dynamic sizes.
    pub encoding: Option<Box<Attribute>>,
}

/// The mapping from stored integers to real numbers: `real = (stored - zero_point) * scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    /// Type of the stored integers.
    pub storage: PrimitiveType,
    /// The smallest and the largest integer in use, if they differ from the limits of the type.
    pub storage_range: Option<(i64, i64)>,
    /// Type of the real numbers.
    pub expressed: PrimitiveType,
    /// The dimension whose indices each have a scale; `None` if all elements share one scale.
    pub dimension: Option<usize>,
    /// The scales; a single one if `dimension` is `None`.
    pub scales: Vec<f64>,
    /// The zero points, one per scale.
    pub zero_points: Vec<i64>,
}
