//! The loops that follow from a dot's tile, its packing, and the order of its panels.

use super::{Dot, TiledDot};
use crate::contraction::extents::DotShape;
use crate::contraction::panels::PanelLayout;
use crate::contraction::tile::{self, Tile};
use crate::packing::Packing;
use target::Target;

/// The choices of a tiled plan; everything else follows from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileOrder {
    pub(super) tile: Tile,
    pub(super) rhs_packing: Packing,
    pub(super) lhs_by_lane: bool,
    pub(super) panels_outside: bool,
    pub(super) column_parts: i64,
    pub(super) k_block: i64,
}

impl TileOrder {
    /// Derives the loops from tile, packing, and order.
    pub(super) fn lay_out(self, dot: &Dot<'_>, target: &Target) -> TiledDot {
        let Self { tile, rhs_packing, lhs_by_lane, panels_outside, column_parts, k_block } = self;
        // A panel that is packed on each call is prefetched at its source, if its strides are
        // regular. It needs room in the cache beside its copy.
        let size = dot.grouping.map_or(dot.accumulator.byte_size(), |grouping| grouping.bytes() as usize);
        let panels = PanelLayout::of_constant(dot.shape.k, dot.shape.n, size);
        let panels = match &dot.weights {
            Some((weights, _)) => weights.panels(dot.shape, dot.accumulator),
            None => PanelLayout { header: dot.grouping.map_or(0, |grouping| grouping.header(1)), ..panels },
        };
        let panels = match rhs_packing {
            Packing::Constant => panels,
            Packing::None | Packing::Scratch => PanelLayout { width: tile.columns(), ..panels },
        };
        let bytes = tile.columns().saturating_mul(panels.element_bytes);
        let most_unrolled = dot.grouping.map_or(i64::MAX, |grouping| grouping.most_unrolled(tile));
        let has_room = bytes.saturating_mul(dot.shape.k).unsigned_abs() <= target.l2_bytes / 8;
        TiledDot {
            rhs_packing,
            keeps_panels: false,
            panels,
            tile,
            unroll: tile::unroll(tile, lhs_by_lane, target).min(most_unrolled),
            sum_block: dot.sum_block(),
            lhs_by_lane,
            panels_outside,
            k_block,
            prefetches: dot.is_read_again(tile, target)
                && panels_outside
                && dot.weights.is_none()
                && (dot.rhs_is_constant || dot.rhs_fits() && has_room)
                && tile::has_prefetch(target),
            reads_ahead: dot.shape.m == 1
                && dot.grouping.is_some()
                && rhs_packing == Packing::Constant
                && panels.width == tile.columns()
                && panels.bytes().unsigned_abs() > target.l1_bytes
                && tile::has_prefetch(target),
            column_parts,
            tasks_by_rows: false,
            row_step: dot.grouping.map_or(1, |grouping| grouping.row_step(dot.shape.m, tile.rows)),
            panel_distance: panel_distance(dot, tile, panels),
        }
    }
}

/// Columns from a panel of a tile to the next one. If a single row reads weights from memory,
/// each panel of its tile continues where that of the previous tile ended, because prefetchers
/// follow long streams.
fn panel_distance(dot: &Dot<'_>, tile: Tile, panels: PanelLayout) -> i64 {
    let DotShape { m, n, .. } = dot.shape;
    let streams = tile.columns() / panels.width;
    let is_divided = streams > 1 && n % (streams * panels.width) == 0;
    if m == 1 && dot.weights.is_some() && is_divided { n / streams } else { panels.width }
}
