//! Rows of several dimensions of which an inner one ends at a size that is known only at run time,
//! such as the words of several texts.

use super::walk::{first_row, tiles_of_rows};
use super::{Part, RowSteps, Tiles};
use crate::context::KernelContext;
use crate::context::tasks::Span;
use crate::index::Facts;
use hlo::analysis::{Extent, linear_extent};
use hlo::{InstructionId, Op};
use nest::{Predicate, RegionBuilder as _, ValueId};
use plan::Packing;
use support::Result;

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
    /// Returns the blocks of a dot whose right operand is not packed again for each of them. `None`
    /// if no inner dimension of the rows is limited.
    pub(super) fn of(cx: &KernelContext<'_>, tiles: Tiles<'_>, result: InstructionId) -> Option<Self> {
        let (dot, body) = (tiles.dot.hero, cx.fusion().body);
        let Op::Dot { dot_dimension_numbers: numbers } = body[dot].op() else { return None };
        if tiles.dot.rhs_packing() == Packing::Scratch {
            return None;
        }
        let (sizes, extents) = (cx.shape(dot).ok()?.sizes(), cx.needed_for(result, dot));
        let first = numbers.lhs_batch_dims.len();
        let end = cx.shape(body[dot].operands()[0]).ok()?.rank() - numbers.lhs_contracting_dims.len();
        let (sizes, extents) = (sizes.get(first..end)?, extents.get(first..end)?);
        let limited = |d: &usize| extents[*d].is_some_and(|extent| !cx.covers(extent, sizes[*d]));
        let d = (0..sizes.len()).rev().find(limited)?;
        let blocks: i64 = sizes[..d].iter().product();
        let unit: i64 = sizes[d + 1..].iter().product();
        let needed = extents[d]?.times(unit)?;
        let needed_blocks = linear_extent(&sizes[..d], &extents[..d]);
        (blocks > 1).then_some(Self { blocks, needed_blocks, block: sizes[d] * unit, needed })
    }

    /// Runs `body` for the needed tiles of each block. A tile of two blocks runs once.
    pub(super) fn for_each(
        self,
        cx: &mut KernelContext<'_>,
        tiles: Tiles<'_>,
        part: Part,
        body: &mut dyn FnMut(&mut KernelContext<'_>, Part) -> Result<()>,
    ) -> Result<()> {
        let (from, to, steps) = match part.rows.span {
            Span::All(steps) => (cx.index(0), cx.index(steps), steps),
            Span::Part { begin, end, steps, .. } => (begin, end, steps),
        };
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

fn greater(cx: &mut KernelContext<'_>, x: ValueId, y: ValueId) -> ValueId {
    let is_less = cx.compare(Predicate::Less, x, y);
    cx.select(is_less, y, x)
}
