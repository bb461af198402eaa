//! The loops over the summands of a tile.

use super::{Ahead, Inputs};
use crate::context::KernelContext;
use crate::contraction::dot::Tiles;
use crate::index::{Facts, Index};
use nest::{FunctionBuilder, RegionBuilder as _, ValueId};
use support::Result;

/// Emitter for rounds, each of which adds a few summands.
pub(super) struct Rounds<'p> {
    pub(super) plan: Tiles<'p>,
    pub(super) inputs: &'p Inputs<'p>,
    pub(super) ahead: &'p Ahead,
    /// Number of sums in a set.
    pub(super) width: usize,
}

/// Sums of a tile.
pub(super) struct Sums {
    /// The sums of the last block, in sets that are added up at the end.
    pub(super) sets: Vec<ValueId>,
    /// The sums of the blocks before.
    blocks: Option<Vec<ValueId>>,
}

impl Sums {
    /// Adds up the sets and the blocks.
    pub(super) fn total(self, b: &mut FunctionBuilder, width: usize) -> Vec<ValueId> {
        let sums = add_sets(b, self.sets, width);
        match self.blocks {
            Some(blocks) => blocks.iter().zip(sums).map(|(&before, sum)| b.add(before, sum)).collect(),
            None => sums,
        }
    }
}

impl Rounds<'_> {
    /// Adds the first `end` summands, a multiple of those of a round. All blocks except the last
    /// are summed separately.
    pub(super) fn all(&self, cx: &mut KernelContext<'_>, end: i64, initial: &[ValueId]) -> Result<Sums> {
        let block = self.plan.tiled.sum_block;
        let blocks = if block < end { (end - 1) / block } else { 0 };
        let begin = blocks * block;
        let zeros = self.zeros(cx);
        let totals =
            cx.for_range_carrying(0, begin, block, &initial[..self.width], |cx, first, totals| {
                self.block(cx, &first, &zeros, totals)
            })?;
        let start = if blocks > 0 { &zeros } else { initial };
        let unroll = self.plan.tiled.unroll.max(1);
        let sets = cx.for_range_carrying(begin, end, unroll, start, |cx, index, sums| {
            let index = cx.scalar_value(&index)?;
            self.round(cx, index, sums)
        })?;
        Ok(Sums { sets, blocks: (blocks > 0).then_some(totals) })
    }

    /// Adds a number of summands that is known at run time.
    pub(super) fn limited(
        &self,
        cx: &mut KernelContext<'_>,
        count: ValueId,
        initial: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let (k, block) = (self.plan.dot.shape.k, self.plan.tiled.sum_block);
        let unroll = self.plan.tiled.unroll.max(1);
        let whole = multiple_of(cx, count, unroll)?;
        let mut begin = cx.index(0);
        let (mut blocks, mut start) = (None, initial.to_vec());
        if block < k {
            let zeros = self.zeros(cx);
            let end = multiple_of(cx, whole, block)?;
            let totals =
                cx.for_carrying(begin, end, block, &initial[..self.width], |cx, first, totals| {
                    cx.learn(first, Facts { min: 0, max: k, multiple: block });
                    cx.scoped(|cx| self.block(cx, &Index::scalar(first), &zeros, totals))
                })?;
            (begin, blocks, start) = (end, Some(totals), zeros);
        }
        let mut sets = cx.for_carrying(begin, whole, unroll, &start, |cx, index, sums| {
            cx.learn(index, Facts { min: 0, max: k, multiple: unroll });
            cx.scoped(|cx| self.round(cx, index, sums))
        })?;
        let first = cx.for_carrying(whole, count, 1, &sets[..self.width], |cx, index, sums| {
            cx.learn(index, Facts::range(0, k - 1));
            let mut sums = sums.to_vec();
            cx.scoped(|cx| self.inputs.accumulate(cx, index, 0, &[], &mut sums));
            Ok(sums)
        })?;
        sets[..self.width].copy_from_slice(&first);
        Ok(Sums { sets, blocks }.total(cx, self.width))
    }

    /// Adds the sum of a whole block to the totals.
    fn block(
        &self,
        cx: &mut KernelContext<'_>,
        first: &Index,
        zeros: &[ValueId],
        totals: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let unroll = self.plan.tiled.unroll.max(1);
        let sums =
            cx.for_range_carrying(0, self.plan.tiled.sum_block, unroll, zeros, |cx, index, sums| {
                let index = cx.scalar_value(&first.plus(&index))?;
                self.round(cx, index, sums)
            })?;
        let sums = add_sets(cx, sums, self.width);
        Ok(totals.iter().zip(sums).map(|(&total, sum)| cx.add(total, sum)).collect())
    }

    /// Adds the summands of a round, which begins at `index`, to all sets of sums.
    fn round(&self, cx: &mut KernelContext<'_>, index: ValueId, sums: &[ValueId]) -> Result<Vec<ValueId>> {
        let (tiled, width) = (self.plan.tiled, self.width);
        let unroll = tiled.unroll.max(1);
        let mut sums = sums.to_vec();
        self.ahead.prefetch(cx, index);
        let rows = if tiled.lhs_by_lane { self.inputs.row_vectors(cx, index, unroll) } else { Vec::new() };
        for step in 0..unroll {
            let set = (step % i64::from(tiled.tile.k_split)) as usize;
            self.inputs.accumulate(cx, index, step, &rows, &mut sums[set * width..(set + 1) * width]);
        }
        Ok(sums)
    }

    /// Returns zeros for all sets.
    fn zeros(&self, b: &mut FunctionBuilder) -> Vec<ValueId> {
        (0..self.plan.tiled.tile.k_split).flat_map(|_| self.inputs.zeros(b)).collect()
    }
}

/// Returns the largest multiple of a divisor that is not larger than a number.
fn multiple_of(cx: &mut KernelContext<'_>, number: ValueId, divisor: i64) -> Result<ValueId> {
    let (quotient, _) = cx.div_rem(&Index::scalar(number), divisor)?;
    cx.scalar_value(&quotient.times(divisor))
}

/// Adds sets of sums to each other until one is left.
pub(super) fn add_sets(b: &mut FunctionBuilder, mut sums: Vec<ValueId>, width: usize) -> Vec<ValueId> {
    while sums.len() > width {
        let half = sums.len() / 2;
        let upper = sums.split_off(half);
        for (sum, other) in sums.iter_mut().zip(upper) {
            *sum = b.add(*sum, other);
        }
    }
    sums
}
