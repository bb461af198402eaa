//! Tiles of a dot whose weights are constants in few bits: the numbers are widened in registers.
//!
//! A single row adds up the products with the unscaled numbers of a block, and multiplies the sums
//! by the block's scales. Several rows multiply each widened number by its scale once for all rows.
//! If the processor multiplies bytes, a single row is in block floating point, and numbers of four
//! bits are not widened.

use super::{FIRST_CACHE, PREFETCH_DISTANCE, Place, Tiles, add_sets, hand_over};
use crate::context::KernelContext;
use crate::contraction::dot::{Product, block_float};
use crate::contraction::tile::{self, Columns, finish_rows};
use crate::index::Index;
use crate::narrow;
use hlo::CACHE_LINE;
use nest::{BinaryOp, FunctionBuilder, ScalarType, Type, ValueId};
use plan::{BlockFloat, NIBBLES, PanelLayout, Weights};
use shape::PrimitiveType;
use support::{Error, Result};

/// Products of a block that are straight-line code.
const MOST_SUMMANDS_IN_LINE: i64 = 64;

/// Emits one tile and passes its sums to the epilogue.
pub(super) fn tile(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    product: &Product,
    place: Place<'_>,
    weights: Weights,
) -> Result<()> {
    let panels = product.panels.ok_or_else(|| Error::internal("weights in few bits are not packed"))?;
    let lhs = product.row(cx, place.row)?;
    let rhs = product.column(cx, place.column)?;
    let (_, within) = cx.div_rem(place.column, panels.width)?;
    let within = cx.scalar_value(&within)?;
    let is_single = plan.dot.shape.m == 1;
    let has_few_registers = cx.target().vector_registers < 32;
    let sets = i64::from(plan.tiled.tile.k_split);
    let row = plan.dot.block_float;
    let tile = WeightTile {
        weights,
        row,
        panels,
        product,
        place,
        lhs,
        rhs,
        within,
        is_single,
        sets,
        has_few_registers,
    };
    let k = plan.dot.shape.k;
    let block = weights.blocks.map_or(plan.tiled.sum_block, |blocks| blocks.summands);
    let whole = k / block;
    let zeros = tile.zeros(cx);
    let mut sums = cx.for_range_carrying(0, whole, 1, &zeros, |cx, number, totals| {
        tile.block(cx, &number, block, block, totals)
    })?;
    if k % block > 0 {
        sums = tile.block(cx, &Index::constant(whole), block, k % block, &sums)?;
    }
    let per_row = place.parts.len();
    finish_rows(cx, plan.dot.hero, sums, per_row, plan.dot.shape.k, |cx, row, number, sum| {
        let row = place.row.plus(row);
        hand_over(cx, plan, product, &row, place.column, place.parts[number], sum)
    })
}

/// A tile and the addresses of its first summands.
struct WeightTile<'p> {
    weights: Weights,
    row: Option<BlockFloat>,
    panels: PanelLayout,
    product: &'p Product,
    place: Place<'p>,
    lhs: ValueId,
    rhs: ValueId,
    /// Columns from the start of the panel to the tile's first one, if the tile is narrower.
    within: ValueId,
    /// True if the product has one row.
    is_single: bool,
    /// True if constants for each number of a word do not fit registers.
    has_few_registers: bool,
    /// Sets of sums for each block. Each takes every `sets`-th summand.
    sets: i64,
}

impl WeightTile<'_> {
    fn zeros(&self, b: &mut FunctionBuilder) -> Vec<ValueId> {
        let rows = 0..self.place.rows;
        let parts = rows.flat_map(|_| self.place.parts);
        parts.map(|part| b.float(Type::vector(ScalarType::F32, part.lanes), 0.0)).collect()
    }

    /// Adds `count` summands of a block to the sums. Blocks have `block` summands.
    fn block(
        &self,
        cx: &mut KernelContext<'_>,
        number: &Index,
        block: i64,
        count: i64,
        totals: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let number = cx.scalar_value(number)?;
        let bytes = match self.weights.blocks {
            Some(_) => self.panels.block_bytes(),
            None => block / self.weights.summands_per_row() * self.panels.row_bytes(),
        };
        let rhs = cx.offset(self.rhs, number, bytes);
        let scales = self.scales(cx, rhs)?;
        if let Some(row) = self.row {
            let lhs = cx.offset(self.lhs, number, row.block_bytes());
            let sums = self.block_of_digits(cx, row, [lhs, rhs], count)?;
            let joined = totals.iter().zip(sums).zip(scales);
            return Ok(joined.map(|((&total, sum), scale)| cx.multiply_add(sum, scale, total)).collect());
        }
        let lhs = cx.offset(self.lhs, number, block * self.product.lhs_k);
        // Scaled weights join the sums of the blocks before.
        let is_apart = self.is_single || self.weights.blocks.is_none();
        let factors = if is_apart { &[][..] } else { &scales[..] };
        let sets = if is_apart { self.sets } else { 1 };
        let zeros = self.zeros(cx);
        let start = if is_apart { zeros.repeat(sets as usize) } else { totals.to_vec() };
        let step = self.together();
        let whole = count - count % step;
        let mut sums = cx.for_range_carrying(0, whole, step, &start, |cx, index, sums| {
            let index = cx.scalar_value(&index)?;
            self.prefetch(cx, rhs, index);
            self.accumulate(cx, [lhs, rhs], index, step, factors, sums)
        })?;
        if whole < count {
            let index = cx.index(whole);
            sums = self.accumulate(cx, [lhs, rhs], index, count - whole, factors, &sums)?;
        }
        if !is_apart {
            return Ok(sums);
        }
        let sums = add_sets(cx, sums, zeros.len());
        let parts = self.place.parts.len();
        let joined =
            totals.iter().zip(sums).enumerate().map(|(k, (&total, sum))| match scales.get(k % parts) {
                Some(&scale) => cx.multiply_add(sum, scale, total),
                None => cx.add(total, sum),
            });
        Ok(joined.collect())
    }

    /// Returns the sums of the first `count` products of a block for each part of the tile.
    fn block_of_digits(
        &self,
        cx: &mut KernelContext<'_>,
        row: BlockFloat,
        [lhs, rhs]: [ValueId; 2],
        count: i64,
    ) -> Result<Vec<ValueId>> {
        let parts = self.place.parts;
        let start: Vec<ValueId> =
            parts.iter().flat_map(|part| block_float::start(cx, row, lhs, part.lanes)).collect();
        let digits = start.len() / parts.len();
        // A block of the usual size is straight-line code.
        let step = NIBBLES * if count <= MOST_SUMMANDS_IN_LINE { count / NIBBLES } else { 1 };
        let sums = cx.for_range_carrying(0, count, step, &start, |cx, index, sums| {
            let first = cx.scalar_value(&index)?;
            let (lhs, rhs) = (
                cx.offset(lhs, first, block_float::WORD_BYTES / NIBBLES),
                cx.offset(rhs, first, self.panels.row_bytes() / NIBBLES),
            );
            let mut sums = sums.to_vec();
            for word in 0..step / NIBBLES {
                let lhs = cx.offset_bytes(lhs, word * block_float::WORD_BYTES);
                let rhs = cx.offset_bytes(rhs, word * self.panels.row_bytes());
                let zero = cx.index(0);
                self.prefetch(cx, rhs, zero);
                let words = self.words(cx, rhs);
                for (word, sums) in words.into_iter().zip(sums.chunks_exact_mut(digits)) {
                    block_float::multiply_add(cx, row, lhs, word, sums);
                }
            }
            Ok(sums)
        })?;
        Ok(sums.chunks_exact(digits).map(|sums| block_float::sum(cx, row, lhs, sums)).collect())
    }

    /// Loads the scales of a block, a vector for each part of the tile.
    fn scales(&self, b: &mut FunctionBuilder, block: ValueId) -> Result<Vec<ValueId>> {
        let Some(blocks) = self.weights.blocks else { return Ok(Vec::new()) };
        let first = self.panels.block_rows * self.panels.row_bytes();
        let load = |part: &Columns| {
            let (panel, column) = self.panel_and_column(*part);
            // The address of the block is that of the tile's first number in it.
            let block = b.offset(block, self.within, self.panels.scale_bytes - self.panels.element_bytes);
            let pointer = b.offset_bytes(block, panel + first + column * self.panels.scale_bytes);
            if self.is_single && column == 0 {
                let ahead = b.offset_bytes(pointer, PREFETCH_DISTANCE);
                b.prefetch(ahead, FIRST_CACHE);
            }
            let alignment = self.panels.scale_bytes as u32;
            self.load(b, blocks.scale, pointer, part.lanes, alignment)
        };
        self.place.parts.iter().map(load).collect()
    }

    /// Returns the distance of a part's panel from that of the tile's first column, and the part's
    /// first column relative to the panel or to the tile.
    fn panel_and_column(&self, part: Columns) -> (i64, i64) {
        let width = self.panels.width;
        (part.offset / width * self.panels.panel_bytes(), part.offset % width)
    }

    /// Number of summands in one iteration: a line of a panel, or eight of four bits.
    fn together(&self) -> i64 {
        if self.weights.are_nibbles() {
            NIBBLES
        } else {
            (4 / self.panels.element_bytes).max(1) * self.sets.min(2)
        }
    }

    /// Requests the lines that a single row will read soon.
    fn prefetch(&self, b: &mut FunctionBuilder, block: ValueId, index: ValueId) {
        if !self.is_single {
            return;
        }
        let bytes = self.together() / self.weights.summands_per_row() * self.panels.row_bytes();
        let row = b.offset(block, index, self.panels.row_bytes() / self.weights.summands_per_row());
        let panels = self.place.parts.iter().filter(|part| part.offset % self.panels.width == 0);
        for part in panels {
            let (panel, _) = self.panel_and_column(*part);
            for line in (0..bytes).step_by(CACHE_LINE as usize) {
                let pointer = b.offset_bytes(row, panel + line + PREFETCH_DISTANCE);
                b.prefetch(pointer, FIRST_CACHE);
            }
        }
    }

    /// Adds the products of `count` summands of a block to the sums, from `index` on. The weights
    /// of each part are multiplied by its factor, if there are any.
    fn accumulate(
        &self,
        b: &mut FunctionBuilder,
        [lhs, rhs]: [ValueId; 2],
        index: ValueId,
        count: i64,
        factors: &[ValueId],
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let mut sums = sums.to_vec();
        let width = self.place.parts.len() * self.place.rows as usize;
        let row_bytes = self.panels.row_bytes();
        let rhs = b.offset(rhs, index, row_bytes / self.weights.summands_per_row());
        let lhs = b.offset(lhs, index, self.product.lhs_k);
        let words = if self.weights.are_nibbles() { self.words(b, rhs) } else { Vec::new() };
        for summand in 0..count {
            let mut columns = Vec::new();
            for (k, part) in self.place.parts.iter().enumerate() {
                let column = match words.get(k) {
                    Some(&word) => self.nibble(b, word, summand),
                    None => {
                        let (panel, column) = self.panel_and_column(*part);
                        let offset = panel + summand * row_bytes + column * self.panels.element_bytes;
                        let pointer = b.offset_bytes(rhs, offset);
                        self.load(b, self.weights.stored, pointer, part.lanes, self.alignment(*part))?
                    }
                };
                columns.push(factors.get(k).map_or(column, |&factor| b.mul(column, factor)));
            }
            let set = (summand as usize % (sums.len() / width)) * width;
            for row in 0..self.place.rows as usize {
                let offset = row as i64 * self.product.lhs_row + summand * self.product.lhs_k;
                let pointer = b.offset_bytes(lhs, offset);
                let element = b.load(Type::scalar(ScalarType::F32), pointer, 4);
                for (k, (part, &column)) in self.place.parts.iter().zip(&columns).enumerate() {
                    let sum = &mut sums[set + row * columns.len() + k];
                    let element = b.splat(element, part.lanes);
                    *sum = b.multiply_add(element, column, *sum);
                }
            }
        }
        Ok(sums)
    }

    /// Loads eight summands of four bits for each part.
    fn words(&self, b: &mut FunctionBuilder, row: ValueId) -> Vec<ValueId> {
        let load = |part: &Columns| {
            let (panel, column) = self.panel_and_column(*part);
            let pointer = b.offset_bytes(row, panel + column * self.panels.element_bytes);
            b.load(Type::vector(ScalarType::I32, part.lanes), pointer, self.alignment(*part))
        };
        self.place.parts.iter().map(load).collect()
    }

    /// Returns one of eight numbers of four bits as a float. In a float of the right exponent, the
    /// four bits of the mantissa count ones; subtracting the rest is exact.
    fn nibble(&self, b: &mut FunctionBuilder, word: ValueId, number: i64) -> ValueId {
        const MANTISSA_BITS: i64 = 23;
        const BIAS: i64 = 127;
        let bits = b.ty(word);
        // The upper ones of the eight are moved out of the place of the exponent. If there are few
        // registers, all are, so that they share their constants.
        let (word, first) = if self.has_few_registers && number > 0 {
            let shift = b.integer(bits, 4 * number);
            (b.binary(BinaryOp::ShiftRightLogical, word, shift), 0)
        } else if number < 5 {
            (word, 4 * number)
        } else {
            let shift = b.integer(bits, 12);
            (b.binary(BinaryOp::ShiftRightLogical, word, shift), 4 * number - 12)
        };
        let mask = b.integer(bits, 15 << first);
        let exponent = b.integer(bits, (BIAS + MANTISSA_BITS - first) << MANTISSA_BITS);
        let number = b.and(word, mask);
        let number = b.or(number, exponent);
        let float = Type::vector(ScalarType::F32, bits.lanes);
        let number = b.bitcast(number, float);
        let rest = (1i64 << (MANTISSA_BITS - first)) + i64::from(self.weights.bias());
        let rest = b.float(float, rest as f64);
        b.sub(number, rest)
    }

    /// Loads numbers as floats.
    fn load(
        &self,
        b: &mut FunctionBuilder,
        stored: PrimitiveType,
        pointer: ValueId,
        lanes: u32,
        alignment: u32,
    ) -> Result<ValueId> {
        if stored == PrimitiveType::F16 && self.weights.is_finite {
            let raw = b.load(Type::vector(ScalarType::I16, lanes), pointer, alignment.min(2));
            return Ok(narrow::decode_finite_half(b, raw));
        }
        Ok(tile::load(b, stored, PrimitiveType::F32, pointer, lanes)?.real())
    }

    /// Returns the alignment of a part's numbers.
    fn alignment(&self, part: Columns) -> u32 {
        let bytes = i64::from(part.lanes) * self.panels.element_bytes;
        let strides = bytes | self.panels.block_bytes() | self.panels.row_bytes() | self.panels.panel_bytes();
        1 << strides.trailing_zeros().min(6)
    }
}
