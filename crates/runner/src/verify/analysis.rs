//! The evaluator with a running error analysis: each instruction's value, and how far correct code may be from it.
//!
//! Code may round differently than the evaluator, which rounds once for each instruction: it contracts multiply-adds, sums
//! in another order and in the precision of the type, and its functions are off by a few units in the last place. So:
//! - each instruction adds an error of its own: some ulps of its result; for sums of `n` terms `x`, with `u` half an ulp
//!   of 1 in the precision that sums are taken in, `min(n, 8 sqrt(n)) u sum |x|`: the worst case for few terms, and for
//!   many what rounding errors do not exceed unless they conspire (Higham and Mary, SIAM J. Sci. Comput. 41, 2019);
//! - errors of operands are carried on by moving the operands by them: the evaluator says what then changes, so comparisons
//!   that might tip, conversions to integers and poles are covered by the same rule.

use super::estimate::{Estimate, Growth, Known, distances, doubles, epsilon, magnitudes};
use super::rules::{Rule, own_ulps, rule_of, terms_of_sum};
use super::transforms;
use crate::fill::extremes;
use evaluator::Evaluator;
use hlo::{Computation, ComputationId, Instruction, InstructionId, Module, Op, Traits};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use std::collections::BTreeMap;
use support::{Error, Result};

/// The evaluator of one module, with errors.
pub(super) struct Analysis<'m> {
    module: &'m Module,
    evaluator: Evaluator<'m>,
    growth: Growth,
    /// How many elements may still be computed.
    budget: u64,
}

/// Iterations of loops that are followed with errors.
const MAX_ITERATIONS: usize = 1 << 16;

impl<'m> Analysis<'m> {
    /// Errors that add up in this way.
    pub(super) fn new(module: &'m Module, growth: Growth) -> Self {
        Self { module, evaluator: Evaluator::new(module), growth, budget: u64::MAX }
    }

    /// The entry's result for exact arguments, unless more than so many elements have to be computed for it.
    pub(super) fn run_within(&mut self, arguments: &[Literal], budget: u64) -> Result<Option<Estimate>> {
        self.budget = budget;
        match self.run(arguments) {
            Err(_) if self.budget == 0 => Ok(None),
            estimate => estimate.map(Some),
        }
    }

    /// The entry's result for exact arguments.
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
                    Error::internal(format!("{} has no argument {number}", computation.name()))
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
                _ => Err(Error::internal("a tuple without this element")),
            },
            Op::Fusion { calls, .. } => self.call(*calls, operands),
            Op::Call { to_apply } => self.call(*to_apply, operands),
            Op::While { condition, body } => self.while_loop(*condition, *body, operands),
            Op::Conditional { branch_computations } => self.conditional(branch_computations, operands),
            Op::OptimizationBarrier {} => Ok(operands[0].clone()),
            Op::Reshape {} | Op::Bitcast {} => self.reshape(instruction, operands),
            _ => self.simple(instruction, operands),
        }
    }

    fn call(&mut self, callee: ComputationId, operands: &[&Estimate]) -> Result<Estimate> {
        let arguments: Vec<Estimate> = operands.iter().map(|&o| o.clone()).collect();
        self.computation(callee, &arguments)
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
            let goes_on = self.computation(condition, &state)?;
            is_certain &= goes_on.is_exact();
            if !is_true(&goes_on.value()) {
                let [state] = state;
                // Correct code may run another number of times, and nothing can be said of what changes then.
                return Ok(if is_certain { state } else { state.undecided() });
            }
            state = [self.computation(body, &state)?];
        }
        self.budget = 0;
        Err(Error::unsupported(format!("a loop of more than {MAX_ITERATIONS} iterations")))
    }

    fn conditional(&mut self, branches: &[ComputationId], operands: &[&Estimate]) -> Result<Estimate> {
        let chosen = branch(&operands[0].value(), branches.len());
        let result = self.computation(branches[chosen], &[operands[chosen + 1].clone()])?;
        // Correct code may choose another branch.
        Ok(if operands[0].is_exact() { result } else { result.undecided() })
    }

    /// The same elements, so the same errors.
    fn reshape(&mut self, instruction: &Instruction, operands: &[&Estimate]) -> Result<Estimate> {
        let value = self.evaluate(instruction, &[&operands[0].value()])?;
        match operands[0] {
            Estimate::Array(known) => Ok(Estimate::Array(Known { value, error: known.error.clone() })),
            Estimate::Tuple(_) => Err(Error::internal("a reshaped tuple")),
        }
    }

    /// An instruction that calls nothing, or scalar computations only.
    fn simple(&mut self, instruction: &Instruction, operands: &[&Estimate]) -> Result<Estimate> {
        let values: Vec<Literal> = operands.iter().map(|o| o.value()).collect();
        let value = self.evaluate(instruction, &values.iter().collect::<Vec<_>>())?;
        let exact = operands.iter().all(|o| o.is_exact());
        let rule = rule_of(self.module, instruction);
        let mut errors = self.own_errors(&rule, instruction, &values, &value)?;
        if !exact {
            let carried = match rule {
                Rule::Moves if moves_data(instruction, operands) => vec![self.moved(instruction, operands)?],
                Rule::Elementwise => self.one_by_one(instruction, operands, &values, &value)?,
                Rule::Product | Rule::Sum if value_is_array(&value) => {
                    self.linear(&rule, instruction, operands, &values)?
                }
                _ => self.together(instruction, operands, &value)?,
            };
            for (total, more) in errors.iter_mut().zip(&carried) {
                self.growth.add(total, more);
            }
        }
        Ok(Estimate::with_errors(&value, &mut errors.into_iter()))
    }

    fn evaluate(&mut self, instruction: &Instruction, operands: &[&Literal]) -> Result<Literal> {
        self.charge(instruction, operands)?;
        self.evaluator.evaluate_instruction(instruction.op(), instruction.shape(), operands)
    }

    /// Takes what an evaluation costs out of the budget.
    fn charge(&mut self, instruction: &Instruction, operands: &[&Literal]) -> Result<()> {
        let count = |literal: &Literal| leaves(literal).into_iter().map(count).sum::<usize>() as u64;
        let elements = operands.iter().map(|o| count(o)).sum::<u64>();
        let results = instruction.shape().as_array().map_or(0, |array| array.element_count() as u64);
        self.budget = self.budget.saturating_sub(elements.saturating_add(results).saturating_add(1));
        if self.budget == 0 {
            return Err(Error::unsupported("too many elements to follow the error of each"));
        }
        Ok(())
    }

    /// Moves the errors as the elements are moved.
    fn moved(&mut self, instruction: &Instruction, operands: &[&Estimate]) -> Result<Vec<f64>> {
        let errors = operands.iter().enumerate().map(|(k, operand)| match operand {
            Estimate::Array(known) if is_data(instruction.op(), k) => doubles(&known.value, known.errors()),
            other => other.value(),
        });
        self.evaluate_doubles(instruction, &errors.collect::<Vec<_>>())
    }

    /// What the instruction's own rounding may do to each array of its result.
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
            Rule::Product | Rule::Sum if value_is_array(value) => {
                Some(self.sum_of_magnitudes(rule, instruction, operands)?)
            }
            _ => None,
        };
        let terms = terms_of_sum(instruction, operands);
        if transforms::may_differ(instruction, operands, terms)
            || transforms::may_leave_range(self.module, instruction, operands, terms)
        {
            return Ok(arrays.iter().map(|a| vec![f64::INFINITY; count(a)]).collect());
        }
        // What finite terms may add up to.
        let finite_sum = operands.iter().map(largest_finite).product::<f64>() * terms;
        let errors = arrays.into_iter().map(|array| {
            if !rounds(&array) {
                return vec![0.0; count(array)];
            }
            match (rule, &sums) {
                (Rule::Product | Rule::Sum, Some(sums)) => sum_errors(array, sums, terms, finite_sum),
                (Rule::Elementwise, _) => elementwise_errors(instruction, array, operands),
                (Rule::Moves, _) => vec![0.0; count(array)],
                _ => normwise_errors(array, terms),
            }
        });
        Ok(errors.collect())
    }

    /// `sum |x|` or `sum |x y|` of each element of the result, in `f64`.
    fn sum_of_magnitudes(
        &mut self,
        rule: &Rule,
        instruction: &Instruction,
        operands: &[Literal],
    ) -> Result<Vec<f64>> {
        let operands: Vec<Literal> = operands
            .iter()
            .enumerate()
            .map(|(k, o)| if is_term(rule, instruction, k) { doubles(o, magnitudes(o)) } else { o.clone() })
            .collect();
        self.evaluate_doubles(instruction, &operands)
    }

    fn evaluate_doubles(&mut self, instruction: &Instruction, operands: &[Literal]) -> Result<Vec<f64>> {
        let sizes = instruction.shape().expect_array().sizes();
        let shape = Shape::Array(ArrayShape::new(PrimitiveType::F64, &sizes));
        let operands: Vec<&Literal> = operands.iter().collect();
        self.charge(instruction, &operands)?;
        let sums = self.evaluator.evaluate_instruction(instruction.op(), &shape, &operands)?;
        sums.floats().ok_or_else(|| Error::internal("sums of doubles are doubles"))
    }

    /// What the operands' errors do to a sum, or to a sum of products: by the same instruction on errors and magnitudes.
    fn linear(
        &mut self,
        rule: &Rule,
        instruction: &Instruction,
        operands: &[&Estimate],
        values: &[Literal],
    ) -> Result<Vec<Vec<f64>>> {
        let squares = self.growth == Growth::Independent;
        let power = |v: f64| if squares { v * v } else { v };
        let errors: Vec<Option<Literal>> = operands
            .iter()
            .zip(values)
            .map(|(operand, value)| match operand {
                Estimate::Array(known) if known.error.is_some() => {
                    Some(doubles(value, known.errors().into_iter().map(power)))
                }
                _ => None,
            })
            .collect();
        let magnitude = |value: &Literal| doubles(value, magnitudes(value).into_iter().map(power));
        let mut total: Vec<f64> = Vec::new();
        let mut add = |term: Vec<f64>| {
            if total.is_empty() {
                total = term;
            } else {
                total.iter_mut().zip(term).for_each(|(t, more)| *t += more);
            }
        };
        if *rule == Rule::Product {
            for k in 0..2 {
                let Some(error) = &errors[k] else { continue };
                let mut pair = [magnitude(&values[0]), magnitude(&values[1])];
                pair[k] = error.clone();
                add(self.evaluate_doubles(instruction, &pair)?);
            }
        } else {
            let terms = values.iter().zip(&errors).enumerate().map(|(k, (value, error))| match error {
                Some(error) if is_term(rule, instruction, k) => error.clone(),
                None if is_term(rule, instruction, k) => doubles(value, vec![0.0; count(value)]),
                _ => value.clone(),
            });
            let terms: Vec<Literal> = terms.collect();
            add(self.evaluate_doubles(instruction, &terms)?);
        }
        let root = |v: &f64| if squares { v.sqrt() } else { *v };
        Ok(vec![total.iter().map(root).map(|v| if v.is_nan() { f64::INFINITY } else { v }).collect()])
    }

    /// What each operand's errors do to the result, with the others as they are.
    fn one_by_one(
        &mut self,
        instruction: &Instruction,
        operands: &[&Estimate],
        values: &[Literal],
        value: &Literal,
    ) -> Result<Vec<Vec<f64>>> {
        let mut total: Vec<Vec<f64>> = leaves(value).iter().map(|a| vec![0.0; count(a)]).collect();
        for (k, operand) in operands.iter().enumerate().filter(|(_, operand)| !operand.is_exact()) {
            let mut change = Vec::new();
            for up in [false, true] {
                let mut moved: Vec<&Literal> = values.iter().collect();
                let shifted = operand.shifted(up);
                moved[k] = &shifted;
                let result = self.evaluate(instruction, &moved)?;
                widen(&mut change, value, &result);
            }
            poison(instruction.op(), k, operand, value, &mut change);
            // Two ways of moving a complex number are not all.
            if values[k].array_shape().element_type.is_complex() {
                change.iter_mut().flatten().for_each(|change| *change *= 2.0);
            }
            for (total, change) in total.iter_mut().zip(&change) {
                self.growth.add(total, change);
            }
        }
        Ok(total)
    }

    /// What all operands' errors do, moved together up and down: for what does no arithmetic.
    fn together(
        &mut self,
        instruction: &Instruction,
        operands: &[&Estimate],
        value: &Literal,
    ) -> Result<Vec<Vec<f64>>> {
        let mut change = Vec::new();
        for up in [false, true] {
            let moved: Vec<Literal> = operands.iter().map(|o| o.shifted(up)).collect();
            let result = self.evaluate(instruction, &moved.iter().collect::<Vec<_>>())?;
            widen(&mut change, value, &result);
        }
        Ok(change)
    }
}

/// An operand that may be anything, even NaN, makes anything of the result. Moving it as far as it goes does not show that
/// where functions are bounded.
fn poison(op: &Op, operand: usize, of: &Estimate, value: &Literal, change: &mut [Vec<f64>]) {
    let Estimate::Array(Known { error: Some(errors), .. }) = of else { return };
    let (Literal::Array { .. }, [change]) = (value, change) else { return };
    // What is not selected does not matter.
    if matches!(op, Op::Select {}) && operand > 0 {
        return;
    }
    let anything = if value.array_shape().element_type == PrimitiveType::Pred { 1.0 } else { f64::INFINITY };
    for (k, change) in change.iter_mut().enumerate() {
        let error = if errors.len() == 1 { errors[0] } else { errors[k] };
        if error == f64::INFINITY {
            *change = anything;
        }
        // Moved by whole periods, nothing seems to change.
        match op {
            Op::Sin {} | Op::Cos {} => *change = change.max(error.min(2.0)),
            Op::Tan {} if error > 0.5 => *change = anything,
            _ => {}
        }
    }
}

/// Whether an instruction only moves data, to places that are certain.
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

/// Whether an operand of an instruction that moves data is data, not a place.
fn is_data(op: &Op, operand: usize) -> bool {
    match op {
        Op::DynamicSlice { .. } | Op::Gather { .. } => operand == 0,
        Op::DynamicUpdateSlice {} => operand < 2,
        _ => true,
    }
}

/// Whether an operand of a sum holds what is summed; the others are indices.
fn is_term(rule: &Rule, instruction: &Instruction, operand: usize) -> bool {
    *rule == Rule::Product || !matches!(instruction.op(), Op::Scatter { .. }) || operand != 1
}

/// The largest finite magnitude of an array, at least 1.
fn largest_finite(array: &Literal) -> f64 {
    magnitudes(array).into_iter().filter(|v| v.is_finite()).fold(1.0, f64::max)
}

/// `min(n, 8 sqrt(n)) u sum |x|`, and the rounding of the result.
fn sum_errors(array: &Literal, sums: &[f64], terms: f64, finite_sum: f64) -> Vec<f64> {
    let element_type = array.array_shape().element_type;
    // Types narrower than `f32` are summed in it.
    let narrow = epsilon(element_type) > epsilon(PrimitiveType::F32);
    let summed = if narrow { PrimitiveType::F32 } else { element_type };
    let (precision, (largest, _, smallest)) = (epsilon(summed) / 2.0, extremes(summed));
    let factor = terms.min(8.0 * terms.sqrt()) * precision;
    let error = |(value, &sum): (f64, &f64)| {
        if sum.is_nan() {
            // There is a NaN among the terms, whatever the order.
            return 0.0;
        }
        // Partial sums may overflow in the precision of the type and not in the evaluator's.
        if (sum.is_infinite() && finite_sum > largest) || (sum.is_finite() && sum * (1.0 + factor) > largest)
        {
            return f64::INFINITY;
        }
        if sum.is_infinite() { 0.0 } else { factor * sum + ulp(element_type, value) + terms * smallest }
    };
    magnitudes(array).into_iter().zip(sums).map(error).collect()
}

fn elementwise_errors(instruction: &Instruction, array: &Literal, operands: &[Literal]) -> Vec<f64> {
    let element_type = array.array_shape().element_type;
    // The magnitude of a complex number is real, and is no more exact than what is complex.
    let of_type = match operands.first().map(|o| o.array_shape().element_type) {
        Some(operand) if operand.is_complex() => operand,
        _ => element_type,
    };
    let ulps = own_ulps(instruction.op(), of_type);
    if ulps == 0.0 {
        return vec![0.0; count(array)];
    }
    // A product or sum that is contracted into another need not overflow on the way.
    let contracts = matches!(instruction.op(), Op::Multiply {} | Op::Add {} | Op::Subtract {});
    let finite = |k: usize| -> bool {
        operands.iter().all(|o| {
            let k = if o.array_shape().rank() == 0 { 0 } else { k };
            match o.scalar_at(k) {
                Scalar::Float(value) => value.is_finite(),
                Scalar::Complex(re, im) => re.is_finite() && im.is_finite(),
                _ => true,
            }
        })
    };
    let error = |(k, value): (usize, f64)| match value {
        v if v.is_finite() => ulps * ulp(element_type, v),
        _ if contracts && finite(k) => f64::INFINITY,
        _ => 0.0,
    };
    magnitudes(array).into_iter().enumerate().map(error).collect()
}

/// A bound over the whole array: for transforms and solvers, whose errors are small against the largest element only.
fn normwise_errors(array: &Literal, terms: f64) -> Vec<f64> {
    let element_type = array.array_shape().element_type;
    let magnitudes = magnitudes(array);
    let largest = magnitudes.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let error = 64.0 * terms.min(8.0 * terms.sqrt()).max(1.0) * ulp(element_type, largest);
    magnitudes.iter().map(|v| if v.is_finite() { error } else { 0.0 }).collect()
}

/// About the distance of the neighbours of a number, never less than that.
fn ulp(element_type: PrimitiveType, value: f64) -> f64 {
    (value.abs() * epsilon(element_type)).max(extremes(element_type).2)
}

/// Raises changes to the distances of two results.
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

fn count(array: &Literal) -> usize {
    array.array_shape().element_count() as usize
}

fn value_is_array(value: &Literal) -> bool {
    matches!(value, Literal::Array { .. })
}

/// Whether a `pred` scalar is true.
pub(super) fn is_true(value: &Literal) -> bool {
    value_is_array(value) && count(value) == 1 && value.scalar_at(0) == Scalar::Pred(true)
}

/// Which branch an index or predicate chooses.
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
