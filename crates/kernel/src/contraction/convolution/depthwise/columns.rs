//! Products of bytes for four taps of a column of the window at once. A lane holds the inputs of
//! one feature in up to four lines. Each such vector serves all pixels whose windows contain the
//! column.

use super::Nest;
use crate::context::KernelContext;
use crate::contraction::convolution::pixels::Pixels;
use crate::contraction::convolution::walk::repeat;
use crate::contraction::grouping;
use nest::{ConvertOp, FunctionBuilder, ScalarType, Type, ValueId};
use plan::{GROUP_BYTES, PackedColumns};
use std::collections::BTreeMap;
use support::Result;

/// Uses of a column of inputs: pixels of the tile, each with its tap.
type Uses = Vec<(usize, usize)>;

impl Nest<'_> {
    /// Returns the initial sums: the corrections for flipped bytes, or zeros. `kernel` is the
    /// address of the tile's features in the panel's header.
    pub(super) fn corrections(
        &self,
        b: &mut FunctionBuilder,
        columns: &PackedColumns,
        kernel: ValueId,
        pixels: u32,
    ) -> Vec<ValueId> {
        let grouping = columns.grouping;
        let of_pixel: Vec<ValueId> = if grouping.is_flipped() {
            let sums = self.group_row(b, kernel);
            sums.into_iter().map(|sums| grouping::correction(b, grouping, sums)).collect()
        } else {
            let ty = Type::vector(ScalarType::I32, self.lanes());
            (0..self.depthwise.vectors).map(|_| b.integer(ty, 0)).collect()
        };
        of_pixel.repeat(pixels as usize)
    }

    /// Adds the products of all taps. `kernel` is the address of the tile's features in the panel's
    /// first row of taps.
    pub(super) fn planes(
        &self,
        cx: &mut KernelContext<'_>,
        columns: &PackedColumns,
        pixels: &Pixels,
        [input, kernel]: [ValueId; 2],
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let [planes, lines, width] = pixels.taps;
        let row = columns.panel.row_bytes();
        let input_step = self.depthwise.tiling.tap_input_steps[0] * self.pixel();
        let plane_bytes = columns.grouping.groups(lines.most) * width.most * row;
        repeat(cx, planes, sums, |cx, plane, sums| {
            let input = cx.offset(input, plane, input_step);
            let mut kernel = cx.offset(kernel, plane, plane_bytes);
            let mut sums = sums.to_vec();
            for first in (0..lines.most).step_by(GROUP_BYTES as usize) {
                let count = (lines.most - first).min(GROUP_BYTES);
                let line = self.depthwise.tiling.tap_input_steps[1] * self.pixel();
                let input = cx.offset_bytes(input, first * line);
                self.group(cx, columns, pixels, count, [input, kernel], &mut sums);
                kernel = cx.offset_bytes(kernel, width.most * row);
            }
            Ok(sums)
        })
    }

    /// Adds the products of a group of `lines` lines.
    fn group(
        &self,
        b: &mut FunctionBuilder,
        columns: &PackedColumns,
        pixels: &Pixels,
        lines: i64,
        [input, kernel]: [ValueId; 2],
        sums: &mut [ValueId],
    ) {
        let row = columns.panel.row_bytes();
        let taps = pixels.taps[2].most;
        let weights: Vec<Vec<ValueId>> = (0..taps)
            .map(|tap| {
                let kernel = b.offset_bytes(kernel, tap * row);
                self.group_row(b, kernel)
            })
            .collect();
        for (first, uses) in self.uses(b, pixels, taps, input) {
            for (at, uses) in uses {
                let column = b.offset_bytes(first, at * self.pixel());
                for vector in 0..self.depthwise.vectors as usize {
                    let inputs = self.interleaved(b, column, vector as i64, lines);
                    for &(pixel, tap) in &uses {
                        let sum = &mut sums[pixel * self.depthwise.vectors as usize + vector];
                        *sum =
                            grouping::multiply_add(b, columns.grouping, inputs, weights[tap][vector], *sum);
                    }
                }
            }
        }
    }

    /// Returns the columns of inputs and their uses, by their distance in pixels from an address.
    /// Pixels share columns if their distance is known.
    fn uses(
        &self,
        b: &mut FunctionBuilder,
        pixels: &Pixels,
        taps: i64,
        input: ValueId,
    ) -> Vec<(ValueId, BTreeMap<i64, Uses>)> {
        let tap_step = self.depthwise.tiling.tap_input_steps[2];
        let count = i64::from(pixels.count);
        let known = b.known_integer(pixels.input_step);
        let pixels_of = |pixels: std::ops::Range<i64>, step: i64| {
            let mut uses: BTreeMap<i64, Uses> = BTreeMap::new();
            for pixel in pixels {
                for tap in 0..taps {
                    uses.entry(pixel * step + tap * tap_step)
                        .or_default()
                        .push((pixel as usize, tap as usize));
                }
            }
            uses
        };
        if let Some(step) = known {
            return vec![(input, pixels_of(0..count, step))];
        }
        (0..count)
            .map(|pixel| {
                let distance = b.mul_constant(pixels.input_step, pixel * self.pixel());
                (b.offset(input, distance, 1), pixels_of(pixel..pixel + 1, 0))
            })
            .collect()
    }

    /// Loads a row of the panel for the features of the tile.
    fn group_row(&self, b: &mut FunctionBuilder, pointer: ValueId) -> Vec<ValueId> {
        let ty = Type::vector(ScalarType::I32, self.lanes());
        let vector = |k: i64| {
            let pointer = b.offset_bytes(pointer, k * i64::from(self.lanes()) * GROUP_BYTES);
            b.load(ty, pointer, GROUP_BYTES as u32)
        };
        (0..i64::from(self.depthwise.vectors)).map(vector).collect()
    }

    /// Loads the inputs of a vector's features in some lines and interleaves them. Without a fourth
    /// line, its weights are 0, so any byte takes its place.
    fn interleaved(&self, b: &mut FunctionBuilder, pointer: ValueId, vector: i64, lines: i64) -> ValueId {
        let (lanes, shared) = (self.lanes(), self.dims.outputs as u32);
        let distinct = lanes / shared;
        let line = self.depthwise.tiling.tap_input_steps[1] * self.pixel();
        let rows: Vec<ValueId> = (0..lines)
            .map(|number| {
                let pointer = b.offset_bytes(pointer, number * line + vector * i64::from(distinct));
                b.load(Type::vector(ScalarType::I8, distinct), pointer, 1)
            })
            .collect();
        if let &[row] = &rows[..] {
            let wide = b.convert(ConvertOp::ZeroExtend, row, ScalarType::I32);
            let lanes = (0..lanes).map(|lane| lane / shared).collect();
            return if shared == 1 { wide } else { b.shuffle(wide, wide, lanes) };
        }
        // Bytes of two lines in turns, then pairs of them in turns, as processors interleave.
        let last = rows.len() - 1;
        let in_turns = |b: &mut FunctionBuilder, x: ValueId, y: ValueId| {
            b.shuffle(x, y, (0..2 * distinct).map(|k| k / 2 + k % 2 * distinct).collect())
        };
        let pairs = [0, 2].map(|first| {
            let [x, y] = [first, first + 1].map(|row: usize| rows[row.min(last)]);
            let bytes = in_turns(b, x, y);
            b.bitcast(bytes, Type::vector(ScalarType::I16, distinct))
        });
        let pair = |k: u32| k / 2 / shared + k % 2 * distinct;
        let bytes = b.shuffle(pairs[0], pairs[1], (0..2 * lanes).map(pair).collect());
        b.bitcast(bytes, Type::vector(ScalarType::I32, lanes))
    }
}
