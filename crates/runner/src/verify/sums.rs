//! Errors of sums and products of elements, computed by the same instruction on magnitudes and
//! errors in `f64`.

use super::analysis::{Analysis, count};
use super::estimate::{Estimate, Growth, doubles, magnitudes};
use super::rules::Rule;
use hlo::{Instruction, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use support::{Error, Result};

impl Analysis<'_> {
    /// Computes `sum |x|` or `sum |x y|` for each element of the result, in `f64`, using magnitudes
    /// of the elements or of their parts.
    pub(super) fn sum_of(
        &mut self,
        magnitudes: fn(&Literal) -> Vec<f64>,
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

    pub(super) fn evaluate_doubles(
        &mut self,
        instruction: &Instruction,
        operands: &[Literal],
    ) -> Result<Vec<f64>> {
        let sizes = instruction.shape().expect_array().sizes();
        let shape = Shape::Array(ArrayShape::new(PrimitiveType::F64, &sizes));
        let operands: Vec<&Literal> = operands.iter().collect();
        self.charge(instruction, &operands)?;
        let sums = self.evaluator.evaluate_instruction(instruction.op(), &shape, &operands)?;
        sums.floats().ok_or_else(|| Error::internal("expected doubles from a sum of doubles"))
    }

    /// Returns the effect of the operands' errors on a sum, or a sum of products, computed by the
    /// same instruction on errors and magnitudes.
    pub(super) fn linear(
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
            if let [Some(lhs), Some(rhs)] = &errors[..] {
                add(self.evaluate_doubles(instruction, &[lhs.clone(), rhs.clone()])?);
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

    /// Returns the effect of the operands' errors on a product of elements: at most
    /// `prod (|x| + e) - prod |x|`.
    pub(super) fn factors(
        &mut self,
        rule: &Rule,
        instruction: &Instruction,
        operands: &[&Estimate],
        values: &[Literal],
    ) -> Result<Vec<f64>> {
        let mut product = |with_errors: bool| -> Result<Vec<f64>> {
            let factors =
                operands.iter().zip(values).enumerate().map(|(k, (operand, value))| match operand {
                    Estimate::Array(known) if is_term(rule, instruction, k) => {
                        let errors = if with_errors { known.errors() } else { vec![0.0; count(value)] };
                        doubles(value, magnitudes(value).into_iter().zip(errors).map(|(x, e)| x + e))
                    }
                    _ => value.clone(),
                });
            let factors: Vec<Literal> = factors.collect();
            self.evaluate_doubles(instruction, &factors)
        };
        let (most, exact) = (product(true)?, product(false)?);
        let difference = |(most, exact): (f64, f64)| match most - exact {
            difference if difference.is_nan() => f64::INFINITY,
            difference => difference,
        };
        Ok(most.into_iter().zip(exact).map(difference).collect())
    }
}

/// True if an operand of a sum contains terms; the others are indices.
fn is_term(rule: &Rule, instruction: &Instruction, operand: usize) -> bool {
    *rule == Rule::Product || !matches!(instruction.op(), Op::Scatter { .. }) || operand != 1
}
