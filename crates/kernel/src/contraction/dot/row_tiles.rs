//! The tiles into which a product's rows are divided.

use super::Tiles;
use crate::context::KernelContext;
use crate::index::{Facts, Index};
use nest::{FunctionBuilder, Predicate, ValueId};
use support::Result;

/// Emits a tile of rows, given the tile's number, its first row, and the number of rows.
pub(super) type RowsBody<'b> = &'b mut dyn FnMut(&mut KernelContext<'_>, &Index, &Index, u32) -> Result<()>;

/// Returns the number of tiles with `tile.rows` rows. The others have `row_step` rows less.
pub(super) fn larger_tiles(plan: Tiles<'_>) -> i64 {
    let (m, most, step) = (plan.dot.shape.m, i64::from(plan.tiled.tile.rows), plan.tiled.row_step);
    let tiles = (m + most - 1) / most;
    (m - tiles * (most - step)) / step
}

/// Returns the first row of a tile.
pub(in crate::contraction) fn first_row(b: &mut FunctionBuilder, plan: Tiles<'_>, tile: ValueId) -> ValueId {
    let larger = b.index(larger_tiles(plan));
    let is_larger = b.compare(Predicate::Less, tile, larger);
    let larger = b.select(is_larger, tile, larger);
    let row = b.mul_constant(tile, i64::from(plan.tiled.tile.rows) - plan.tiled.row_step);
    let larger = b.mul_constant(larger, plan.tiled.row_step);
    b.add(row, larger)
}

/// Returns the number of tiles that cover some rows.
pub(super) fn tiles_of_rows(cx: &mut KernelContext<'_>, plan: Tiles<'_>, rows: ValueId) -> Result<ValueId> {
    let (most, step) = (i64::from(plan.tiled.tile.rows), plan.tiled.row_step);
    let larger = larger_tiles(plan);
    let cover = |cx: &mut KernelContext<'_>, rows: Index, each: i64| {
        let (tiles, _) = cx.div_rem(&rows.plus_constant(each - 1), each)?;
        cx.scalar_value(&tiles)
    };
    let of_larger = cover(cx, Index::scalar(rows), most)?;
    if larger * most >= plan.dot.shape.m {
        return Ok(of_larger);
    }
    // Rows beyond those of the larger tiles.
    let first = cx.index(larger * most);
    let is_beyond = cx.compare(Predicate::Less, first, rows);
    let beyond = cx.sub(rows, first);
    let zero = cx.index(0);
    let beyond = cx.select(is_beyond, beyond, zero);
    cx.learn(beyond, Facts::range(0, plan.dot.shape.m - larger * most));
    let of_smaller = cover(cx, Index::scalar(beyond), most - step)?;
    let of_smaller = cx.add_constant(of_smaller, larger);
    Ok(cx.select(is_beyond, of_smaller, of_larger))
}
