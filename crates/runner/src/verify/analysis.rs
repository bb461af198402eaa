//! The evaluator with a running error analysis: computes each instruction's value, and the allowed
//! distance of correct code from it.
//!
//! Code may round differently than the evaluator, which rounds once per instruction: code contracts
//! multiply-adds, sums in a different order and in the precision of the type, and its functions are
//! off by a few units in the last place. Therefore:
//! - Each instruction adds its own error: some ulps of its result. For sums of `n` terms `x`, with
//!   `u` half an ulp of 1 in the precision of the sum, it is `min(n, 8 sqrt(n)) u sum |x|`. This is
//!   the worst case for few terms, and a bound that rounding errors of many terms do not exceed
//!   unless they conspire (Higham and Mary, SIAM J. Sci. Comput. 41, 2019).
//! - Errors of operands are propagated by shifting the operands by them and evaluating the change.
//!   The same rule covers comparisons that might tip, conversions to integers, and poles.

use super::estimate::{Estimate, Growth, Known, Way, distances, doubles, magnitudes};
use super::rules::{Rule, is_linear, rule_of, terms_of_sum};
use super::{batch_norm, map, order, own, transforms};
use evaluator::Evaluator;
use hlo::custom_call::{CustomCallKind, custom_call};
use hlo::{Computation, ComputationId, Instruction, InstructionId, Module, Op, Traits};
use shape::{Literal, PrimitiveType, Scalar, Shape};
use std::collections::BTreeMap;
use support::{Error, Result};

/// The evaluator of one module, with errors.
pub(super) struct Analysis<'m> {
    module: &'m Module,
    pub(super) evaluator: Evaluator<'m>,
    pub(super) growth: Growth,
    /// Number of elements that may still be computed.
    budget: u64,
}

/// Overhead of evaluating one instruction, as a number of elements.
const BEGINNING: u64 = 64;

/// Maximum number of loop iterations for which errors are tracked.
const MAX_ITERATIONS: usize = 1 << 16;

impl<'m> Analysis<'m> {
    /// Creates an analysis that combines errors according to `growth`.
    pub(super) fn new(module: &'m Module, growth: Growth) -> Self {
        Self { module, evaluator: Evaluator::new(module), growth, budget: u64::MAX }
    }

    /// Returns the entry's result for exact arguments, or `None` if it requires computing more than
    /// `budget` elements.
    pub(super) fn run_within(&mut self, arguments: &[Literal], budget: u64) -> Result<Option<Estimate>> {
        self.budget = budget;
        match self.run(arguments) {
            Err(_) if self.budget == 0 => Ok(None),
            estimate => estimate.map(Some),
        }
    }

    /// Returns the entry's result for exact arguments.
    pub(super) fn run(&mut self, arguments: &[Literal]) -> Result<Estimate> {
        let arguments: Vec<Estimate> = arguments.iter().map(Estimate::exact).collect();
        self.computation(self.module.entry(), &arguments)
    }

    fn computation(&mut self, id: ComputationId, arguments: &[Estimate]) -> Result<Estimate> {
        let computation = &self.module[id];
        let order = computation.post_order();
        let mut uses = BTreeMap::new();
        for operand in order.iter().flat_map(|&i| computation[i].operands()) {
            *uses.entry(*operand).or_insert(0usize) += 1;
        }
        let mut values: BTreeMap<InstructionId, Estimate> = BTreeMap::new();
        for id in order {
            let instruction = &computation[id];
            let value = match instruction.op() {
                Op::Parameter { number } => arguments.get(*number).cloned().ok_or_else(|| {
                    Error::internal(format!("missing argument {number} of {}", computation.name()))
                })?,
                _ => {
                    let operands: Vec<&Estimate> =
                        instruction.operands().iter().map(|o| &values[o]).collect();
                    let value = self.instruction(computation, id, &operands);
                    value.map_err(|e| e.context(instruction.name()))?
                }
            };
            values.insert(id, value);
            for operand in instruction.operands() {
                let left = uses.get_mut(operand).expect("counted above");
                *left -= 1;
                if *left == 0 && *operand != computation.root() {
                    values.remove(operand);
                }
            }
        }
        values.remove(&computation.root()).ok_or_else(|| Error::internal("the root has no value"))
    }

    fn instruction(
        &mut self,
        computation: &Computation,
        id: InstructionId,
        operands: &[&Estimate],
    ) -> Result<Estimate> {
        let instruction = &computation[id];
        match instruction.op() {
            Op::Tuple {} => Ok(Estimate::Tuple(operands.iter().map(|&o| o.clone()).collect())),
            Op::GetTupleElement { index } => match operands {
                [Estimate::Tuple(elements)] if *index < elements.len() => Ok(elements[*index].clone()),
                _ => Err(Error::internal("the tuple does not have this element")),
            },
            Op::Fusion { calls, .. } => self.call(*calls, operands),
            Op::Call { to_apply } => self.call(*to_apply, operands),
            Op::While { condition, body } => self.while_loop(*condition, *body, operands),
            Op::Conditional { branch_computations } => self.conditional(branch_computations, operands),
            Op::OptimizationBarrier {} => Ok(operands[0].clone()),
            Op::Reshape {} | Op::Bitcast {} => self.reshape(instruction, operands),
            Op::Map { .. } => match map::on_arrays(self.module, instruction) {
                Some(arrays) => self.elsewhere(&arrays, operands),
                None => self.simple(instruction, operands),
            },
            _ => self.simple(instruction, operands),
        }
    }

    fn call(&mut self, callee: ComputationId, operands: &[&Estimate]) -> Result<Estimate> {
        let arguments: Vec<Estimate> = operands.iter().map(|&o| o.clone()).collect();
        self.computation(callee, &arguments)
    }

    /// Evaluates the entry of another module within the remaining budget.
    fn elsewhere(&mut self, module: &Module, operands: &[&Estimate]) -> Result<Estimate> {
        let mut analysis = Analysis { budget: self.budget, ..Analysis::new(module, self.growth) };
        let arguments: Vec<Estimate> = operands.iter().map(|&o| o.clone()).collect();
        let estimate = analysis.computation(module.entry(), &arguments);
        self.budget = analysis.budget;
        estimate
    }

    fn while_loop(
        &mut self,
        condition: ComputationId,
        body: ComputationId,
        operands: &[&Estimate],
    ) -> Result<Estimate> {
        let mut state = [operands[0].clone()];
        let mut is_certain = true;
        for _ in 0..MAX_ITERATIONS {
            let continues = self.computation(condition, &state)?;
            is_certain &= continues.is_exact();
            if !is_true(&continues.value()) {
                let [state] = state;
                // Correct code may run a different number of iterations, so nothing is known about
                // the changing values.
                return Ok(if is_certain { state } else { state.undecided() });
            }
            state = [self.computation(body, &state)?];
        }
        self.budget = 0;
        Err(Error::unsupported(format!("the loop has more than {MAX_ITERATIONS} iterations")))
    }

    fn conditional(&mut self, branches: &[ComputationId], operands: &[&Estimate]) -> Result<Estimate> {
        let number = branch(&operands[0].value(), branches.len());
        let result = self.computation(branches[number], &[operands[number + 1].clone()])?;
        // Correct code may choose a different branch.
        Ok(if operands[0].is_exact() { result } else { result.undecided() })
    }

    /// Reshapes an estimate, which preserves elements and errors.
    fn reshape(&mut self, instruction: &Instruction, operands: &[&Estimate]) -> Result<Estimate> {
        let value = self.evaluate(instruction, &[&operands[0].value()])?;
        match operands[0] {
            Estimate::Array(known) => Ok(Estimate::Array(Known { value, error: known.error.clone() })),
            Estimate::Tuple(_) => {
                Err(Error::internal("expected an array operand of the reshape, got a tuple"))
            }
        }
    }

    /// Evaluates an instruction that calls nothing, or only scalar computations.
    fn simple(&mut self, instruction: &Instruction, operands: &[&Estimate]) -> Result<Estimate> {
        let values: Vec<Literal> = operands.iter().map(|o| o.value()).collect();
        let exact = operands.iter().all(|o| o.is_exact());
        let value = self.evaluate(instruction, &values.iter().collect::<Vec<_>>());
        if !exact && matches!(custom_call(instruction.op()), Some(CustomCallKind::Assert { .. })) {
            // Correct code may decide a check differently. Other values must not be tried.
            let value = value.map_err(|error| Error::unsupported(format!("uncertain: {error}")))?;
            return Ok(Estimate::with_errors(&value, &mut std::iter::empty()));
        }
        let value = value?;
        let rule = rule_of(self.module, instruction);
        let mut errors = self.own_errors(&rule, instruction, &values, &value)?;
        if let Some(of_parts) = batch_norm::errors(instruction, operands) {
            for (total, more) in errors.iter_mut().zip(&of_parts) {
                self.growth.add(total, more);
            }
        } else if !exact {
            let carried = match rule {
                Rule::Moves if moves_data(instruction, operands) => {
                    vec![self.moved_errors(instruction, operands)?]
                }
                Rule::Elementwise => self.elementwise(instruction, operands, &values, &value)?,
                Rule::Product | Rule::Sum if value_is_array(&value) => {
                    self.linear(&rule, instruction, operands, &values)?
                }
                Rule::Factors if value_is_array(&value) => {
                    vec![self.factors(&rule, instruction, operands, &values)?]
                }
                _ => match order::propagate(self.module, instruction, operands) {
                    Some(errors) => errors,
                    None => self.together(instruction, operands, &value)?,
                },
            };
            for (total, more) in errors.iter_mut().zip(&carried) {
                self.growth.add(total, more);
            }
        }
        for (array, errors) in leaves(&value).into_iter().zip(&mut errors) {
            own::mark_nan(instruction.op(), operands, array, errors);
        }
        Ok(Estimate::with_errors(&value, &mut errors.into_iter()))
    }

    fn evaluate(&mut self, instruction: &Instruction, operands: &[&Literal]) -> Result<Literal> {
        self.charge(instruction, operands)?;
        self.evaluator.evaluate_instruction(instruction.op(), instruction.shape(), operands)
    }

    /// Subtracts the cost of an evaluation from the budget: its elements, plus the overhead of one
    /// instruction.
    pub(super) fn charge(&mut self, instruction: &Instruction, operands: &[&Literal]) -> Result<()> {
        let count = |literal: &Literal| leaves(literal).into_iter().map(count).sum::<usize>() as u64;
        let elements = operands.iter().map(|o| count(o)).sum::<u64>();
        let results = instruction.shape().as_array().map_or(0, |array| array.element_count() as u64);
        self.budget = self.budget.saturating_sub(elements.saturating_add(results).saturating_add(BEGINNING));
        if self.budget == 0 {
            return Err(Error::unsupported("too many elements to track the error of each"));
        }
        Ok(())
    }

    /// Moves the errors along with the elements.
    fn moved_errors(&mut self, instruction: &Instruction, operands: &[&Estimate]) -> Result<Vec<f64>> {
        let errors = operands.iter().enumerate().map(|(k, operand)| match operand {
            Estimate::Array(known) if is_data(instruction.op(), k) => doubles(&known.value, known.errors()),
            other => other.value(),
        });
        self.evaluate_doubles(instruction, &errors.collect::<Vec<_>>())
    }

    /// Returns the effect of the instruction's own rounding on each array of its result.
    fn own_errors(
        &mut self,
        rule: &Rule,
        instruction: &Instruction,
        operands: &[Literal],
        value: &Literal,
    ) -> Result<Vec<Vec<f64>>> {
        let arrays = leaves(value);
        let rounds = |array: &&Literal| {
            let element_type = array.array_shape().element_type;
            element_type.is_floating_point() || element_type.is_complex()
        };
        if !arrays.iter().any(&rounds) {
            return Ok(arrays.iter().map(|a| vec![0.0; count(a)]).collect());
        }
        let sums = match rule {
            // A part that is NaN or infinite has no influence on the other one.
            Rule::Sum if value_is_array(value) && is_complex(value) => {
                let mut sums = Vec::new();
                for part in [own::real_parts, own::imaginary_parts] {
                    sums.push(self.sum_of(part, rule, instruction, operands)?);
                }
                sums
            }
            Rule::Product | Rule::Sum if value_is_array(value) => {
                vec![self.sum_of(magnitudes, rule, instruction, operands)?]
            }
            _ => Vec::new(),
        };
        let terms = terms_of_sum(instruction, operands);
        if transforms::may_differ(instruction, operands, terms)
            || transforms::may_leave_range(self.module, instruction, operands, terms)
        {
            return Ok(arrays.iter().map(|a| vec![f64::INFINITY; count(a)]).collect());
        }
        // Upper bound of sums of finite terms.
        let finite_sum = operands.iter().map(own::largest_finite).product::<f64>() * terms;
        let mixed = if transforms::may_apply(instruction, operands) { finite_sum } else { 0.0 };
        let bounds = own::SumBounds { terms, finite_sum, mixed };
        let errors = arrays.into_iter().map(|array| {
            if !rounds(&array) {
                return vec![0.0; count(array)];
            }
            match (rule, sums.as_slice()) {
                (Rule::Product | Rule::Sum, [sums]) => {
                    let element_type = array.array_shape().element_type;
                    let flushed = own::flushed_products(rule, operands, terms);
                    let errors = own::sum_errors(element_type, magnitudes(array), sums, &bounds);
                    errors.into_iter().map(|error| error + flushed).collect()
                }
                (Rule::Sum, [re, im]) => {
                    let element_type = array.array_shape().element_type;
                    let part_errors =
                        |parts: Vec<f64>, sums: &[f64]| own::sum_errors(element_type, parts, sums, &bounds);
                    let errors = part_errors(own::real_parts(array), re).into_iter();
                    let errors = errors.zip(part_errors(own::imaginary_parts(array), im));
                    errors.map(|(re, im)| re.hypot(im)).collect()
                }
                (Rule::Elementwise, _) => own::elementwise_errors(instruction, array, operands),
                (Rule::Moves, _) => vec![0.0; count(array)],
                _ => own::normwise_errors(array, &bounds),
            }
        });
        Ok(errors.collect())
    }

    /// Returns the effect of the operands' errors on an elementwise function: of each error alone,
    /// with the other operands unchanged, and the additional effect of all together (the product of
    /// two zeros, a choice between two numbers).
    fn elementwise(
        &mut self,
        instruction: &Instruction,
        operands: &[&Estimate],
        values: &[Literal],
        value: &Literal,
    ) -> Result<Vec<Vec<f64>>> {
        let none = || leaves(value).iter().map(|a| vec![0.0; count(a)]).collect::<Vec<_>>();
        let (mut total, mut sum) = (none(), none());
        let inexact: Vec<usize> = (0..operands.len()).filter(|&k| !operands[k].is_exact()).collect();
        for &k in &inexact {
            let mut change = Vec::new();
            let is_complex = values[k].array_shape().element_type.is_complex();
            for &way in Way::all(is_complex) {
                let shifted = operands[k].shifted(way);
                self.with_moved(instruction, values, &[(k, &shifted)], value, &mut change)?;
            }
            poison(instruction.op(), k, operands[k], values, value, &mut change);
            // A few ways of moving a complex number are not all.
            if is_complex {
                change.iter_mut().flatten().for_each(|change| *change *= 2.0);
            }
            for ((total, sum), change) in total.iter_mut().zip(&mut sum).zip(&change) {
                self.growth.add(total, change);
                Growth::Worst.add(sum, change);
            }
        }
        if inexact.len() > 1 && !is_linear(instruction.op()) {
            let mut corners = Vec::new();
            for corner in 0..1usize << inexact.len().min(3) {
                let way = |n: usize| if corner >> n & 1 == 1 { Way::Up } else { Way::Down };
                let shifted: Vec<Literal> =
                    inexact.iter().enumerate().map(|(n, &k)| operands[k].shifted(way(n))).collect();
                let moved: Vec<(usize, &Literal)> = inexact.iter().copied().zip(&shifted).collect();
                self.with_moved(instruction, values, &moved, value, &mut corners)?;
            }
            for ((total, sum), corners) in total.iter_mut().zip(&sum).zip(&mut corners) {
                corners.iter_mut().zip(sum).for_each(|(corner, sum)| *corner = (*corner - sum).max(0.0));
                self.growth.add(total, corners);
            }
        }
        if let [total] = total.as_mut_slice() {
            own::mark_between(instruction.op(), operands, value, total);
        }
        Ok(total)
    }

    /// Raises `changes` to the distances of the instruction's result with some operands shifted.
    fn with_moved(
        &mut self,
        instruction: &Instruction,
        values: &[Literal],
        moved: &[(usize, &Literal)],
        value: &Literal,
        changes: &mut Vec<Vec<f64>>,
    ) -> Result<()> {
        let mut all: Vec<&Literal> = values.iter().collect();
        for &(k, literal) in moved {
            all[k] = literal;
        }
        let result = self.evaluate(instruction, &all)?;
        widen(changes, value, &result);
        Ok(())
    }

    /// Returns the effect of all operands' errors, shifted together up and down, for instructions
    /// without arithmetic.
    fn together(
        &mut self,
        instruction: &Instruction,
        operands: &[&Estimate],
        value: &Literal,
    ) -> Result<Vec<Vec<f64>>> {
        let mut change = Vec::new();
        let is_complex =
            |o: &&Estimate| o.arrays().iter().any(|a| a.value.array_shape().element_type.is_complex());
        for &way in Way::all(operands.iter().any(is_complex)) {
            let moved: Vec<Literal> = operands.iter().map(|o| o.shifted(way)).collect();
            let result = self.evaluate(instruction, &moved.iter().collect::<Vec<_>>())?;
            widen(&mut change, value, &result);
        }
        Ok(change)
    }
}

/// Makes the result arbitrary if an operand may be anything, even NaN. For bounded functions,
/// shifting the operand as far as possible does not reveal this.
fn poison(
    op: &Op,
    operand: usize,
    estimate: &Estimate,
    values: &[Literal],
    value: &Literal,
    change: &mut [Vec<f64>],
) {
    let Estimate::Array(Known { error: Some(errors), .. }) = estimate else { return };
    let (Literal::Array { .. }, [change]) = (value, change) else { return };
    // Unselected operands do not matter.
    if matches!(op, Op::Select {}) && operand > 0 {
        return;
    }
    let anything = if value.array_shape().element_type == PrimitiveType::Pred { 1.0 } else { f64::INFINITY };
    for (k, change) in change.iter_mut().enumerate() {
        let error = if errors.len() == 1 { errors[0] } else { errors[k] };
        if error == f64::INFINITY {
            *change = anything;
        }
        // Shifts by whole periods seem to change nothing.
        match op {
            // A part of the operand is an angle, which then decides the direction of the result.
            Op::Exp {}
            | Op::Expm1 {}
            | Op::Sin {}
            | Op::Cos {}
            | Op::Sinh {}
            | Op::Cosh {}
            | Op::Tan {}
            | Op::Tanh {}
            | Op::Logistic {}
                if is_complex(value) && error > 0.5 =>
            {
                *change = anything
            }
            Op::Sin {} | Op::Cos {} => *change = change.max(error.min(2.0)),
            Op::Tan {} if error > 0.5 => *change = anything,
            Op::Remainder {} => *change = change.max(own::unknown_remainder(values, operand, k, error)),
            _ => {}
        }
    }
}

/// True if an instruction only moves data, to places that are certain.
fn moves_data(instruction: &Instruction, operands: &[&Estimate]) -> bool {
    let op = instruction.op();
    let moves = op.opcode().traits().contains(Traits::REINDEXES)
        || matches!(
            op,
            Op::Concatenate { .. }
                | Op::Copy {}
                | Op::DynamicSlice { .. }
                | Op::DynamicUpdateSlice {}
                | Op::Gather { .. }
                | Op::Pad { .. }
        );
    moves
        && matches!(instruction.shape(), Shape::Array(_))
        && operands.iter().enumerate().all(|(k, operand)| {
            matches!(operand, Estimate::Array(_)) && (is_data(op, k) || operand.is_exact())
        })
}

/// True if an operand of an instruction that moves data is data rather than an index.
fn is_data(op: &Op, operand: usize) -> bool {
    match op {
        Op::DynamicSlice { .. } | Op::Gather { .. } => operand == 0,
        Op::DynamicUpdateSlice {} => operand < 2,
        _ => true,
    }
}

/// Raises `changes` to the distances between two results.
fn widen(changes: &mut Vec<Vec<f64>>, value: &Literal, moved: &Literal) {
    let distances = leaves(value).into_iter().zip(leaves(moved)).map(|(a, b)| distances(a, b));
    for (k, distances) in distances.enumerate() {
        match changes.get_mut(k) {
            Some(change) => change.iter_mut().zip(distances).for_each(|(c, d)| *c = c.max(d)),
            None => changes.push(distances),
        }
    }
}

fn leaves(value: &Literal) -> Vec<&Literal> {
    match value {
        Literal::Array { .. } => vec![value],
        Literal::Tuple(elements) => elements.iter().flat_map(leaves).collect(),
    }
}

pub(super) fn count(array: &Literal) -> usize {
    array.array_shape().element_count() as usize
}

fn is_complex(value: &Literal) -> bool {
    value.array_shape().element_type.is_complex()
}

fn value_is_array(value: &Literal) -> bool {
    matches!(value, Literal::Array { .. })
}

/// True if a `pred` scalar is true.
pub(super) fn is_true(value: &Literal) -> bool {
    value_is_array(value) && count(value) == 1 && value.scalar_at(0) == Scalar::Pred(true)
}

/// Returns the branch that an index or predicate selects.
pub(super) fn branch(index: &Literal, branches: usize) -> usize {
    match index.scalar_at(0) {
        Scalar::Pred(true) => 0,
        Scalar::Pred(false) => 1,
        other => match other.as_i64().and_then(|i| usize::try_from(i).ok()) {
            Some(i) if i < branches => i,
            _ => branches.saturating_sub(1),
        },
    }
}
