//! Reductions of the innermost dimension: vectors of accumulators run along the row and are
//! combined at its end.

use super::blocks::{Carried, nest_in_blocks, range_in_blocks};
use super::operation::Operation;
use super::{LimitedLoop, Reduction, nest_parts};
use crate::context::KernelContext;
use crate::element::{Element, normalize};
use crate::index::{Index, Position};
use nest::{ScalarType, Type, ValueId};
use plan::{Loop, ReducePlan};
use support::{Error, Result};

/// Emitter for a row.
struct Row<'a> {
    operation: Operation<'a>,
    reduction: &'a Reduction<'a>,
    /// The reduced loop along the row.
    innermost: LimitedLoop,
    lanes: u32,
    accumulators: u32,
}

pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &ReducePlan, reduction: &Reduction<'_>) -> Result<()> {
    let element_type = cx.results()[0].shape.element_type;
    let operation = Operation::of(cx, reduction.to_apply, element_type);
    let Some((&innermost, outer)) = reduction.reduced.split_last() else {
        return super::scalar::emit(cx, reduction);
    };
    let lanes = largest_power(innermost.0.extent, plan.lanes);
    let vectors = innermost.0.extent / i64::from(lanes);
    let accumulators = plan.accumulators.min(u32::try_from(vectors).unwrap_or(u32::MAX)).max(1);
    let row = Row { operation, reduction, innermost, lanes, accumulators };
    let initial = cx.element(reduction.initial[0], &Position::scalar())?.real();
    let neutral = cx.at(1, |b| operation.neutral(b, lanes))?;
    let result = cx.results()[0].clone();
    let mut indices = reduction.origin();
    nest_parts(cx, &reduction.kept, &mut indices, &mut |cx, indices| {
        let start = vec![neutral; accumulators as usize];
        let operations = vec![operation; accumulators as usize];
        let inside = (vectors / i64::from(accumulators)).max(1);
        let carried = Carried { operations: &operations, lanes, inside };
        let sums = nest_in_blocks(cx, outer, indices, &carried, &start, &mut |cx, indices, sums| {
            row.run(cx, indices, &carried, sums)
        })?;
        let sum = row.finish(cx, sums)?;
        let value = operation.combine(cx, initial, sum)?;
        let value = normalize(cx, element_type, value);
        let position = reduction.result_position(indices);
        cx.store_at(&result, &position, Element::Real(value))
    })
}

fn largest_power(extent: i64, lanes: u32) -> u32 {
    let mut fitting = lanes.max(1);
    while fitting > 1 && i64::from(fitting) > extent {
        fitting /= 2;
    }
    fitting
}

impl Row<'_> {
    /// Accumulates a row: blocks with one vector per accumulator, single vectors, and the
    /// remainder.
    fn run(
        &self,
        cx: &mut KernelContext<'_>,
        indices: &mut [Index],
        carried: &Carried<'_, '_>,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let lanes = i64::from(self.lanes);
        let block = lanes * i64::from(self.accumulators);
        let (Loop { extent, .. }, limit) = self.innermost;
        let (blocks, vectors) = (extent / block * block, extent / lanes * lanes);
        let mut sums = range_in_blocks(cx, (blocks, limit), block, carried, sums, &mut |cx, index, sums| {
            let mut next = Vec::with_capacity(sums.len());
            for (k, &sum) in sums.iter().enumerate() {
                let value = self.vector(cx, indices, &index.plus_constant(k as i64 * lanes))?;
                next.push(self.operation.combine(cx, sum, value)?);
            }
            Ok(next)
        })?;
        for (k, begin) in (blocks..vectors).step_by(lanes as usize).enumerate() {
            let value = self.vector(cx, indices, &Index::constant(begin))?;
            sums[k] = self.operation.combine(cx, sums[k], value)?;
        }
        if vectors < extent {
            let value = self.last(cx, indices, extent - vectors)?;
            let last = sums.len() - 1;
            sums[last] = self.operation.combine(cx, sums[last], value)?;
        }
        Ok(sums)
    }

    fn vector(&self, cx: &mut KernelContext<'_>, indices: &mut [Index], index: &Index) -> Result<ValueId> {
        let stride = Index::lanes(i64::from(self.lanes > 1));
        indices[self.innermost.0.dimension] = index.plus(&stride);
        cx.with_lanes(self.lanes, |cx| {
            let element = self.reduction.input(cx, 0, indices)?;
            Ok(cx.widen(element, self.lanes)?.real())
        })
    }

    /// Returns the last vector of the row, which overlaps the one before. Lanes that were
    /// accumulated already are neutral.
    fn last(&self, cx: &mut KernelContext<'_>, indices: &mut [Index], count: i64) -> Result<ValueId> {
        let begin = self.innermost.0.extent - i64::from(self.lanes);
        let value = self.vector(cx, indices, &Index::constant(begin))?;
        let neutral = self.operation.neutral(cx, self.lanes)?;
        let lane = cx.iota(ScalarType::I32, self.lanes);
        let first = cx.integer(Type::vector(ScalarType::I32, self.lanes), i64::from(self.lanes) - count);
        let is_new = cx.compare(nest::Predicate::GreaterEqual, lane, first);
        Ok(cx.select(is_new, value, neutral))
    }

    /// Combines all accumulators into one scalar.
    fn finish(&self, cx: &mut KernelContext<'_>, mut sums: Vec<ValueId>) -> Result<ValueId> {
        while sums.len() > 1 {
            let mut halved = Vec::with_capacity(sums.len().div_ceil(2));
            for pair in sums.chunks(2) {
                halved.push(match *pair {
                    [x, y] => self.operation.combine(cx, x, y)?,
                    [x] => x,
                    _ => return Err(Error::internal("found an empty pair of accumulators")),
                });
            }
            sums = halved;
        }
        let mut sum = sums[0];
        let mut lanes = self.lanes;
        while lanes > 1 {
            lanes /= 2;
            let low = cx.shuffle(sum, sum, (0..lanes).collect());
            let high = cx.shuffle(sum, sum, (lanes..2 * lanes).collect());
            sum = self.operation.combine(cx, low, high)?;
        }
        Ok(cx.extract(sum, 0))
    }
}
