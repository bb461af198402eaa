//! A computation in the making, and what the functions for operations do with it.

use super::Importer;
use crate::operation::OperationView;
use crate::types::{quantization, shape_of};
use composite::{Expression, Function};
use hlo::{ComputationBuilder, InstructionId, Op, OpMetadata};
use mlir::{Elements, Operation, Quantization, ValueId};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::HashMap;
use support::{Error, Result};

/// A computation in the making and the values that it can name.
pub(crate) struct Scope {
    pub(crate) builder: ComputationBuilder,
    values: HashMap<ValueId, InstructionId>,
    /// Whether this is the program itself, so that its checks can be results.
    pub(crate) is_entry: bool,
    /// What the checks compare, in pairs.
    pub(crate) compared: Vec<InstructionId>,
}

impl Scope {
    pub(crate) fn new(name: &str, is_entry: bool) -> Self {
        Self {
            builder: ComputationBuilder::new(name),
            values: HashMap::new(),
            is_entry,
            compared: Vec::new(),
        }
    }

    pub(crate) fn define(&mut self, value: ValueId, instruction: InstructionId) {
        self.values.insert(value, instruction);
    }
}

/// Makes real numbers of the integers that stand for them.
pub(crate) type Dequantize = fn(&mut Context<'_, '_>, InstructionId, &Quantization) -> Result<InstructionId>;

/// One operation and where its instructions go.
pub(crate) struct Context<'c, 's> {
    pub(crate) importer: &'c mut Importer<'s>,
    pub(crate) scope: &'c mut Scope,
    pub(crate) operation: &'s Operation,
    /// Makes real numbers of operands whose types are quantized; the results are real numbers then, too.
    pub(crate) dequantize: Option<Dequantize>,
}

impl<'s> Context<'_, 's> {
    /// Its attributes.
    pub(crate) fn view(&self) -> OperationView<'s> {
        OperationView(self.operation)
    }

    /// The instruction of a value. A constant of an outer scope is made anew.
    pub(crate) fn value(&mut self, value: ValueId) -> Result<InstructionId> {
        if let Some(&id) = self.scope.values.get(&value) {
            return Ok(id);
        }
        let Some(&elements) = self.importer.constants.get(&value) else {
            let name = &self.importer.source[value].name;
            return Err(Error::unsupported(format!(
                "%{name} belongs to a function or region around this one"
            )));
        };
        let id = self.elements(elements)?;
        self.scope.define(value, id);
        Ok(id)
    }

    /// The operand at a position.
    pub(crate) fn operand(&mut self, position: usize) -> Result<InstructionId> {
        let Some(&value) = self.operation.operands.get(position) else {
            return Err(Error::invalid(format!("operand {position} lacks")));
        };
        self.number_of(value)
    }

    /// All operands.
    pub(crate) fn operands(&mut self) -> Result<Vec<InstructionId>> {
        self.operation.operands.iter().map(|&value| self.number_of(value)).collect()
    }

    /// The instruction of an operand: the real numbers if the operation computes with quantized ones.
    fn number_of(&mut self, value: ValueId) -> Result<InstructionId> {
        let stored = self.value(value)?;
        match (quantization(self.importer.source, value), self.dequantize) {
            (Some(quantization), Some(dequantize)) => dequantize(self, stored, quantization),
            _ => Ok(stored),
        }
    }

    /// The elements of an operand that is a constant.
    pub(crate) fn constant_operand(&self, position: usize) -> Option<&'s Elements> {
        self.importer.constants.get(self.operation.operands.get(position)?).copied()
    }

    /// The numbers of an operand that has to be a constant.
    pub(crate) fn constant_integers(&self, position: usize) -> Result<Vec<i64>> {
        let literal = self.constant_operand(position).and_then(Elements::to_literal);
        literal.and_then(|literal| literal.to_i64s()).ok_or_else(|| {
            Error::unsupported(format!("operand {position} has to be a constant: shapes are fixed here"))
        })
    }

    /// The shape that the text states for a result.
    pub(crate) fn result_shape(&self, position: usize) -> Result<Shape> {
        match self.operation.results.get(position) {
            Some(&value) => {
                let shape = shape_of(&self.importer.source[value].value_type)?;
                Ok(match (shape, quantization(self.importer.source, value)) {
                    (Shape::Array(stored), Some(quantization)) if self.dequantize.is_some() => {
                        Shape::Array(stored.with_element_type(quantization.expressed))
                    }
                    (shape, _) => shape,
                })
            }
            None => Err(Error::invalid(format!("result {position} lacks"))),
        }
    }

    /// The shape that the text states for a result that has to be an array.
    pub(crate) fn result_array(&self, position: usize) -> Result<ArrayShape> {
        match self.result_shape(position)? {
            Shape::Array(array) => Ok(array),
            other => Err(Error::invalid(format!("result {position} is {other}, no array"))),
        }
    }

    /// The shapes of all results: the only one's, or a tuple.
    pub(crate) fn results_shape(&self) -> Result<Shape> {
        let mut shapes: Vec<Shape> =
            (0..self.operation.results.len()).map(|k| self.result_shape(k)).collect::<Result<_>>()?;
        Ok(if shapes.len() == 1 { shapes.remove(0) } else { Shape::Tuple(shapes) })
    }

    /// The shape of an instruction.
    pub(crate) fn shape(&self, id: InstructionId) -> &Shape {
        self.scope.builder.shape(id)
    }

    /// The shape of an instruction that has to be an array.
    pub(crate) fn array(&self, id: InstructionId) -> Result<ArrayShape> {
        match self.shape(id) {
            Shape::Array(array) => Ok(array.clone()),
            other => Err(Error::invalid(format!("an operand is {other}, no array"))),
        }
    }

    /// Adds an instruction whose shape follows from its operands.
    pub(crate) fn op(&mut self, op: Op, operands: &[InstructionId]) -> Result<InstructionId> {
        self.stamp();
        self.scope.builder.op(&self.importer.module, op, operands)
    }

    /// Adds an instruction of a shape that the operands have to be able to give.
    pub(crate) fn op_with_shape(
        &mut self,
        op: Op,
        operands: &[InstructionId],
        shape: Shape,
    ) -> Result<InstructionId> {
        self.stamp();
        self.scope.builder.op_with_shape(&self.importer.module, shape, op, operands)
    }

    /// Adds the operation's own instruction: the result's shape is the stated one, several results are a tuple's.
    pub(crate) fn emit(&mut self, op: Op, operands: &[InstructionId]) -> Result<Vec<InstructionId>> {
        let shape = self.results_shape()?;
        let id = self.op_with_shape(op, operands, shape)?;
        if self.operation.results.len() == 1 { Ok(vec![id]) } else { self.elements_of(id) }
    }

    /// The elements of a tuple.
    pub(crate) fn elements_of(&mut self, tuple: InstructionId) -> Result<Vec<InstructionId>> {
        let count = self.shape(tuple).as_tuple().map_or(0, <[Shape]>::len);
        (0..count).map(|index| self.op(Op::GetTupleElement { index }, &[tuple])).collect()
    }

    /// Adds a constant; one that repeats an element is a broadcast of it.
    pub(crate) fn elements(&mut self, elements: &Elements) -> Result<InstructionId> {
        self.stamp();
        if let Some(all) = &elements.all {
            return Ok(self.scope.builder.constant(all.clone()));
        }
        if elements.shape.element_count() == 0 {
            let empty = Literal::from_bytes(elements.shape.clone(), Vec::new().into());
            return Ok(self.scope.builder.constant(empty.expect("an array of nothing")));
        }
        let scalar = self.scope.builder.constant(elements.scalar.clone());
        self.spread(scalar, &elements.shape)
    }

    /// A scalar repeated to a shape; itself if that has no dimensions.
    pub(crate) fn spread(&mut self, scalar: InstructionId, shape: &ArrayShape) -> Result<InstructionId> {
        if shape.rank() == 0 || self.array(scalar)?.rank() > 0 {
            return Ok(scalar);
        }
        let element_type = self.array(scalar)?.element_type;
        let shape = shape.with_element_type(element_type).into();
        self.op_with_shape(Op::Broadcast { dimensions: Vec::new() }, &[scalar], shape)
    }

    /// A scalar constant.
    pub(crate) fn number(&mut self, element_type: PrimitiveType, value: i64) -> InstructionId {
        let shape = ArrayShape::new(element_type, &[]);
        let literal = match element_type {
            PrimitiveType::Pred => Literal::scalar(value != 0),
            _ if element_type.is_signed_integer() => {
                Literal::from_scalars(shape, [shape::Scalar::Signed(value)])
            }
            _ if element_type.is_unsigned_integer() => {
                Literal::from_scalars(shape, [shape::Scalar::Unsigned(value as u64)])
            }
            _ if element_type.is_complex() => {
                Literal::from_scalars(shape, [shape::Scalar::Complex(value as f64, 0.0)])
            }
            _ => Literal::from_scalars(shape, [shape::Scalar::Float(value as f64)]),
        };
        self.stamp();
        self.scope.builder.constant(literal)
    }

    /// Calls a function that is written as expressions.
    pub(crate) fn composite(
        &mut self,
        operands: &[InstructionId],
        body: impl for<'f> FnOnce(&'f Function, &[Expression<'f>]) -> Vec<Expression<'f>>,
    ) -> Result<Vec<InstructionId>> {
        let parameters: Vec<Shape> = operands.iter().map(|&id| self.shape(id).clone()).collect();
        let name = self.operation.name.clone();
        let metadata = self.metadata();
        let to_apply = composite::build(&mut self.importer.module, &name, &metadata, &parameters, body)?;
        let result = self.op(Op::Call { to_apply }, operands)?;
        if self.shape(result).as_tuple().is_some() { self.elements_of(result) } else { Ok(vec![result]) }
    }

    fn metadata(&self) -> OpMetadata {
        OpMetadata {
            op_type: self.operation.name.clone(),
            op_name: self.operation.location.clone(),
            ..OpMetadata::default()
        }
    }

    /// What is added from now on comes from this operation.
    fn stamp(&mut self) {
        let metadata = self.metadata();
        self.scope.builder.set_metadata(metadata);
    }
}
