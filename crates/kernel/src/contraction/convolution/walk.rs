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
use nest::{Type, ValueId};
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
        let list = List { size, grid, is_counted, varying: size.varying(), first };
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
        let tile_steps = [first.input_step, first.output_step]
            .map(|step| cx.mul_constant(step, i64::from(self.size.pixels)));
        let mut before = [tiles.value; LOOPS];
        if self.is_counted {
            let of_pixel = taps.iter().fold(cx.index(1), |n, count| cx.mul(n, count.value));
            before[3] = cx.mul_constant(of_pixel, i64::from(self.size.pixels));
            for (l, inner) in [(2, tiles), (1, counts[2]), (0, counts[1])] {
                before[l] = cx.mul(before[l + 1], inner.value);
            }
        }
        let around = |l: usize| (counts[l], outputs[l].value);
        let mut needed = [around(0), around(1), around(2), (tiles, tile_steps[1])];
        self.grid.shorten(cx, rests, &mut needed);
        let inputs = [inputs[0].value, inputs[1].value, inputs[2].value, tile_steps[0]];
        let step = |l: usize| {
            let (count, output) = needed[l];
            (count, Step { input: inputs[l], output, before: before[l] })
        };
        let mut placed = |cx: &mut KernelContext<'_>, tile: Pixels| {
            let place = self.grid.place(cx, &tile)?;
            body(cx, Pixels { place, ..tile })
        };
        if !self.grid.hides(cx, first.output_step) {
            return nest(cx, &[step(0), step(1), step(2), step(3)], first, &mut placed);
        }
        nest(cx, &[step(0), step(1), step(2)], first, &mut |cx, line| {
            let (shown, [begin, end]) = self.grid.shown(cx, &line, needed[3].0, rests)?;
            nest(cx, &[(shown, step(3).1)], line, &mut placed)?;
            let most = needed[3].0.most * i64::from(line.count);
            cx.for_dynamic(begin, end, most, &[], |cx, pixel, _| {
                let output = cx.add(line.output, pixel);
                let hidden = Pixels { count: 1, output, is_hidden: true, before: None, ..line };
                placed(cx, hidden).map(|()| Vec::new())
            })
            .map(|_| ())
        })
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

/// Emits the loops that move a tile.
fn nest(cx: &mut KernelContext<'_>, loops: &[(Count, Step)], tile: Pixels, body: TileBody<'_>) -> Result<()> {
    let Some((&(count, step), inner)) = loops.split_first() else {
        return body(cx, tile);
    };
    repeat(cx, count, &[], |cx, index, _| {
        let mut moved = |from: ValueId, step: ValueId| {
            let by = cx.mul(index, step);
            cx.add(from, by)
        };
        let (input, output) = (moved(tile.input, step.input), moved(tile.output, step.output));
        let before = tile.before.map(|before| moved(before, step.before));
        let moved = Pixels { input, output, before, ..tile };
        nest(cx, inner, moved, body).map(|()| Vec::new())
    })
    .map(|_| ())
}
