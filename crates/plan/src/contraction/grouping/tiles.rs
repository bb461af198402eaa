//! Groups whose products are summed in tile registers: 16 rows by 16 columns at a time.
//!
//! A register of right factors is a part of a panel, and one of left factors a part of 16 rows, as
//! both are in memory. Two of each make four registers of sums. The shapes of registers are the
//! same for all tiles of a kernel, because a new shape clears all of them: rows are divided into
//! halves of equal size, which may overlap, and summands into equal parts.

use super::{FactorTypes, Factors, Grouping, Sums};
use crate::contraction::tile::Tile;
use shape::PrimitiveType;
use target::Target;

/// Rows of a tile register, and columns of a register of sums.
const MOST: i64 = 16;

/// Upper bound of the registers of sums in each direction.
const SIDES: i64 = 2;

/// Cycles from a product to the next one that adds to the same sums.
const LATENCY: f64 = 52.0;

/// Cycles for loading a whole register.
const LOAD: f64 = 8.0;

/// Cycles for starting a tile and for the last product.
const START: f64 = 64.0;

/// Cycles for a vector of sums: it is stored, loaded, and handed over.
const OF_SUMS: f64 = 3.0;

/// Cycles for a vector of sums in a vector register, which is handed over.
const OF_LANES: f64 = 1.5;

/// Most of the time of vector registers at which tile registers are worth their use.
const LEAST_GAIN: f64 = 0.7;

impl Grouping {
    /// Groups of products in runs of `run` summands whose sums are in tile registers, if the target
    /// has them and the extents allow it.
    pub(crate) fn in_tiles(types: FactorTypes, run: i64, columns: i64, target: &Target) -> Option<Self> {
        use PrimitiveType::{Bf16, F32, S8, S32, U8, U32};
        let factors = match (types.lhs, types.rhs, types.sums) {
            // There are products for bytes with and without signs.
            (lhs @ (S8 | U8), S8, S32 | U32) => Factors::Bytes { is_signed: lhs == S8, is_flipped: false },
            (Bf16, Bf16, F32) => Factors::Bf16,
            _ => return None,
        };
        // Narrower panels have shorter rows than a register.
        let fits = columns > MOST / 2 && run > 0 && run % factors.summands() == 0;
        (target.has_tile_products && fits).then_some(Self {
            factors,
            tail: 0,
            is_widened: false,
            moves_signs: false,
            sums: Sums::Tiles,
        })
    }

    /// True if sums are in tile registers.
    pub fn is_in_tiles(self) -> bool {
        self.sums == Sums::Tiles
    }
}

/// Groups of a row of a register, for runs of this many groups: as many as divide them.
pub fn tile_groups(groups: i64) -> i64 {
    (1..=MOST.min(groups.max(1))).rev().find(|size| groups % size == 0).unwrap_or(1)
}

/// Rows of the registers of a tile of up to 32 rows.
pub fn tile_rows(rows: i64) -> i64 {
    if rows > MOST { (rows + 1) / SIDES } else { rows.max(1) }
}

/// True if two registers of `rows` rows, which may overlap, have exactly the rows of a tile.
pub fn covers_rows(rows: i64, of_tile: i64) -> bool {
    (rows..=SIDES * rows).contains(&of_tile)
}

/// The tile of `m` rows and `n` columns, with this many lanes to a vector.
pub(crate) fn tile(m: i64, n: i64, lanes: u32) -> Tile {
    let most = SIDES * MOST;
    let tiles = (m.max(1) + most - 1) / most;
    let rows = ((m.max(1) + tiles - 1) / tiles) as u32;
    let columns = if n > MOST { most } else { MOST };
    Tile { rows, vectors: (columns as u32 / lanes).max(1), lanes, k_split: 1 }
}

/// Upper bound of the rows of a tile, and of its columns.
pub(crate) const MOST_OF_TILE: u32 = (SIDES * MOST) as u32;

/// True if tile registers can have the sums of a tile.
pub(crate) fn fits(rows: u32, columns: u32) -> bool {
    rows <= MOST_OF_TILE && columns <= MOST_OF_TILE && i64::from(columns) % MOST == 0
}

/// Cycles of a tile with runs of `groups` groups, of which there are `runs`.
pub(crate) fn cycles(rows: i64, columns: i64, groups: i64, runs: i64) -> f64 {
    let height = tile_rows(rows) as f64;
    let (down, across) = (if rows > MOST { 2.0 } else { 1.0 }, ((columns + MOST - 1) / MOST) as f64);
    let steps = groups / tile_groups(groups) * runs;
    let products = down * across * height;
    let loads = LOAD * (down * height / MOST as f64 + across);
    let vectors = rows as f64 * across;
    steps as f64 * products.max(loads).max(LATENCY) + START + OF_SUMS * vectors
}

/// True if a product of `m` rows, `n` columns, and `groups` groups is faster in tile registers than
/// in vector registers of the given lanes.
pub(crate) fn pay_off([m, n, groups]: [i64; 3], lanes: u32) -> bool {
    let tile = tile(m, n, lanes);
    let parts = |all: i64, most: i64| (all + most - 1) / most.max(1);
    let tiles = parts(m, i64::from(tile.rows)) as f64 * parts(n, tile.columns()) as f64;
    let in_tiles = tiles * cycles(i64::from(tile.rows), tile.columns(), groups, 1);
    let vectors = m as f64 * parts(n, i64::from(lanes)) as f64;
    are_faster(in_tiles, vectors * (groups as f64 / 2.0 + OF_LANES))
}

/// True if tile registers take enough less time than vector registers.
pub(crate) fn are_faster(in_tiles: f64, in_lanes: f64) -> bool {
    in_tiles < LEAST_GAIN * in_lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_run_are_equal() {
        let groups: Vec<i64> = [1, 6, 16, 17, 24, 27, 36, 40, 147, 192].map(tile_groups).to_vec();
        assert_eq!(groups, [1, 6, 16, 1, 12, 9, 12, 10, 7, 16]);
    }

    #[test]
    fn two_registers_cover_the_rows_of_each_tile() {
        for m in 1..=200 {
            let tile = tile(m, 64, 16);
            let rows = i64::from(tile.rows);
            assert!(rows <= 32 && tile.columns() == 32);
            let tiles = (m + rows - 1) / rows;
            let height = tile_rows(rows);
            assert!(height <= 16);
            // All tiles have as many rows, or one less.
            for rows in [rows, rows - 1].into_iter().filter(|&rows| rows * tiles >= m && rows > 1) {
                assert!(covers_rows(height, rows), "{m} rows in tiles of {rows}");
            }
        }
    }

    #[test]
    fn few_rows_stay_in_vector_registers() {
        assert!(pay_off([128, 768, 192], 16));
        assert!(pay_off([16, 64, 64], 16));
        assert!(!pay_off([1, 768, 192], 16));
        // Parts of a single group, because the number of groups is prime.
        assert!(!pay_off([128, 768, 31], 16));
        assert!(!pay_off([64, 32, 1], 16));
    }
}
