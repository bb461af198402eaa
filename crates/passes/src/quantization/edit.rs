//! Adds instructions in place of another one.

use hlo::analysis::ChannelConstant;
use hlo::{Computation, InstructionId, Op, OpMetadata};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};

/// A computation and the metadata of the instructions that are added.
pub(super) struct Edit<'c> {
    pub(super) computation: &'c mut Computation,
    metadata: OpMetadata,
}

impl<'c> Edit<'c> {
    /// Adds instructions with the metadata of `id`.
    pub(super) fn at(computation: &'c mut Computation, id: InstructionId) -> Self {
        let metadata = computation[id].metadata().clone();
        Self { computation, metadata }
    }

    pub(super) fn add(&mut self, op: Op, shape: &ArrayShape, operands: &[InstructionId]) -> InstructionId {
        let shape = Shape::Array(shape.clone());
        self.computation.add("", op, shape, operands, self.metadata.clone())
    }

    pub(super) fn literal(&mut self, literal: Literal) -> InstructionId {
        let shape = literal.array_shape().clone();
        self.add(Op::Constant { literal }, &shape, &[])
    }

    pub(super) fn convert(&mut self, id: InstructionId, element_type: PrimitiveType) -> InstructionId {
        let shape = self.computation[id].shape().expect_array().with_element_type(element_type);
        self.add(Op::Convert {}, &shape, &[id])
    }

    /// Adds a constant of a shape and type, an integer or a real one.
    pub(super) fn spread(&mut self, constant: &ChannelConstant, shape: &ArrayShape) -> InstructionId {
        let sizes: Vec<i64> = constant.dimension.iter().map(|&d| shape.size(d)).collect();
        let vector = ArrayShape::new(shape.element_type, &sizes);
        let scalar = |&value: &f64| match shape.element_type {
            real if real.is_floating_point() => Scalar::Float(value),
            signed if signed.is_signed_integer() => Scalar::Signed(value as i64),
            _ => Scalar::Unsigned(value as u64),
        };
        let literal = Literal::from_scalars(vector, constant.values.iter().map(scalar));
        let id = self.literal(literal);
        if shape.rank() == 0 {
            return id;
        }
        let dimensions = constant.dimension.into_iter().collect();
        self.add(Op::Broadcast { dimensions }, shape, &[id])
    }

    /// Adds the conversion of integers to the real numbers that they stand for.
    pub(super) fn dequantize(
        &mut self,
        quantization: &hlo::quantization::Quantization,
        integers: InstructionId,
    ) -> InstructionId {
        let shape = self.computation[integers].shape().expect_array().clone();
        let add = &mut |op, shape: Shape, operands: &[InstructionId]| {
            Ok(self.computation.add("", op, shape, operands, self.metadata.clone()))
        };
        quantization
            .dequantize(integers, &shape, add)
            .expect("the quantization was read from an array of these sizes")
    }
}
