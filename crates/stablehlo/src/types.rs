//! Converts types of values to shapes.

use hlo::MAX_RANK;
use mlir::{Quantization, TensorType, Type, ValueId};
use shape::{ArrayShape, Dimension, PrimitiveType, Shape};
use support::{Error, Result};

/// Returns the shape of values of a type. A dynamic size needs a bound.
pub(crate) fn shape_of(value_type: &Type) -> Result<Shape> {
    match value_type {
        Type::Tensor(tensor) => array_of(tensor, None).map(Shape::Array),
        Type::Tuple(elements) => Ok(Shape::Tuple(elements.iter().map(shape_of).collect::<Result<_>>()?)),
        Type::Token => Ok(Shape::Token),
        Type::Other(spelled) => {
            Err(Error::unsupported(format!("values of type {spelled} are not supported")))
        }
        other => {
            Err(Error::unsupported(format!("values of type {other:?} are not supported: expected a tensor")))
        }
    }
}

/// Returns the shape of values of a type, in which an open dimension has the size `size_of`
/// returns.
pub(crate) fn shape_with(value_type: &Type, size_of: &dyn Fn(usize) -> Option<i64>) -> Result<Shape> {
    match value_type {
        Type::Tensor(tensor) => array_of(tensor, Some(size_of)).map(Shape::Array),
        other => shape_of(other),
    }
}

/// Returns the type of the elements of a tensor.
pub(crate) fn element_type(value_type: &Type) -> Result<PrimitiveType> {
    match value_type {
        Type::Tensor(tensor) => element_type_of(tensor),
        other => {
            Err(Error::unsupported(format!("values of type {other:?} are not supported: expected a tensor")))
        }
    }
}

fn element_type_of(tensor: &TensorType) -> Result<PrimitiveType> {
    Ok(match tensor.element.as_ref() {
        Type::Scalar(scalar) => *scalar,
        Type::Index => PrimitiveType::S64,
        Type::Quantized(quantization) => quantization.storage,
        Type::Other(spelled) => {
            return Err(Error::unsupported(format!("elements of type {spelled} are not supported")));
        }
        other => return Err(Error::unsupported(format!("elements of type {other:?} are not supported"))),
    })
}

/// Returns the shape of a tensor.
fn array_of(tensor: &TensorType, size_of: Option<&dyn Fn(usize) -> Option<i64>>) -> Result<ArrayShape> {
    let element_type = element_type_of(tensor)?;
    if tensor.sizes.len() > MAX_RANK {
        return Err(Error::invalid(format!(
            "a tensor has {} dimensions, but at most {MAX_RANK} are supported",
            tensor.sizes.len()
        )));
    }
    let bounds =
        tensor.encoding.as_deref().and_then(|encoding| encoding.dictionary()?.get("bounds")?.integers());
    let dimension = |(index, size): (usize, &Option<i64>)| match size {
        Some(size) => Ok(Dimension::from(*size)),
        None if size_of.is_some() => {
            size_of.and_then(|size_of| size_of(index)).map(Dimension::from).ok_or_else(|| {
                Error::unsupported(format!(
                    "the size of dimension {index} has no upper bound, or one that is too large"
                ))
            })
        }
        None => match bounds.as_ref().and_then(|bounds| bounds.get(index)) {
            Some(&bound) if bound >= 0 => Ok(Dimension { size: bound, is_dynamic: true }),
            _ => Err(Error::unsupported(format!(
                "dimension {index} has neither a size nor a bound: export the program for fixed shapes"
            ))),
        },
    };
    let dimensions = tensor.sizes.iter().enumerate().map(dimension).collect::<Result<_>>()?;
    Ok(ArrayShape { element_type, dimensions, layout: None })
}

/// Returns the mapping of a value's integers to real numbers, if it is quantized.
pub(crate) fn quantization(source: &mlir::Module, value: ValueId) -> Option<&Quantization> {
    match source[value].value_type.as_tensor()?.element.as_ref() {
        Type::Quantized(quantization) => Some(quantization),
        _ => None,
    }
}
