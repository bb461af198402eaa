//! The form of quantized values in HLO, which passes recognize and any compiler can run.
//!
//! - quantize: `convert<s8>(clamp(-128, round-nearest-even(x / scale) + zero point, 127))`
//! - dequantize: `(convert<f32>(q) - zero point) * scale`, without the subtraction for weights.

use hlo::{Computation, InstructionId, Op, OpMetadata};
use shape::{Literal, PrimitiveType, Quantization, Shape};

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

    fn shape(&self, id: InstructionId, element_type: PrimitiveType) -> Shape {
        self.computation[id].shape().expect_array().with_element_type(element_type).into()
    }

    /// A number in all elements of an array like another one.
    pub(crate) fn splat(&mut self, value: f32, like: InstructionId) -> InstructionId {
        let scalar = self.constant(Literal::scalar(value));
        let shape = self.shape(like, PrimitiveType::F32);
        self.add(Op::Broadcast { dimensions: Vec::new() }, shape, &[scalar])
    }

    fn binary(&mut self, op: Op, x: InstructionId, value: f32) -> InstructionId {
        let value = self.splat(value, x);
        let shape = self.shape(x, PrimitiveType::F32);
        self.add(op, shape, &[x, value])
    }

    /// Converts elements.
    pub(crate) fn convert(&mut self, x: InstructionId, element_type: PrimitiveType) -> InstructionId {
        let shape = self.shape(x, element_type);
        self.add(Op::Convert {}, shape, &[x])
    }

    /// Integers of `f32` values.
    pub(crate) fn quantize(&mut self, x: InstructionId, quantization: Quantization) -> InstructionId {
        let shape = self.shape(x, PrimitiveType::F32);
        let steps = self.binary(Op::Divide {}, x, quantization.scale);
        let rounded = self.add(Op::RoundNearestEven {}, shape.clone(), &[steps]);
        let shifted = self.binary(Op::Add {}, rounded, quantization.zero_point as f32);
        let (least, most) = (self.splat(-128.0, x), self.splat(127.0, x));
        let clamped = self.add(Op::Clamp {}, shape, &[least, shifted, most]);
        self.convert(clamped, PrimitiveType::S8)
    }

    /// Values of integers.
    pub(crate) fn dequantize(&mut self, q: InstructionId, quantization: Quantization) -> InstructionId {
        let wide = self.convert(q, PrimitiveType::F32);
        let steps = self.binary(Op::Subtract {}, wide, quantization.zero_point as f32);
        self.binary(Op::Multiply {}, steps, quantization.scale)
    }

    /// Values of a constant of integers with scales along some of its dimensions.
    pub(crate) fn dequantize_constant(
        &mut self,
        q: Literal,
        scales: Literal,
        dimensions: Vec<usize>,
    ) -> InstructionId {
        let q = self.constant(q);
        let wide = self.convert(q, PrimitiveType::F32);
        let scales = self.constant(scales);
        let shape = self.shape(wide, PrimitiveType::F32);
        let spread = self.add(Op::Broadcast { dimensions }, shape.clone(), &[scales]);
        self.add(Op::Multiply {}, shape, &[wide, spread])
    }
}
