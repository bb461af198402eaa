//! Running totals along the innermost dimension, in vectors of neighbors.
//!
//! The lanes of a vector become totals in a logarithmic number of steps, which add the lanes at
//! distances 1, 2, 4, ... before. Each vector waits for the previous one with a single operation.

use super::block::Block;
use super::running::{Run, with_errors};
use super::{Place, Reducer, Windows};
use crate::context::KernelContext;
use crate::element::splat;
use crate::index::Index;
use crate::reduction::reduce::operation::Operation;
use nest::{FunctionBuilder, ValueId};
use support::{Error, Result};

/// Several neighboring results.
struct Piece<'a> {
    /// Number of the first result.
    first: &'a Index,
    lanes: u32,
    vectors: u32,
}

impl Windows<'_> {
    /// Computes and writes a range of results. The carried values have one lane.
    pub(super) fn prefixes(
        &self,
        cx: &mut KernelContext<'_>,
        run: &Run,
        begin: i64,
        end: i64,
        place: &mut Place,
        carried: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let Reducer::Operation(operation) = &self.reducer else {
            return Err(Error::internal("expected running totals of a single operation"));
        };
        let (mut lanes, mut vectors) = (self.plan.lanes, self.plan.vectors);
        let width = i64::from(lanes * vectors);
        let mut at = begin + (end - begin) / width * width;
        let all: Vec<ValueId> = carried.iter().map(|&value| splat(cx, value, lanes)).collect();
        let mut carried = run.for_needed(cx, (begin, at), width, &all, |cx, first, carried| {
            self.piece(cx, run, operation, &Piece { first: &first, lanes, vectors }, place, carried)
        })?;
        // Shorter and shorter pieces cover the rest.
        while at < end {
            while i64::from(lanes * vectors) > end - at {
                if vectors > 1 { vectors -= 1 } else { lanes /= 2 }
            }
            carried = carried.iter().map(|&value| first_lanes(cx, value, lanes)).collect();
            let piece = Piece { first: &Index::constant(at), lanes, vectors };
            carried = self.piece(cx, run, operation, &piece, place, &carried)?;
            at += i64::from(lanes * vectors);
        }
        Ok(carried.iter().map(|&value| first_lanes(cx, value, 1)).collect())
    }

    /// Emits a few vectors. It maps the totals before them, in each lane, to the totals after them.
    fn piece(
        &self,
        cx: &mut KernelContext<'_>,
        run: &Run,
        operation: &Operation<'_>,
        piece: &Piece<'_>,
        place: &mut Place,
        carried: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let lanes = piece.lanes;
        let block = Block { first: &Index::default(), lanes, vectors: 1 };
        let neutral = operation.neutral(cx, lanes)?;
        let (totals, errors) = carried.split_at(if run.keeps_errors { carried.len() / 2 } else { 0 });
        let mut sums = errors.to_vec();
        for vector in 0..piece.vectors {
            let first = piece.first.plus_constant(i64::from(vector * lanes));
            // Vectors are loaded and stored in memory order.
            let least = if run.is_backward { first.plus_constant(i64::from(lanes) - 1) } else { first };
            let neighbors = |index: Index| if lanes > 1 { index.plus(&Index::lanes(1)) } else { index };
            let element = neighbors(run.element(&least.plus_constant(run.held - 1)));
            let start = vec![neutral; sums.len()];
            let elements = self.add_running(cx, &block, run, element, place, &start)?;
            let (mut results, mut next) = (Vec::new(), Vec::new());
            for (&sum, element) in sums.iter().zip(elements) {
                let prefix = prefix(cx, operation, element, neutral, run.is_backward)?;
                results.push(operation.combine(cx, sum, prefix)?);
                let last = if run.is_backward { 0 } else { lanes - 1 };
                let whole =
                    if lanes > 1 { cx.shuffle(prefix, prefix, vec![last; lanes as usize]) } else { prefix };
                next.push(operation.combine(cx, sum, whole)?);
            }
            sums = next;
            let results = self.joined(cx, totals, &results)?;
            place.result[run.dimension] = neighbors(run.result(&least));
            self.store(cx, &block, place, &results)?;
        }
        Ok(if run.keeps_errors { with_errors(cx, totals, &sums) } else { sums })
    }
}

/// Combines each lane with all lanes before it, or with all lanes after it if backward.
fn prefix(
    cx: &mut KernelContext<'_>,
    operation: &Operation<'_>,
    mut vector: ValueId,
    neutral: ValueId,
    is_backward: bool,
) -> Result<ValueId> {
    let lanes = cx.ty(vector).lanes;
    let mut distance = 1;
    while distance < lanes {
        // Lanes without a neighbor at this distance take the neutral element from the second
        // vector.
        let neighbor = |lane: u32| {
            if is_backward { lane + distance } else { lane.checked_sub(distance).unwrap_or(lanes + lane) }
        };
        let moved = cx.shuffle(vector, neutral, (0..lanes).map(neighbor).collect());
        vector = operation.combine(cx, moved, vector)?;
        distance *= 2;
    }
    Ok(vector)
}

/// Returns a value whose lanes are all equal, in fewer lanes.
fn first_lanes(b: &mut FunctionBuilder, value: ValueId, lanes: u32) -> ValueId {
    if b.ty(value).lanes == lanes {
        return value;
    }
    let first = b.extract(value, 0);
    splat(b, first, lanes)
}
