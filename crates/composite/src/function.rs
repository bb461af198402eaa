//! Computations written as expressions.

use crate::expression::Expression;
use hlo::{ComputationBuilder, ComputationId, InstructionId, Module, Op, OpMetadata, infer_shape};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use std::cell::RefCell;
use std::collections::BTreeMap;
use support::{Error, Result};

/// A computation under construction. Its expressions add instructions as they are evaluated.
///
/// The first error is kept until the computation is finished. Everything after it is meaningless.
pub struct Function {
    state: RefCell<State>,
    metadata: OpMetadata,
}

/// State shared by the expressions of a function.
struct State {
    module: Module,
    builder: ComputationBuilder,
    error: Option<Error>,
    reducers: BTreeMap<(&'static str, PrimitiveType), ComputationId>,
    scalars: BTreeMap<(PrimitiveType, u64), InstructionId>,
}

/// Adds a computation to a module. `body` returns the results computed from its parameters; zero or
/// several results become a tuple.
///
/// Every instruction carries `metadata`.
pub fn build(
    module: &mut Module,
    name: &str,
    metadata: &OpMetadata,
    parameters: &[Shape],
    body: impl for<'f> FnOnce(&'f Function, &[Expression<'f>]) -> Vec<Expression<'f>>,
) -> Result<ComputationId> {
    let wrapped = |function: &Function, arguments: &[InstructionId]| {
        let arguments: Vec<Expression<'_>> = arguments.iter().map(|&id| function.wrap(id)).collect();
        match body(function, &arguments).as_slice() {
            [result] => result.id,
            results => function.tuple(results).id,
        }
    };
    build_rooted(module, name, metadata, parameters, wrapped)
}

fn build_rooted(
    module: &mut Module,
    name: &str,
    metadata: &OpMetadata,
    parameters: &[Shape],
    body: impl FnOnce(&Function, &[InstructionId]) -> InstructionId,
) -> Result<ComputationId> {
    let mut builder = ComputationBuilder::new(name);
    builder.set_metadata(metadata.clone());
    let arguments: Vec<InstructionId> = parameters
        .iter()
        .enumerate()
        .map(|(k, shape)| builder.parameter(&format!("p{k}"), shape.clone()))
        .collect();
    let state = State {
        module: std::mem::replace(module, Module::new("")),
        builder,
        error: None,
        reducers: BTreeMap::new(),
        scalars: BTreeMap::new(),
    };
    let function = Function { state: RefCell::new(state), metadata: metadata.clone() };
    let root = body(&function, &arguments);
    let State { module: mut filled, builder, error, .. } = function.state.into_inner();
    let result = match error {
        Some(error) => Err(Error::internal(format!("the function {name}: {error}"))),
        None => Ok(filled.add_computation(builder.finish(root))),
    };
    *module = filled;
    result
}

impl Function {
    /// Returns the expression of one of the function's instructions.
    pub fn expression(&self, id: InstructionId) -> Expression<'_> {
        self.wrap(id)
    }

    pub(crate) fn wrap(&self, id: InstructionId) -> Expression<'_> {
        Expression { function: self, id }
    }

    pub(crate) fn shape_of(&self, id: InstructionId) -> Shape {
        self.state.borrow().builder.shape(id).clone()
    }

    /// Adds an instruction. `result_shape` is for opcodes whose shape does not follow from their
    /// operands.
    pub fn op<'f>(
        &'f self,
        op: Op,
        operands: &[Expression<'f>],
        result_shape: Option<Shape>,
    ) -> Expression<'f> {
        let ids: Vec<InstructionId> = operands.iter().map(|operand| operand.id).collect();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        if state.error.is_none() {
            let shapes: Vec<&Shape> = ids.iter().map(|&id| state.builder.shape(id)).collect();
            let added = infer_shape(&state.module, &op, &shapes, result_shape.as_ref())
                .and_then(|shape| state.builder.op_with_shape(&state.module, shape, op, &ids));
            match added {
                Ok(id) => return self.wrap(id),
                Err(error) => state.error = Some(error),
            }
        }
        let id = ids.first().copied();
        self.wrap(id.unwrap_or_else(|| state.builder.constant(Literal::scalar(0f32))))
    }

    /// Adds a constant.
    pub fn literal(&self, literal: Literal) -> Expression<'_> {
        let id = self.state.borrow_mut().builder.constant(literal);
        self.wrap(id)
    }

    /// Adds a scalar constant, rounded or wrapped to fit the type.
    pub fn scalar(&self, element_type: PrimitiveType, value: f64) -> Expression<'_> {
        let known = self.state.borrow().scalars.get(&(element_type, value.to_bits())).copied();
        if let Some(id) = known {
            return self.wrap(id);
        }
        let scalar = match element_type {
            PrimitiveType::Pred => Scalar::Pred(value != 0.0),
            t if t.is_signed_integer() => Scalar::Signed(value as i64),
            t if t.is_unsigned_integer() => Scalar::Unsigned(value as u64),
            t if t.is_complex() => Scalar::Complex(value, 0.0),
            _ => Scalar::Float(value),
        };
        let literal = Literal::from_scalars(ArrayShape::new(element_type, &[]), [scalar]);
        let constant = self.literal(literal);
        self.state.borrow_mut().scalars.insert((element_type, value.to_bits()), constant.id);
        constant
    }

    /// Adds an array with all elements equal.
    pub fn splat(&self, element_type: PrimitiveType, sizes: &[i64], value: f64) -> Expression<'_> {
        self.scalar(element_type, value).broadcast(sizes, &[])
    }

    /// Adds `0, 1, 2, ...` along one dimension.
    pub fn iota(&self, element_type: PrimitiveType, sizes: &[i64], dimension: usize) -> Expression<'_> {
        let shape = Shape::array(element_type, sizes);
        self.op(Op::Iota { iota_dimension: dimension }, &[], Some(shape))
    }

    /// Adds a tuple.
    pub fn tuple<'f>(&'f self, elements: &[Expression<'f>]) -> Expression<'f> {
        self.op(Op::Tuple {}, elements, None)
    }

    /// Concatenates arrays along a dimension.
    pub fn concatenate<'f>(&'f self, parts: &[Expression<'f>], dimension: usize) -> Expression<'f> {
        match parts {
            [part] => *part,
            parts => self.op(Op::Concatenate { dimension }, parts, None),
        }
    }

    /// Returns the scalar computation `x op y`, shared by all uses with the same type.
    pub(crate) fn reducer(&self, name: &'static str, op: Op, element_type: PrimitiveType) -> ComputationId {
        let known = self.state.borrow().reducers.get(&(name, element_type)).copied();
        known.unwrap_or_else(|| {
            let parameters = [Shape::scalar(element_type), Shape::scalar(element_type)];
            let id =
                self.nested_computation(&format!("{name}.{element_type}"), &parameters, |function, ids| {
                    function.op(op, &[function.wrap(ids[0]), function.wrap(ids[1])], None).id
                });
            self.state.borrow_mut().reducers.insert((name, element_type), id);
            id
        })
    }

    /// Adds another computation to the same module.
    fn nested_computation(
        &self,
        name: &str,
        parameters: &[Shape],
        body: impl FnOnce(&Function, &[InstructionId]) -> InstructionId,
    ) -> ComputationId {
        let mut module = std::mem::replace(&mut self.state.borrow_mut().module, Module::new(""));
        let built = build_rooted(&mut module, name, &self.metadata, parameters, body);
        let mut state = self.state.borrow_mut();
        state.module = module;
        built.unwrap_or_else(|error| {
            state.error.get_or_insert(error);
            // Never used: the function as a whole is already an error.
            state.module.add_computation({
                let mut empty = ComputationBuilder::new("wrong");
                let root = empty.constant(Literal::scalar(0f32));
                empty.finish(root)
            })
        })
    }

    /// Repeats `body` while `condition`, a scalar `pred`, is true.
    pub fn while_loop<'f>(
        &'f self,
        initial: &[Expression<'f>],
        condition: impl for<'g> FnOnce(&'g Function, &[Expression<'g>]) -> Expression<'g>,
        body: impl for<'g> FnOnce(&'g Function, &[Expression<'g>]) -> Vec<Expression<'g>>,
    ) -> Vec<Expression<'f>> {
        let start = self.tuple(initial);
        let shape = self.shape_of(start.id);
        let count = initial.len();
        let parts = |function: &Function, ids: &[InstructionId]| -> Vec<InstructionId> {
            (0..count).map(|k| function.wrap(ids[0]).element(k).id).collect()
        };
        let condition =
            self.nested_computation("condition", std::slice::from_ref(&shape), |function, ids| {
                let parts: Vec<Expression<'_>> =
                    parts(function, ids).into_iter().map(|id| function.wrap(id)).collect();
                condition(function, &parts).id
            });
        let body = self.nested_computation("body", std::slice::from_ref(&shape), |function, ids| {
            let parts: Vec<Expression<'_>> =
                parts(function, ids).into_iter().map(|id| function.wrap(id)).collect();
            let results = body(function, &parts);
            function.tuple(&results).id
        });
        let outputs = self.op(Op::While { condition, body }, &[start], None);
        (0..count).map(|k| outputs.element(k)).collect()
    }

    /// Repeats `body` for the indices `0..count`, passed as a scalar `s32`.
    pub fn for_loop<'f>(
        &'f self,
        count: i64,
        initial: &[Expression<'f>],
        body: impl for<'g> FnOnce(&'g Function, Expression<'g>, &[Expression<'g>]) -> Vec<Expression<'g>>,
    ) -> Vec<Expression<'f>> {
        let mut state = vec![self.scalar(PrimitiveType::S32, 0.0)];
        state.extend_from_slice(initial);
        let mut outputs = self.while_loop(
            &state,
            |_, state| state[0].lt(count as f64),
            |function, state| {
                let mut next = vec![state[0] + 1.0];
                next.extend(body(function, state[0], &state[1..]));
                next
            },
        );
        outputs.remove(0);
        outputs
    }
}
