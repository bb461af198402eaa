//! Windows that all start at the first element or all end at the last one. One running total serves
//! all of them.
//!
//! A running total that rounds is carried together with the error of its last addition. Elements
//! are summed in short blocks before they are added to it. Errors therefore grow with the length of
//! a block rather than with the number of elements.

use super::block::Block;
use super::{Place, Reducer, Windows};
use crate::context::KernelContext;
use crate::context::limits::{greater, lesser};
use crate::index::{Facts, Index};
use hlo::analysis::Extent;
use nest::{BinaryOp, FunctionBuilder, Predicate, ValueId};
use plan::WindowWalk;
use std::ops::Range;
use support::Result;

/// Number of elements in a block whose sum rounds.
const BLOCK_STEPS: i64 = 16;

/// A running dimension. Results are numbered in the order of their computation: the window of each
/// contains that of the one before, and at most one element more.
pub(super) struct Run {
    pub(super) dimension: usize,
    /// Number of results.
    count: i64,
    /// Number of elements.
    size: i64,
    /// Number of elements in the first result's window before clamping to the array. It may be
    /// negative or exceed the size.
    pub(super) held: i64,
    pub(super) is_backward: bool,
    /// True if the errors of the totals are carried too.
    pub(super) keeps_errors: bool,
    /// Number of first elements that may change a result, unless all may.
    significant: Option<Extent>,
    /// Number of first results that are needed, unless all are.
    needed: Option<Extent>,
}

impl Run {
    /// Returns the index of a result, given its number.
    pub(super) fn result(&self, number: &Index) -> Index {
        if self.is_backward { number.times(-1).plus_constant(self.count - 1) } else { number.clone() }
    }

    /// Returns the index of the element that is added as number `number`.
    pub(super) fn element(&self, number: &Index) -> Index {
        if self.is_backward { number.times(-1).plus_constant(self.size - 1) } else { number.clone() }
    }

    /// Like `for_range_carrying` for numbers of results, but leaves out steps of which no result is
    /// needed: the last ones, or backward the first ones, if they also add nothing.
    pub(super) fn for_needed(
        &self,
        cx: &mut KernelContext<'_>,
        (begin, end): (i64, i64),
        step: i64,
        initial: &[ValueId],
        body: impl FnMut(&mut KernelContext<'_>, Index, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Vec<ValueId>> {
        if !self.is_backward {
            return cx.for_needed((begin, end, self.needed), step, initial, body);
        }
        let limits = self
            .needed
            .zip(self.significant)
            .filter(|&(needed, _)| begin < end && !cx.covers(needed, self.count));
        let Some((needed, significant)) = limits else {
            return cx.for_range_carrying(begin, end, step, initial, body);
        };
        // The result with number `n` is the one before the last `n`, and ends with the element
        // before the last `n + held - 1`.
        let (needed, significant) = (cx.extent(needed, self.count)?, cx.extent(significant, self.size)?);
        let (count, size) = (cx.index(self.count), cx.index(self.size - self.held + 1));
        let (unread, neutral) = (cx.sub(count, needed), cx.sub(size, significant));
        let first = lesser(cx, unread, neutral);
        let (least, most) = (cx.index(begin), cx.index(end));
        let first = greater(cx, first, least);
        let first = lesser(cx, first, most);
        cx.learn(first, Facts::range(begin, end));
        let (steps, _) = cx.div_rem(&Index::scalar(first).plus_constant(-begin), step)?;
        let first = cx.scalar_value(&steps.times(step).plus_constant(begin))?;
        cx.for_steps((first, most), (begin, end), step, initial, body)
    }
}

/// Adds the elements of some steps, from the first one's number, to the carried values.
type StepBody<'f> = dyn FnMut(&mut KernelContext<'_>, Index, &[ValueId]) -> Result<Vec<ValueId>> + 'f;

/// Elements to add, or results to compute.
#[derive(Clone, Copy)]
struct Steps {
    /// The first number, and one past the last.
    begin: i64,
    end: i64,
    /// Distance from each stored result to the later element that is added to it. `None` if no
    /// results are stored.
    stored: Option<i64>,
}

impl Windows<'_> {
    /// Computes and writes all results of a running dimension, for several vectors of the innermost
    /// one.
    pub(super) fn running(
        &self,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        dimension: usize,
        start: &[ValueId],
        place: &mut Place,
    ) -> Result<()> {
        let w = &self.window.dimensions[dimension];
        let (count, size) = (self.counts[dimension], self.sizes[dimension]);
        let is_backward = self.plan.dimensions[dimension] == WindowWalk::Running { is_backward: true };
        // Forward, result 0 contains the elements below its window's end. Backward, the last result
        // contains those from its window's start on.
        let held = if is_backward {
            size.saturating_add(w.padding_low).saturating_sub(count - 1)
        } else {
            w.size.saturating_sub(w.padding_low)
        };
        let rounds = matches!(&self.reducer, Reducer::Operation(operation) if operation.rounds());
        let significant = cx.significant(cx.fusion().root);
        let run = Run {
            dimension,
            count,
            size,
            held,
            is_backward,
            keeps_errors: rounds && size > BLOCK_STEPS,
            significant: significant.get(dimension).copied().flatten(),
            needed: self.needed[dimension],
        };
        let mut carried = start.to_vec();
        if run.keeps_errors {
            carried.extend(start.iter().map(|&total| {
                let ty = cx.ty(total);
                cx.float(ty, 0.0)
            }));
        }
        carried = self.steps(
            cx,
            block,
            &run,
            Steps { begin: 0, end: held.clamp(0, size), stored: None },
            place,
            &carried,
        )?;
        // Results up to `first` contain as many elements as result 0. Those from `end` on contain
        // all elements.
        let first = held.saturating_neg().saturating_add(1).clamp(1, count);
        let end = size.saturating_sub(held).saturating_add(1).clamp(first, count);
        self.store_running(cx, block, &run, 0..first, place, &carried[..start.len()])?;
        carried = if dimension + 1 == self.counts.len() && self.plan.lanes > 1 {
            self.prefixes(cx, &run, first, end, place, &carried)?
        } else {
            self.steps(cx, block, &run, Steps { begin: first, end, stored: Some(held - 1) }, place, &carried)?
        };
        self.store_running(cx, block, &run, end..count, place, &carried[..start.len()])
    }

    /// Adds one element after another to the carried values.
    fn steps(
        &self,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        run: &Run,
        steps: Steps,
        place: &mut Place,
        carried: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let Steps { begin, end, stored } = steps;
        let mut step = |cx: &mut KernelContext<'_>, number: &Index, before: &[ValueId], sums: &[ValueId]| {
            let element = run.element(&number.plus_constant(stored.unwrap_or(0)));
            let sums = self.add_running(cx, block, run, element, place, sums)?;
            if stored.is_some() {
                place.result[run.dimension] = run.result(number);
                let totals = self.joined(cx, before, &sums)?;
                self.store(cx, block, place, &totals)?;
            }
            Ok(sums)
        };
        // Before the first result, every element counts.
        let for_numbers = |cx: &mut KernelContext<'_>,
                           (begin, end): (i64, i64),
                           by: i64,
                           carried: &[ValueId],
                           body: &mut StepBody<'_>| {
            match stored {
                Some(_) => run.for_needed(cx, (begin, end), by, carried, |cx, n, totals| body(cx, n, totals)),
                None => cx.for_range_carrying(begin, end, by, carried, |cx, n, totals| body(cx, n, totals)),
            }
        };
        if !run.keeps_errors {
            return for_numbers(cx, (begin, end), 1, carried, &mut |cx, number, totals| {
                step(cx, &number, &[], totals)
            });
        }
        let mut of_block = |cx: &mut KernelContext<'_>, first: &Index, count: i64, carried: &[ValueId]| {
            let (totals, errors) = carried.split_at(carried.len() / 2);
            let sums = cx.for_range_carrying(0, count, 1, errors, |cx, k, sums| {
                step(cx, &first.plus(&k), totals, sums)
            })?;
            Ok(with_errors(cx, totals, &sums))
        };
        let whole = begin + (end - begin) / BLOCK_STEPS * BLOCK_STEPS;
        let carried = for_numbers(cx, (begin, whole), BLOCK_STEPS, carried, &mut |cx, first, carried| {
            of_block(cx, &first, BLOCK_STEPS, carried)
        })?;
        if whole == end { Ok(carried) } else { of_block(cx, &Index::constant(whole), end - whole, &carried) }
    }

    /// Returns the totals of the carried values and of a block so far. Without carried values,
    /// these are the block's totals.
    pub(super) fn joined(
        &self,
        cx: &mut KernelContext<'_>,
        before: &[ValueId],
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        match &self.reducer {
            Reducer::Operation(operation) if !before.is_empty() => {
                before.iter().zip(sums).map(|(&total, &sum)| operation.combine(cx, total, sum)).collect()
            }
            _ => Ok(sums.to_vec()),
        }
    }

    /// Adds one element to the totals, for every tap of the other dimensions.
    pub(super) fn add_running(
        &self,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        run: &Run,
        element: Index,
        place: &mut Place,
        totals: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        place.result[run.dimension] = element;
        let mut at = vec![Index::default(); self.counts.len()];
        self.taps(cx, block, place, &mut at, 0, totals)
    }

    /// Writes the same totals to a range of results.
    fn store_running(
        &self,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        run: &Run,
        results: Range<i64>,
        place: &mut Place,
        totals: &[ValueId],
    ) -> Result<()> {
        cx.for_range(results.start, results.end, 1, |cx, number| {
            place.result[run.dimension] = run.result(&number);
            self.store(cx, block, place, totals)
        })
    }
}

/// Adds the sums of a block to the totals. Returns the new totals, followed by the errors of these
/// additions (Knuth), which are the initial sums of the next block. The error is 0 if the new total
/// is infinite.
pub(crate) fn with_errors(b: &mut FunctionBuilder, totals: &[ValueId], sums: &[ValueId]) -> Vec<ValueId> {
    let (mut next, mut errors) = (Vec::with_capacity(2 * totals.len()), Vec::with_capacity(totals.len()));
    for (&total, &sum) in totals.iter().zip(sums) {
        let new = b.add(total, sum);
        let of_sum = b.sub(new, total);
        let of_total = b.sub(new, of_sum);
        let (lost, other) = (b.sub(total, of_total), b.sub(sum, of_sum));
        let error = b.binary(BinaryOp::Add, lost, other);
        let is_number = b.compare(Predicate::Equal, error, error);
        let zero = b.float(b.ty(error), 0.0);
        errors.push(b.select(is_number, error, zero));
        next.push(new);
    }
    next.extend(errors);
    next
}
