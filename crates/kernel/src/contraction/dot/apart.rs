//! Rows or columns of several dimensions of which an inner one ends at a size that is known only at
//! run time, such as the words of several texts or the columns of several images.

use super::row_tiles::{RowsBody, first_row, tiles_of_rows};
use super::{Part, RowSteps, Tiles};
use crate::context::KernelContext;
use crate::context::limits::{greater, lesser};
use crate::context::tasks::Span;
use crate::index::{Facts, Index};
use hlo::analysis::{Extent, linear_extent};
use hlo::{InstructionId, Op};
use nest::{Predicate, RegionBuilder as _, ValueId};
use plan::Packing;
use std::ops::Range;
use support::{Error, Result};

/// Dimensions of which an inner one is limited.
#[derive(Clone, Debug)]
pub(super) struct OpenDims {
    sizes: Vec<i64>,
    extents: Vec<Option<Extent>>,
    /// The innermost dimension that is limited.
    innermost: usize,
}

impl OpenDims {
    /// Returns some dimensions of a dot; `None` if no inner one is limited.
    fn of(
        cx: &KernelContext<'_>,
        dot: InstructionId,
        result: InstructionId,
        range: Range<usize>,
    ) -> Option<Self> {
        let (sizes, extents) = (cx.shape(dot).ok()?.sizes(), cx.needed_for(result, dot));
        let (sizes, extents) = (sizes.get(range.clone())?, extents.get(range)?);
        let limited = |d: &usize| extents[*d].is_some_and(|extent| !cx.covers(extent, sizes[*d]));
        let innermost = (0..sizes.len()).rev().find(limited)?;
        let is_inner = sizes[..innermost].iter().product::<i64>() > 1;
        is_inner.then(|| Self { sizes: sizes.to_vec(), extents: extents.to_vec(), innermost })
    }

    /// Number of blocks, each of which has all indices of the innermost limited dimension and of
    /// those within it.
    fn blocks(&self) -> i64 {
        self.sizes[..self.innermost].iter().product()
    }

    /// Size of a block.
    fn block(&self) -> i64 {
        self.sizes[self.innermost..].iter().product()
    }

    /// Number of first elements of a block that are needed.
    fn needed(&self) -> Option<Extent> {
        self.extents[self.innermost]?.times(self.sizes[self.innermost + 1..].iter().product())
    }

    /// Number of blocks that are needed, unless all are.
    fn needed_blocks(&self) -> Option<Extent> {
        linear_extent(&self.sizes[..self.innermost], &self.extents[..self.innermost])
    }

    /// True if a dimension that is neither the outermost nor the innermost limited one is limited.
    fn limits_between(&self, cx: &KernelContext<'_>) -> bool {
        let outermost = self.sizes.iter().take_while(|&&size| size == 1).count();
        let limited = |d: usize| self.extents[d].is_some_and(|extent| !cx.covers(extent, self.sizes[d]));
        (outermost + 1..self.innermost).any(limited)
    }

    /// Runs `body` for the needed parts of a span of elements.
    pub(super) fn for_parts(
        &self,
        cx: &mut KernelContext<'_>,
        elements: Span,
        body: &mut dyn FnMut(&mut KernelContext<'_>, ValueId, ValueId) -> Result<()>,
    ) -> Result<()> {
        cx.for_needed_parts(elements, &self.sizes, &self.extents, &mut |cx, part| match part {
            Span::Part { begin, end, .. } => body(cx, begin, end),
            Span::All(_) => Err(Error::internal("a limited dimension has no parts")),
        })
    }
}

/// The rows and columns of a dot, as far as an inner dimension of them is limited.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenSides {
    pub(super) rows: Option<OpenDims>,
    pub(super) columns: Option<OpenDims>,
}

impl OpenSides {
    /// Returns the sides of a dot whose loops are tiled.
    pub(super) fn of(cx: &KernelContext<'_>, tiles: Tiles<'_>, result: InstructionId) -> Option<Self> {
        let (dot, body) = (tiles.dot.hero, cx.fusion().body);
        let Op::Dot { dot_dimension_numbers: numbers } = body[dot].op() else { return None };
        let first = numbers.lhs_batch_dims.len();
        let end = cx.shape(body[dot].operands()[0]).ok()?.rank() - numbers.lhs_contracting_dims.len();
        let rank = cx.shape(dot).ok()?.rank();
        // Tiles of panels from all parts of the matrix have no range of columns.
        let is_in_order = tiles.tiled.panel_distance <= tiles.tiled.panels.width;
        Some(Self {
            rows: OpenDims::of(cx, dot, result, first..end),
            columns: OpenDims::of(cx, dot, result, end..rank).filter(|_| is_in_order),
        })
    }
}

/// Runs `body` for tiles of the needed rows of a span of tiles. Tiles begin at the first row of a
/// part, and contain no row of another part. The last rows of a part are smaller tiles.
pub(super) fn for_rows(
    cx: &mut KernelContext<'_>,
    tiles: Tiles<'_>,
    dims: &OpenDims,
    steps: Span,
    body: RowsBody<'_>,
) -> Result<()> {
    let rows = rows_of(cx, tiles, steps);
    dims.for_parts(cx, rows, &mut |cx, begin, end| {
        let (m, each) = (tiles.dot.shape.m, tiles.tiled.tile.rows);
        let tile = |cx: &mut KernelContext<'_>, row: ValueId, rows: u32, body: RowsBody<'_>| {
            cx.learn(row, Facts::range(0, m));
            let row = Index::scalar(row);
            let (number, _) = cx.div_rem(&row, i64::from(each))?;
            body(cx, &number, &row, rows)
        };
        let (count, zero) = (cx.sub(end, begin), cx.index(0));
        let count = greater(cx, zero, count);
        cx.learn(count, Facts::range(0, m));
        let (whole, rest) = cx.div_rem(&Index::scalar(count), i64::from(each))?;
        let (whole, mut rest) = (cx.scalar_value(&whole.times(i64::from(each)))?, cx.scalar_value(&rest)?);
        let mut row = cx.add(begin, whole);
        cx.for_carrying(begin, row, i64::from(each), &[], |cx, row, _| {
            cx.scoped(|cx| tile(cx, row, each, body)).map(|()| Vec::new())
        })?;
        let powers = (0..u32::BITS).map(|power| 1u32 << power).take_while(|&size| size < each);
        for size in powers.collect::<Vec<_>>().into_iter().rev() {
            let rows = cx.index(i64::from(size));
            let fits = cx.compare(Predicate::LessEqual, rows, rest);
            cx.when(fits, |cx| tile(cx, row, size, body))?;
            let (next, less) = (cx.add(row, rows), cx.sub(rest, rows));
            (row, rest) = (cx.select(fits, next, row), cx.select(fits, less, rest));
        }
        Ok(())
    })
}

/// Returns the rows of some tiles.
pub(super) fn rows_of(cx: &mut KernelContext<'_>, tiles: Tiles<'_>, steps: Span) -> Span {
    let m = tiles.dot.shape.m;
    let Span::Part { begin, end, .. } = steps else { return Span::All(m) };
    let (begin, end) = (first_row(cx, tiles, begin), first_row(cx, tiles, end));
    [begin, end].into_iter().for_each(|row| cx.learn(row, Facts::range(0, m)));
    Span::Part { begin, end, steps: m, is_one: false }
}

/// Runs `body` for the tiles of a span that have needed columns. A tile of two blocks runs once.
pub(super) fn for_columns(
    cx: &mut KernelContext<'_>,
    tiles: Tiles<'_>,
    dims: &OpenDims,
    span: Span,
    body: &mut dyn FnMut(&mut KernelContext<'_>, Span) -> Result<()>,
) -> Result<()> {
    let (width, block, blocks) = (tiles.tiled.tile.columns(), dims.block(), dims.blocks());
    let (from, to, steps) = bounds(cx, span);
    let needed = dims.needed().ok_or_else(|| Error::internal("a limited dimension has no extent"))?;
    let count = cx.extent(needed, block)?;
    // The blocks that the span touches.
    let (first, last) = (Index::scalar(from).times(width), Index::scalar(to).times(width));
    let (first, _) = cx.div_rem(&first, block)?;
    let (last, _) = cx.div_rem(&last.plus_constant(block - 1), block)?;
    let (first, last, most) = (cx.scalar_value(&first)?, cx.scalar_value(&last)?, cx.index(blocks));
    let last = lesser(cx, last, most);
    [first, last].into_iter().for_each(|number| cx.learn(number, Facts::range(0, blocks)));
    let span = Span::Part { begin: first, end: last, steps: blocks, is_one: false };
    let mut of_blocks = |cx: &mut KernelContext<'_>, span: Span| {
        cx.for_span(span, 1, |cx, number| {
            let start = cx.scalar_value(&number.times(block))?;
            let tiles_until = |cx: &mut KernelContext<'_>, column: ValueId| {
                cx.learn(column, Facts::range(0, tiles.dot.shape.n));
                let (tiles, _) = cx.div_rem(&Index::scalar(column).plus_constant(width - 1), width)?;
                cx.scalar_value(&tiles)
            };
            // The last tile of the block before may contain the first columns of this one.
            let (before, zero) = (cx.add_constant(start, -block), cx.index(0));
            let before = cx.add(before, count);
            let before = greater(cx, zero, before);
            let before = tiles_until(cx, before)?;
            let (own, _) = cx.div_rem(&number.times(block), width)?;
            let own = cx.scalar_value(&own)?;
            let begin = greater(cx, own, before);
            let begin = greater(cx, begin, from);
            let end = cx.add(start, count);
            let end = tiles_until(cx, end)?;
            let end = lesser(cx, end, to);
            [begin, end].into_iter().for_each(|tile| cx.learn(tile, Facts::range(0, steps)));
            let is_any = cx.compare(Predicate::Less, begin, end);
            cx.when(is_any, |cx| body(cx, Span::Part { begin, end, steps, is_one: false }))
        })
    };
    if block % width == 0 {
        // No tile has columns of two blocks, so those between needed ones can be left out.
        let (sizes, extents) = (&dims.sizes[..dims.innermost], &dims.extents[..dims.innermost]);
        return cx.for_needed_parts(span, sizes, extents, &mut of_blocks);
    }
    let span = cx.limited(span, dims.needed_blocks(), 1)?;
    of_blocks(cx, span)
}

/// Returns the first step of a span, the step after its last one, and the number of steps of its
/// loop.
fn bounds(cx: &mut KernelContext<'_>, span: Span) -> (ValueId, ValueId, i64) {
    match span {
        Span::All(steps) => (cx.index(0), cx.index(steps), steps),
        Span::Part { begin, end, steps, .. } => (begin, end, steps),
    }
}

/// Blocks of rows of which the first ones are needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowsApart {
    /// Number of blocks.
    blocks: i64,
    /// Number of blocks that are needed, unless all are.
    needed_blocks: Option<Extent>,
    /// Rows of a block.
    block: i64,
    /// Number of rows of a block that are needed.
    needed: Extent,
}

impl RowsApart {
    /// Returns the blocks of a dot whose right operand is not packed again for each of them. Groups
    /// of summands have tiles of their own sizes, so theirs are always blocks. Other rows are not
    /// if a dimension between the outermost and the innermost one is limited ([`for_rows`]).
    pub(super) fn of(cx: &KernelContext<'_>, tiles: Tiles<'_>, rows: &OpenDims) -> Option<Self> {
        let is_exact = tiles.dot.grouping.is_none() && rows.limits_between(cx);
        if tiles.dot.rhs_packing() == Packing::Scratch || is_exact {
            return None;
        }
        let (blocks, block, needed_blocks) = (rows.blocks(), rows.block(), rows.needed_blocks());
        Some(Self { blocks, needed_blocks, block, needed: rows.needed()? })
    }

    /// Runs `body` for the needed tiles of each block. A tile of two blocks runs once.
    pub(super) fn for_each(
        self,
        cx: &mut KernelContext<'_>,
        tiles: Tiles<'_>,
        part: Part<'_>,
        body: &mut dyn FnMut(&mut KernelContext<'_>, Part<'_>) -> Result<()>,
    ) -> Result<()> {
        let (from, to, steps) = bounds(cx, part.rows.span);
        let count = cx.extent(self.needed, self.block)?;
        let blocks = cx.limited(Span::All(self.blocks), self.needed_blocks, 1)?;
        cx.for_span(blocks, 1, |cx, number| {
            let start = number.times(self.block);
            let tiles_until = |cx: &mut KernelContext<'_>, rows: ValueId| {
                cx.learn(rows, Facts::range(0, tiles.dot.shape.m));
                tiles_of_rows(cx, tiles, rows)
            };
            let own = cx.scalar_value(&start.plus_constant(1))?;
            let own = tiles_until(cx, own)?;
            let own = cx.add_constant(own, -1);
            // The last tile of the block before may contain the first rows of this one.
            let before = cx.scalar_value(&start.plus_constant(-self.block))?;
            let (before, zero) = (cx.add(before, count), cx.index(0));
            let is_first = cx.compare(Predicate::Less, before, zero);
            let before = cx.select(is_first, zero, before);
            let before = tiles_until(cx, before)?;
            let start = cx.scalar_value(&start)?;
            let last_row = cx.add(start, count);
            let last = tiles_until(cx, last_row)?;
            let begin = greater(cx, own, before);
            let begin = greater(cx, begin, from);
            let is_earlier = cx.compare(Predicate::Less, last, to);
            let end = cx.select(is_earlier, last, to);
            [begin, end].into_iter().for_each(|tile| cx.learn(tile, Facts::range(0, steps)));
            let is_any = cx.compare(Predicate::Less, begin, end);
            let span = Span::Part { begin, end, steps, is_one: false };
            // A last tile that contains rows of the next block is computed as a whole.
            let next = cx.add_constant(start, self.block);
            let end_of_tile = first_row(cx, tiles, last);
            let is_shared = cx.compare(Predicate::Less, next, end_of_tile);
            let count = cx.select(is_shared, end_of_tile, last_row);
            cx.learn(count, Facts::range(0, tiles.dot.shape.m));
            let rows = RowSteps { span, count: Some(count) };
            cx.if_then(is_any, |cx| cx.scoped(|cx| body(cx, Part { rows, ..part })))
        })
    }
}
