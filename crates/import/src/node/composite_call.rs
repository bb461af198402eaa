//! Calls of functions written as expressions.

use crate::node::accepted::keeps_input_sizes;
use crate::node::context::NodeContext;
use ::composite::{Expression, Function};
use hlo::{InstructionId, Op};
use shape::Shape;
use support::Result;

impl NodeContext<'_, '_> {
    /// Calls a function with these operands and returns its results.
    ///
    /// The function becomes a computation named after the node's op, so that the HLO shows what
    /// belongs together. That of an elementwise op sees whole arrays of bounded operands, and its
    /// results get their true sizes.
    pub(crate) fn composite(
        &mut self,
        operands: &[InstructionId],
        body: impl for<'f> FnOnce(&'f Function, &[Expression<'f>]) -> Vec<Expression<'f>>,
    ) -> Result<Vec<InstructionId>> {
        let bounded = operands.iter().copied().find(|&id| self.is_bounded(id));
        let Some(like) = bounded.filter(|_| keeps_input_sizes(&self.node().op)) else {
            return self.call(operands, body);
        };
        let whole = operands.iter().map(|&id| Ok(self.split(id)?.data)).collect::<Result<Vec<_>>>()?;
        let results = self.call(&whole, body)?;
        let has_sizes = |cx: &Self, result: InstructionId| cx.sizes(result) == cx.sizes(like);
        self.check(results.iter().all(|&result| has_sizes(self, result)), || {
            "expected results of the inputs' sizes".to_owned()
        })?;
        results.into_iter().map(|result| self.with_sizes_of(result, like)).collect()
    }

    fn call(
        &mut self,
        operands: &[InstructionId],
        body: impl for<'f> FnOnce(&'f Function, &[Expression<'f>]) -> Vec<Expression<'f>>,
    ) -> Result<Vec<InstructionId>> {
        let parameters: Vec<Shape> = operands.iter().map(|&id| self.array(id).into()).collect();
        let metadata = self.metadata().clone();
        let name = self.node().op.clone();
        let module = self.module_mut();
        let to_apply = ::composite::build(module, &name, &metadata, &parameters, body)?;
        let result = self.op(Op::Call { to_apply }, operands)?;
        let elements = self.scope_ref().shape(result).as_tuple().map(<[Shape]>::len);
        match elements {
            None => Ok(vec![result]),
            Some(count) => (0..count).map(|k| self.tuple_element(result, k)).collect(),
        }
    }

    /// Like [`Self::composite`], for a function with one result.
    pub(crate) fn composite_one(
        &mut self,
        operands: &[InstructionId],
        body: impl for<'f> FnOnce(&'f Function, &[Expression<'f>]) -> Expression<'f>,
    ) -> Result<InstructionId> {
        Ok(self.composite(operands, |function, arguments| vec![body(function, arguments)])?[0])
    }
}
