//! Tiles of pixels times vectors of features. Each feature has its own input feature.

mod columns;

use super::grid::Grid;
use super::pixels::Pixels;
use super::walk::{repeat, span, tiles};
use super::{finish, load};
use crate::context::KernelContext;
use crate::context::tasks::Span;
use crate::contraction::tile::{self, multiply_add, scalar_type, zero};
use crate::element::{Element, splat};
use crate::index::{Facts, Index, Position};
use nest::{BinaryOp, FunctionBuilder, Predicate, Type, ValueId};
use plan::{ConvolutionDims, ConvolutionPlan, DepthwisePlan, GROUP_BYTES};
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::Result;

/// Emits the loops of one task.
pub(in crate::contraction) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &ConvolutionPlan,
    depthwise: &DepthwisePlan,
    grid: &Grid,
    task: &Index,
) -> Result<()> {
    let input = cx.operand(plan.input_operand)?.clone();
    let (kernel, kernel_type) = if depthwise.columns.is_some() {
        (cx.first_packed()?, plan.accumulator)
    } else {
        let memory = cx.operand(plan.kernel_operand)?;
        (memory.pointer, memory.shape.element_type)
    };
    let nest = Nest {
        plan,
        depthwise,
        dims: &plan.dims,
        input: input.pointer,
        input_type: input.shape.element_type,
        kernel,
        kernel_type,
    };
    let (chunk, features) = cx.div_rem(task, depthwise.feature_chunks)?;
    let whole = span(cx, &features, depthwise.feature_chunks, depthwise.whole_blocks(&plan.dims))?;
    let blocks = with_last(cx, whole, depthwise.blocks(&plan.dims));
    if depthwise.blocks_outside {
        nest.blocks(cx, blocks, &mut |cx, feature| {
            tiles(cx, &depthwise.tiling, grid, &chunk, &mut |cx, pixels| nest.tile(cx, pixels, feature))
        })
    } else {
        tiles(cx, &depthwise.tiling, grid, &chunk, &mut |cx, pixels| {
            nest.blocks(cx, blocks, &mut |cx, feature| nest.tile(cx, pixels, feature))
        })
    }
}

/// Extends a span of whole blocks by the partial block after the last one, if there is one.
fn with_last(b: &mut FunctionBuilder, whole: Span, blocks: i64) -> Span {
    let Span::Part { begin, end, steps, .. } = whole else { return Span::All(blocks) };
    let is_last = whole.is_last(b).filter(|_| steps < blocks);
    let end = is_last.map_or(end, |is_last| {
        let all = b.index(blocks);
        b.select(is_last, all, end)
    });
    Span::Part { begin, end, steps: blocks, is_one: false }
}

/// The loops of one convolution.
struct Nest<'p> {
    plan: &'p ConvolutionPlan,
    depthwise: &'p DepthwisePlan,
    dims: &'p ConvolutionDims,
    input: ValueId,
    input_type: PrimitiveType,
    kernel: ValueId,
    kernel_type: PrimitiveType,
}

type BlockBody<'b> = &'b mut dyn FnMut(&mut KernelContext<'_>, &Index) -> Result<()>;

/// Maximum number of taps in the last dimension that are unrolled.
const MAX_UNROLLED_TAPS: i64 = 8;

impl Nest<'_> {
    fn lanes(&self) -> u32 {
        self.depthwise.lanes
    }

    fn features(&self) -> i64 {
        self.dims.groups * self.dims.outputs
    }

    /// Runs `body` for a part of the blocks, with the first feature. The last block ends with the
    /// last feature.
    fn blocks(&self, cx: &mut KernelContext<'_>, span: Span, body: BlockBody<'_>) -> Result<()> {
        let (block, features) = (self.depthwise.block(), self.features());
        cx.for_span(span, 1, |cx, index| {
            let first = index.times(block);
            if features % block == 0 {
                return body(cx, &first);
            }
            let value = cx.scalar_value(&first)?;
            let last = cx.index(features - block);
            let is_less = cx.compare(Predicate::Less, value, last);
            let value = cx.select(is_less, value, last);
            let multiple = crate::index::gcd(block, features - block);
            cx.learn(value, Facts { min: 0, max: features - block, multiple });
            body(cx, &Index::scalar(value))
        })
    }

    /// Emits one tile: accumulates the sums and passes them to the epilogue.
    fn tile(&self, cx: &mut KernelContext<'_>, pixels: Pixels, feature: &Index) -> Result<()> {
        let (dims, lanes) = (self.dims, self.lanes());
        let vectors = self.depthwise.vectors as usize;
        let sums =
            if pixels.is_hidden { self.zeros(cx, pixels.count)? } else { self.sums(cx, &pixels, feature)? };
        cx.learn(pixels.output, Facts::range(0, dims.batch * dims.pixels() - 1));
        let groups = self.plan.dims.taps() / GROUP_BYTES;
        tile::finish_rows(cx, self.plan.hero, sums, vectors, groups, |cx, pixel, vector, sum| {
            let at = pixels.output_index(cx, pixel)?.times(self.features()).plus(feature);
            let at =
                at.plus_constant(vector as i64 * i64::from(lanes)).plus(&Index::lanes(i64::from(lanes > 1)));
            finish(cx, self.plan, &Position::Linear(at), lanes, Element::Real(sum))
        })
    }

    fn zeros(&self, cx: &mut KernelContext<'_>, pixels: u32) -> Result<Vec<ValueId>> {
        let ty = Type::vector(scalar_type(self.plan.accumulator)?, self.lanes());
        Ok((0..pixels * self.depthwise.vectors).map(|_| zero(cx, ty)).collect())
    }

    /// Accumulates the sums of a tile.
    fn sums(&self, cx: &mut KernelContext<'_>, pixels: &Pixels, feature: &Index) -> Result<Vec<ValueId>> {
        let dims = self.dims;
        let first = cx.scalar_value(feature)?;
        let input_feature = match dims.outputs {
            1 => first,
            outputs => {
                let by = cx.index(outputs);
                cx.binary(BinaryOp::DivideSigned, first, by)
            }
        };
        let size = self.input_type.byte_size() as i64;
        let input = cx.offset(self.input, input_feature, size);
        let input = cx.offset(input, pixels.input, dims.groups * size);
        let size = self.kernel_type.byte_size() as i64;
        let kernel = cx.offset(self.kernel, first, size);
        if let Some(columns) = &self.depthwise.columns {
            let sums = self.corrections(cx, columns, kernel, pixels.count);
            let kernel = cx.offset_bytes(kernel, columns.panel.header_bytes());
            return self.planes(cx, columns, pixels, [input, kernel], &sums);
        }
        let kernel = cx.offset(kernel, pixels.tap, self.features() * size);
        let sums = self.zeros(cx, pixels.count)?;
        self.taps(cx, 0, pixels, input, kernel, &sums)
    }

    /// Returns the distance in bytes between input pixels.
    fn pixel(&self) -> i64 {
        self.dims.groups * self.input_type.byte_size() as i64
    }

    /// Returns the distance in bytes between taps of the kernel.
    fn tap(&self) -> i64 {
        self.features() * self.kernel_type.byte_size() as i64
    }

    /// Emits loops over the taps from a dimension on.
    fn taps(
        &self,
        cx: &mut KernelContext<'_>,
        d: usize,
        pixels: &Pixels,
        input: ValueId,
        kernel: ValueId,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let tiling = &self.depthwise.tiling;
        let count = pixels.taps[d];
        let known = (cx.known_integer(count.value), cx.known_integer(pixels.input_step));
        if let (2, (Some(taps), Some(step))) = (d, known)
            && taps <= MAX_UNROLLED_TAPS
        {
            return self.line(cx, taps, step, input, kernel, sums);
        }
        let steps = (tiling.tap_input_steps[d] * self.pixel(), tiling.tap_steps[d] * self.tap());
        let inputs: Vec<ValueId> = (0..i64::from(pixels.count))
            .map(|pixel| cx.mul_constant(pixels.input_step, pixel * self.pixel()))
            .collect();
        repeat(cx, count, sums, |cx, tap, sums| {
            let (input, kernel) = (cx.offset(input, tap, steps.0), cx.offset(kernel, tap, steps.1));
            if d < 2 {
                return self.taps(cx, d + 1, pixels, input, kernel, sums);
            }
            let weights = self.weights(cx, kernel)?;
            let mut sums = sums.to_vec();
            for (sums, &distance) in sums.chunks_mut(weights.len()).zip(&inputs) {
                let input = cx.offset(input, distance, 1);
                let input = self.inputs(cx, input)?;
                for ((sum, &weight), input) in sums.iter_mut().zip(&weights).zip(input) {
                    *sum = multiply_add(cx, input, weight, *sum);
                }
            }
            Ok(sums)
        })
    }

    /// Emits all taps of a line of neighboring pixels. Each input is loaded once, for all outputs
    /// that it contributes to.
    fn line(
        &self,
        b: &mut FunctionBuilder,
        taps: i64,
        step: i64,
        input: ValueId,
        kernel: ValueId,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let tiling = &self.depthwise.tiling;
        let mut weights = Vec::new();
        for tap in 0..taps {
            let kernel = b.offset_bytes(kernel, tap * tiling.tap_steps[2] * self.tap());
            weights.push(self.weights(b, kernel)?);
        }
        let mut sums = sums.to_vec();
        let vectors = self.depthwise.vectors as usize;
        let mut uses: BTreeMap<i64, Vec<(usize, usize)>> = BTreeMap::new();
        for pixel in 0..sums.len() / vectors {
            for tap in 0..taps {
                let at = pixel as i64 * step + tap * tiling.tap_input_steps[2];
                uses.entry(at).or_default().push((pixel, tap as usize));
            }
        }
        for (at, uses) in uses {
            let input = b.offset_bytes(input, at * self.pixel());
            let input = self.inputs(b, input)?;
            for (pixel, tap) in uses {
                for (vector, &input) in input.iter().enumerate() {
                    let sum = &mut sums[pixel * vectors + vector];
                    *sum = multiply_add(b, input, weights[tap][vector], *sum);
                }
            }
        }
        Ok(sums)
    }

    /// Loads the weights of a tap.
    fn weights(&self, b: &mut FunctionBuilder, pointer: ValueId) -> Result<Vec<ValueId>> {
        let bytes = i64::from(self.lanes()) * self.kernel_type.byte_size() as i64;
        let vector = |k: i64| {
            let pointer = b.offset_bytes(pointer, k * bytes);
            Ok(load(b, self.plan, self.kernel_type, pointer, self.lanes())?.real())
        };
        (0..i64::from(self.depthwise.vectors)).map(vector).collect()
    }

    /// Loads the inputs of a tile's features at a pixel. Each is repeated for all features that
    /// share it.
    fn inputs(&self, b: &mut FunctionBuilder, pointer: ValueId) -> Result<Vec<ValueId>> {
        let shared = self.dims.outputs as u32;
        let distinct = self.lanes() / shared;
        let bytes = i64::from(distinct) * self.input_type.byte_size() as i64;
        let vector = |k: i64| {
            let pointer = b.offset_bytes(pointer, k * bytes);
            let loaded = load(b, self.plan, self.input_type, pointer, distinct)?.real();
            Ok(match (shared, distinct) {
                (1, _) => loaded,
                (_, 1) => splat(b, loaded, shared),
                _ => b.shuffle(loaded, loaded, (0..self.lanes()).map(|lane| lane / shared).collect()),
            })
        };
        (0..i64::from(self.depthwise.vectors)).map(vector).collect()
    }
}
