//! The forms of quantized arrays (`hlo::quantization`) that a rewrite adds.

use crate::weights::QuantizedWeights;
use hlo::InstructionId;
use hlo::Op;
use hlo::analysis::ChannelConstant;
use passes::Edit;
use shape::{ArrayShape, PrimitiveType, Quantization};
use support::{Error, Result};

/// Adds a number for each index of the last dimension.
pub(crate) fn channels(edit: &mut Edit<'_>, numbers: &[f32], shape: &ArrayShape) -> InstructionId {
    let values = numbers.iter().copied().map(f64::from).collect();
    edit.spread(&ChannelConstant { dimension: shape.rank().checked_sub(1), values }, shape)
}

/// The meaning of integers of an array.
pub(crate) fn meaning(quantization: Quantization) -> hlo::quantization::Quantization {
    let Quantization { scale, zero_point } = quantization;
    hlo::quantization::Quantization::of_array(PrimitiveType::S8, scale, zero_point.into())
}

/// Adds the values of constant integers with a scale for each index of a dimension, or one for all.
pub(crate) fn dequantize_channels(edit: &mut Edit<'_>, weights: &QuantizedWeights) -> InstructionId {
    let values = weights.scales.floats().unwrap_or_default();
    let scale = ChannelConstant { dimension: weights.dimensions.first().copied(), values };
    let quantization = hlo::quantization::Quantization {
        scale,
        ..hlo::quantization::Quantization::of_array(PrimitiveType::S8, 1.0, 0)
    };
    let integers = edit.literal(weights.integers.clone());
    edit.dequantize(&quantization, integers)
}

/// Adds the values `[K, N]` of constant integers `[K / 32, 32, N]` with scales `[K / 32, N]`.
pub(crate) fn dequantize_blocks(edit: &mut Edit<'_>, weights: &QuantizedWeights) -> Result<InstructionId> {
    let QuantizedWeights { integers, scales, dimensions } = weights;
    let &[count, summands, outputs] = &integers.array_shape().sizes()[..] else {
        return Err(Error::internal("expected blocks of three dimensions"));
    };
    let shape = integers.array_shape().with_element_type(PrimitiveType::F32);
    let integers = edit.literal(integers.clone());
    let wide = edit.convert(integers, PrimitiveType::F32);
    let scales = edit.literal(scales.clone());
    let spread = edit.add(Op::Broadcast { dimensions: dimensions.clone() }, &shape, &[scales]);
    let values = edit.add(Op::Multiply {}, &shape, &[wide, spread]);
    let matrix = ArrayShape::new(PrimitiveType::F32, &[count * summands, outputs]);
    Ok(edit.add(Op::Reshape {}, &matrix, &[values]))
}
