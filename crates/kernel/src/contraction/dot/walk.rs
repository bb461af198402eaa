//! The loops over the tiles of a product: rows and panels of columns.

use super::row_tiles::{RowsBody, first_row, larger_tiles, tiles_of_rows};
use super::{Part, Tiles, apart};
use crate::context::KernelContext;
use crate::context::tasks::Span;
use crate::contraction::tile::{Columns, Reading, last_columns, whole_columns};
use crate::index::{Facts, Index};
use nest::{Predicate, ValueId};
use plan::{Grouping, Packing};
use support::Result;

/// Runs the body for tiles of `tile.rows` rows, then for tiles with `row_step` rows less, so that
/// all rows are covered. If the number of rows is known at run time, the last few are a smaller
/// tile. The body receives the tile's number, its first row, and the number of rows.
pub(super) fn for_rows(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    part: Part<'_>,
    body: RowsBody<'_>,
) -> Result<()> {
    if let Some(dims) = part.open_rows {
        return apart::for_rows(cx, plan, dims, part.rows.span, body);
    }
    let rest = Rest::of(cx, plan, part)?;
    let steps = rest.as_ref().map_or(part.rows.span, |rest| rest.before);
    let (m, most, step) = (plan.dot.shape.m, i64::from(plan.tiled.tile.rows), plan.tiled.row_step);
    let tiles = (m + most - 1) / most;
    let larger = larger_tiles(plan);
    cx.for_part(steps, 0, larger, 1, |cx, tile| body(cx, &tile, &tile.times(most), plan.tiled.tile.rows))?;
    cx.for_part(steps, larger, tiles, 1, |cx, tile| {
        let row = tile.times(most - step).plus_constant(larger * step);
        body(cx, &tile, &row, (most - step) as u32)
    })?;
    match rest {
        Some(rest) => cx.when(rest.exists, |cx| rest.emit(cx, &rest.sizes, body)),
        None => Ok(()),
    }
}

/// Numbers of rows of the tiles for the last few rows. A run of one row would otherwise take as
/// long as one of a whole tile.
const REST_SIZES: [u32; 4] = [1, 2, 4, 8];

/// The last few rows of a product, whose number is known at run time.
struct Rest {
    /// The steps before.
    before: Span,
    /// True if there are such rows, in this part.
    exists: ValueId,
    /// The number of the tile, its first row, and the number of rows.
    tile: ValueId,
    first: ValueId,
    rows: ValueId,
    /// Sizes of tiles for them, in ascending order.
    sizes: Vec<u32>,
}

impl Rest {
    /// Returns the last rows of a part, which do not fill a tile; `None` if all steps are whole.
    fn of(cx: &mut KernelContext<'_>, plan: Tiles<'_>, part: Part<'_>) -> Result<Option<Self>> {
        let (Some(count), Span::Part { begin, end, .. }) = (part.rows.count, part.rows.span) else {
            return Ok(None);
        };
        let least = i64::from(plan.tiled.tile.rows) - plan.tiled.row_step;
        let of_pairs = plan.dot.grouping.map_or(1, |grouping| grouping.rows() as u32);
        let sizes = REST_SIZES.map(|rows| rows.next_multiple_of(of_pairs)).into_iter();
        let sizes: Vec<u32> = sizes.filter(|&rows| i64::from(rows) < least).collect();
        let Some(&largest) = sizes.last() else { return Ok(None) };
        let m = plan.dot.shape.m;
        let (zero, largest) = (cx.index(0), cx.index(i64::from(largest)));
        let is_more = cx.compare(Predicate::Less, largest, count);
        let before = cx.sub(count, largest);
        let before = cx.select(is_more, before, zero);
        cx.learn(before, Facts::range(0, m));
        let tile = tiles_of_rows(cx, plan, before)?;
        // The first step of the part may already be one that is not whole.
        let is_earlier = cx.compare(Predicate::Less, tile, begin);
        let tile = cx.select(is_earlier, begin, tile);
        let first = first_row(cx, plan, tile);
        let rows = cx.sub(count, first);
        for (value, most) in [(tile, m), (first, m), (rows, m)] {
            cx.learn(value, Facts::range(0, most));
        }
        let exists = cx.compare(Predicate::Less, tile, end);
        Ok(Some(Self { before: cx.until(part.rows.span, tile), exists, tile, first, rows, sizes }))
    }

    /// Emits the smallest of some tiles that has all rows.
    fn emit(&self, cx: &mut KernelContext<'_>, sizes: &[u32], body: RowsBody<'_>) -> Result<()> {
        let (tile, first) = (Index::scalar(self.tile), Index::scalar(self.first));
        let (&size, larger) = match sizes {
            [] => return Ok(()),
            [last] => return cx.scoped(|cx| body(cx, &tile, &first, *last)),
            [size, larger @ ..] => (size, larger),
        };
        let most = cx.index(i64::from(size));
        let fits = cx.compare(Predicate::LessEqual, self.rows, most);
        let fewer = &mut *body;
        cx.when(fits, |cx| fewer(cx, &tile, &first, size))?;
        let is_more = cx.compare(Predicate::Less, most, self.rows);
        cx.when(is_more, |cx| self.emit(cx, larger, body))
    }
}

/// Emits a panel, given its first column and its vectors of columns.
pub(super) type PanelBody<'b> = &'b mut dyn FnMut(&mut KernelContext<'_>, &Index, &[Columns]) -> Result<()>;

/// Runs the body for full panels, then for the remaining columns. The body receives the first
/// column and the vectors.
pub(super) fn for_panels(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    part: Part<'_>,
    body: PanelBody<'_>,
) -> Result<()> {
    match part.open_columns {
        Some(dims) => apart::for_columns(cx, plan, dims, part.columns, &mut |cx, columns| {
            for_span_of_panels(cx, plan, columns, body)
        }),
        None => for_span_of_panels(cx, plan, part.columns, body),
    }
}

/// Like [`for_panels`], for steps without gaps.
fn for_span_of_panels(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    span: Span,
    body: PanelBody<'_>,
) -> Result<()> {
    let (n, columns) = (plan.dot.shape.n, plan.tiled.tile.columns());
    let (width, distance) = (plan.tiled.panels.width, plan.tiled.panel_distance);
    let mut full = whole_columns(plan.tiled.tile.vectors, plan.tiled.tile.lanes);
    if distance > width {
        // Panels from all parts of the matrix.
        full.iter_mut().for_each(|part| part.offset += part.offset / width * (distance - width));
        return cx.for_part(span, 0, n / columns, 1, |cx, tile| body(cx, &tile.times(width), &full));
    }
    cx.for_part(span, 0, n / columns, 1, |cx, tile| body(cx, &tile.times(columns), &full))?;
    let rest = n % columns;
    if rest == 0 {
        return Ok(());
    }
    cx.if_last(span, |cx| body(cx, &Index::constant(n - rest), &rest_parts(plan, rest)))
}

/// Returns the vectors of the last, narrower panel.
fn rest_parts(plan: Tiles<'_>, rest: i64) -> Vec<Columns> {
    let lanes = plan.tiled.tile.lanes;
    let reading = match plan.tiled.rhs_packing {
        Packing::Constant if plan.dot.grouping.is_some_and(Grouping::takes_whole_vectors) => Reading::Whole,
        Packing::Constant | Packing::Scratch => Reading::Padded,
        Packing::None if lanes as usize * plan.dot.rhs_type.byte_size() >= 32 && !plan.dot.widens_right() => {
            Reading::Masked
        }
        Packing::None => Reading::Narrowing,
    };
    let mut parts = last_columns(rest, lanes, reading);
    // Next to wider vectors, a narrow one saves nothing, and registers of two widths are harder to
    // allocate. The padding is as wide as the tile.
    if let [_, .., last] = &mut parts[..]
        && reading == Reading::Padded
    {
        last.lanes = lanes;
    }
    parts
}

/// Returns the number of columns in a panel that exist.
pub(super) fn parts_end(parts: &[Columns]) -> i64 {
    parts.last().map_or(0, |part| part.offset + i64::from(part.valid))
}
