//! Computations on scalars that `reduce`, `sort`, and others call for each element.

use crate::array::scalar;
use crate::elementwise::{Function, apply_binary};
use crate::evaluator::Evaluator;
use crate::float::round_scalar;
use crate::operation::Binary;
use hlo::{Computation, ComputationId, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use support::{Error, Result};

/// A computation to be called with scalars.
pub(crate) struct Callee {
    id: ComputationId,
    /// The computation as a list of steps, if it is elementwise throughout.
    steps: Option<Steps>,
    /// The function, if the computation applies just one to its two parameters.
    binary: Option<Binary>,
    parameter_types: Vec<PrimitiveType>,
}

/// Maximum number of operands of an elementwise function.
const MAX_OPERANDS: usize = 3;

struct Steps {
    steps: Vec<Step>,
    results: Vec<usize>,
}

enum Step {
    Parameter(usize),
    Constant(Scalar),
    /// Value of another step, for an instruction that only changes a scalar's shape.
    Same(usize),
    Bitcast {
        operand: usize,
        from: PrimitiveType,
        to: PrimitiveType,
    },
    Apply {
        function: Function,
        result: PrimitiveType,
        types: Vec<PrimitiveType>,
        operands: Vec<usize>,
    },
}

impl Evaluator<'_> {
    /// Prepares a computation of `parameters` scalars.
    pub(crate) fn callee(&self, id: ComputationId, parameters: usize) -> Result<Callee> {
        let Some(computation) = self.module.get(id) else {
            return Err(Error::internal(format!(
                "{id} is not a computation of module {}",
                self.module.name()
            )));
        };
        let scalar_type = |&p: &InstructionId| match computation[p].shape().as_array() {
            Some(array) if array.rank() == 0 => Some(array.element_type),
            _ => None,
        };
        let types: Option<Vec<PrimitiveType>> = computation.parameters().iter().map(scalar_type).collect();
        match types {
            Some(parameter_types) if parameter_types.len() == parameters => {
                let (steps, binary) = (steps_of(computation), binary_of(computation));
                Ok(Callee { id, steps, binary, parameter_types })
            }
            _ => Err(Error::invalid(format!("expected {} to take {parameters} scalars", computation.name()))),
        }
    }

    /// Calls a computation. Returns the results of its root, one per element of a tuple.
    pub(crate) fn apply(&mut self, callee: &Callee, arguments: &[Scalar]) -> Result<Vec<Scalar>> {
        if let Some(steps) = &callee.steps {
            self.charge(steps.steps.len() as u64)?;
            return steps.run(arguments);
        }
        let literal = |(&element_type, &argument): (&PrimitiveType, &Scalar)| {
            Literal::from_scalars(ArrayShape::new(element_type, &[]), [argument])
        };
        let literals: Vec<Literal> = callee.parameter_types.iter().zip(arguments).map(literal).collect();
        match self.evaluate_computation(callee.id, &literals)? {
            Literal::Tuple(elements) => elements.iter().map(scalar).collect(),
            array @ Literal::Array { .. } => Ok(vec![scalar(&array)?]),
        }
    }

    /// Performs one step of an accumulation. A lone `add` or `multiply` keeps the accumulator in
    /// `f64`, and the caller rounds it.
    pub(crate) fn accumulate(
        &mut self,
        callee: &Callee,
        accumulators: &[Scalar],
        values: &[Scalar],
    ) -> Result<Vec<Scalar>> {
        if let (&[x], &[y]) = (accumulators, values)
            && let Some(step) = callee.binary_step()
        {
            self.charge(1)?;
            return Ok(vec![step(x, y)?]);
        }
        self.apply(callee, &[accumulators, values].concat())
    }
}

impl Callee {
    /// Returns one step of an accumulation, for a computation that is one function of its two
    /// parameters. A lone `add` or `multiply` does not round.
    pub(crate) fn binary_step(&self) -> Option<impl Fn(Scalar, Scalar) -> Result<Scalar> + use<>> {
        let (function, element_type) = (self.binary?, self.parameter_types[0]);
        let rounds = !matches!(function, Binary::Add | Binary::Multiply);
        Some(move |x, y| {
            let value = apply_binary(function, element_type, x, y);
            let value = value.ok_or_else(|| Error::invalid("the accumulation mixes types"))?;
            Ok(if rounds { round_scalar(element_type, value) } else { value })
        })
    }

    /// True if elements may be combined in any order: one commutative and associative function of
    /// two parameters.
    pub(crate) fn is_free_of_order(&self) -> bool {
        use Binary::{Add, And, Maximum, Minimum, Multiply, Or, Xor};
        matches!(self.binary, Some(Add | And | Maximum | Minimum | Multiply | Or | Xor))
    }
}

impl Steps {
    fn run(&self, arguments: &[Scalar]) -> Result<Vec<Scalar>> {
        let mut values: Vec<Scalar> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let value = match step {
                Step::Parameter(number) => arguments[*number],
                Step::Constant(value) => *value,
                Step::Same(operand) => values[*operand],
                &Step::Bitcast { operand, from, to } => values[operand]
                    .bitcast(from, to)
                    .ok_or_else(|| Error::internal(format!("cannot bitcast from {from} to {to}")))?,
                Step::Apply { function, result, types, operands } => {
                    let mut inputs = [Scalar::Pred(false); MAX_OPERANDS];
                    for (inputs, &operand) in inputs.iter_mut().zip(operands) {
                        *inputs = values[operand];
                    }
                    function.apply(*result, types, &inputs[..operands.len()])?
                }
            };
            values.push(value);
        }
        Ok(self.results.iter().map(|&r| values[r]).collect())
    }
}

/// Converts a computation of scalar instructions to steps.
fn steps_of(computation: &Computation) -> Option<Steps> {
    let root = computation.root();
    let mut positions = BTreeMap::new();
    let mut steps = Vec::new();
    for id in computation.post_order() {
        if id == root && matches!(computation[id].op(), Op::Tuple {}) {
            continue;
        }
        let step = step_of(computation, id, &positions)?;
        positions.insert(id, steps.len());
        steps.push(step);
    }
    let results = match computation[root].op() {
        Op::Tuple {} => computation[root].operands().to_vec(),
        _ => vec![root],
    };
    let results = results.iter().map(|r| positions.get(r).copied()).collect::<Option<_>>()?;
    Some(Steps { steps, results })
}

/// Converts one instruction to a step, or returns `None` if it is not a function of scalars.
/// `positions` maps earlier instructions to their steps.
fn step_of(
    computation: &Computation,
    id: InstructionId,
    positions: &BTreeMap<InstructionId, usize>,
) -> Option<Step> {
    let scalar_type = |id: InstructionId| {
        computation[id].shape().as_array().filter(|a| a.rank() == 0).map(|array| array.element_type)
    };
    let instruction = &computation[id];
    let result = scalar_type(id)?;
    let operands = instruction.operands();
    let operands: Vec<usize> = operands.iter().map(|o| positions.get(o).copied()).collect::<Option<_>>()?;
    let types = instruction.operands().iter().map(|&o| scalar_type(o));
    let types: Vec<PrimitiveType> = types.collect::<Option<_>>()?;
    Some(match (instruction.op(), &operands[..], &types[..]) {
        (Op::Parameter { number }, ..) => Step::Parameter(*number),
        (Op::Constant { literal }, ..) => Step::Constant(literal.scalar_at(0)),
        (Op::Broadcast { .. } | Op::Reshape {} | Op::Transpose { .. }, &[operand], _) => Step::Same(operand),
        (Op::Bitcast {} | Op::BitcastConvert {}, &[operand], &[from])
            if from.bit_width() == result.bit_width() =>
        {
            Step::Bitcast { operand, from, to: result }
        }
        (op, ..) if operands.len() <= MAX_OPERANDS => {
            Step::Apply { function: Function::of(op)?, result, types, operands }
        }
        _ => return None,
    })
}

fn binary_of(computation: &Computation) -> Option<Binary> {
    let root = &computation[computation.root()];
    let (&[x, y], &[p, q]) = (root.operands(), computation.parameters()) else { return None };
    match Function::of(root.op()) {
        Some(Function::Binary(function)) if (x, y) == (p, q) || (x, y) == (q, p) => Some(function),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::OpMetadata;
    use shape::Shape;

    #[test]
    fn what_moves_or_reads_the_bits_of_scalars_is_a_step() {
        let mut c = Computation::new("bits");
        let mut add = |op, element_type, operands: &[InstructionId]| {
            c.add("", op, Shape::scalar(element_type), operands, OpMetadata::default())
        };
        let x = add(Op::Parameter { number: 0 }, PrimitiveType::F32, &[]);
        let x = add(Op::Reshape {}, PrimitiveType::F32, &[x]);
        let x = add(Op::Broadcast { dimensions: vec![] }, PrimitiveType::F32, &[x]);
        let x = add(Op::BitcastConvert {}, PrimitiveType::U32, &[x]);
        let root = add(Op::Not {}, PrimitiveType::U32, &[x]);
        c.set_root(root);
        let steps = steps_of(&c).expect("a function of scalars");
        assert_eq!(steps.run(&[Scalar::Float(1.0)]).unwrap(), [Scalar::Unsigned(0xc07f_ffff)]);
    }
}
