//! The sums of a tile of a dense convolution, accumulated over taps and input features.

use super::{Nest, Place};
use crate::context::KernelContext;
use crate::contraction::convolution::count::Count;
use crate::contraction::convolution::load;
use crate::contraction::convolution::pixels::Pixels;
use crate::contraction::convolution::walk::repeat;
use crate::contraction::grouping;
use crate::contraction::tile::{Columns, multiply_add, zero};
use crate::contraction::tile_registers::{Left, SumTiles};
use crate::element::{decode, memory_type};
use crate::index::Index;
use nest::{FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, Type, ValueId};
use plan::{DensePlan, Grouping, Packing, Sums};
use support::Result;

/// Emitter for the sums of a tile.
pub(super) struct Reduction<'p> {
    pub(super) nest: &'p Nest<'p>,
    pub(super) pixels: Pixels,
    pub(super) place: Place,
    /// Distance in bytes between the first input pixel and each pixel.
    pub(super) rows: Vec<ValueId>,
    pub(super) parts: &'p [Columns],
    /// Bytes of the next panels to prefetch per summand.
    pub(super) ahead: i64,
    /// First feature of the tile.
    pub(super) first: Index,
}

/// Addresses of the next summands.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Address of the first pixel's inputs.
    pub(super) input: ValueId,
    /// Address of their rows in the kernel.
    pub(super) kernel: ValueId,
    /// Address of the panels to prefetch.
    pub(super) ahead: Option<ValueId>,
    /// Number of summands during which the epilogue's arrays are prefetched, in whole iterations of
    /// the loop.
    pub(super) fetched: Option<ValueId>,
}

/// Number of independent sums that keep two multiply-add units with a latency of four cycles busy.
const ENOUGH_SUMS: usize = 8;

/// Minimum number of summands that justifies adding up several sets of sums.
const LONG_RUN: i64 = 32;

/// Maximum number of summands per iteration; a power of two.
pub(super) const MOST_UNROLLED: i64 = 4;

/// Number of accumulators from which on the overhead of a loop is small.
const MANY_ACCUMULATORS: usize = 12;

impl Reduction<'_> {
    /// Emits loops over the taps from a dimension on. The innermost ones are runs of taps and input
    /// features.
    pub(super) fn taps(
        &self,
        cx: &mut KernelContext<'_>,
        d: usize,
        at: At,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let dense = self.nest.dense;
        if let Some(count) = self.run_of(cx, d) {
            return self.run(cx, count, at, sums);
        }
        let [input_step, kernel_step] = self.tap_steps(d);
        let ahead_step = dense.tiling.tap_steps[d] * dense.inputs * self.ahead;
        let is_apart = self.is_summed_apart(d);
        repeat(cx, self.pixels.taps[d], sums, |cx, tap, sums| {
            let at = At {
                input: cx.offset(at.input, tap, input_step),
                kernel: cx.offset(at.kernel, tap, kernel_step),
                ahead: at.ahead.map(|ahead| cx.offset(ahead, tap, ahead_step)),
                fetched: at.fetched.map(|pixels| at_first(cx, tap, pixels)),
            };
            if !is_apart {
                return self.taps(cx, d + 1, at, sums);
            }
            let zero_of = |&sum: &ValueId| {
                let ty = cx.ty(sum);
                zero(cx, ty)
            };
            let zeros: Vec<ValueId> = sums.iter().map(zero_of).collect();
            let part = self.taps(cx, d + 1, at, &zeros)?;
            Ok(sums.iter().zip(part).map(|(&sum, part)| cx.add(sum, part)).collect())
        })
    }

    /// Adds the products of the taps from a dimension on to the sums of tile registers, given the
    /// addresses of the inputs and of the kernel's rows.
    pub(super) fn in_registers(
        &self,
        cx: &mut KernelContext<'_>,
        tile: &SumTiles,
        d: usize,
        [input, kernel]: [ValueId; 2],
    ) -> Result<()> {
        let &Nest { dense, .. } = self.nest;
        if let Some(count) = self.run_of(cx, d) {
            let stride = cx.mul_constant(self.pixels.input_step, self.pixel_bytes());
            let left = Left { pointer: input, stride };
            return tile.add(cx, count.value, left, (kernel, dense.panels));
        }
        let [input_step, kernel_step] = self.tap_steps(d);
        repeat(cx, self.pixels.taps[d], &[], |cx, tap, _| {
            let at = [cx.offset(input, tap, input_step), cx.offset(kernel, tap, kernel_step)];
            self.in_registers(cx, tile, d + 1, at).map(|()| Vec::new())
        })
        .map(|_| ())
    }

    /// Returns the number of neighboring summands of the taps from a dimension on, if they are a
    /// run.
    fn run_of(&self, cx: &mut KernelContext<'_>, d: usize) -> Option<Count> {
        let dense = self.nest.dense;
        if d == 3 {
            return Some(Count::constant(cx, dense.inputs));
        }
        let taps = self.pixels.taps[d];
        (d == 2 && dense.is_run).then(|| Count {
            value: cx.mul_constant(taps.value, dense.inputs),
            most: taps.most * dense.inputs,
        })
    }

    /// Returns the distance in bytes between neighboring pixels of the input.
    fn pixel_bytes(&self) -> i64 {
        let dims = self.nest.dims;
        dims.groups * dims.inputs * self.nest.input_type.byte_size() as i64
    }

    /// Returns the distances in bytes between neighboring taps of a dimension, in the input and in
    /// the kernel.
    fn tap_steps(&self, d: usize) -> [i64; 2] {
        let dense = self.nest.dense;
        [
            dense.tiling.tap_input_steps[d] * self.pixel_bytes(),
            dense.tiling.tap_steps[d] * dense.inputs * self.place.row,
        ]
    }

    /// Adds the corrections for flipped bytes to a row of sums: for each tap of the pixels, the
    /// sums of its columns, which begin at `header`.
    pub(super) fn corrections(
        &self,
        cx: &mut KernelContext<'_>,
        grouping: Grouping,
        d: usize,
        header: ValueId,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let misses_taps = !self.nest.dims.has_all_taps();
        let Some(&taps) = self.pixels.taps.get(d).filter(|_| misses_taps) else {
            let mut all = Vec::new();
            for ((part, &offset), &sum) in self.parts.iter().zip(&self.place.offsets).zip(sums) {
                let pointer = cx.offset_bytes(header, offset);
                let columns = self.kernel_vector(cx, pointer, *part)?;
                let correction = grouping::correction(cx, grouping, columns[0]);
                all.push(cx.add(sum, correction));
            }
            return Ok(all);
        };
        let step = self.nest.dense.tiling.tap_steps[d] * self.place.row;
        repeat(cx, taps, sums, |cx, tap, sums| {
            let header = cx.offset(header, tap, step);
            self.corrections(cx, grouping, d + 1, header, sums)
        })
    }

    /// True if each tap of a dimension is summed separately. In a single sum of very many summands,
    /// such as the gradient of a kernel, rounding errors would grow too large.
    fn is_summed_apart(&self, d: usize) -> bool {
        let taps = &self.pixels.taps;
        let is_outermost = taps[d].most > 1 && taps[..d].iter().all(|count| count.most <= 1);
        self.nest.dense.panels.rows >= DensePlan::MANY_SUMMANDS && is_outermost
    }

    /// Adds summands that are contiguous in the input and in the kernel.
    fn run(
        &self,
        cx: &mut KernelContext<'_>,
        count: Count,
        at: At,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let dense = self.nest.dense;
        if let Some(grouping) = dense.grouping.filter(|grouping| grouping.tail > 0) {
            let whole = Count::constant(cx, dense.inputs - 1);
            let sums = if dense.inputs > 1 { self.whole(cx, whole, at, sums)? } else { sums.to_vec() };
            return self.last_group(cx, grouping, whole.value, at, sums);
        }
        self.whole(cx, count, at, sums)
    }

    /// Adds the products of the last group of a tap, which is not whole.
    fn last_group(
        &self,
        cx: &mut KernelContext<'_>,
        grouping: Grouping,
        index: ValueId,
        at: At,
        mut sums: Vec<ValueId>,
    ) -> Result<Vec<ValueId>> {
        let (dense, vectors) = (self.nest.dense, self.kernel_vectors(cx, at.kernel, index, 0)?);
        let element = |b: &mut FunctionBuilder, row: ValueId| {
            let input = b.offset(at.input, row, 1);
            let input = b.offset(input, index, grouping.bytes());
            Ok(grouping::load_last_group(b, grouping, input, dense.inputs))
        };
        self.multiply(cx, &self.rows, element, &vectors, &mut sums)?;
        Ok(sums)
    }

    /// Adds single summands or whole groups.
    fn whole(
        &self,
        cx: &mut KernelContext<'_>,
        count: Count,
        at: At,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let dense = self.nest.dense;
        // The count is a multiple of the rows per tap, so the loop leaves no remainder.
        let has_tail = dense.grouping.is_some_and(|grouping| grouping.tail > 0);
        let is_widened = dense.grouping.is_some_and(|grouping| grouping.is_widened);
        let is_across = dense.grouping.is_some_and(|grouping| grouping.sums == Sums::Across);
        let unroll = match dense.inputs - i64::from(has_tail) {
            _ if is_widened => 1,
            _ if sums.len() >= MANY_ACCUMULATORS => 1,
            inputs if inputs % 4 == 0 => 4,
            inputs if inputs % 2 == 0 => 2,
            _ => 1,
        };
        let vectors = self.parts.len() as u32;
        // Products across vectors take no registers but those of the operands.
        let together = if is_across {
            MOST_UNROLLED
        } else {
            i64::from(plan::most_together(sums.len() as u32, vectors, cx.target()))
        };
        let unroll = together.min(unroll);
        // A few sums would wait for each other, so summands alternate between several sets of sums.
        let sets = if count.most < LONG_RUN || is_across { 1 } else { ENOUGH_SUMS / sums.len().max(1) };
        let sets = sets.clamp(1, unroll as usize);
        let sets = 1 << sets.ilog2();
        let mut all = sums.to_vec();
        for _ in 1..sets {
            for &sum in sums {
                let ty = cx.ty(sum);
                all.push(zero(cx, ty));
            }
        }
        let all = self.run_in_sets(cx, count, at, unroll, sums.len(), &all)?;
        let (first, others) = all.split_at(sums.len());
        let mut total = first.to_vec();
        for set in others.chunks(sums.len()) {
            total = total.iter().zip(set).map(|(&sum, &part)| cx.add(sum, part)).collect();
        }
        Ok(total)
    }

    /// Adds the summands with the sums of all sets.
    fn run_in_sets(
        &self,
        cx: &mut KernelContext<'_>,
        count: Count,
        at: At,
        unroll: i64,
        of_set: usize,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let sets = (sums.len() / of_set.max(1)).max(1);
        let inputs: Vec<ValueId> = self.rows.iter().map(|&row| cx.offset(at.input, row, 1)).collect();
        let step = |b: &mut FunctionBuilder, index: ValueId, step: i64, sums: &mut [ValueId]| -> Result<()> {
            let first = step as usize % sets * of_set;
            if let Some(ahead) = at.ahead {
                let ahead = b.offset(ahead, index, self.ahead);
                let ahead = b.offset_bytes(ahead, step * self.ahead);
                b.prefetch(ahead, 2);
            }
            self.accumulate(b, &inputs, at.kernel, index, step, &mut sums[first..first + of_set])
        };
        let run = |cx: &mut KernelContext<'_>,
                   (begin, end): (ValueId, ValueId),
                   is_fetching: bool,
                   sums: &[ValueId]| {
            let body = |cx: &mut KernelContext<'_>, index, sums: &[ValueId]| {
                let mut sums = sums.to_vec();
                for k in 0..unroll {
                    if is_fetching {
                        let pixel = cx.add_constant(index, k);
                        self.fetch(cx, pixel)?;
                    }
                    step(cx, index, k, &mut sums)?;
                }
                Ok(sums)
            };
            if let (Some(begin), Some(end)) = (cx.known_integer(begin), cx.known_integer(end)) {
                return cx.for_range_carrying(begin, end, unroll, sums, |cx, index, sums| {
                    let index = cx.scalar_value(&index)?;
                    body(cx, index, sums)
                });
            }
            cx.for_carrying(begin, end, unroll, sums, |cx, index, sums| cx.scoped(|cx| body(cx, index, sums)))
        };
        let zero = cx.index(0);
        let Some(fetched) = at.fetched.filter(|&pixels| cx.known_integer(pixels) != Some(0)) else {
            return run(cx, (zero, count.value), false, sums);
        };
        let is_less = cx.compare(Predicate::Less, fetched, count.value);
        let split = match (cx.known_integer(fetched), cx.known_integer(count.value)) {
            (Some(fetched), Some(count)) => cx.index(fetched.min(count)),
            _ => cx.select(is_less, fetched, count.value),
        };
        let sums = run(cx, (zero, split), true, sums)?;
        run(cx, (split, count.value), false, &sums)
    }

    /// Prefetches the epilogue's arrays for one pixel of the tile.
    fn fetch(&self, cx: &mut KernelContext<'_>, pixel: ValueId) -> Result<()> {
        let features = self.nest.dims.groups * self.nest.dims.outputs;
        let pixel = cx.known_integer(pixel).map_or_else(|| Index::scalar(pixel), Index::constant);
        let at = self.pixels.output_index(cx, &pixel)?.times(features).plus(&self.first);
        self.nest.streams.fetch(cx, &at, self.parts)
    }

    /// Adds the products of summand `index + step` to the sums, pixel by pixel.
    fn accumulate(
        &self,
        b: &mut FunctionBuilder,
        inputs: &[ValueId],
        kernel: ValueId,
        index: ValueId,
        step: i64,
        sums: &mut [ValueId],
    ) -> Result<()> {
        let nest = self.nest;
        let vectors = self.kernel_vectors(b, kernel, index, step)?;
        let own = nest.input_type.byte_size() as i64;
        let size = nest.dense.grouping.map_or(own, Grouping::bytes);
        let element = |b: &mut FunctionBuilder, input: ValueId| {
            let input = b.offset(input, index, size);
            let input = b.offset_bytes(input, step * size);
            match nest.dense.grouping {
                Some(grouping) => Ok(grouping::load_group(b, grouping, input, size as u32)),
                None => Ok(load(b, nest.plan, nest.input_type, input, 1)?.real()),
            }
        };
        self.multiply(b, inputs, element, &vectors, sums)
    }

    /// Loads the kernel's row of summand `index + step`.
    fn kernel_vectors(
        &self,
        b: &mut FunctionBuilder,
        kernel: ValueId,
        index: ValueId,
        step: i64,
    ) -> Result<Vec<Vec<ValueId>>> {
        let row = b.offset(kernel, index, self.place.row);
        let row = b.offset_bytes(row, step * self.place.row);
        let places = self.parts.iter().zip(&self.place.offsets);
        places
            .map(|(part, &offset)| {
                let pointer = b.offset_bytes(row, offset);
                self.kernel_vector(b, pointer, *part)
            })
            .collect()
    }

    /// Adds the products of each pixel's element, or of its group, and a row of the kernel to the
    /// pixel's sums. `element` loads that of a pixel.
    fn multiply(
        &self,
        b: &mut FunctionBuilder,
        pixels: &[ValueId],
        element: impl Fn(&mut FunctionBuilder, ValueId) -> Result<ValueId>,
        vectors: &[Vec<ValueId>],
        sums: &mut [ValueId],
    ) -> Result<()> {
        let at_once = self.nest.dense.grouping.map_or(1, Grouping::rows) as usize;
        for (pixels, sums) in pixels.chunks(at_once).zip(sums.chunks_mut(at_once * self.parts.len())) {
            let elements = pixels.iter().map(|&pixel| element(b, pixel)).collect::<Result<Vec<ValueId>>>()?;
            if let Some(grouping) = self.nest.dense.grouping {
                grouping::multiply_rows(b, grouping, &elements, (self.parts, vectors), sums);
                continue;
            }
            for ((part, vector), sum) in self.parts.iter().zip(vectors).zip(sums) {
                let element = b.splat(elements[0], part.lanes);
                *sum = multiply_add(b, element, vector[0], *sum);
            }
        }
        Ok(())
    }

    /// Loads a vector of a row of the kernel, or its groups.
    fn kernel_vector(
        &self,
        b: &mut FunctionBuilder,
        pointer: ValueId,
        part: Columns,
    ) -> Result<Vec<ValueId>> {
        let nest = self.nest;
        let is_packed = nest.dense.kernel_packing == Packing::Constant;
        let factor =
            if nest.dense.grouping.is_some() { ScalarType::I32 } else { memory_type(nest.dense.stored) };
        let ty = Type::vector(factor, part.lanes);
        let own = part.lanes * factor.byte_size() as u32;
        let alignment = self.place.alignment.min(own);
        if let Some(grouping) = nest.dense.grouping.filter(|grouping| grouping.takes_whole_vectors()) {
            return Ok(grouping::load_columns(b, grouping, pointer, part.lanes, alignment));
        }
        if is_packed {
            let raw = b.load(ty, pointer, alignment);
            let is_single = nest.dense.grouping.is_none();
            return Ok(vec![if is_single { decode(b, nest.dense.stored, raw) } else { raw }]);
        }
        if part.valid == part.lanes {
            return Ok(vec![load(b, nest.plan, nest.kernel_type, pointer, part.lanes)?.real()]);
        }
        Ok(vec![part.load_masked(b, nest.scalar, pointer, alignment)])
    }
}

/// Returns a number at the first tap, and 0 at the others.
fn at_first(b: &mut FunctionBuilder, tap: ValueId, number: ValueId) -> ValueId {
    let zero = b.index(0);
    match b.known_integer(tap) {
        Some(0) => number,
        Some(_) => zero,
        None => {
            let is_first = b.compare(Predicate::Equal, tap, zero);
            b.select(is_first, number, zero)
        }
    }
}
