//! Blocks of neighboring results in a windowed reduction: the loops over their taps.

use super::{Place, Reducer, Taps, Windows};
use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::element::{Element, normalize};
use crate::index::{Index, Position};
use crate::movement::update::flatten;
use nest::ValueId;
use plan::WindowWalk;
use support::{Error, Result};

/// Maximum total number of taps that are unrolled. If there are more, outer taps become loops; the
/// innermost loop may have this many taps unrolled.
const UNROLLED_TAPS: i64 = 12;

/// Several vectors of neighbors along the innermost dimension.
pub(super) struct Block<'a> {
    /// Index of the first result.
    pub(super) first: &'a Index,
    pub(super) lanes: u32,
    pub(super) vectors: u32,
}

impl Block<'_> {
    /// Returns the index of each lane of a vector.
    fn index(&self, vector: u32) -> Index {
        let lane = Index::lanes(i64::from(self.lanes > 1));
        self.first.plus_constant(i64::from(vector) * i64::from(self.lanes)).plus(&lane)
    }
}

impl Windows<'_> {
    /// Computes and writes several vectors of results, given a place in the outer dimensions.
    pub(super) fn block(
        &self,
        cx: &mut KernelContext<'_>,
        first: &Index,
        lanes: u32,
        vectors: u32,
        place: &mut Place,
    ) -> Result<()> {
        let block = Block { first, lanes, vectors };
        let mut start = Vec::new();
        for _ in 0..vectors {
            for &element in &self.initial {
                start.extend(cx.widen(element, lanes)?.values());
            }
        }
        if let Some(running) = (0..self.counts.len()).find(|&d| self.is_running(d)) {
            return self.running(cx, &block, running, &start, place);
        }
        let mut at = vec![Index::default(); self.counts.len()];
        let totals = self.taps(cx, &block, place, &mut at, 0, &start)?;
        self.store(cx, &block, place, &totals)
    }

    /// Emits the loops over the taps, from `dimension` on. `at` holds the taps of the dimensions
    /// before.
    pub(super) fn taps(
        &self,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        place: &Place,
        at: &mut Vec<Index>,
        dimension: usize,
        totals: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        if dimension == self.counts.len() {
            return self.accumulate(cx, block, place, at, totals);
        }
        let (first, end) = match place.taps[dimension] {
            Taps::Known(first, end) => (first, end),
            Taps::Masked => (0, self.window.dimensions[dimension].size),
            Taps::Computed(first, end) => {
                let limit = self.window.dimensions[dimension].size;
                return cx.for_dynamic(first, end, limit, totals, |cx, tap, totals| {
                    at[dimension] = Index::scalar(tap);
                    self.taps(cx, block, place, at, dimension + 1, totals)
                });
            }
        };
        if self.taps_from(place, dimension) <= UNROLLED_TAPS {
            let mut totals = totals.to_vec();
            for tap in first..end {
                at[dimension] = Index::constant(tap);
                totals = self.taps(cx, block, place, at, dimension + 1, &totals)?;
            }
            return Ok(totals);
        }
        cx.for_range_carrying(first, end, 1, totals, |cx, tap, totals| {
            at[dimension] = tap;
            self.taps(cx, block, place, at, dimension + 1, totals)
        })
    }

    /// Returns the number of unrolled taps if those of `dimension` and all later ones are unrolled.
    fn taps_from(&self, place: &Place, dimension: usize) -> i64 {
        let count = |d: usize| match place.taps[d] {
            Taps::Known(first, end) => end - first,
            Taps::Masked => self.window.dimensions[d].size,
            Taps::Computed(..) => 1,
        };
        (dimension..self.counts.len()).fold(1, |all, d| all.saturating_mul(count(d).max(1)))
    }

    /// Combines the totals with the elements of one tap.
    pub(super) fn accumulate(
        &self,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        place: &Place,
        at: &[Index],
        totals: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let width = totals.len() / block.vectors as usize;
        let mut next = Vec::with_capacity(totals.len());
        cx.with_lanes(block.lanes, |cx| {
            for (vector, totals) in totals.chunks(width).enumerate() {
                let (indices, conditions) = match self.base_indices(cx, block, vector as u32, place, at)? {
                    Some(base) => base,
                    None => {
                        next.extend(totals);
                        continue;
                    }
                };
                let mut combined = self.combine(cx, totals, &Position::Multi(indices))?;
                for condition in conditions {
                    let kept = combined.iter().zip(totals);
                    combined = kept.map(|(&new, &old)| cx.select(condition, new, old)).collect();
                }
                next.extend(combined);
            }
            Ok(next)
        })
    }

    /// Returns the index of a tap in each dimension of the base, and the conditions for it to be
    /// inside. Returns `None` if it is never inside.
    fn base_indices(
        &self,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        vector: u32,
        place: &Place,
        at: &[Index],
    ) -> Result<Option<(Vec<Index>, Vec<ValueId>)>> {
        let rank = self.counts.len();
        let (mut indices, mut conditions) = (Vec::with_capacity(rank), Vec::new());
        for (d, w) in self.window.dimensions.iter().enumerate() {
            let is_running = self.is_running(d);
            let result =
                if d + 1 == rank && !is_running { block.index(vector) } else { place.result[d].clone() };
            if is_running {
                // The index is the element itself.
                indices.push(result);
                continue;
            }
            let dilated =
                result.times(w.stride).plus(&at[d].times(w.window_dilation)).plus_constant(-w.padding_low);
            if self.plan.dimensions[d] != WindowWalk::Masked {
                indices.push(dilated);
                continue;
            }
            let last = (self.sizes[d] - 1).saturating_mul(w.base_dilation);
            let inside = cx.contains(&dilated, 0, last.saturating_add(1))?;
            let dilated = cx.clamp(&dilated, 0, last)?;
            let (index, rest) = cx.div_rem(&dilated, w.base_dilation)?;
            let on_element = cx.contains(&rest, 0, 1)?;
            for containment in [inside, on_element] {
                match containment {
                    Containment::Always => {}
                    Containment::Never => return Ok(None),
                    Containment::When(condition) => conditions.push(condition),
                }
            }
            indices.push(index);
        }
        Ok(Some((indices, conditions)))
    }

    /// Returns the next totals of one vector, given the elements' position in the arrays.
    fn combine(
        &self,
        cx: &mut KernelContext<'_>,
        totals: &[ValueId],
        position: &Position,
    ) -> Result<Vec<ValueId>> {
        let lanes = cx.lanes();
        let mut elements = Vec::with_capacity(self.inputs.len());
        for &input in self.inputs {
            let element = cx.element(input, position)?;
            elements.push(cx.widen(element, lanes)?);
        }
        match &self.reducer {
            Reducer::Operation(operation) => {
                let values = elements.iter().flat_map(|element| element.values());
                totals.iter().zip(values).map(|(&total, value)| operation.combine(cx, total, value)).collect()
            }
            Reducer::Computation(to_apply) => {
                let mut arguments = self.elements(totals);
                arguments.extend(elements);
                let next = cx.apply(*to_apply, &arguments)?;
                if next.len() != self.initial.len() {
                    return Err(Error::internal(
                        "expected as many values from the computation of a reduction as it has accumulators",
                    ));
                }
                let mut widened = Vec::with_capacity(next.len());
                for element in next {
                    widened.push(cx.widen(element, lanes)?);
                }
                Ok(flatten(&widened))
            }
        }
    }

    /// Groups the values of one vector into elements.
    fn elements(&self, values: &[ValueId]) -> Vec<Element> {
        let mut rest = values;
        let mut elements = Vec::with_capacity(self.initial.len());
        for element in &self.initial {
            let (own, more) = rest.split_at(element.values().len());
            elements.push(Element::from_values(own));
            rest = more;
        }
        elements
    }

    /// Writes the totals of a block.
    pub(super) fn store(
        &self,
        cx: &mut KernelContext<'_>,
        block: &Block<'_>,
        place: &Place,
        totals: &[ValueId],
    ) -> Result<()> {
        let width = totals.len() / block.vectors as usize;
        let rank = self.counts.len();
        cx.with_lanes(block.lanes, |cx| {
            for (vector, totals) in totals.chunks(width).enumerate() {
                let mut indices = place.result.clone();
                if rank > 0 && !self.is_running(rank - 1) {
                    indices[rank - 1] = block.index(vector as u32);
                }
                let position = Position::Multi(indices);
                for (k, element) in self.elements(totals).into_iter().enumerate() {
                    let result = cx.results()[k].clone();
                    let element_type = result.shape.element_type;
                    let element = match &self.reducer {
                        Reducer::Operation(_) => element.map(|value| normalize(cx, element_type, value)),
                        Reducer::Computation(_) => element,
                    };
                    cx.store_at(&result, &position, element)?;
                }
            }
            Ok(())
        })
    }
}
