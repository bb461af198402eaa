//! Adds instructions in place of another one, above all the forms of quantized arrays.

use hlo::analysis::ChannelConstant;
use hlo::quantization::Quantization;
use hlo::{Computation, InstructionId, Op, OpMetadata};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};

/// A computation and the metadata of the instructions that are added.
pub struct Edit<'c> {
    /// The computation.
    pub computation: &'c mut Computation,
    metadata: OpMetadata,
}

impl<'c> Edit<'c> {
    /// Adds instructions with the metadata of `id`.
    pub fn at(computation: &'c mut Computation, id: InstructionId) -> Self {
        let metadata = computation[id].metadata().clone();
        Self { computation, metadata }
    }

    /// Adds an instruction with an array.
    pub fn add(&mut self, op: Op, shape: &ArrayShape, operands: &[InstructionId]) -> InstructionId {
        let shape = Shape::Array(shape.clone());
        self.computation.add("", op, shape, operands, self.metadata.clone())
    }

    /// Adds a constant.
    pub fn literal(&mut self, literal: Literal) -> InstructionId {
        let shape = literal.array_shape().clone();
        self.add(Op::Constant { literal }, &shape, &[])
    }

    /// Adds the conversion of elements to a type.
    pub fn convert(&mut self, id: InstructionId, element_type: PrimitiveType) -> InstructionId {
        let shape = self.computation[id].shape().expect_array().with_element_type(element_type);
        self.add(Op::Convert {}, &shape, &[id])
    }

    /// Adds a constant of a shape and type, an integer or a real one.
    pub fn spread(&mut self, constant: &ChannelConstant, shape: &ArrayShape) -> InstructionId {
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

    /// Adds the conversion of integers to the real numbers that they stand for. The quantization is
    /// one of their array.
    pub fn dequantize(&mut self, quantization: &Quantization, integers: InstructionId) -> InstructionId {
        let shape = self.computation[integers].shape().expect_array().clone();
        let converted = quantization.dequantize(integers, &shape, &mut |op, shape, operands| {
            Ok(self.computation.add("", op, shape, operands, self.metadata.clone()))
        });
        converted.expect("the quantization is one of an array of these sizes")
    }

    /// Adds the conversion of real numbers to the integers that stand for them. The quantization is
    /// one of their array.
    pub fn quantize(&mut self, quantization: &Quantization, real: InstructionId) -> InstructionId {
        let shape = self.computation[real].shape().expect_array().clone();
        let converted = quantization.quantize(real, &shape, &mut |op, shape, operands| {
            Ok(self.computation.add("", op, shape, operands, self.metadata.clone()))
        });
        converted.expect("the quantization is one of an array of these sizes")
    }
}
