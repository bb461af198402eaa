//! A computation under construction, and helpers to convert operations.

use super::Importer;
use crate::operation::OperationView;
use crate::types::{element_type, quantization, shape_of, shape_with};
use hlo::{ComputationBuilder, InstructionId, Op, OpMetadata};
use mlir::{Attribute, Elements, Operation, Quantization, ValueId};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::HashMap;
use support::{Error, Result};

/// A computation under construction and the values that it can name.
pub(crate) struct Scope {
    /// The instructions; `None` if they go to the innermost scope of the importer's builder.
    code: Option<ComputationBuilder>,
    values: HashMap<ValueId, InstructionId>,
    /// True for the program itself, whose results can include checks.
    pub(crate) is_entry: bool,
    /// The values that the checks compare, in pairs.
    pub(crate) compared: Vec<InstructionId>,
}

impl Scope {
    pub(crate) fn new(name: &str, is_entry: bool) -> Self {
        Self { code: Some(ComputationBuilder::new(name)), ..Self::shared(name, is_entry) }
    }

    /// Returns a scope whose instructions go to the innermost scope of the importer's builder.
    pub(crate) fn shared(_name: &str, is_entry: bool) -> Self {
        Self { code: None, values: HashMap::new(), is_entry, compared: Vec::new() }
    }

    /// Returns the computation under construction of a scope that has one.
    pub(crate) fn own(&mut self) -> &mut ComputationBuilder {
        self.code.as_mut().expect("the scope has no computation of its own")
    }

    /// Returns the computation of a scope that has one.
    pub(crate) fn finish(self, root: InstructionId) -> hlo::Computation {
        self.code.expect("the scope has no computation of its own").finish(root)
    }

    pub(crate) fn define(&mut self, value: ValueId, instruction: InstructionId) {
        self.values.insert(value, instruction);
    }
}

/// Converts stored integers to real numbers.
pub(crate) type Dequantize = fn(&mut Context<'_, '_>, InstructionId, &Quantization) -> Result<InstructionId>;

/// An operation and the destination of its instructions.
pub(crate) struct Context<'c, 's> {
    pub(crate) importer: &'c mut Importer<'s>,
    pub(crate) scope: &'c mut Scope,
    pub(crate) operation: &'s Operation,
    /// Converts operands with quantized types to real numbers; if set, the results are real
    /// numbers, too.
    pub(crate) dequantize: Option<Dequantize>,
}

impl<'s> Context<'_, 's> {
    /// Returns the operation's attributes.
    pub(crate) fn view(&self) -> OperationView<'s> {
        OperationView(self.operation)
    }

    /// Returns the instruction of a value. A constant of an outer scope is duplicated.
    pub(crate) fn value(&mut self, value: ValueId) -> Result<InstructionId> {
        if let Some(&id) = self.scope.values.get(&value) {
            return Ok(id);
        }
        let Some(&elements) = self.importer.constants.get(&value) else {
            let name = &self.importer.source[value].name;
            return Err(Error::unsupported(format!("%{name} is defined outside of this function or region")));
        };
        let id = self.elements(elements)?;
        self.scope.define(value, id);
        Ok(id)
    }

    /// Returns the operand at a position.
    pub(crate) fn operand(&mut self, position: usize) -> Result<InstructionId> {
        let Some(&value) = self.operation.operands.get(position) else {
            return Err(Error::invalid(format!("missing operand {position}")));
        };
        self.number_of(value)
    }

    /// Returns all operands.
    pub(crate) fn operands(&mut self) -> Result<Vec<InstructionId>> {
        self.operation.operands.iter().map(|&value| self.number_of(value)).collect()
    }

    /// Returns the instruction of an operand, dequantized if the operation computes with real
    /// numbers.
    fn number_of(&mut self, value: ValueId) -> Result<InstructionId> {
        let stored = self.value(value)?;
        match (quantization(self.importer.source, value), self.dequantize) {
            (Some(quantization), Some(dequantize)) => dequantize(self, stored, quantization),
            _ => Ok(stored),
        }
    }

    /// Returns the elements of an operand that is a constant.
    pub(crate) fn constant_operand(&self, position: usize) -> Option<&'s Elements> {
        self.importer.constants.get(self.operation.operands.get(position)?).copied()
    }

    /// Returns the numbers of an operand that must be a constant.
    pub(crate) fn constant_integers(&self, position: usize) -> Result<Vec<i64>> {
        let literal = self.constant_operand(position).and_then(Elements::to_literal);
        literal.and_then(|literal| literal.to_i64s()).ok_or_else(|| {
            Error::unsupported(format!("operand {position} must be a constant: shapes must be static"))
        })
    }

    /// Returns the declared shape of a result.
    pub(crate) fn result_shape(&self, position: usize) -> Result<Shape> {
        match self.operation.results.get(position) {
            Some(&value) => {
                let value_type = &self.importer.source[value].value_type;
                let shape = if self.is_sized() {
                    // An operation on elements has the sizes of its first operand.
                    let like = self.operation.operands.first().and_then(|first| self.scope.values.get(first));
                    let like = like.and_then(|&like| self.shape(like).as_array());
                    shape_with(value_type, &|d| like.filter(|like| d < like.rank()).map(|like| like.size(d)))?
                } else {
                    shape_of(value_type)?
                };
                Ok(match (shape, quantization(self.importer.source, value)) {
                    (Shape::Array(stored), Some(quantization)) if self.dequantize.is_some() => {
                        Shape::Array(stored.with_element_type(quantization.expressed))
                    }
                    (shape, _) => shape,
                })
            }
            None => Err(Error::invalid(format!("missing result {position}"))),
        }
    }

    /// Returns the declared shape of a result that must be an array.
    pub(crate) fn result_array(&self, position: usize) -> Result<ArrayShape> {
        match self.result_shape(position)? {
            Shape::Array(array) => Ok(array),
            other => Err(Error::invalid(format!("result {position} is {other}, not an array"))),
        }
    }

    /// Returns the type of the elements of the first result.
    pub(crate) fn result_element_type(&self) -> Result<PrimitiveType> {
        self.element_type_of_result(0)
    }

    /// Returns the declared type of the elements of a result.
    pub(crate) fn element_type_of_result(&self, position: usize) -> Result<PrimitiveType> {
        let Some(&value) = self.operation.results.get(position) else {
            return Err(Error::invalid(format!("missing result {position}")));
        };
        match quantization(self.importer.source, value).filter(|_| self.dequantize.is_some()) {
            Some(quantization) => Ok(quantization.expressed),
            None => element_type(&self.importer.source[value].value_type),
        }
    }

    /// Returns the shape of all results: that of the only one, or a tuple.
    pub(crate) fn results_shape(&self) -> Result<Shape> {
        let mut shapes: Vec<Shape> =
            (0..self.operation.results.len()).map(|k| self.result_shape(k)).collect::<Result<_>>()?;
        Ok(if shapes.len() == 1 { shapes.remove(0) } else { Shape::Tuple(shapes) })
    }

    /// Returns the shape of an instruction.
    pub(crate) fn shape(&self, id: InstructionId) -> &Shape {
        match &self.scope.code {
            Some(code) => code.shape(id),
            None => self.importer.builder.scope_ref().shape(id),
        }
    }

    /// True if arrays may have bounded sizes.
    pub(crate) fn is_sized(&self) -> bool {
        self.scope.code.is_none()
    }

    /// Returns the shape of an instruction that must be an array.
    pub(crate) fn array(&self, id: InstructionId) -> Result<ArrayShape> {
        match self.shape(id) {
            Shape::Array(array) => Ok(array.clone()),
            other => Err(Error::invalid(format!("an operand is {other}, not an array"))),
        }
    }

    /// Adds an instruction whose shape follows from its operands.
    pub(crate) fn op(&mut self, op: Op, operands: &[InstructionId]) -> Result<InstructionId> {
        self.stamp();
        match &mut self.scope.code {
            Some(code) => code.op(self.importer.builder.module(), op, operands),
            None => self.importer.builder.op(op, operands),
        }
    }

    /// Adds an instruction with an explicit shape, which must be compatible with the operands.
    pub(crate) fn op_with_shape(
        &mut self,
        op: Op,
        operands: &[InstructionId],
        shape: Shape,
    ) -> Result<InstructionId> {
        self.stamp();
        match &mut self.scope.code {
            Some(code) => code.op_with_shape(self.importer.builder.module(), shape, op, operands),
            None => {
                let whole = match shape {
                    Shape::Array(array) => Shape::array(array.element_type, &array.sizes()),
                    other => other,
                };
                self.importer.builder.op_shaped(&whole, op, operands)
            }
        }
    }

    /// Returns the elements of a tuple.
    pub(crate) fn elements_of(&mut self, tuple: InstructionId) -> Result<Vec<InstructionId>> {
        let count = self.shape(tuple).as_tuple().map_or(0, <[Shape]>::len);
        (0..count).map(|index| self.op(Op::GetTupleElement { index }, &[tuple])).collect()
    }

    /// Adds a constant; a splat becomes a broadcast.
    pub(crate) fn elements(&mut self, elements: &Elements) -> Result<InstructionId> {
        self.stamp();
        if let Some(all) = &elements.all {
            return Ok(self.constant(all.clone()));
        }
        if elements.shape.element_count() == 0 {
            let empty = Literal::from_bytes(elements.shape.clone(), Vec::new().into());
            return Ok(self.constant(empty.expect("expected an empty array")));
        }
        let scalar = self.constant(elements.scalar.clone());
        self.spread(scalar, &elements.shape)
    }

    /// Broadcasts a scalar to a shape; returns it unchanged if the shape has rank 0.
    pub(crate) fn spread(&mut self, scalar: InstructionId, shape: &ArrayShape) -> Result<InstructionId> {
        if shape.rank() == 0 || self.array(scalar)?.rank() > 0 {
            return Ok(scalar);
        }
        let element_type = self.array(scalar)?.element_type;
        let shape = shape.with_element_type(element_type).into();
        self.op_with_shape(Op::Broadcast { dimensions: Vec::new() }, &[scalar], shape)
    }

    /// Adds a scalar constant.
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
        self.constant(literal)
    }

    fn constant(&mut self, literal: Literal) -> InstructionId {
        match &mut self.scope.code {
            Some(code) => code.constant(literal),
            None => self.importer.builder.literal(literal),
        }
    }

    pub(crate) fn metadata(&self) -> OpMetadata {
        OpMetadata {
            op_type: self.operation.name.clone(),
            op_name: self.operation.location.clone(),
            ..OpMetadata::default()
        }
    }

    /// Attributes subsequent instructions to this operation.
    pub(crate) fn stamp(&mut self) {
        let metadata = self.metadata();
        match &mut self.scope.code {
            Some(code) => code.set_metadata(metadata),
            None => drop(self.importer.builder.set_metadata(metadata)),
        }
    }

    /// Names the operation for messages of compiled programs.
    pub(crate) fn described(&self) -> String {
        match (self.operation.line, self.operation.location.as_str()) {
            (0, "") => format!("'{}'", self.operation.name),
            (0, location) => format!("'{}' ({location})", self.operation.name),
            (line, _) => format!("'{}' (line {line})", self.operation.name),
        }
    }

    /// Returns the computation of the function that a custom call applies to elements.
    pub(crate) fn called_computation(&mut self) -> Result<hlo::ComputationId> {
        let name = match self.view().find("called_computations") {
            Some(Attribute::Array(list)) => list.first().and_then(Attribute::text),
            _ => None,
        };
        self.importer.function(name.ok_or_else(|| Error::invalid("expected a called computation"))?)
    }
}
