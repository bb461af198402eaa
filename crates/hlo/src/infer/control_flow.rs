//! Opcodes that call computations.

use super::{Inference, without_layout};
use crate::ids::ComputationId;
use shape::{PrimitiveType, Shape};
use support::Result;

impl Inference<'_> {
    pub(super) fn call(&self, what: &str, callee: ComputationId) -> Result<Shape> {
        let signature = self.signature(callee)?;
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
            format_args!("expected the condition to return pred[], got {}", condition.result),
        )?;
        self.check(
            body.result.compatible(state),
            format_args!(
                "expected the body to return the operand's shape, got {}",
                without_layout(&body.result)
            ),
        )?;
        Ok(without_layout(state))
    }

    pub(super) fn conditional(&self, branches: &[ComputationId]) -> Result<Shape> {
        self.check(!self.operands.is_empty(), "expected an index and an operand for each branch")?;
        let index = self.scalar(0)?;
        match index.element_type {
            PrimitiveType::Pred => {
                self.check(
                    branches.len() == 2,
                    format_args!("expected 2 branches for a predicate, got {}", branches.len()),
                )?;
            }
            PrimitiveType::S32 => self.check(!branches.is_empty(), "expected at least one branch")?,
            _ => return Err(self.error("the first operand must be pred[] or s32[]")),
        }
        self.check(
            self.operands.len() == branches.len() + 1,
            format_args!("expected an operand for each of the {} branches", branches.len()),
        )?;
        let mut result: Option<Shape> = None;
        for (i, (&branch, &operand)) in branches.iter().zip(&self.operands[1..]).enumerate() {
            let signature = self.signature(branch)?;
            self.check_parameters(&format!("branch {i}"), &signature, &[operand])?;
            result = Some(match result {
                None => without_layout(&signature.result),
                Some(first) => dynamic_in_either(&first, &signature.result).ok_or_else(|| {
                    let other = without_layout(&signature.result);
                    self.error(format_args!("branch {i} returns {other}, but branch 0 returns {first}"))
                })?,
            });
        }
        result.ok_or_else(|| self.error("expected at least one branch"))
    }
}

/// Returns the shape whose dimensions are dynamic if they are in either shape; `None` if the shapes
/// differ otherwise.
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
