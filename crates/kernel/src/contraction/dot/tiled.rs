//! Register tiles: rows times vectors of columns, accumulated over the summands.

mod rounds;
mod weights;

use rounds::{Rounds, add_sets};

use super::walk::{for_panels, for_rows, parts_end};
use super::{DotElement, Part, Product, Tiles, finish, pack};
use crate::context::KernelContext;
use crate::contraction::grouping;
use crate::contraction::tile::{Columns, finish_rows, multiply_add, scalar_type};
use crate::contraction::tile_registers::{Left, TileRegisters};
use crate::element::Element;
use crate::index::{Facts, Index};
use hlo::CACHE_LINE;
use nest::{FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, Type, ValueId};
use plan::{Grouping, Packing};
use support::{Error, Result};

/// Emits the loops over the tiles of one product.
pub(super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    product: &Product,
    part: Part<'_>,
) -> Result<()> {
    if plan.tiled.k_block < plan.dot.shape.k {
        return passes(cx, plan, product, part);
    }
    let all = &Pass { first: Index::default(), count: plan.dot.shape.k, is_last: true };
    if plan.tiled.panels_outside {
        return for_panels(cx, plan, part, &mut |cx, column, parts| {
            let source = product;
            let product = &match plan.tiled.rhs_packing {
                Packing::Scratch if !plan.tiled.keeps_panels => {
                    pack::panel(cx, plan, product, column, parts_end(parts))?
                }
                _ => product.clone(),
            };
            for_rows(cx, plan, part, &mut |cx, number, row, rows| {
                tile(cx, plan, product, Place { source, number, row, rows, column, parts }, all)
            })
        });
    }
    for_rows(cx, plan, part, &mut |cx, number, row, rows| {
        for_panels(cx, plan, part, &mut |cx, column, parts| {
            tile(cx, plan, product, Place { source: product, number, row, rows, column, parts }, all)
        })
    })
}

/// A range of the summands.
struct Pass {
    /// The first summand.
    first: Index,
    /// Number of summands.
    count: i64,
    /// True if the sums are complete after the pass. Other passes store them in the result's
    /// memory.
    is_last: bool,
}

/// Emits passes over the tiles, each with a part of the summands. A panel's part then stays in the
/// cache for all rows.
fn passes(cx: &mut KernelContext<'_>, plan: Tiles<'_>, product: &Product, part: Part<'_>) -> Result<()> {
    let (k, block) = (plan.dot.shape.k, plan.tiled.k_block.max(1));
    let before = (k - 1) / block;
    let one = |cx: &mut KernelContext<'_>, pass: &Pass| {
        for_panels(cx, plan, part, &mut |cx, column, parts| {
            for_rows(cx, plan, part, &mut |cx, number, row, rows| {
                tile(cx, plan, product, Place { source: product, number, row, rows, column, parts }, pass)
            })
        })
    };
    cx.for_range(0, before, 1, |cx, number| {
        one(cx, &Pass { first: number.times(block), count: block, is_last: false })
    })?;
    let first = before * block;
    one(cx, &Pass { first: Index::constant(first), count: k - first, is_last: true })
}

/// Position of a tile.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// The product before this call packed its panels.
    source: &'p Product,
    /// Number of the row tile.
    number: &'p Index,
    row: &'p Index,
    rows: u32,
    column: &'p Index,
    parts: &'p [Columns],
}

/// Emits one tile: accumulates the sums, adds up their sets, and passes them to the epilogue, or
/// stores them for the next pass.
fn tile(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    product: &Product,
    place: Place<'_>,
    pass: &Pass,
) -> Result<()> {
    if let Some(weights) = plan.dot.weights {
        return weights::tile(cx, plan, product, place, weights);
    }
    let scalar = scalar_type(plan.dot.accumulator)?;
    if let Some(registers) = plan.tile_registers(cx) {
        return in_registers(cx, plan, product, place, (registers, scalar));
    }
    let mut lhs = product.row(cx, place.row)?;
    let mut rhs = match plan.tiled.rhs_packing {
        Packing::Scratch if !plan.tiled.keeps_panels => product.rhs,
        _ => product.column(cx, place.column)?,
    };
    if pass.first.as_constant() != Some(0) {
        let first = cx.scalar_value(&pass.first)?;
        (lhs, rhs) = (cx.offset(lhs, first, product.lhs_k), cx.offset(rhs, first, product.rhs_k));
    }
    let inputs = Inputs { lhs, rhs, product, place, scalar, grouping: plan.dot.grouping };
    let sets = i64::from(plan.tiled.tile.k_split);
    let mut initial = inputs.before(cx, plan, pass)?;
    let width = initial.len();
    (1..sets).for_each(|_| initial.extend(inputs.zeros(cx)));
    // Each iteration adds a few summands. The remaining ones follow the loop as straight-line code.
    let unroll = plan.tiled.unroll.max(1);
    let has_tail = plan.dot.grouping.is_some_and(|grouping| grouping.tail > 0);
    let k = pass.count - i64::from(has_tail);
    let whole = k - k % unroll;
    let ahead = match plan.tiled {
        tiled if tiled.prefetches => Ahead::new(cx, plan, place, pass, unroll)?,
        tiled if tiled.reads_ahead => Ahead::of_stream(cx, &inputs, unroll),
        _ => Ahead::default(),
    };
    let rounds = Rounds { plan, inputs: &inputs, ahead: &ahead, width };
    let sums = match plan.needed_summands(cx)? {
        Some(count) => rounds.limited(cx, count, &initial)?,
        None => {
            let mut sums = rounds.all(cx, whole, &initial)?;
            let end = cx.index(whole);
            for step in 0..k % unroll {
                let set = (step % sets) as usize;
                inputs.accumulate(cx, end, step, &[], &mut sums.sets[set * width..(set + 1) * width]);
            }
            if let Some(grouping) = plan.dot.grouping.filter(|_| has_tail) {
                let last = cx.index(k);
                let rows = inputs.last_groups(cx, grouping, last, pass.count);
                inputs.accumulate(cx, last, 0, &rows, &mut sums.sets[..width]);
            }
            sums.total(cx, width)
        }
    };
    let per_row = place.parts.len();
    let sums = grouping::rows_of(cx, plan.dot.grouping, sums, place.rows, per_row);
    if pass.is_last {
        let summands = plan.dot.shape.k;
        let (sums, parts) = grouping::joined(cx, plan.dot.grouping, sums, place.parts);
        return finish_rows(cx, plan.dot.sums, sums, parts.len(), summands, |cx, row, number, sum| {
            let row = place.row.plus(row);
            hand_over(cx, plan, product, &row, place.column, parts[number], sum)
        });
    }
    for (number, sum) in sums.into_iter().enumerate() {
        let (row, part) = (number / per_row, place.parts[number % per_row]);
        let row = place.row.plus_constant(row as i64);
        keep(cx, &number_of(plan, product, &row, place.column), part, sum)?;
    }
    Ok(())
}

/// Emits a tile whose sums are in tile registers.
fn in_registers(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    product: &Product,
    place: Place<'_>,
    (registers, scalar): (TileRegisters, ScalarType),
) -> Result<()> {
    let panels = product.panels.ok_or_else(|| Error::internal("expected packed panels"))?;
    let left = Left { pointer: product.row(cx, place.row)?, stride: cx.index(product.lhs_row) };
    let right = product.column(cx, place.column)?;
    let tile = registers.tile(cx, place.rows, place.parts);
    let begins_with_numbers = plan.dot.sums != plan.dot.hero;
    let numbers = begins_with_numbers.then(|| grouping::first_number(cx, place.column)).transpose()?;
    tile.begin(cx, numbers);
    let count = cx.index(plan.dot.shape.k);
    tile.add(cx, count, left, (right, panels))?;
    let sums = tile.store(cx, scalar, place.parts)?;
    sums.finish(cx, plan.dot.sums, place.rows as usize, |cx, row, number, sum| {
        let row = place.row.plus(row);
        hand_over(cx, plan, product, &row, place.column, place.parts[number], sum)
    })
}

/// Bytes from the line that a single row reads to the one that it requests.
const PREFETCH_DISTANCE: i64 = 2048;

/// The cache into which a single row requests lines.
const FIRST_CACHE: u32 = 1;

/// Number of lines per prefetch. Processors fetch lines in pairs or prefetch ahead. Requesting each
/// line would delay the misses of the first-level cache.
const LINES_TOGETHER: i64 = 2;

/// Prefetch of the next panel into the second-level cache. The tiles of a panel's rows share its
/// lines, so that memory is read continuously, and not only by the first tile.
#[derive(Default)]
struct Ahead {
    /// Addresses of the lines in the first iteration of the loop over the summands.
    lines: Vec<ValueId>,
    /// Distance in bytes per summand.
    step: i64,
    /// True if they are read so soon that they should be in the first-level cache.
    is_near: bool,
}

impl Ahead {
    fn new(
        cx: &mut KernelContext<'_>,
        plan: Tiles<'_>,
        place: Place<'_>,
        pass: &Pass,
        unroll: i64,
    ) -> Result<Self> {
        let product = place.source;
        let own = plan.dot.accumulator.byte_size() as i64;
        let size = product.panels.map_or(own, |panels| panels.element_bytes);
        let columns = plan.tiled.tile.columns();
        // The last panel has no successor. Any address within the operand is valid there.
        let end = product.panels.map_or(plan.dot.shape.n, |panels| panels.padded_columns());
        let last = end - columns;
        if last < 0 {
            return Ok(Self::default());
        }
        let next = cx.scalar_value(&place.column.plus_constant(columns))?;
        let limit = cx.index(last);
        let is_inside = cx.compare(Predicate::Less, next, limit);
        let next = cx.select(is_inside, next, limit);
        cx.learn(
            next,
            Facts { min: 0, max: last, multiple: product.panels.map_or(1, |panels| panels.width) },
        );
        let first = product.column(cx, &Index::scalar(next))?;
        if product.panels.is_none() && product.rhs_column != size {
            return Self::of_columns(cx, product, place, first, columns, plan.dot.shape.k, unroll);
        }
        let first = match pass.first.as_constant() {
            Some(0) => first,
            _ => {
                let summand = cx.scalar_value(&pass.first)?;
                cx.offset(first, summand, product.rhs_k)
            }
        };
        // A tile's share is a stream of lines along the summands. Its lines are neighbors in memory
        // only if the operand is packed. Otherwise the tiles take turns over the summands of a
        // round.
        let streams = (columns * size + CACHE_LINE - 1) / CACHE_LINE;
        let (turn, stream) = cx.div_rem(place.number, streams)?;
        let stream = cx.scalar_value(&stream)?;
        let stream = cx.offset(first, stream, product.within_tile(CACHE_LINE / size, size));
        let lines = match product.panels {
            Some(_) => {
                let steps = (0..unroll).step_by(LINES_TOGETHER as usize);
                steps.map(|step| cx.offset_bytes(stream, step * product.rhs_k)).collect()
            }
            None => {
                let (_, step) = cx.div_rem(&turn, unroll)?;
                let step = cx.scalar_value(&step)?;
                vec![cx.offset(stream, step, product.rhs_k)]
            }
        };
        Ok(Self { lines, step: product.rhs_k, is_near: false })
    }

    /// Requests the lines that a single row will read soon.
    fn of_stream(b: &mut FunctionBuilder, inputs: &Inputs<'_>, unroll: i64) -> Self {
        let step = inputs.product.rhs_k;
        let bytes = (0..unroll * step).step_by(CACHE_LINE as usize);
        let lines = bytes.map(|at| b.offset_bytes(inputs.rhs, at + PREFETCH_DISTANCE)).collect();
        Self { lines, step, is_near: true }
    }

    /// Divides the bytes of contiguous columns among the tiles.
    fn of_columns(
        cx: &mut KernelContext<'_>,
        product: &Product,
        place: Place<'_>,
        first: ValueId,
        columns: i64,
        k: i64,
        unroll: i64,
    ) -> Result<Self> {
        let step = CACHE_LINE / unroll;
        let bytes = columns * product.rhs_column;
        if product.rhs_column != k * product.rhs_k || CACHE_LINE % unroll != 0 || bytes < k * step {
            return Ok(Self::default());
        }
        let (_, part) = cx.div_rem(place.number, bytes / (k * step))?;
        let part = cx.scalar_value(&part)?;
        Ok(Self { lines: vec![cx.offset(first, part, k * step)], step, is_near: false })
    }

    fn prefetch(&self, b: &mut FunctionBuilder, index: ValueId) {
        const SECOND_CACHE: u32 = 2;
        for &line in &self.lines {
            let line = b.offset(line, index, self.step);
            b.prefetch(line, if self.is_near { FIRST_CACHE } else { SECOND_CACHE });
        }
    }
}

/// Returns the number of an element in the result.
fn number_of(plan: Tiles<'_>, product: &Product, row: &Index, column: &Index) -> Index {
    let (m, n) = (plan.dot.shape.m, plan.dot.shape.n);
    product.batch.times(m.saturating_mul(n)).plus(&row.times(n)).plus(column)
}

/// Stores incomplete sums in the result, where `first` is the number of the tile's first element.
fn keep(cx: &mut KernelContext<'_>, first: &Index, part: Columns, sum: ValueId) -> Result<()> {
    let result = cx.results()[0].clone();
    part.pieces(cx, sum, |cx, offset, _, value| {
        let (pointer, alignment) = cx.address(&result, &first.plus_constant(offset))?;
        cx.store(value, pointer, alignment);
        Ok(())
    })
}

/// Inputs of a tile.
struct Inputs<'p> {
    lhs: ValueId,
    rhs: ValueId,
    product: &'p Product,
    place: Place<'p>,
    scalar: ScalarType,
    grouping: Option<Grouping>,
}

impl Inputs<'_> {
    /// Returns the initial sums: the corrections for flipped bytes, or zeros.
    fn first(&self, b: &mut FunctionBuilder) -> Vec<ValueId> {
        let (Some(grouping), Some(panels)) =
            (self.grouping.filter(|grouping| grouping.is_flipped()), self.product.panels)
        else {
            return self.zeros(b);
        };
        let header = b.offset_bytes(self.rhs, -panels.header_bytes());
        let parts = self.place.parts.iter();
        let row: Vec<ValueId> = parts
            .map(|part| {
                let sums = self.load(b, header, *part);
                let correction = grouping::correction(b, grouping, sums[0]);
                grouping::initial(b, grouping, correction)
            })
            .collect();
        row.repeat(self.place.rows as usize)
    }

    /// Loads each row's last group of `count`, which is not whole.
    fn last_groups(
        &self,
        b: &mut FunctionBuilder,
        grouping: Grouping,
        index: ValueId,
        count: i64,
    ) -> Vec<ValueId> {
        let lhs = b.offset(self.lhs, index, self.product.lhs_k);
        let rows = 0..i64::from(self.place.rows);
        rows.map(|row| {
            let pointer = b.offset_bytes(lhs, row * self.product.lhs_row);
            grouping::load_last_group(b, grouping, pointer, count)
        })
        .collect()
    }

    fn zeros(&self, b: &mut FunctionBuilder) -> Vec<ValueId> {
        let rows = grouping::padded_rows(self.grouping, self.place.rows) as usize;
        grouping::zeros(b, self.grouping, self.scalar, self.place.parts).repeat(rows)
    }

    /// Returns the sums of the passes before.
    fn before(&self, cx: &mut KernelContext<'_>, plan: Tiles<'_>, pass: &Pass) -> Result<Vec<ValueId>> {
        match pass.first.as_constant() {
            Some(0) if plan.dot.sums != plan.dot.hero => {
                let row = grouping::numbers(cx, self.grouping, self.place.column, self.place.parts)?;
                return Ok(row.repeat(self.place.rows as usize));
            }
            Some(0) => return Ok(self.first(cx)),
            Some(_) => return self.kept(cx, plan),
            None => {}
        }
        let (first, zero) = (cx.scalar_value(&pass.first)?, cx.index(0));
        let is_first = cx.compare(Predicate::Equal, first, zero);
        cx.if_else(
            is_first,
            |cx| Ok(self.zeros(cx)),
            |cx| cx.pinned(|cx| cx.scoped(|cx| self.kept(cx, plan))),
        )
    }

    /// Loads incomplete sums in the current region.
    fn kept(&self, cx: &mut KernelContext<'_>, plan: Tiles<'_>) -> Result<Vec<ValueId>> {
        let result = cx.results()[0].clone();
        let mut sums = Vec::new();
        for row in 0..self.place.rows {
            let row = self.place.row.plus_constant(i64::from(row));
            for part in self.place.parts {
                let first = number_of(plan, self.product, &row, self.place.column);
                let (pointer, alignment) = cx.address(&result, &first.plus_constant(part.offset))?;
                sums.push(if part.valid == part.lanes {
                    cx.load(Type::vector(self.scalar, part.lanes), pointer, alignment)
                } else {
                    part.load_masked(cx, self.scalar, pointer, alignment)
                });
            }
        }
        Ok(sums)
    }

    /// Loads each row's elements of a round.
    fn row_vectors(&self, b: &mut FunctionBuilder, index: ValueId, count: i64) -> Vec<ValueId> {
        let lhs = b.offset(self.lhs, index, self.product.lhs_k);
        let ty = Type::vector(self.factor(), count as u32);
        let load = |row: i64| {
            let pointer = b.offset_bytes(lhs, row * self.product.lhs_row);
            b.load(ty, pointer, self.lhs_alignment())
        };
        (0..i64::from(self.place.rows)).map(load).collect()
    }

    /// Returns the type of a factor, or of a group of them.
    fn factor(&self) -> ScalarType {
        if self.grouping.is_some() { ScalarType::I32 } else { self.scalar }
    }

    /// Returns the alignment of an element, or of a group, of the left operand.
    fn lhs_alignment(&self) -> u32 {
        if self.grouping.is_some() { 1 } else { self.scalar.byte_size() as u32 }
    }

    /// Adds the products of summand `index + step` to the sums, row by row. `rows` contains the
    /// round's elements of the left operand if they are loaded already: vectors, or single ones.
    fn accumulate(
        &self,
        b: &mut FunctionBuilder,
        index: ValueId,
        step: i64,
        rows: &[ValueId],
        sums: &mut [ValueId],
    ) {
        let (lhs_k, rhs_k) = (self.product.lhs_k, self.product.rhs_k);
        let rhs = b.offset(self.rhs, index, rhs_k);
        let rhs = b.offset_bytes(rhs, step * rhs_k);
        let parts = self.place.parts;
        let columns: Vec<Vec<ValueId>> = parts.iter().map(|part| self.load(b, rhs, *part)).collect();
        let lhs = b.offset(self.lhs, index, lhs_k);
        let is_whole = self.grouping.is_some_and(Grouping::takes_whole_vectors);
        let element = |b: &mut FunctionBuilder, row: usize| match rows.get(row) {
            Some(&vector) if b.ty(vector).lanes > 1 && !is_whole => b.extract(vector, step as u32),
            Some(&element) => element,
            None => {
                let pointer = b.offset_bytes(lhs, row as i64 * self.product.lhs_row + step * lhs_k);
                match self.grouping {
                    Some(grouping) => grouping::load_group(b, grouping, pointer, lhs_k as u32),
                    None => b.load(Type::scalar(self.scalar), pointer, self.lhs_alignment()),
                }
            }
        };
        let at_once = self.grouping.map_or(1, Grouping::rows) as usize;
        let rows: Vec<usize> = (0..self.place.rows as usize).collect();
        for (rows, sums) in rows.chunks(at_once).zip(sums.chunks_mut(at_once * parts.len())) {
            let elements: Vec<ValueId> = rows.iter().map(|&row| element(b, row)).collect();
            if let Some(grouping) = self.grouping {
                grouping::multiply_rows(b, grouping, &elements, (parts, &columns), sums);
                continue;
            }
            for ((part, column), sum) in parts.iter().zip(&columns).zip(sums) {
                let element = b.splat(elements[0], part.lanes);
                *sum = multiply_add(b, element, column[0], *sum);
            }
        }
    }

    /// Loads the elements, or the groups, of a vector of columns.
    fn load(&self, b: &mut FunctionBuilder, rhs: ValueId, part: Columns) -> Vec<ValueId> {
        let ty = Type::vector(self.factor(), part.lanes);
        let offset = self.product.within_tile(part.offset, self.product.rhs_type.byte_size() as i64);
        let pointer = b.offset_bytes(rhs, offset);
        let alignment = self.product.rhs_alignment;
        let is_packed = alignment > self.scalar.byte_size() as u32;
        if let Some(grouping) = self.grouping.filter(|grouping| grouping.takes_whole_vectors()) {
            return grouping::load_columns(b, grouping, pointer, part.lanes, alignment);
        }
        if self.product.panels.is_none() && self.grouping.is_none() && part.valid == part.lanes {
            return vec![self.product.load_right(b, self.scalar, pointer, part.lanes)];
        }
        if part.valid == part.lanes || is_packed {
            return vec![b.load(ty, pointer, alignment)];
        }
        vec![part.load_masked(b, self.scalar, pointer, alignment)]
    }
}

/// Passes a vector's valid columns to the epilogue, in pieces whose lanes are powers of two.
fn hand_over(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    product: &Product,
    row: &Index,
    column: &Index,
    part: Columns,
    sum: ValueId,
) -> Result<()> {
    part.pieces(cx, sum, |cx, offset, lanes, value| {
        let (batch, row, column) = (product.batch.clone(), row.clone(), column.plus_constant(offset));
        finish(cx, plan.dot, DotElement { batch, row, column, lanes, value: Element::Real(value) })
    })
}
