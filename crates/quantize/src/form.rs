//! Adds instructions, above all the forms of quantized arrays (`hlo::quantization`).

use crate::weights::QuantizedWeights;
use hlo::analysis::ChannelConstant;
use hlo::{Computation, InstructionId, Op, OpMetadata};
use shape::{Literal, PrimitiveType, Quantization, Shape};
use support::{Error, Result};

/// Adds instructions to a computation, all with the metadata of the instruction that they serve.
pub(crate) struct Builder<'c> {
    pub(crate) computation: &'c mut Computation,
    metadata: OpMetadata,
}

impl<'c> Builder<'c> {
    pub(crate) fn new(computation: &'c mut Computation, of: InstructionId) -> Self {
        let metadata = computation[of].metadata().clone();
        Self { computation, metadata }
    }

    pub(crate) fn add(&mut self, op: Op, shape: Shape, operands: &[InstructionId]) -> InstructionId {
        self.computation.add("", op, shape, operands, self.metadata.clone())
    }

    pub(crate) fn constant(&mut self, literal: Literal) -> InstructionId {
        let shape = literal.shape();
        self.add(Op::Constant { literal }, shape, &[])
    }

    /// Adds a number for each index of the last dimension.
    pub(crate) fn channels(&mut self, numbers: &[f32], shape: Shape) -> InstructionId {
        let vector = self.constant(Literal::from_elements(&[numbers.len() as i64], numbers));
        let dimensions = vec![shape.expect_array().rank() - 1];
        self.add(Op::Broadcast { dimensions }, shape, &[vector])
    }

    /// Converts elements.
    pub(crate) fn convert(&mut self, x: InstructionId, element_type: PrimitiveType) -> InstructionId {
        let shape = self.computation[x].shape().expect_array().with_element_type(element_type);
        self.add(Op::Convert {}, shape.into(), &[x])
    }

    /// Integers of `f32` values.
    pub(crate) fn quantize(&mut self, x: InstructionId, quantization: Quantization) -> Result<InstructionId> {
        let shape = self.computation[x].shape().expect_array().clone();
        let add = &mut |op, shape, operands: &[_]| Ok(self.add(op, shape, operands));
        meaning(quantization).quantize(x, &shape, add)
    }

    /// Values of integers.
    pub(crate) fn dequantize(
        &mut self,
        integers: InstructionId,
        quantization: Quantization,
    ) -> Result<InstructionId> {
        let shape = self.computation[integers].shape().expect_array().clone();
        let add = &mut |op, shape, operands: &[_]| Ok(self.add(op, shape, operands));
        meaning(quantization).dequantize(integers, &shape, add)
    }

    /// Values of constant integers with a scale for each index of a dimension, or one for all.
    pub(crate) fn dequantize_channels(&mut self, weights: &QuantizedWeights) -> Result<InstructionId> {
        let values = weights.scales.floats().unwrap_or_default();
        let scale = ChannelConstant { dimension: weights.dimensions.first().copied(), values };
        let storage = PrimitiveType::S8;
        let quantization = hlo::quantization::Quantization {
            scale,
            ..hlo::quantization::Quantization::of_array(storage, 1.0, 0)
        };
        let integers = self.constant(weights.integers.clone());
        let shape = weights.integers.array_shape().clone();
        let add = &mut |op, shape, operands: &[_]| Ok(self.add(op, shape, operands));
        quantization.dequantize(integers, &shape, add)
    }

    /// Values `[K, N]` of constant integers `[K / 32, 32, N]` with scales `[K / 32, N]`.
    pub(crate) fn dequantize_blocks(&mut self, weights: &QuantizedWeights) -> Result<InstructionId> {
        let QuantizedWeights { integers, scales, dimensions } = weights;
        let &[count, summands, outputs] = &integers.array_shape().sizes()[..] else {
            return Err(Error::internal("expected blocks of three dimensions"));
        };
        let integers = self.constant(integers.clone());
        let wide = self.convert(integers, PrimitiveType::F32);
        let scales = self.constant(scales.clone());
        let shape = self.computation[wide].shape().clone();
        let dimensions = dimensions.clone();
        let spread = self.add(Op::Broadcast { dimensions }, shape.clone(), &[scales]);
        let values = self.add(Op::Multiply {}, shape, &[wide, spread]);
        let shape = Shape::array(PrimitiveType::F32, &[count * summands, outputs]);
        Ok(self.add(Op::Reshape {}, shape, &[values]))
    }
}

fn meaning(quantization: Quantization) -> hlo::quantization::Quantization {
    let Quantization { scale, zero_point } = quantization;
    hlo::quantization::Quantization::of_array(PrimitiveType::S8, scale, zero_point.into())
}
