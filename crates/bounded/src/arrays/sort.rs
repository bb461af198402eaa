//! Sorts along dimensions of data-dependent size. Padding sorts last.

use super::Bounded;
use crate::builder::Builder;
use hlo::{ComputationBuilder, ComputationId, InstructionId, Op};
use shape::{PrimitiveType, Shape};
use support::Result;

impl Builder {
    /// Sorts operands with a true size along the sorted dimension. The existence of each element is
    /// an additional operand, and takes precedence over everything else. The result is an array if
    /// there is one operand, otherwise a tuple with one more element.
    pub(super) fn bounded_sort(
        &mut self,
        parts: &[Bounded],
        dimension: usize,
        is_stable: bool,
        to_apply: ComputationId,
        size: InstructionId,
    ) -> Result<InstructionId> {
        let mut operands: Vec<InstructionId> = parts.iter().map(|part| part.data).collect();
        let sizes = self.sizes(operands[0]);
        operands.push(self.before(&sizes, dimension, size)?);
        let to_apply = self.existing_first(&operands, to_apply)?;
        let result = self.static_op(Op::Sort { dimension, is_stable, to_apply }, &operands, None)?;
        if parts.len() > 1 {
            return Ok(result);
        }
        self.static_op(Op::GetTupleElement { index: 0 }, &[result], None)
    }

    /// Returns the comparator: true if the first of two elements exists, and the second does not
    /// exist or comes after it.
    fn existing_first(
        &mut self,
        operands: &[InstructionId],
        comparator: ComputationId,
    ) -> Result<ComputationId> {
        let mut builder = ComputationBuilder::new("existing_first");
        let types: Vec<PrimitiveType> = operands.iter().map(|&id| self.element_type(id)).collect();
        let mut sides = Vec::new();
        for (k, element_type) in types.into_iter().enumerate() {
            sides.push(builder.parameter(&format!("x{k}"), Shape::scalar(element_type)));
            sides.push(builder.parameter(&format!("y{k}"), Shape::scalar(element_type)));
        }
        let (compared, exists) = sides.split_at(sides.len() - 2);
        let module = self.module_mut();
        let is_before = builder.op(module, Op::Call { to_apply: comparator }, compared)?;
        let is_alone = builder.op(module, Op::Not {}, &exists[1..])?;
        let is_before = builder.op(module, Op::Or {}, &[is_alone, is_before])?;
        let root = builder.op(module, Op::And {}, &[exists[0], is_before])?;
        Ok(module.add_computation(builder.finish(root)))
    }
}
