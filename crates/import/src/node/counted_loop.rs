//! Loops that a rule builds itself, with a bounded number of iterations over arrays.

use crate::node::context::NodeContext;
use bounded::LoopFacts;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{Literal, PrimitiveType, Shape};
use support::Result;

impl<'p> NodeContext<'_, 'p> {
    /// Runs `body` for 0 to `count - 1`, and returns the arrays after the loop.
    ///
    /// `body` receives the index, an `s32` scalar, and the arrays carried so far. It returns their
    /// next values, of the same shapes. It can use nothing else from outside the loop.
    pub(crate) fn counted_loop(
        &mut self,
        count: i32,
        initial: &[InstructionId],
        body: impl FnOnce(&mut NodeContext<'_, 'p>, InstructionId, &[InstructionId]) -> Result<Vec<InstructionId>>,
    ) -> Result<Vec<InstructionId>> {
        let below = |cx: &mut NodeContext<'_, 'p>, index, _: &[InstructionId]| {
            let count = cx.literal(Literal::scalar(count));
            cx.compare(ComparisonDirection::Lt, index, count)
        };
        self.bounded_loop(count.max(0) as u64, initial, below, body)
    }

    /// Like [`Self::counted_loop`], but runs while `condition` holds for the number of iterations
    /// so far and the arrays. The caller guarantees at most `bound` iterations.
    pub(crate) fn bounded_loop(
        &mut self,
        bound: u64,
        initial: &[InstructionId],
        condition: impl FnOnce(&mut NodeContext<'_, 'p>, InstructionId, &[InstructionId]) -> Result<InstructionId>,
        body: impl FnOnce(&mut NodeContext<'_, 'p>, InstructionId, &[InstructionId]) -> Result<Vec<InstructionId>>,
    ) -> Result<Vec<InstructionId>> {
        let zero = self.scalar(PrimitiveType::S32, 0.0);
        let carried: Vec<(InstructionId, Shape)> = std::iter::once(&zero)
            .chain(initial)
            .map(|&id| (id, self.scope_ref().shape(id).clone()))
            .collect();
        let facts = LoopFacts { bound: Some(bound), why_unbounded: String::new() };
        let scope = self.loop_scope("body", &carried, facts);
        let condition_scope = scope.of_same_loop("condition");
        let elements = |cx: &mut NodeContext<'_, 'p>| -> Vec<InstructionId> {
            (0..carried.len()).map(|k| cx.scope().element(k)).collect()
        };
        let (condition, predicate) = self.within(condition_scope, |cx| {
            let state = elements(cx);
            condition(cx, state[0], &state[1..])
        })?;
        let (scope, next) = self.within(scope, |cx| {
            let state = elements(cx);
            let next = body(cx, state[0], &state[1..])?;
            let following = cx.add_scalar(state[0], 1.0)?;
            Ok([&[following][..], &next].concat())
        })?;
        let (condition, _) = condition.finish_at(predicate);
        let (body, _) = scope.finish(&next);
        let condition = self.add_computation(condition);
        let body = self.add_computation(body);
        let outer: Vec<InstructionId> = carried.iter().map(|(id, _)| *id).collect();
        let tuple = self.op(Op::Tuple {}, &outer)?;
        let while_loop = self.op(Op::While { condition, body }, &[tuple])?;
        (1..carried.len()).map(|k| self.tuple_element(while_loop, k)).collect()
    }

    /// Returns row `index` of an array, without its first dimension.
    pub(crate) fn dynamic_row(
        &mut self,
        array: InstructionId,
        index: InstructionId,
    ) -> Result<InstructionId> {
        let sizes = self.sizes(array);
        let dynamic_slice_sizes = [&[1][..], &sizes[1..]].concat();
        let zero = self.splat_like(index, 0.0)?;
        let starts = std::iter::once(index).chain(std::iter::repeat_n(zero, sizes.len() - 1));
        let operands: Vec<InstructionId> = std::iter::once(array).chain(starts).collect();
        let row = self.op(Op::DynamicSlice { dynamic_slice_sizes }, &operands)?;
        self.reshape(row, &sizes[1..])
    }

    /// Returns the array with row `index` replaced.
    pub(crate) fn with_dynamic_row(
        &mut self,
        array: InstructionId,
        row: InstructionId,
        index: InstructionId,
    ) -> Result<InstructionId> {
        let sizes = self.sizes(array);
        let row = self.reshape(row, &[&[1][..], &sizes[1..]].concat())?;
        let zero = self.splat_like(index, 0.0)?;
        let starts = std::iter::once(index).chain(std::iter::repeat_n(zero, sizes.len() - 1));
        let operands: Vec<InstructionId> = [array, row].into_iter().chain(starts).collect();
        self.op(Op::DynamicUpdateSlice {}, &operands)
    }
}
