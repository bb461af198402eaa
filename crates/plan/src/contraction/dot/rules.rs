//! The rules that choose how a tiled dot reads its right operand, its order of loops, and its
//! passes. Each returns its choice and the reason, in words that follow the names of candidates.

use super::{Dot, DotLoops, TiledDot};
use crate::contraction::extents::DotShape;
use crate::contraction::tile::{self, Tile};
use crate::fusion::Fusion;
use crate::packing::Packing;
use hlo::InstructionId;
use target::Target;

/// Packing costs a pass over the operand. With more rows than this, it pays off even if the operand
/// is read well in place.
const MANY_ROWS: i64 = 128;

/// Number of a panel's rows that lie on few enough memory pages.
const SUMMANDS_PER_PASS: i64 = 256;

/// Number of rows that form only a few tiles, too few to pay for packing.
fn few_tiles(tile: Tile) -> i64 {
    2 * i64::from(tile.rows)
}

/// The memory from which tiles read the right operand.
pub(super) struct RightOperand {
    pub(super) packing: Packing,
    /// See [`TiledDot::column_parts`].
    pub(super) column_parts: i64,
    /// Reason for the packing.
    pub(super) reason: &'static str,
}

/// Reason for the loops that the rules choose. They compare no costs.
pub(crate) fn reason(fusion: &Fusion<'_>, hero: InstructionId, target: &Target) -> Option<String> {
    let dot = Dot::of(fusion, hero).ok()?.in_groups(target);
    let DotLoops::Tiled(TiledDot { tile, .. }) = dot.loops(target) else { return None };
    let groups = dot.group_target(target);
    let target = groups.as_ref().unwrap_or(target);
    let of_tile = if dot.is_one_stream(tile, target) {
        "the only row reads one stream of panels"
    } else {
        "equal tiles that fit the registers"
    };
    let right = dot.right_operand(tile, target);
    let (_, of_order) = dot.order(tile, &right, target);
    let (_, of_pass) = dot.pass(tile, right.packing, target);
    let of_right = right.reason;
    Some(format!(
        "rules without a cost; tile: {of_tile}; right: {of_right}; outer: {of_order}; k-block: {of_pass}"
    ))
}

impl Dot<'_> {
    /// True if a single row in groups reads panels that stay in the second-level cache. Words of a
    /// row that columns share are widened once for all of them.
    pub(super) fn is_one_stream(&self, tile: Tile, target: &Target) -> bool {
        let shares = tile::runs_in_order(tile.lanes, target);
        let stays = self.rhs_bytes() <= target.l2_bytes && !shares;
        self.grouping.is_some() && self.shape.m == 1 && self.rhs_is_constant && stays
    }

    /// Chooses the memory from which tiles read the right operand.
    pub(super) fn right_operand(&self, tile: Tile, target: &Target) -> RightOperand {
        let m = self.shape.m;
        let choose = |packing, reason| RightOperand { packing, column_parts: 0, reason };
        if self.rhs_is_constant {
            choose(Packing::Constant, "constants are packed at compile time")
        } else if !self.is_in_place() {
            choose(Packing::Scratch, "tiles cannot read its type or its layout in place")
        } else if self.streams_rows(tile, target) {
            let column_parts = (self.rhs_bytes() / (target.l2_bytes / 2).max(1)).saturating_add(1) as i64;
            let reason = "the result is so large that whole rows are written";
            RightOperand { packing: Packing::None, column_parts, reason }
        } else if m <= few_tiles(tile) {
            choose(Packing::None, "at most two tiles read it, too few to pay for packing")
        } else if m > MANY_ROWS {
            choose(Packing::Scratch, "packing pays off above 128 rows")
        } else if !self.is_sparse() {
            choose(Packing::None, "few rows read it, and its rows are on few memory pages")
        } else if self.keeps_sums && self.takes_few_passes() {
            choose(Packing::None, "a few passes read its rows from few memory pages each")
        } else {
            choose(Packing::Scratch, "its rows are on too many memory pages or share lines of a cache")
        }
    }

    /// True if panels are the outer loop.
    pub(super) fn order(&self, tile: Tile, right: &RightOperand, target: &Target) -> (bool, &'static str) {
        if right.packing == Packing::Scratch {
            (true, "each panel is packed before its use")
        } else if right.column_parts != 0 {
            (false, "rows of the result are written one after another")
        } else if self.is_read_again(tile, target) {
            (true, "several tiles read panels from beyond the second-level cache")
        } else if self.shape.m <= i64::from(tile.rows) {
            (false, "one tile has all rows")
        } else if self.shape.n <= tile.columns() {
            (false, "one tile has all columns")
        } else {
            (false, "the panels stay in the second-level cache")
        }
    }

    /// Chooses the summands per pass: all, unless several tiles of rows would repeatedly read a
    /// panel that exceeds the second-level cache.
    pub(super) fn pass(&self, tile: Tile, packing: Packing, target: &Target) -> (i64, &'static str) {
        const MULTIPLE: i64 = 64;
        let DotShape { m, k, .. } = self.shape;
        if !self.keeps_sums {
            return (k, "the result cannot hold unfinished sums");
        }
        if m <= i64::from(tile.rows) {
            return (k, "one tile has all rows");
        }
        let row = tile.columns().saturating_mul(self.accumulator.byte_size() as i64);
        let cache = i64::try_from(target.l2_bytes).unwrap_or(i64::MAX);
        if packing == Packing::None && self.is_sparse() && self.takes_few_passes() {
            return (k.min(SUMMANDS_PER_PASS), "a pass reads rows from few memory pages");
        }
        if packing == Packing::Scratch {
            return (k, "each panel is packed once for all rows");
        }
        if k.saturating_mul(row) <= cache / 2 {
            return (k, "a panel fits half of the second-level cache");
        }
        // The rows of the left operand should stay in the cache, too.
        let block = (cache / 4 / row).max(MULTIPLE) / MULTIPLE * MULTIPLE;
        let passes = (k + block - 1) / block;
        let block = ((k + passes - 1) / passes + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
        (block, "a panel exceeds half of the second-level cache")
    }

    /// True if several tiles of rows read panels that exceed the second-level cache.
    pub(super) fn is_read_again(&self, tile: Tile, target: &Target) -> bool {
        let panels = (self.shape.n + tile.columns() - 1) / tile.columns();
        panels > 1 && self.shape.m > i64::from(tile.rows) && self.streams(target)
    }

    /// True if the result is so large, and its elements so cheap, that the order of writing
    /// dominates. A panel's rows of the result lie on as many memory pages as there are rows; whole
    /// rows are written, and the overwritten memory is read, at consecutive addresses.
    fn streams_rows(&self, tile: Tile, target: &Target) -> bool {
        // This many rows of a panel stay in the first-level cache without being packed.
        const FEW_SUMMANDS: i64 = 128;
        let DotShape { m, n, k, .. } = self.shape;
        let elements = (m as u64).saturating_mul(n as u64);
        let result = elements.saturating_mul(self.accumulator.byte_size() as u64);
        k <= FEW_SUMMANDS
            && m > few_tiles(tile)
            && result > target.l2_bytes.saturating_mul(2)
            && !self.is_sparse()
    }

    /// True if a few passes read a panel with unfavorable row placement well: its rows are on too
    /// many memory pages, but not all in the same lines of a cache.
    fn takes_few_passes(&self) -> bool {
        const PAGE: i64 = 4096;
        const FEW: i64 = 4;
        let stride = self.dims.rhs_k_stride().saturating_mul(self.accumulator.byte_size() as i64);
        stride % PAGE != 0 && self.shape.k <= FEW * SUMMANDS_PER_PASS
    }

    /// True if a panel's rows are placed unfavorably for repeated reads: on more memory pages than
    /// the TLB of a core covers, or at multiples of a page, which all fall into the same few lines
    /// of a cache.
    fn is_sparse(&self) -> bool {
        const PAGE: i64 = 4096;
        const MANY_PAGES: i64 = 256;
        const MANY_LINES: i64 = 64;
        let stride = self.dims.rhs_k_stride().saturating_mul(self.accumulator.byte_size() as i64);
        let pages = self.shape.k.saturating_mul(stride.min(PAGE)) / PAGE;
        pages >= MANY_PAGES || (stride % PAGE == 0 && self.shape.k >= MANY_LINES)
    }
}
