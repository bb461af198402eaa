//! Windows that all start at the first element, or all end at the last one: a running total serves each of them.

use super::block::Block;
use super::{Place, Windows};
use crate::context::KernelContext;
use crate::index::Index;
use crate::ir::{FunctionBuilder, ValueId};
use plan::WindowWalk;
use support::Result;

/// A running dimension as results in the order in which they are computed: each holds what the one before holds, and
/// perhaps one element more.
struct Run {
    /// How many results there are.
    count: i64,
    /// How many elements there are.
    size: i64,
    /// How many elements the first result holds before it is bounded by the ends: may be negative or above the size.
    held: i64,
    is_backward: bool,
}

impl Run {
    /// The result of a number.
    fn result(&self, number: &Index) -> Index {
        if self.is_backward { number.times(-1).plus_constant(self.count - 1) } else { number.clone() }
    }

    /// The element that is the so many-th to be added.
    fn element(&self, number: &Index) -> Index {
        if self.is_backward { number.times(-1).plus_constant(self.size - 1) } else { number.clone() }
    }
}

impl Windows<'_> {
    /// Computes and writes all results of a running dimension, for some vectors of the innermost one.
    pub(super) fn running(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        dimension: usize,
        start: &[ValueId],
        place: &mut Place,
    ) -> Result<()> {
        let w = &self.window.dimensions[dimension];
        let (count, size) = (self.counts[dimension], self.sizes[dimension]);
        let is_backward = self.plan.dimensions[dimension] == WindowWalk::Running { is_backward: true };
        // Forward, result 0 holds the elements below its window's end. Backward, the last result holds those from its
        // window's start on.
        let held = match is_backward {
            false => w.size.saturating_sub(w.padding_low),
            true => size.saturating_add(w.padding_low).saturating_sub(count - 1),
        };
        let run = Run { count, size, held, is_backward };
        let held = run.held.clamp(0, size);
        let mut totals = cx.for_range_carrying(b, (0, held, 1), start, |cx, b, number, totals| {
            self.add_running(b, cx, block, dimension, run.element(&number), place, totals)
        })?;
        // Results up to `first` hold as many elements as result 0, those from `end` on hold all.
        let first = run.held.saturating_neg().saturating_add(1).clamp(1, count);
        let end = size.saturating_sub(run.held).saturating_add(1).clamp(first, count);
        self.store_running(b, cx, block, dimension, &run, (0, first), place, &totals)?;
        totals = cx.for_range_carrying(b, (first, end, 1), &totals, |cx, b, number, totals| {
            let element = run.element(&number.plus_constant(run.held - 1));
            let totals = self.add_running(b, cx, block, dimension, element, place, totals)?;
            place.result[dimension] = run.result(&number);
            self.store(b, cx, block, place, &totals)?;
            Ok(totals)
        })?;
        self.store_running(b, cx, block, dimension, &run, (end, count), place, &totals)
    }

    /// The totals with one element more, for every tap of the other dimensions.
    #[expect(clippy::too_many_arguments, reason = "where the walk is, in results and in elements")]
    fn add_running(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        dimension: usize,
        element: Index,
        place: &mut Place,
        totals: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        place.result[dimension] = element;
        let mut at = vec![Index::default(); self.counts.len()];
        self.taps(b, cx, block, place, &mut at, 0, totals)
    }

    /// Writes the same totals to results of some numbers.
    #[expect(clippy::too_many_arguments, reason = "where the walk is, and which results")]
    fn store_running(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        dimension: usize,
        run: &Run,
        (begin, end): (i64, i64),
        place: &mut Place,
        totals: &[ValueId],
    ) -> Result<()> {
        cx.for_range(b, begin, end, 1, |cx, b, number| {
            place.result[dimension] = run.result(&number);
            self.store(b, cx, block, place, totals)
        })
    }
}
