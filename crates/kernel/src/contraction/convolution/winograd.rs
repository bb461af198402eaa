//! Convolutions by transformed patches, as [`plan::WinogradPlan`] describes. For each block of
//! patches, the input is transformed into the worker's scratch. One register tile of products after
//! another is then computed for all frequencies, and the resulting pixels are passed to the
//! epilogue.

mod bytes;
mod gradient;
mod image;
mod kernel;
mod needed;
mod output;
mod transform;

pub(super) use gradient::emit as emit_gradient;

use super::streams::Streams;
use super::walk::{self, span};
use super::{PanelBody, load};
use crate::context::KernelContext;
use crate::context::limits::greater;
use crate::context::tasks::Span;
use crate::contraction::tile::{self, Columns, Reading, multiply_add, scalar_type, zero};
use crate::index::{Facts, Index};
use image::{Image, Place};
use needed::Run;
use nest::{FunctionBuilder, GroupKind, Predicate, ScalarType, Type, ValueId};
use plan::{ConvolutionDims, ConvolutionPlan, GROUP_BYTES, Packing, WinogradPlan};
use shape::PrimitiveType;
use support::{Error, Result};

/// Emits the loops.
pub(super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &ConvolutionPlan,
    winograd: &WinogradPlan,
) -> Result<()> {
    let input = cx.operand(plan.input_operand)?.clone();
    cx.for_tasks(|cx, task| {
        let scratch = cx.worker_scratch();
        let kernel = match winograd.kernel_packing {
            Packing::Constant => cx.first_packed()?,
            Packing::None | Packing::Scratch => cx.offset_bytes(scratch, winograd.scratch.kernel),
        };
        let nest = Nest {
            plan,
            winograd,
            dims: &plan.dims,
            scalar: scalar_type(plan.accumulator)?,
            input: input.pointer,
            input_type: input.shape.element_type,
            scratch,
            kernel,
            packed: winograd.bytes.as_ref().map(|_| cx.first_packed()).transpose()?,
            streams: Streams::new(cx, plan)?,
            run: Run::of(cx, plan, winograd)?,
        };
        let is_first = cx.is_first_task(&task)?;
        match is_first {
            Some(is_first) => cx.when(is_first, |cx| nest.prepare(cx))?,
            None => nest.prepare(cx)?,
        }
        let (chunk, features) = cx.div_rem(&task, winograd.feature_chunks)?;
        let blocks = match nest.run {
            Some(run) => run.span(cx, &chunk, winograd.chunks, winograd.blocks)?,
            None => span(cx, &chunk, winograd.chunks, winograd.blocks)?,
        };
        let panels = span(cx, &features, winograd.feature_chunks, winograd.whole_panels(&plan.dims))?;
        cx.for_span(blocks, 1, |cx, number| {
            let block = nest.block(cx, &number)?;
            nest.compute(cx, block, is_first, &features, panels)
        })?;
        nest.run.map_or(Ok(()), |run| nest.hidden(cx, run, &task))
    })
}

/// The loops of one convolution.
struct Nest<'p> {
    plan: &'p ConvolutionPlan,
    winograd: &'p WinogradPlan,
    dims: &'p ConvolutionDims,
    scalar: ScalarType,
    input: ValueId,
    input_type: PrimitiveType,
    /// Address of the worker's scratch.
    scratch: ValueId,
    /// Address of the transformed kernel.
    kernel: ValueId,
    /// Address of the panels of bytes that are transformed.
    packed: Option<ValueId>,
    /// Arrays that are prefetched for the epilogue.
    streams: Streams,
    /// The patches of a run, if a size of the output is open.
    run: Option<Run>,
}

/// A range of patches. `end` is excluded.
#[derive(Clone, Copy)]
struct Block {
    begin: ValueId,
    end: ValueId,
}

/// Position of a patch.
struct Patch {
    /// Number of the image.
    image: ValueId,
    /// First line and first column of its outputs.
    outputs: [ValueId; 2],
}

/// Place of a feature in the transformed kernel.
#[derive(Clone, Copy)]
struct KernelRow {
    /// Address at the first frequency and the first input.
    pointer: ValueId,
    /// Distance in bytes between frequencies.
    frequency: i64,
}

/// Addresses of the factors at one frequency: the first patch of a tile, and the kernel.
#[derive(Clone, Copy)]
struct Factors {
    patches: ValueId,
    kernel: ValueId,
}

impl Nest<'_> {
    fn size(&self) -> i64 {
        self.scalar.byte_size() as i64
    }

    /// Emits the start of each call: zeros for the padding, and the transformation of a kernel that
    /// is not constant.
    fn prepare(&self, cx: &mut KernelContext<'_>) -> Result<()> {
        if self.may_leave_input() {
            let (zero, bytes) =
                (cx.integer(Type::scalar(ScalarType::I8), 0), cx.index(self.dims.inputs * self.pixel_size()));
            cx.fill_bytes(self.scratch, zero, bytes);
        }
        if self.reads_ahead() {
            let scratch = self.winograd.scratch;
            let last =
                cx.offset_bytes(self.scratch, scratch.input + (self.winograd.block - 1) * scratch.input_row);
            let (zero, bytes) = (cx.integer(Type::scalar(ScalarType::I8), 0), cx.index(scratch.input_row));
            cx.for_range(0, self.winograd.transform.frequencies(), 1, |cx, frequency| {
                let frequency = cx.scalar_value(&frequency)?;
                let row = cx.offset(last, frequency, scratch.input_frequency);
                cx.fill_bytes(row, zero, bytes);
                Ok(())
            })?;
        }
        if self.winograd.kernel_packing != Packing::Scratch {
            return Ok(());
        }
        if self.winograd.bytes.is_none() && self.dims.outputs % i64::from(self.winograd.tile.lanes) != 0 {
            let bytes = cx.index(self.winograd.kernel_bytes());
            let zero = cx.integer(Type::scalar(ScalarType::I8), 0);
            cx.fill_bytes(self.kernel, zero, bytes);
        }
        if self.winograd.by_columns {
            return Ok(());
        }
        let all = span(cx, &Index::constant(0), 1, self.winograd.whole_panels(self.dims))?;
        self.panels(cx, all, &mut |cx, column, parts| self.transform_parts(cx, column, column, parts))
    }

    /// True if a block may have fewer patches than its only register tile. The tile then also reads
    /// a row of zeros or of another block. The resulting pixels are discarded.
    fn reads_ahead(&self) -> bool {
        let is_one_tile = self.winograd.block <= i64::from(self.winograd.tile.rows);
        is_one_tile && self.run.is_none() && self.winograd.all_patches(self.dims) % self.winograd.blocks != 0
    }

    fn pixel_size(&self) -> i64 {
        self.input_type.byte_size() as i64
    }

    /// Returns the place of a feature in the transformed kernel.
    fn kernel_row(&self, cx: &mut KernelContext<'_>, column: &Index) -> Result<KernelRow> {
        let panels = self.winograd.panels;
        let pointer = tile::column_of_panels(cx, panels, self.kernel, column)?;
        Ok(KernelRow { pointer, frequency: self.winograd.kernel_rows() * panels.row_bytes() })
    }

    /// Computes the pixels of a block in a part of the features. `is_first` holds for the first
    /// task of a call.
    fn compute(
        &self,
        cx: &mut KernelContext<'_>,
        block: Block,
        is_first: Option<ValueId>,
        features: &Index,
        panels: Span,
    ) -> Result<()> {
        match is_first.filter(|_| self.winograd.feature_chunks > 1) {
            // The previous task has transformed the same input, unless it ran on another worker.
            Some(is_first) => {
                let (features, zero) = (cx.scalar_value(features)?, cx.index(0));
                let is_new = cx.compare(Predicate::Equal, features, zero);
                let is_needed = cx.or(is_new, is_first);
                cx.when(is_needed, |cx| self.input(cx, block))?;
            }
            None => self.input(cx, block)?,
        }
        self.panels(cx, panels, &mut |cx, column, parts| {
            if self.winograd.by_columns {
                self.transform_parts(cx, column, &Index::constant(0), parts)?;
            }
            self.tiles(cx, block, column, parts)
        })
    }

    /// Returns the patches of a block.
    fn block(&self, cx: &mut KernelContext<'_>, number: &Index) -> Result<Block> {
        let all = self.winograd.all_patches(self.dims);
        let number = cx.scalar_value(number)?;
        if let Some(run) = self.run {
            return Ok(run.block(cx, number));
        }
        if self.winograd.blocks == 1 {
            return Ok(Block { begin: cx.index(0), end: cx.index(all) });
        }
        if all % self.winograd.blocks == 0 {
            let begin = cx.mul_constant(number, self.winograd.block);
            return Ok(Block { begin, end: cx.add_constant(begin, self.winograd.block) });
        }
        match cx.span(number, self.winograd.blocks, all) {
            Span::Part { begin, end, .. } => Ok(Block { begin, end }),
            Span::All(_) => Err(Error::internal("expected a part of the patches, got all of them")),
        }
    }

    /// Returns the position of a patch.
    fn patch(&self, cx: &mut KernelContext<'_>, number: ValueId) -> Result<Patch> {
        let [lines, columns] = self.winograd.patches;
        cx.learn(number, Facts::range(0, self.winograd.all_patches(self.dims) - 1));
        if let Some(run) = self.run {
            return self.patch_of_run(cx, run, number);
        }
        let (rest, column) = cx.div_rem(&Index::scalar(number), columns)?;
        let (image, line) = cx.div_rem(&rest, lines)?;
        let m = self.winograd.transform.outputs;
        let outputs = [cx.scalar_value(&line.times(m))?, cx.scalar_value(&column.times(m))?];
        Ok(Patch { image: cx.scalar_value(&image)?, outputs })
    }

    /// Returns the low padding and the input's size, for each spatial dimension.
    fn low(&self) -> [(i64, i64); 2] {
        [0, 1].map(|d| (self.dims.spatial[d].window.padding_low, self.dims.spatial[d].input))
    }

    /// Returns the distance of the windows of neighboring outputs.
    fn stride(&self, d: usize) -> i64 {
        self.dims.spatial[d].window.stride
    }

    /// True if a patch may extend beyond the input.
    fn may_leave_input(&self) -> bool {
        let (m, n) = (self.winograd.transform.outputs, self.winograd.transform.size());
        let leaves = |d: usize| {
            let (low, input) = self.low()[d];
            low > 0 || (self.winograd.patches[d] - 1) * m * self.stride(d) - low + n > input
        };
        leaves(0) || leaves(1)
    }

    /// True if a patch may extend beyond the output.
    fn may_leave_output(&self) -> bool {
        (0..2).any(|d| self.dims.spatial[d].output % self.winograd.transform.outputs != 0)
    }

    /// Transforms the input of a block.
    fn input(&self, cx: &mut KernelContext<'_>, block: Block) -> Result<()> {
        let scratch = self.winograd.scratch;
        let target = cx.offset_bytes(self.scratch, scratch.input);
        let limit = self.winograd.all_patches(self.dims);
        cx.for_dynamic(block.begin, block.end, limit, &[], |cx, number, _| {
            let row = cx.sub(number, block.begin);
            let target = cx.offset(target, row, scratch.input_row);
            let patch = self.patch(cx, number)?;
            // First line and column of the input, which may be outside.
            let first = [0, 1].map(|d| {
                let first = cx.mul_constant(patch.outputs[d], self.stride(d));
                cx.add_constant(first, -self.low()[d].0)
            });
            let place = Place { image: patch.image, first };
            if !self.may_leave_input() {
                self.channels(cx, place, target, true)?;
                return Ok(Vec::new());
            }
            let is_inside = self.image().has(cx, first, self.winograd.transform.size());
            cx.when(is_inside, |cx| self.channels(cx, place, target, true))?;
            let no = cx.integer(Type::scalar(ScalarType::Bool), 0);
            let is_outside = cx.compare(Predicate::Equal, is_inside, no);
            cx.when(is_outside, |cx| self.channels(cx, place, target, false))?;
            Ok(Vec::new())
        })
        .map(|_| ())
    }

    /// Transforms a patch, one vector of channels at a time. Pixels outside the image count as
    /// zero.
    fn channels(
        &self,
        cx: &mut KernelContext<'_>,
        place: Place,
        target: ValueId,
        is_inside: bool,
    ) -> Result<()> {
        let pixels = self.image().pixels(cx, place, self.winograd.transform.size(), is_inside);
        if self.winograd.bytes.is_some() {
            return image::in_vectors(
                cx,
                self.dims.inputs / GROUP_BYTES,
                GROUP_BYTES,
                &mut |cx, group, lanes| self.groups(cx, &pixels, target, group, lanes),
            );
        }
        image::in_vectors(cx, self.dims.inputs, self.size(), &mut |cx, channel, lanes| {
            self.channel(cx, &pixels, target, channel, lanes)
        })
    }

    /// Returns the input's images.
    fn image(&self) -> Image {
        Image {
            pointer: self.input,
            extents: self.low().map(|(_, extent)| extent),
            first: [0, 1].map(|d| {
                let low = self.low()[d].0;
                (
                    -low,
                    (self.winograd.patches[d] - 1) * self.winograd.transform.outputs * self.stride(d) - low,
                )
            }),
            pixel_bytes: self.dims.inputs * self.pixel_size(),
            zeros: self.scratch,
        }
    }

    /// Transforms some channels of a patch.
    fn channel(
        &self,
        cx: &mut KernelContext<'_>,
        pixels: &[ValueId],
        target: ValueId,
        channel: ValueId,
        lanes: u32,
    ) -> Result<()> {
        let target = cx.offset(target, channel, self.size());
        self.frequencies(cx, pixels, target, &mut |b, pixel| {
            let pointer = b.offset(pixel, channel, self.pixel_size());
            Ok(load(b, self.plan, self.input_type, pointer, lanes)?.real())
        })
    }

    /// Transforms what `read` loads of each pixel of a patch, and stores the frequencies.
    fn frequencies(
        &self,
        cx: &mut KernelContext<'_>,
        pixels: &[ValueId],
        target: ValueId,
        read: &mut dyn FnMut(&mut FunctionBuilder, ValueId) -> Result<ValueId>,
    ) -> Result<()> {
        let n = self.winograd.transform.size() as usize;
        let registers = cx.target().vector_registers;
        transform::input(
            cx,
            self.winograd.transform,
            registers,
            &mut |b, row, column| read(b, pixels[row * n + column]),
            &mut |b, row, column, value| {
                let frequency = (row * n + column) as i64;
                let pointer = b.offset_bytes(target, frequency * self.winograd.scratch.input_frequency);
                b.store(value, pointer, self.size() as u32);
                Ok(())
            },
        )
    }

    /// Runs `body` for a part of the panels, with the first feature and the vectors.
    fn panels(&self, cx: &mut KernelContext<'_>, span: Span, body: PanelBody<'_>) -> Result<()> {
        // Instructions multiply whole vectors by a lane.
        let reading = if self.winograd.has_halves() { Reading::Whole } else { Reading::Padded };
        walk::panels(cx, span, self.winograd.tile, self.dims.outputs, reading, body)
    }

    /// Emits the register tiles of a block for some features.
    fn tiles(
        &self,
        cx: &mut KernelContext<'_>,
        block: Block,
        column: &Index,
        parts: &[Columns],
    ) -> Result<()> {
        let rows = i64::from(self.winograd.tile.rows);
        let tiles = (self.winograd.block + rows - 1) / rows;
        let count = cx.sub(block.end, block.begin);
        let first = if self.winograd.by_columns { &Index::constant(0) } else { column };
        let kernel = self.kernel_row(cx, first)?;
        let tile_at = |cx: &mut KernelContext<'_>, tile: Index| {
            let nominal = cx.scalar_value(&tile.times(rows))?;
            // The last tile begins earlier so that it does not end beyond the block. The patches
            // that it computes again are not passed on again.
            let (last, next) = (cx.add_constant(count, -rows), cx.add_constant(nominal, rows));
            let mut first = if tiles == 1 { nominal } else { least(cx, nominal, last) };
            if self.run.is_some() {
                // Of fewer patches than a tile has rows, the other rows are those of another block.
                let zero = cx.index(0);
                first = greater(cx, first, zero);
            }
            let end = least(cx, next, count);
            self.products(cx, first, kernel, parts, &mut |cx, row| {
                let number = cx.add(block.begin, first);
                let number = cx.add(number, row);
                self.fetch(cx, number, column, parts)
            })?;
            let (begin, end) = (cx.add(block.begin, nominal), cx.add(block.begin, end));
            let first = cx.add(block.begin, first);
            let limit = self.winograd.all_patches(self.dims);
            cx.for_dynamic(begin, end, limit, &[], |cx, number, _| {
                let row = cx.sub(number, first);
                self.output(cx, number, row, column, parts).map(|()| Vec::new())
            })
            .map(|_| ())
        };
        if self.run.is_none() {
            return cx.for_range(0, tiles, 1, tile_at);
        }
        let (zero, end) = (cx.index(0), self.tiles_of_block(cx, count)?);
        cx.for_steps((zero, end), (0, tiles), 1, &[], |cx, tile, _| tile_at(cx, tile).map(|()| Vec::new()))
            .map(|_| ())
    }

    /// Computes the products of a register tile, for all frequencies.
    fn products(
        &self,
        cx: &mut KernelContext<'_>,
        first: ValueId,
        kernel: KernelRow,
        parts: &[Columns],
        fetch: &mut dyn FnMut(&mut KernelContext<'_>, ValueId) -> Result<()>,
    ) -> Result<()> {
        let (scratch, tile) = (self.winograd.scratch, self.winograd.tile);
        let inputs = self.winograd.summands(self.dims);
        let source = cx.offset_bytes(self.scratch, scratch.input);
        let source = cx.offset(source, first, scratch.input_row);
        let target = cx.offset_bytes(self.scratch, scratch.products);
        let sums = tile.rows * parts.len() as u32;
        // More columns at a time than free registers would spill sums.
        let most = i64::from(plan::most_together(sums, parts.len() as u32, cx.target()));
        let unroll = match inputs {
            // A vector of factors serves several steps.
            _ if self.winograd.has_halves() => self.steps_by_lane(cx.target()),
            _ if sums >= 12 || most < 2 => 1,
            inputs if inputs % 4 == 0 && most >= 4 => 4,
            inputs if inputs % 2 == 0 => 2,
            _ => 1,
        };
        cx.for_range(0, self.winograd.transform.frequencies(), 1, |cx, frequency| {
            let frequency = cx.scalar_value(&frequency)?;
            if !self.streams.is_empty() {
                let last = cx.index(i64::from(tile.rows) - 1);
                let row = least(cx, frequency, last);
                fetch(cx, row)?;
            }
            let source = cx.offset(source, frequency, scratch.input_frequency);
            let kernel = cx.offset(kernel.pointer, frequency, kernel.frequency);
            let target = cx.offset(target, frequency, scratch.product_frequency);
            let mut zeros = Vec::new();
            for _ in 0..tile.rows {
                zeros.extend(parts.iter().map(|part| zero(cx, Type::vector(self.scalar, part.lanes))));
            }
            let sums = cx.for_range_carrying(0, inputs, unroll, &zeros, |cx, index, sums| {
                let index = cx.scalar_value(&index)?;
                let mut sums = sums.to_vec();
                let factors = Factors { patches: source, kernel };
                if self.winograd.has_halves() {
                    self.accumulate_by_lane(cx, factors, index, unroll, parts, &mut sums);
                } else {
                    (0..unroll).for_each(|k| self.accumulate(cx, factors, index, k, parts, &mut sums));
                }
                Ok(sums)
            })?;
            for (number, sum) in sums.into_iter().enumerate() {
                let (row, part) = (number / parts.len(), parts[number % parts.len()]);
                let at = row as i64 * scratch.product_row + part.offset * self.size();
                let pointer = cx.offset_bytes(target, at);
                cx.store(sum, pointer, self.alignment(part));
            }
            Ok(())
        })
    }

    /// Returns the alignment of a vector of the transformed kernel and of the products.
    fn alignment(&self, part: Columns) -> u32 {
        (part.lanes * self.size() as u32).min(64)
    }

    /// Adds the products of input feature `index + step`, patch by patch.
    fn accumulate(
        &self,
        b: &mut FunctionBuilder,
        factors: Factors,
        index: ValueId,
        step: i64,
        parts: &[Columns],
        sums: &mut [ValueId],
    ) {
        let size = self.size();
        let panels = self.winograd.panels;
        let row = b.offset(factors.kernel, index, panels.row_bytes());
        let mut vectors = Vec::new();
        for part in parts {
            let pointer = b.offset_bytes(row, step * panels.row_bytes() + panels.offset(part.offset));
            vectors.push(b.load(Type::vector(self.scalar, part.lanes), pointer, self.alignment(*part)));
        }
        let source = b.offset(factors.patches, index, size);
        for patch in 0..self.winograd.tile.rows as usize {
            let at = patch as i64 * self.winograd.scratch.input_row + step * size;
            let pointer = b.offset_bytes(source, at);
            let element = b.load(Type::scalar(self.scalar), pointer, size as u32);
            for (k, (part, &vector)) in parts.iter().zip(&vectors).enumerate() {
                let sum = &mut sums[patch * parts.len() + k];
                let element = b.splat(element, part.lanes);
                *sum = match self.winograd.bytes {
                    Some(_) => b.group_multiply_add(GroupKind::Shorts, element, vector, *sum),
                    None => multiply_add(b, element, vector, *sum),
                };
            }
        }
    }
}

/// Returns the smaller of two indices.
fn least(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    if let (Some(x), Some(y)) = (b.known_integer(x), b.known_integer(y)) {
        return b.index(x.min(y));
    }
    let is_less = b.compare(Predicate::Less, x, y);
    b.select(is_less, x, y)
}
