//! Evaluates computations, and the control-flow instructions that call them.

use crate::array::{predicate, scalar, static_shape};
use crate::data_movement;
use crate::evaluator::Evaluator;
use hlo::{Computation, ComputationId, Instruction, InstructionId, Op, Opcode, Traits};
use shape::{Literal, Scalar};
use std::collections::BTreeMap;
use support::{Error, Id, Result};

/// Actual sizes of dynamic dimensions that are smaller than their bounds.
type DynamicSizes = BTreeMap<usize, i64>;

/// The values of a computation's instructions, each released after its last use.
struct Values {
    literals: Vec<Option<Literal>>,
    uses: Vec<usize>,
    dynamic_sizes: BTreeMap<InstructionId, DynamicSizes>,
    live_bytes: u64,
}

impl Evaluator<'_> {
    /// Evaluates one computation. The arguments must have the shapes of its parameters.
    pub fn evaluate_computation(&mut self, id: ComputationId, arguments: &[Literal]) -> Result<Literal> {
        let module = self.module;
        let Some(computation) = module.get(id) else {
            return Err(Error::internal(format!("{id} is not a computation of module {}", module.name())));
        };
        check_arguments(computation, arguments)?;
        if self.depth >= self.limits.max_depth {
            let limit = self.limits.max_depth;
            return Err(Error::unsupported(format!("computations are nested more than {limit} calls deep")));
        }
        self.depth += 1;
        let order = computation.post_order();
        let mut values = Values::new(computation, &order);
        let result = self.evaluate_instructions(computation, &order, arguments, &mut values);
        self.live_bytes -= values.live_bytes;
        self.depth -= 1;
        result
    }

    fn evaluate_instructions(
        &mut self,
        computation: &Computation,
        order: &[InstructionId],
        arguments: &[Literal],
        values: &mut Values,
    ) -> Result<Literal> {
        for &id in order {
            let instruction = &computation[id];
            let value = self.evaluate_in(computation, id, arguments, values).map_err(|e| {
                e.context(format_args!("{} ({})", instruction.name(), instruction.opcode().name()))
            })?;
            self.keep(values, id, value);
            for &operand in instruction.operands() {
                self.release(values, operand);
            }
        }
        let root = values.literals[computation.root().index()].clone();
        let root =
            root.ok_or_else(|| Error::internal(format!("the root of {} has no value", computation.name())))?;
        if self.depth == 1 { values.in_true_sizes(computation, root) } else { Ok(root) }
    }

    fn evaluate_in(
        &mut self,
        computation: &Computation,
        id: InstructionId,
        arguments: &[Literal],
        values: &mut Values,
    ) -> Result<Literal> {
        let instruction = &computation[id];
        if let Op::Parameter { number } = instruction.op() {
            return Ok(arguments[*number].clone());
        }
        let mut dynamic_sizes =
            values.dynamic_sizes(instruction, self.depth == 1 && id == computation.root())?;
        if let Op::GetDimensionSize { dimension } = instruction.op()
            && let Some(&size) = dynamic_sizes.get(dimension)
        {
            return Ok(Literal::scalar(size as i32));
        }
        let operands: Vec<&Literal> = instruction
            .operands()
            .iter()
            .map(|o| {
                values.literals[o.index()]
                    .as_ref()
                    .expect("operands come first and live until their last use")
            })
            .collect();
        let result = match instruction.op() {
            Op::Bitcast {} => {
                let operand_shape = computation[instruction.operands()[0]].shape();
                data_movement::bitcast(operand_shape, instruction.shape(), operands[0])?
            }
            op => self.evaluate_instruction(op, instruction.shape(), &operands)?,
        };
        if let Op::SetDimensionSize { dimension } = instruction.op() {
            let size = dynamic_size(operands[1], instruction, *dimension)?;
            if size < instruction.shape().expect_array().size(*dimension) {
                dynamic_sizes.insert(*dimension, size);
            } else {
                dynamic_sizes.remove(dimension);
            }
        }
        if matches!(instruction.op(), Op::GetDimensionSize { .. }) {
            dynamic_sizes.clear();
        }
        if !dynamic_sizes.is_empty() {
            values.dynamic_sizes.insert(id, dynamic_sizes);
        }
        Ok(result)
    }

    fn keep(&mut self, values: &mut Values, id: InstructionId, value: Literal) {
        if values.uses[id.index()] > 0 {
            let bytes = byte_size(&value);
            values.live_bytes += bytes;
            self.live_bytes += bytes;
            values.literals[id.index()] = Some(value);
        }
    }

    fn release(&mut self, values: &mut Values, id: InstructionId) {
        values.uses[id.index()] -= 1;
        if values.uses[id.index()] == 0
            && let Some(value) = values.literals[id.index()].take()
        {
            let bytes = byte_size(&value);
            values.live_bytes -= bytes;
            self.live_bytes -= bytes;
        }
    }

    /// Evaluates `while`: applies `body` to the state while `condition` holds for it.
    pub(crate) fn while_loop(
        &mut self,
        condition: ComputationId,
        body: ComputationId,
        init: &Literal,
    ) -> Result<Literal> {
        let mut state = init.clone();
        loop {
            self.charge(1)?;
            let arguments = [state];
            if !predicate(&self.evaluate_computation(condition, &arguments)?)? {
                let [state] = arguments;
                return Ok(state);
            }
            state = self.evaluate_computation(body, &arguments)?;
        }
    }

    /// Evaluates `conditional`: a predicate selects branch 0 if true, else 1. An index out of range
    /// selects the last branch.
    pub(crate) fn conditional(
        &mut self,
        branches: &[ComputationId],
        operands: &[&Literal],
    ) -> Result<Literal> {
        let [index, arguments @ ..] = operands else {
            return Err(Error::invalid("missing index operand of the conditional"));
        };
        let number = match scalar(index)? {
            Scalar::Pred(true) => 0,
            Scalar::Pred(false) => 1,
            other => match other.as_i64().and_then(|i| usize::try_from(i).ok()) {
                Some(i) if i < branches.len() => i,
                _ => branches.len().saturating_sub(1),
            },
        };
        match (branches.get(number), arguments.get(number)) {
            (Some(&branch), Some(&argument)) => {
                self.evaluate_computation(branch, std::slice::from_ref(argument))
            }
            _ => Err(Error::invalid(format!("the conditional has no branch or no operand {number}"))),
        }
    }

    /// Evaluates `call` and `fusion`.
    pub(crate) fn call(&mut self, callee: ComputationId, operands: &[&Literal]) -> Result<Literal> {
        let arguments: Vec<Literal> = operands.iter().map(|&o| o.clone()).collect();
        self.evaluate_computation(callee, &arguments)
    }
}

impl Values {
    fn new(computation: &Computation, order: &[InstructionId]) -> Self {
        let mut uses = vec![0; computation.id_count()];
        for &id in order {
            for operand in computation[id].operands() {
                uses[operand.index()] += 1;
            }
        }
        uses[computation.root().index()] += 1;
        let literals = vec![None; computation.id_count()];
        Self { literals, uses, dynamic_sizes: BTreeMap::new(), live_bytes: 0 }
    }

    /// Cuts each array of the final result to its true sizes.
    fn in_true_sizes(&self, computation: &Computation, root: Literal) -> Result<Literal> {
        let root_instruction = &computation[computation.root()];
        let cut = |id: &InstructionId, literal: Literal| match (self.dynamic_sizes.get(id), &literal) {
            (Some(cut), Literal::Array { shape, .. }) => {
                let mut sizes = shape.sizes();
                cut.iter().for_each(|(&dimension, &size)| sizes[dimension] = size);
                literal.corner(&sizes).ok_or_else(|| Error::internal("a dynamic size exceeds its bound"))
            }
            _ => Ok(literal),
        };
        match (root, root_instruction.op()) {
            (Literal::Tuple(elements), Op::Tuple {}) => {
                let elements = root_instruction.operands().iter().zip(elements);
                Ok(Literal::Tuple(elements.map(|(id, literal)| cut(id, literal)).collect::<Result<_>>()?))
            }
            (root, _) => cut(&computation.root(), root),
        }
    }

    /// Returns the dynamic sizes that an instruction inherits. Only elementwise instructions and a
    /// few others can process an array with missing elements. Any other instruction with such an
    /// operand is an error.
    fn dynamic_sizes(&self, instruction: &Instruction, is_result: bool) -> Result<DynamicSizes> {
        let mut inherited = DynamicSizes::new();
        for operand in instruction.operands() {
            let Some(sizes) = self.dynamic_sizes.get(operand) else { continue };
            let opcode = instruction.opcode();
            let passes = opcode.traits().contains(Traits::ELEMENTWISE)
                || matches!(
                    opcode,
                    Opcode::GetDimensionSize | Opcode::SetDimensionSize | Opcode::OptimizationBarrier
                );
            // The final results are cut to their sizes at the end.
            if opcode == Opcode::Tuple && is_result {
                continue;
            }
            if !passes {
                return Err(Error::unsupported(
                    "an operand is smaller than its bounds, which only elementwise instructions support",
                ));
            }
            inherited.extend(sizes);
        }
        Ok(inherited)
    }
}

fn dynamic_size(size: &Literal, instruction: &Instruction, dimension: usize) -> Result<i64> {
    let bound = instruction.shape().expect_array().size(dimension);
    match scalar(size)?.as_i64() {
        Some(size) if (0..=bound).contains(&size) => Ok(size),
        other => {
            Err(Error::invalid(format!("dimension {dimension} of bound {bound} cannot have size {other:?}")))
        }
    }
}

fn check_arguments(computation: &Computation, arguments: &[Literal]) -> Result<()> {
    let (name, parameters) = (computation.name(), computation.parameters());
    if parameters.len() != arguments.len() {
        let (expected, actual) = (parameters.len(), arguments.len());
        return Err(Error::invalid(format!("{name} takes {expected} arguments, got {actual}")));
    }
    for (number, (&parameter, argument)) in parameters.iter().zip(arguments).enumerate() {
        let expected = static_shape(computation[parameter].shape());
        if !expected.compatible(&static_shape(&argument.shape())) {
            let actual = argument.shape();
            return Err(Error::invalid(format!(
                "expected argument {number} of {name} to be {expected}, got {actual}"
            )));
        }
    }
    Ok(())
}

fn byte_size(literal: &Literal) -> u64 {
    match literal {
        Literal::Array { data, .. } => data.len() as u64,
        Literal::Tuple(elements) => elements.iter().map(byte_size).sum(),
    }
}
