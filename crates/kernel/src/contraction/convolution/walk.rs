//! Walks the tiles of a plan's tiling. Loops over rectangles read their fields from the plan's
//! table. Fields that are the same for all rectangles are constants.

use super::PanelBody;
use super::count::Count;
use super::grid::Grid;
use super::pixels::Pixels;
use crate::context::KernelContext;
use crate::context::tasks::Span;
use crate::contraction::tile::{Reading, last_columns, whole_columns};
use crate::index::{Facts, Index};
use nest::{Predicate, RegionBuilder as _, Type, ValueId};
use plan::{Tile, TileSize, Tiling};
use support::{Error, Result};

/// Runs `body` `count` times, with values carried between iterations.
pub(super) fn repeat(
    cx: &mut KernelContext<'_>,
    count: Count,
    initial: &[ValueId],
    mut body: impl FnMut(&mut KernelContext<'_>, ValueId, &[ValueId]) -> Result<Vec<ValueId>>,
) -> Result<Vec<ValueId>> {
    if let Some(known) = cx.known_integer(count.value) {
        return cx.for_range_carrying(0, known, 1, initial, |cx, index, carried| {
            let index = cx.scalar_value(&index)?;
            body(cx, index, carried)
        });
    }
    let begin = cx.index(0);
    cx.for_dynamic(begin, count.value, count.most, initial, body)
}

/// Returns part number `part` of `parts` of a loop, or all of it if it is not cut.
pub(super) fn span(cx: &mut KernelContext<'_>, part: &Index, parts: i64, steps: i64) -> Result<Span> {
    if parts <= 1 {
        return Ok(Span::All(steps));
    }
    let part = cx.scalar_value(part)?;
    Ok(cx.span(part, parts, steps))
}

/// Runs `body` for the panels of a span, with the first feature and the vectors of each. The last
/// panel may be narrower than a tile.
pub(super) fn panels(
    cx: &mut KernelContext<'_>,
    span: Span,
    tile: Tile,
    features: i64,
    reading: Reading,
    body: PanelBody<'_>,
) -> Result<()> {
    let columns = tile.columns();
    let full = whole_columns(tile.vectors, tile.lanes);
    cx.for_span(span, 1, |cx, panel| body(cx, &panel.times(columns), &full))?;
    let rest = features % columns;
    if rest == 0 {
        return Ok(());
    }
    let last = last_columns(rest, tile.lanes, reading);
    cx.if_last(span, |cx| body(cx, &Index::constant(features - rest), &last))
}

pub(super) type TileBody<'b> = &'b mut dyn FnMut(&mut KernelContext<'_>, Pixels) -> Result<()>;

/// Runs `body` for every tile of a chunk that is needed. Each tile size has its own code.
pub(super) fn tiles(
    cx: &mut KernelContext<'_>,
    tiling: &Tiling,
    grid: &Grid,
    chunk: &Index,
    body: TileBody<'_>,
) -> Result<()> {
    tiles_in_order(cx, tiling, grid, chunk, false, body)
}

/// Like [`tiles`]. If `is_counted`, counts the taps of the pixels before each tile.
pub(super) fn tiles_in_order(
    cx: &mut KernelContext<'_>,
    tiling: &Tiling,
    grid: &Grid,
    chunk: &Index,
    is_counted: bool,
    body: TileBody<'_>,
) -> Result<()> {
    let table = if tiling.needs_table() {
        Some(*cx.packed().last().ok_or_else(|| Error::internal("missing table of tiles"))?)
    } else {
        None
    };
    let is_needed = match table {
        Some(table) if !tiling.bounds.is_empty() => {
            let chunk = cx.scalar_value(chunk)?;
            let bounds = cx.offset_bytes(table, tiling.position_of_bounds() as i64 * 8);
            let first = cx.offset(bounds, chunk, 16);
            let last = cx.offset_bytes(first, 8);
            let most = tiling.bounds.iter().map(|bounds| bounds[1]).max().unwrap_or(0);
            let bounds = [first, last].map(|at| cx.load(Type::I64, at, 8));
            bounds.into_iter().for_each(|pixel| cx.learn(pixel, Facts::range(0, most)));
            grid.may_need(cx, bounds)?
        }
        _ => None,
    };
    let mut lists = |cx: &mut KernelContext<'_>| lists(cx, tiling, grid, (chunk, table), is_counted, body);
    match is_needed {
        Some(is_needed) => cx.if_then(is_needed, |cx| cx.scoped(lists)),
        None => lists(cx),
    }
}

/// Runs `body` for every tile of a chunk, given the table of the tiling.
fn lists(
    cx: &mut KernelContext<'_>,
    tiling: &Tiling,
    grid: &Grid,
    (chunk, table): (&Index, Option<ValueId>),
    is_counted: bool,
    body: TileBody<'_>,
) -> Result<()> {
    let largest = tiling.sizes.iter().map(|size| size.pixels).max().unwrap_or(0);
    for (number, size) in tiling.sizes.iter().enumerate() {
        let (first, starts) = tiling.table_positions(number);
        let (begin, end) = match table {
            Some(table) if tiling.chunks > 1 => {
                let chunk = cx.scalar_value(chunk)?;
                let start = cx.offset_bytes(table, starts as i64 * 8);
                let start = cx.offset(start, chunk, 8);
                let next = cx.offset_bytes(start, 8);
                (cx.load(Type::I64, start, 8), cx.load(Type::I64, next, 8))
            }
            _ => (cx.index(0), cx.index(size.rectangles.len() as i64)),
        };
        let first = table.map(|table| cx.offset_bytes(table, first as i64 * 8));
        let has_rests = size.pixels == largest && !grid.has_fixed_tiles();
        let list = List { size, grid, is_counted, has_rests, varying: size.varying(), first };
        if size.rectangles.len() == 1 && tiling.chunks == 1 {
            list.rectangle(cx, begin, body)?;
            continue;
        }
        cx.for_dynamic(begin, end, size.rectangles.len() as i64, &[], |cx, rectangle, _| {
            list.rectangle(cx, rectangle, body).map(|()| Vec::new())
        })?;
    }
    Ok(())
}

/// Rectangles of the same size.
struct List<'p> {
    size: &'p TileSize,
    /// The part of the output that is needed.
    grid: &'p Grid,
    /// True if the taps of the pixels before each tile are counted.
    is_counted: bool,
    /// True if smaller tiles may end a line.
    has_rests: bool,
    /// The fields in the table.
    varying: Vec<usize>,
    /// Address of the first rectangle's fields in the table.
    first: Option<ValueId>,
}

/// Positions of a rectangle's fields, as in [`plan::Rectangle::fields`].
mod field {
    pub(super) const INPUT: usize = 0;
    pub(super) const OUTPUT: usize = 1;
    pub(super) const TAP: usize = 2;
    pub(super) const TAPS: usize = 3;
    pub(super) const COUNTS: usize = 6;
    pub(super) const INPUT_STEPS: usize = 9;
    pub(super) const OUTPUT_STEPS: usize = 12;
    pub(super) const TILES: usize = 15;
    pub(super) const PIXEL_INPUT: usize = 16;
    pub(super) const PIXEL_OUTPUT: usize = 17;
    pub(super) const BEFORE: usize = 18;
}

impl List<'_> {
    /// Returns a field of a rectangle.
    fn field(&self, cx: &mut KernelContext<'_>, rectangle: ValueId, field: usize) -> Result<Count> {
        let (min, most) = self.size.range(field);
        let Some(place) = self.varying.iter().position(|&varying| varying == field) else {
            return Ok(Count::constant(cx, most));
        };
        let first = self.first.ok_or_else(|| Error::internal("missing table of rectangles that differ"))?;
        let at = cx.offset(first, rectangle, self.varying.len() as i64 * 8);
        let at = cx.offset_bytes(at, place as i64 * 8);
        let value = cx.load(Type::I64, at, 8);
        cx.learn(value, Facts::range(min, most));
        Ok(Count { value, most })
    }

    /// Emits the loops of a rectangle, if it is needed: those around its tiles, and the one over
    /// them.
    fn rectangle(&self, cx: &mut KernelContext<'_>, rectangle: ValueId, body: TileBody<'_>) -> Result<()> {
        if self.grid.is_whole() {
            return self.loops(cx, rectangle, &[], body);
        }
        let output = self.field(cx, rectangle, field::OUTPUT)?;
        self.grid.when_needed(cx, output, |cx, rests| self.loops(cx, rectangle, rests, body))
    }

    fn loops(
        &self,
        cx: &mut KernelContext<'_>,
        rectangle: ValueId,
        rests: &[ValueId],
        body: TileBody<'_>,
    ) -> Result<()> {
        let get = |cx: &mut KernelContext<'_>, field| self.field(cx, rectangle, field);
        let three = |cx: &mut KernelContext<'_>, field| -> Result<[Count; 3]> {
            Ok([get(cx, field)?, get(cx, field + 1)?, get(cx, field + 2)?])
        };
        let taps = three(cx, field::TAPS)?;
        let (counts, inputs) = (three(cx, field::COUNTS)?, three(cx, field::INPUT_STEPS)?);
        let outputs = three(cx, field::OUTPUT_STEPS)?;
        let tiles = get(cx, field::TILES)?;
        let (input, output) = (get(cx, field::INPUT)?.value, get(cx, field::OUTPUT)?);
        let first = Pixels {
            count: self.size.pixels,
            input,
            output: output.value,
            place: None,
            tap: get(cx, field::TAP)?.value,
            taps,
            input_step: get(cx, field::PIXEL_INPUT)?.value,
            output_step: get(cx, field::PIXEL_OUTPUT)?.value,
            before: if self.is_counted { Some(get(cx, field::BEFORE)?.value) } else { None },
            is_hidden: false,
        };
        let mut pixel = Step { input: first.input_step, output: first.output_step, before: tiles.value };
        if self.is_counted {
            pixel.before = taps.iter().fold(cx.index(1), |n, count| cx.mul(n, count.value));
        }
        let tile = pixel.times(cx, self.size.pixels);
        let mut before = [tile.before; LOOPS];
        if self.is_counted {
            for (l, inner) in [(2, tiles), (1, counts[2]), (0, counts[1])] {
                before[l] = cx.mul(before[l + 1], inner.value);
            }
        }
        let around = |l: usize| (counts[l], outputs[l].value);
        let mut needed = [around(0), around(1), around(2), (tiles, tile.output)];
        self.grid.shorten(cx, rests, &mut needed);
        let inputs = [inputs[0].value, inputs[1].value, inputs[2].value, tile.input];
        let step = |l: usize| {
            let (count, output) = needed[l];
            (count, Step { input: inputs[l], output, before: before[l] })
        };
        let mut placed = |cx: &mut KernelContext<'_>, tile: Pixels| {
            let place = self.grid.place(cx, &tile)?;
            body(cx, Pixels { place, ..tile })
        };
        if !self.grid.ends_lines(cx, first.output_step) {
            return nest(cx, &[step(0), step(1), step(2), step(3)], first, &mut placed);
        }
        nest(cx, &[step(0), step(1), step(2)], first, &mut |cx, line| {
            let [shown, end] = self.grid.line(cx, &line, needed[3].0)?;
            let computed = self.line(cx, line, shown, pixel, &mut placed)?;
            if !self.grid.hides() {
                return Ok(());
            }
            cx.for_dynamic(computed, end.value, end.most, &[], |cx, pixel, _| {
                let output = cx.add(line.output, pixel);
                let hidden = Pixels { count: 1, output, is_hidden: true, before: None, ..line };
                placed(cx, hidden).map(|()| Vec::new())
            })
            .map(|_| ())
        })
    }

    /// Emits the tiles of the first pixels of a line, and returns the number of pixels that they
    /// have: if the largest tiles do not end there, smaller ones follow, of which the last may have
    /// one pixel more.
    fn line(
        &self,
        cx: &mut KernelContext<'_>,
        first: Pixels,
        pixels: Count,
        pixel: Step,
        body: TileBody<'_>,
    ) -> Result<ValueId> {
        let each = i64::from(self.size.pixels);
        let rest_sizes = self.rest_sizes();
        let over = if rest_sizes.is_empty() { each - 1 } else { 1 };
        let (whole, _) = cx.div_rem(&Index::scalar(pixels.value).plus_constant(over), each)?;
        let whole = Count { value: cx.scalar_value(&whole)?, most: pixels.most / each };
        let tile = pixel.times(cx, self.size.pixels);
        nest(cx, &[(whole, tile)], first, body)?;
        let mut computed = cx.mul_constant(whole.value, each);
        for size in rest_sizes {
            let least = cx.add_constant(computed, i64::from(size) - 1);
            let fits = cx.compare(Predicate::LessEqual, least, pixels.value);
            let tile = Pixels { count: size, ..first.moved(cx, computed, pixel) };
            cx.when(fits, |cx| body(cx, tile))?;
            let next = cx.add_constant(computed, i64::from(size));
            computed = cx.select(fits, next, computed);
        }
        Ok(computed)
    }

    /// Returns the sizes of the tiles that end a line: powers of two, the largest first.
    fn rest_sizes(&self) -> Vec<u32> {
        if !self.has_rests {
            return Vec::new();
        }
        let powers = (1..u32::BITS).map(|power| 1u32 << power);
        let mut sizes: Vec<u32> = powers.take_while(|&size| size < self.size.pixels).collect();
        sizes.reverse();
        sizes
    }
}

/// Number of loops per rectangle: three around its tiles, and the one over them.
const LOOPS: usize = 4;

/// Increments of an iteration to the numbers of pixels.
#[derive(Clone, Copy, Debug)]
struct Step {
    input: ValueId,
    output: ValueId,
    before: ValueId,
}

impl Step {
    /// Returns the increments of some iterations.
    fn times(self, cx: &mut KernelContext<'_>, count: u32) -> Self {
        let [input, output, before] =
            [self.input, self.output, self.before].map(|step| cx.mul_constant(step, i64::from(count)));
        Self { input, output, before }
    }
}

impl Pixels {
    /// Returns the tile after some iterations.
    fn moved(self, cx: &mut KernelContext<'_>, index: ValueId, step: Step) -> Self {
        let mut moved = |from: ValueId, step: ValueId| {
            let by = cx.mul(index, step);
            cx.add(from, by)
        };
        let (input, output) = (moved(self.input, step.input), moved(self.output, step.output));
        let before = self.before.map(|before| moved(before, step.before));
        Self { input, output, before, ..self }
    }
}

/// Emits the loops that move a tile.
fn nest(cx: &mut KernelContext<'_>, loops: &[(Count, Step)], tile: Pixels, body: TileBody<'_>) -> Result<()> {
    let Some((&(count, step), inner)) = loops.split_first() else {
        return body(cx, tile);
    };
    repeat(cx, count, &[], |cx, index, _| {
        let tile = tile.moved(cx, index, step);
        nest(cx, inner, tile, body).map(|()| Vec::new())
    })
    .map(|_| ())
}
