//! Loops and branches on arrays of bounded size in existing HLO: settles the computations that they
//! call.
//!
//! Between computations, an array of bounded size is a tuple: the whole array, then the true size
//! of each bounded dimension as an `s32`. A computation is settled once, regardless of the number
//! of callers.

use crate::builder::Scope;
use crate::settle::{Settler, Value, is_static, sets_sizes, whole};
use hlo::{ComputationId, InstructionId, Op, OpMetadata};
use shape::{ArrayShape, PrimitiveType, Shape};
use support::{Error, Result};

/// Maximum call depth of computations.
const MAX_DEPTH: usize = 100;

impl Settler {
    /// True if these computations, called for a value of this shape, handle arrays of bounded size.
    pub(crate) fn see_sizes(&self, called: &[ComputationId], shape: &Shape) -> bool {
        !is_static(shape) || called.iter().any(|&id| sets_sizes(self.module(), id))
    }

    /// `while(state), condition, body` with settled computations.
    pub(crate) fn settled_while(
        &mut self,
        condition: ComputationId,
        body: ComputationId,
        state: &Value,
        shape: &Shape,
    ) -> Result<Value> {
        let state = self.encoded(state, shape)?;
        let (condition, body) = (self.settled_computation(condition)?, self.settled_computation(body)?);
        let result = self.static_op(Op::While { condition, body }, &[state], None)?;
        self.decoded(result, shape)
    }

    /// `conditional(chooser, x, y), branches` with settled branches, one of which runs.
    pub(crate) fn settled_branches(
        &mut self,
        branches: &[ComputationId],
        chooser: InstructionId,
        arguments: &[&Value],
        shape: &Shape,
    ) -> Result<Value> {
        let mut operands = vec![chooser];
        let mut branch_computations = Vec::with_capacity(branches.len());
        for (&branch, &argument) in branches.iter().zip(arguments) {
            let body = &self.module()[branch];
            let parameter = body.parameters().first().map(|&id| body[id].shape().clone());
            let parameter =
                parameter.ok_or_else(|| Error::invalid("expected a branch with one parameter"))?;
            operands.push(self.encoded(argument, &parameter)?);
            branch_computations.push(self.settled_computation(branch)?);
        }
        let result = self.static_op(Op::Conditional { branch_computations }, &operands, None)?;
        self.decoded(result, shape)
    }

    /// Returns the computation of one parameter that does the same with encoded arrays.
    fn settled_computation(&mut self, id: ComputationId) -> Result<ComputationId> {
        if let Some(&settled) = self.settled.get(&id) {
            return Ok(settled);
        }
        if self.level() >= MAX_DEPTH {
            return Err(Error::unsupported(format!("calls of computations nest more than {MAX_DEPTH} deep")));
        }
        let source = self.module()[id].clone();
        let [parameter] = *source.parameters() else {
            return Err(Error::invalid(format!("'{}': expected one parameter", source.name())));
        };
        let level = self.open(Scope::entry(source.name()));
        let shape = source[parameter].shape();
        let name = source[parameter].name();
        let encoded_argument =
            self.scope().add_entry_parameter(name, encoded_shape(shape), OpMetadata::default());
        let argument = self.decoded(encoded_argument, shape)?;
        let value = self.settled_body(&source, &argument)?;
        let root = self.encoded(&value, source[source.root()].shape())?;
        let (computation, _) = self.close(level).finish_at(root);
        let settled = self.add_computation(computation);
        self.settled.insert(id, settled);
        Ok(settled)
    }

    /// Encodes a value as one instruction, to be passed between computations.
    fn encoded(&mut self, value: &Value, shape: &Shape) -> Result<InstructionId> {
        match shape {
            Shape::Tuple(elements) => {
                let values = self.elements(value)?;
                if values.len() != elements.len() {
                    return Err(Error::internal(
                        "the number of elements of a value differs from that of its shape",
                    ));
                }
                let pairs = values.iter().zip(elements);
                let encoded: Vec<InstructionId> =
                    pairs.map(|(value, shape)| self.encoded(value, shape)).collect::<Result<_>>()?;
                self.static_op(Op::Tuple {}, &encoded, None)
            }
            Shape::Token => self.joined(value),
            Shape::Array(array) => {
                let Value::One(id) = *value else {
                    return Err(Error::internal("expected one value for an array"));
                };
                let part = self.split(id)?;
                if array.is_static() {
                    return Ok(part.data);
                }
                let mut encoded = vec![part.data];
                for (dimension, size) in
                    bounded_dimensions(array).zip(&part.sizes).filter_map(|(d, s)| Some((d?, s)))
                {
                    encoded.push(match *size {
                        Some(size) => size,
                        None => self.s32(array.size(dimension))?,
                    });
                }
                self.static_op(Op::Tuple {}, &encoded, None)
            }
        }
    }

    /// Decodes a value of this shape from the result of [`Self::encoded`].
    fn decoded(&mut self, id: InstructionId, shape: &Shape) -> Result<Value> {
        match shape {
            Shape::Tuple(elements) => {
                let mut values = Vec::with_capacity(elements.len());
                for (index, shape) in elements.iter().enumerate() {
                    let element = self.static_op(Op::GetTupleElement { index }, &[id], None)?;
                    values.push(self.decoded(element, shape)?);
                }
                Ok(Value::Many(values))
            }
            Shape::Array(array) if !array.is_static() => {
                let data = self.static_op(Op::GetTupleElement { index: 0 }, &[id], None)?;
                let mut sizes = Vec::with_capacity(array.rank());
                let mut index = 0;
                for dimension in bounded_dimensions(array) {
                    sizes.push(match dimension {
                        Some(_) => {
                            index += 1;
                            Some(self.static_op(Op::GetTupleElement { index }, &[id], None)?)
                        }
                        None => None,
                    });
                }
                Ok(Value::One(self.bounded(data, &sizes)?))
            }
            Shape::Array(_) | Shape::Token => Ok(Value::One(id)),
        }
    }
}

/// Returns the number of each dimension that is bounded, and `None` for others.
fn bounded_dimensions(array: &ArrayShape) -> impl Iterator<Item = Option<usize>> + '_ {
    array.dimensions.iter().enumerate().map(|(d, dimension)| dimension.is_dynamic.then_some(d))
}

/// Returns the shape of an encoded value of this shape.
fn encoded_shape(shape: &Shape) -> Shape {
    match shape {
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(encoded_shape).collect()),
        Shape::Array(array) if !array.is_static() => {
            let count = bounded_dimensions(array).flatten().count();
            let sizes = std::iter::repeat_n(Shape::scalar(PrimitiveType::S32), count);
            Shape::Tuple(std::iter::once(whole(shape)).chain(sizes).collect())
        }
        Shape::Array(_) | Shape::Token => whole(shape),
    }
}
