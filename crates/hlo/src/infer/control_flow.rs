//! Opcodes that call whole computations.

use super::{Inference, without_layout};
use crate::ids::ComputationId;
use shape::{PrimitiveType, Shape};
use support::Result;

impl Inference<'_> {
    pub(super) fn call(&self, what: &str, called: ComputationId) -> Result<Shape> {
        let signature = self.signature(called)?;
        self.check_parameters(what, &signature, self.operands)?;
        Ok(without_layout(&signature.result))
    }

    pub(super) fn while_loop(&self, condition: ComputationId, body: ComputationId) -> Result<Shape> {
        let state = self.operand(0)?;
        let (condition, body) = (self.signature(condition)?, self.signature(body)?);
        self.check_parameters("condition", &condition, &[state])?;
        self.check_parameters("body", &body, &[state])?;
        self.check(
            condition.result.compatible(&Shape::scalar(PrimitiveType::Pred)),
            format_args!("condition makes {}, must make pred[]", condition.result),
        )?;
        self.check(
            body.result.compatible(state),
            format_args!("body makes {}, must make the operand's shape", without_layout(&body.result)),
        )?;
        Ok(without_layout(state))
    }

    pub(super) fn conditional(&self, branches: &[ComputationId]) -> Result<Shape> {
        self.check(!self.operands.is_empty(), "takes an index and an operand for each branch")?;
        let index = self.scalar(0)?;
        match index.element_type {
            PrimitiveType::Pred => {
                self.check(
                    branches.len() == 2,
                    format_args!("a predicate chooses from 2 branches, not {}", branches.len()),
                )?;
            }
            PrimitiveType::S32 => self.check(!branches.is_empty(), "needs at least one branch")?,
            _ => return Err(self.error("the first operand must be pred[] or s32[]")),
        }
        self.check(
            self.operands.len() == branches.len() + 1,
            format_args!("takes an operand for each of the {} branches", branches.len()),
        )?;
        let mut result: Option<Shape> = None;
        for (i, (&branch, &operand)) in branches.iter().zip(&self.operands[1..]).enumerate() {
            let signature = self.signature(branch)?;
            self.check_parameters(&format!("branch {i}"), &signature, &[operand])?;
            result = Some(match result {
                None => without_layout(&signature.result),
                Some(so_far) => dynamic_in_either(&so_far, &signature.result).ok_or_else(|| {
                    let made = without_layout(&signature.result);
                    self.error(format_args!("branch {i} makes {made}, but branch 0 makes {so_far}"))
                })?,
            });
        }
        result.ok_or_else(|| self.error("needs at least one branch"))
    }
}

/// The shape whose dimensions are dynamic where one of the two is; `None` if they differ in anything else.
fn dynamic_in_either(a: &Shape, b: &Shape) -> Option<Shape> {
    match (a, b) {
        (Shape::Array(a), Shape::Array(b)) => {
            if a.element_type != b.element_type || a.sizes() != b.sizes() {
                return None;
            }
            let pairs = a.dimensions.iter().zip(&b.dimensions);
            Some(super::array_of(a.element_type, pairs.map(|(&a, &b)| super::either_dynamic(a, b)).collect()))
        }
        (Shape::Tuple(a), Shape::Tuple(b)) if a.len() == b.len() => {
            let elements = a.iter().zip(b).map(|(a, b)| dynamic_in_either(a, b));
            elements.collect::<Option<Vec<Shape>>>().map(Shape::Tuple)
        }
        (Shape::Token, Shape::Token) => Some(Shape::Token),
        _ => None,
    }
}
