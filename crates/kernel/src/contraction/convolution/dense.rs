//! Tiles of pixels times vectors of output features, accumulated over taps and input features.

mod reduction;

use super::grid::Grid;
use super::pixels::Pixels;
use super::streams::Streams;
use super::walk::{self, tiles_in_order};
use super::{PanelBody, finish};
use crate::context::KernelContext;
use crate::context::tasks::Span;
use crate::contraction::grouping;
use crate::contraction::tile::{self, Columns, Reading, scalar_type};
use crate::contraction::tile_registers::{TileRegisters, with_tiles};
use crate::element::Element;
use crate::index::{Facts, Index, Position};
use nest::{Predicate, ScalarType, ValueId};
use plan::{ConvolutionDims, ConvolutionPlan, DensePlan, Grouping, Packing};
use reduction::{At, MOST_UNROLLED, Reduction};
use shape::PrimitiveType;
use support::Result;

/// Emits the loops of one task.
pub(in crate::contraction) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &ConvolutionPlan,
    dense: &DensePlan,
    grid: &Grid,
    task: &Index,
) -> Result<()> {
    let input = cx.operand(plan.input_operand)?.clone();
    let (kernel, kernel_type) = match dense.kernel_packing {
        Packing::Constant => (cx.first_packed()?, plan.accumulator),
        Packing::None | Packing::Scratch => {
            let memory = cx.operand(plan.kernel_operand)?;
            (memory.pointer, memory.shape.element_type)
        }
    };
    let sizes = dense.tiling.sizes.iter().map(|size| size.pixels);
    let registers = TileRegisters::new(dense.grouping, sizes, dense.inputs);
    let nest = Nest {
        plan,
        dense,
        dims: &plan.dims,
        scalar: scalar_type(plan.accumulator)?,
        input: input.pointer,
        input_type: input.shape.element_type,
        kernel,
        kernel_type,
        streams: Streams::new(cx, plan)?,
        registers,
    };
    // If the panels are too large for the caches, consecutive tasks use the same ones.
    let (chunk, features) = if dense.panels_outside {
        let (features, chunk) = cx.div_rem(task, dense.tiling.chunks)?;
        (chunk, features)
    } else {
        cx.div_rem(task, dense.feature_chunks)?
    };
    let fixed = registers.map(|_| grid.clone().with_fixed_tiles());
    let grid = fixed.as_ref().unwrap_or(grid);
    let is_ahead = dense.tiling.sizes.iter().any(|size| nest.ahead(size.pixels).is_some());
    let span = walk::span(cx, &features, dense.feature_chunks, dense.whole_panels(&plan.dims))?;
    let mut body = |cx: &mut KernelContext<'_>, group: Index| {
        if dense.panels_outside {
            nest.panels(cx, span, &mut |cx, column, parts| {
                tiles_in_order(cx, &dense.tiling, grid, &chunk, is_ahead, &mut |cx, pixels| {
                    nest.tile(cx, &group, pixels, column, parts)
                })
            })
        } else {
            tiles_in_order(cx, &dense.tiling, grid, &chunk, is_ahead, &mut |cx, pixels| {
                nest.panels(cx, span, &mut |cx, column, parts| nest.tile(cx, &group, pixels, column, parts))
            })
        }
    };
    with_tiles(cx, registers, |cx| cx.for_range(0, plan.dims.groups, 1, &mut body))
}

/// The loops of one convolution.
struct Nest<'p> {
    plan: &'p ConvolutionPlan,
    dense: &'p DensePlan,
    dims: &'p ConvolutionDims,
    scalar: ScalarType,
    input: ValueId,
    input_type: PrimitiveType,
    kernel: ValueId,
    kernel_type: PrimitiveType,
    /// Arrays that are prefetched for the epilogue.
    streams: Streams,
    /// The tile registers with the sums, if they are there.
    registers: Option<TileRegisters>,
}

impl Nest<'_> {
    /// Runs `body` for a part of a group's panels, with the first feature in the group and the
    /// vectors.
    fn panels(&self, cx: &mut KernelContext<'_>, span: Span, body: PanelBody<'_>) -> Result<()> {
        walk::panels(cx, span, self.dense.tile, self.dims.outputs, self.reading(), body)
    }

    fn reading(&self) -> Reading {
        let is_wide = i64::from(self.dense.tile.lanes) * self.scalar.byte_size() as i64 >= 32;
        match self.dense.kernel_packing {
            Packing::Constant if self.dense.grouping.is_some_and(Grouping::takes_whole_vectors) => {
                Reading::Whole
            }
            Packing::Constant | Packing::Scratch => Reading::Padded,
            Packing::None if is_wide && self.kernel_type == self.plan.accumulator => Reading::Masked,
            Packing::None => Reading::Narrowing,
        }
    }

    /// Emits one tile: accumulates the sums and passes them to the epilogue.
    fn tile(
        &self,
        cx: &mut KernelContext<'_>,
        group: &Index,
        pixels: Pixels,
        column: &Index,
        parts: &[Columns],
    ) -> Result<()> {
        let (dims, grouping) = (self.dims, self.dense.grouping);
        let first = group.times(dims.outputs).plus(column);
        // The range of the pixel's number is tighter than that of its terms.
        cx.learn(pixels.output, Facts::range(0, dims.batch * dims.pixels() - 1));
        let sums = if pixels.is_hidden {
            self.zeros(cx, pixels.count, parts)
        } else {
            let input = self.input(cx, group, pixels)?;
            let place = self.place(cx, group, column, parts)?;
            let kernel = cx.offset(place.pointer, pixels.tap, self.dense.inputs * place.row);
            let rows = (0..i64::from(pixels.count))
                .map(|row| cx.mul_constant(pixels.input_step, row * self.pixel_bytes()))
                .collect();
            let ahead = self.next_panels(cx, pixels, column, &place)?;
            let reduction = Reduction {
                nest: self,
                pixels,
                place,
                rows,
                parts,
                ahead: ahead.map_or(0, |a| a.1),
                first: first.clone(),
            };
            if let Some(registers) = self.registers {
                return self.in_registers(cx, registers, &reduction, column, [input, kernel]);
            }
            self.sums(cx, &reduction, column, [input, kernel], ahead.map(|a| a.0))?
        };
        let sums = grouping::rows_of(cx, grouping, sums, pixels.count, parts.len());
        let (sums, parts) = grouping::joined(cx, grouping, sums, parts);
        let summands = self.dense.panels.rows;
        tile::finish_rows(cx, self.plan.sums, sums, parts.len(), summands, |cx, row, number, sum| {
            self.hand_over(cx, (&pixels, row), &first, parts[number], sum)
        })
    }

    /// Bytes of an input pixel.
    fn pixel_bytes(&self) -> i64 {
        self.dims.groups * self.dims.inputs * self.input_type.byte_size() as i64
    }

    /// Returns the address of a tile's first input pixel, at the first tap.
    fn input(&self, cx: &mut KernelContext<'_>, group: &Index, pixels: Pixels) -> Result<ValueId> {
        let number = cx.scalar_value(group)?;
        let input = cx.offset(self.input, pixels.input, self.pixel_bytes());
        Ok(cx.offset(input, number, self.dims.inputs * self.input_type.byte_size() as i64))
    }

    /// Returns the sums of a tile with which the accumulation begins, if they are all 0.
    fn zeros(&self, cx: &mut KernelContext<'_>, pixels: u32, parts: &[Columns]) -> Vec<ValueId> {
        let rows = grouping::padded_rows(self.dense.grouping, pixels);
        grouping::zeros(cx, self.dense.grouping, self.scalar, parts).repeat(rows as usize)
    }

    /// Accumulates the sums of a tile. `ahead` is the address of what it prefetches.
    fn sums(
        &self,
        cx: &mut KernelContext<'_>,
        reduction: &Reduction<'_>,
        column: &Index,
        [input, kernel]: [ValueId; 2],
        ahead: Option<ValueId>,
    ) -> Result<Vec<ValueId>> {
        let &Reduction { pixels, parts, .. } = reduction;
        let grouping = self.dense.grouping;
        let sums: Vec<ValueId> = match grouping.filter(|grouping| grouping.is_flipped()) {
            _ if self.plan.sums != self.plan.hero => {
                let row = grouping::numbers(cx, grouping, column, parts)?;
                row.repeat(pixels.count as usize)
            }
            Some(grouping) => {
                let taps = cx.offset(reduction.place.header, pixels.tap, reduction.place.row);
                let zeros = grouping::zeros(cx, None, self.scalar, parts);
                let row = reduction.corrections(cx, grouping, 0, taps, &zeros)?;
                let row = row.into_iter().map(|sum| grouping::initial(cx, grouping, sum));
                row.collect::<Vec<ValueId>>().repeat(pixels.count as usize)
            }
            None => self.zeros(cx, pixels.count, parts),
        };
        let rounds = i64::from(pixels.count.next_multiple_of(MOST_UNROLLED as u32));
        let fetched = (!self.streams.is_empty()).then(|| cx.index(rounds));
        reduction.taps(cx, 0, At { input, kernel, ahead, fetched }, &sums)
    }

    /// Passes some features of a pixel of a tile to the epilogue, given the tile's first one.
    fn hand_over(
        &self,
        cx: &mut KernelContext<'_>,
        (pixels, pixel): (&Pixels, &Index),
        first: &Index,
        part: Columns,
        sum: ValueId,
    ) -> Result<()> {
        let features = self.dims.groups * self.dims.outputs;
        let at = pixels.output_index(cx, pixel)?.times(features).plus(first);
        part.pieces(cx, sum, |cx, offset, lanes, value| {
            let at = at.plus_constant(offset).plus(&Index::lanes(i64::from(lanes > 1)));
            finish(cx, self.plan, &Position::Linear(at), lanes, Element::Real(value))
        })
    }

    /// Emits a tile whose sums are in tile registers.
    fn in_registers(
        &self,
        cx: &mut KernelContext<'_>,
        registers: TileRegisters,
        reduction: &Reduction<'_>,
        column: &Index,
        [input, kernel]: [ValueId; 2],
    ) -> Result<()> {
        let &Reduction { pixels, parts, .. } = reduction;
        let tile = registers.tile(cx, pixels.count, parts);
        let begins_with_numbers = self.plan.sums != self.plan.hero;
        let numbers = begins_with_numbers.then(|| grouping::first_number(cx, column)).transpose()?;
        tile.begin(cx, numbers);
        reduction.in_registers(cx, &tile, 0, [input, kernel])?;
        let sums = tile.store(cx, self.scalar, parts)?;
        sums.finish(cx, self.plan.sums, pixels.count as usize, |cx, row, number, sum| {
            self.hand_over(cx, (&pixels, row), &reduction.first, parts[number], sum)
        })
    }

    /// Returns the bytes of the next panels that a tile of `pixels` pixels prefetches per summand.
    fn ahead(&self, pixels: u32) -> Option<i64> {
        self.dense.ahead(self.dims, pixels)
    }

    /// Returns the part of the next panels that a tile prefetches, and its bytes per summand.
    fn next_panels(
        &self,
        cx: &mut KernelContext<'_>,
        pixels: Pixels,
        column: &Index,
        place: &Place,
    ) -> Result<Option<(ValueId, i64)>> {
        let (Some(bytes), Some(before)) = (self.ahead(pixels.count), pixels.before) else {
            return Ok(None);
        };
        let columns = self.dense.tile.columns();
        let layout = self.dense.panels;
        let panels = columns * (layout.header + layout.rows) * layout.element_bytes;
        // The last whole panels are followed by the first ones of another task, so the current
        // panels are prefetched again.
        let end = cx.scalar_value(&column.plus_constant(2 * columns))?;
        let outputs = cx.index(self.dims.outputs);
        let exists = cx.compare(Predicate::LessEqual, end, outputs);
        let next = cx.offset_bytes(place.pointer, panels);
        let next = cx.select(exists, next, place.pointer);
        let share = panels / self.dense.tiling.taps_of_pixels.max(1);
        Ok(Some((cx.offset(next, before, share), bytes)))
    }

    /// Returns the place of a tile's features in the kernel.
    fn place(
        &self,
        cx: &mut KernelContext<'_>,
        group: &Index,
        column: &Index,
        parts: &[Columns],
    ) -> Result<Place> {
        let dims = self.dims;
        let size = self.kernel_type.byte_size() as i64;
        if self.dense.kernel_packing != Packing::Constant {
            let first = cx.scalar_value(&group.times(dims.outputs).plus(column))?;
            let pointer = cx.offset(self.kernel, first, size);
            let offsets = parts.iter().map(|part| part.offset * size).collect();
            let row = dims.groups * dims.outputs * size;
            return Ok(Place { pointer, header: pointer, row, offsets, alignment: size as u32 });
        }
        // A tile covers whole panels, or a panel whole tiles. The distances between vectors are
        // therefore constant.
        let panels = self.dense.panels;
        let group = cx.scalar_value(group)?;
        let group = cx.offset(self.kernel, group, panels.bytes());
        let header = tile::column_of_panels(cx, panels, group, column)?;
        let pointer = tile::after_header(cx, panels, header);
        let offsets = parts.iter().map(|part| panels.offset(part.offset)).collect();
        let alignment = (i64::from(self.dense.tile.lanes) * panels.element_bytes).min(64) as u32;
        Ok(Place { pointer, header, row: panels.row_bytes(), offsets, alignment })
    }
}

/// Place of a tile's features in the kernel.
#[derive(Clone, Debug)]
struct Place {
    /// Address of the first summand's row.
    pointer: ValueId,
    /// Address of the panel's header.
    header: ValueId,
    /// Distance in bytes between summands.
    row: i64,
    /// Distance in bytes between the start of the row and each vector.
    offsets: Vec<i64>,
    /// Alignment of a vector.
    alignment: u32,
}
