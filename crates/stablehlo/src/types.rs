//! Types of values to shapes.

use hlo::MAX_RANK;
use mlir::{Quantization, TensorType, Type, ValueId};
use shape::{ArrayShape, Dimension, Shape};
use support::{Error, Result};

/// The shape of values of a type. A size that is open needs a bound.
pub(crate) fn shape_of(value_type: &Type) -> Result<Shape> {
    match value_type {
        Type::Tensor(tensor) => array_of(tensor).map(Shape::Array),
        Type::Tuple(elements) => Ok(Shape::Tuple(elements.iter().map(shape_of).collect::<Result<_>>()?)),
        Type::Token => Ok(Shape::Token),
        Type::Other(spelled) => Err(Error::unsupported(format!("values of type {spelled}"))),
        other => Err(Error::unsupported(format!("values of type {other:?}, which is no tensor"))),
    }
}

/// The shape of a tensor.
fn array_of(tensor: &TensorType) -> Result<ArrayShape> {
    let element_type = match tensor.element.as_ref() {
        Type::Scalar(scalar) => *scalar,
        Type::Index => shape::PrimitiveType::S64,
        Type::Quantized(quantization) => quantization.storage,
        Type::Other(spelled) => return Err(Error::unsupported(format!("elements of type {spelled}"))),
        other => return Err(Error::unsupported(format!("elements of type {other:?}"))),
    };
    if tensor.sizes.len() > MAX_RANK {
        return Err(Error::invalid(format!(
            "a tensor of {} dimensions; {MAX_RANK} are possible",
            tensor.sizes.len()
        )));
    }
    let bounds =
        tensor.encoding.as_deref().and_then(|encoding| encoding.dictionary()?.get("bounds")?.integers());
    let dimension = |(index, size): (usize, &Option<i64>)| match size {
        Some(size) => Ok(Dimension::from(*size)),
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

/// How a value's integers stand for real numbers, if they do.
pub(crate) fn quantization(source: &mlir::Module, value: ValueId) -> Option<&Quantization> {
    match source[value].value_type.as_tensor()?.element.as_ref() {
        Type::Quantized(quantization) => Some(quantization),
        _ => None,
    }
}
