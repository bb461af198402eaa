//! Alternatives for computing a dot: other tiles, packing of the right operand, order of loops, and
//! numbers of passes.

use super::{Dot, DotLoops, TileOrder, TiledDot};
use crate::candidate::Candidate;
use crate::contraction::grouping::Grouping;
use crate::contraction::tile::{self, Tile};
use crate::fusion::Fusion;
use crate::packing::Packing;
use hlo::InstructionId;
use target::Target;

/// Upper bound of the vectors per tile; more streams of panels exceed the prefetchers.
const MOST_VECTORS: u32 = 4;

/// Minimum summands per pass, and the multiple to which they are rounded.
const SHORTEST_PASS: i64 = 256;
const MULTIPLE: i64 = 64;

/// The candidate that these loops implement, if the dot has alternatives.
pub(crate) fn candidate(loops: &DotLoops) -> Option<Candidate> {
    let DotLoops::Tiled(tiled) = loops else { return None };
    Some(Candidate::Dot {
        rows: tiled.tile.rows,
        vectors: tiled.tile.vectors,
        right: tiled.rhs_packing,
        panels_outside: tiled.panels_outside,
        k_block: tiled.k_block,
    })
}

/// All candidates, the choice of the rules first. They cover each tile width; then the chosen tile
/// with other packings, orders, and passes.
pub(crate) fn candidates(fusion: &Fusion<'_>, hero: InstructionId, target: &Target) -> Vec<Candidate> {
    let Ok(dot) = Dot::of(fusion, hero) else { return Vec::new() };
    let dot = dot.in_groups(target);
    let loops = dot.loops(target);
    let (DotLoops::Tiled(tiled), Some(first)) = (&loops, candidate(&loops)) else { return Vec::new() };
    let &TiledDot { tile, rhs_packing: right, panels_outside, k_block, column_parts, .. } = tiled;
    let make = |(rows, vectors), right, panels_outside, k_block| Candidate::Dot {
        rows,
        vectors,
        right,
        panels_outside,
        k_block,
    };
    let mut candidates = vec![first];
    let tiles = tiles(&dot, tiled, target);
    candidates.extend(tiles.iter().map(|&tile| make(tile, right, panels_outside, k_block)));
    let chosen_tile = (tile.rows, tile.vectors);
    if dot.is_in_place() && !dot.rhs_is_constant && column_parts == 0 {
        candidates.push(make(chosen_tile, Packing::None, false, dot.shape.k));
        candidates.push(make(chosen_tile, Packing::Scratch, true, dot.shape.k));
    }
    if right != Packing::Scratch && column_parts == 0 {
        candidates.push(make(chosen_tile, right, !panels_outside, k_block));
    }
    if dot.keeps_sums && right != Packing::Scratch {
        candidates.push(make(chosen_tile, right, panels_outside, dot.shape.k));
        for passes in [2, 4] {
            let block = ((dot.shape.k + passes - 1) / passes + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
            if block >= SHORTEST_PASS && block < dot.shape.k {
                candidates.push(make(chosen_tile, right, panels_outside, block));
            }
        }
    }
    candidates
}

/// Tiles of each width, with as many rows as registers allow or the rules prefer; rows are divided
/// evenly.
fn tiles(dot: &Dot<'_>, tiled: &TiledDot, target: &Target) -> Vec<(u32, u32)> {
    if dot.grouping.is_some_and(Grouping::is_in_tiles) {
        return Vec::new();
    }
    let size = dot.accumulator.byte_size();
    let panel_vectors = (tile::panel(dot.shape.n, size) as u32 / tiled.tile.lanes).max(1);
    let needed = (dot.shape.n.max(1) + i64::from(tiled.tile.lanes) - 1) / i64::from(tiled.tile.lanes);
    let needed = u32::try_from(needed).unwrap_or(u32::MAX);
    let m = dot.shape.m.max(1);
    let mut candidates = Vec::new();
    for vectors in 1..=MOST_VECTORS.min(needed.next_multiple_of(panel_vectors)) {
        if !vectors.is_multiple_of(panel_vectors) && !panel_vectors.is_multiple_of(vectors) {
            continue;
        }
        let usual = tile::most_rows_of(vectors, tiled.lhs_by_lane, target);
        if let Some(most) = dot.grouping.and_then(|grouping| grouping.most_rows(vectors, target)) {
            let tile = tile::with_rows(Tile { rows: usual, vectors, ..tiled.tile }, m, most);
            candidates.push((tile.rows, vectors));
            continue;
        }
        let by_registers = target.vector_registers.saturating_sub(1 + vectors) / vectors;
        let most = if target.has_fma && !tiled.lhs_by_lane { usual.max(by_registers.min(14)) } else { usual };
        for most in [usual, most] {
            let most = i64::from(most.max(1));
            let tiles = (m + most - 1) / most;
            candidates.push((((m + tiles - 1) / tiles) as u32, vectors));
        }
    }
    candidates
}

/// The loops of one of the dot's own candidates; `chosen` are the loops that the rules chose.
pub(super) fn loops(
    dot: &Dot<'_>,
    chosen: &DotLoops,
    candidate: Candidate,
    target: &Target,
) -> Option<DotLoops> {
    let Candidate::Dot { rows, vectors, right, panels_outside, k_block } = candidate else { return None };
    let &DotLoops::Tiled(TiledDot { tile, lhs_by_lane, column_parts, .. }) = chosen else { return None };
    let is_in_tiles = dot.grouping.is_some_and(Grouping::is_in_tiles);
    let tile = if is_in_tiles {
        tile
    } else {
        Tile { rows, vectors, lanes: tile.lanes, k_split: tile::k_split(rows, vectors) }
    };
    let order = TileOrder { tile, rhs_packing: right, lhs_by_lane, panels_outside, column_parts, k_block };
    Some(DotLoops::Tiled(order.lay_out(dot, target)))
}
