//! Chooses tiles by a pure table of extents and registers.

use super::extents::DotShape;
use hlo::CACHE_LINE;
use shape::PrimitiveType;
use target::{Architecture, Target};

/// The sums that are accumulated in registers at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows of a full tile. A product's rows are divided into tiles of this many rows and of one
    /// fewer.
    pub rows: u32,
    /// Vectors of columns.
    pub vectors: u32,
    /// Elements per vector.
    pub lanes: u32,
    /// Number of independent sets of accumulators. Each set takes every `k_split`-th summand; the
    /// sets are added at the end.
    pub k_split: u32,
}

impl Tile {
    /// A tile of one element.
    pub const SCALAR: Self = Self { rows: 1, vectors: 1, lanes: 1, k_split: 1 };

    /// The tile for a single row, if it is one, whose panels come from the second-level cache: one
    /// stream, which passes its prefetchers faster than several.
    pub(crate) fn in_one_stream(self, is_single: bool) -> Self {
        if is_single { Self { vectors: 1, k_split: MOST_SETS, ..self } } else { self }
    }

    /// Columns of a full tile.
    pub fn columns(&self) -> i64 {
        i64::from(self.vectors) * i64::from(self.lanes)
    }
}

/// Type of sums: narrow floats are multiplied and summed as `f32`.
pub(crate) fn accumulator(element_type: PrimitiveType) -> PrimitiveType {
    match element_type {
        t if t.is_floating_point() && t.byte_size() < 4 => PrimitiveType::F32,
        t if t.is_subbyte_integer() && t.is_signed_integer() => PrimitiveType::S8,
        t if t.is_subbyte_integer() => PrimitiveType::U8,
        other => other,
    }
}

/// Number of independent accumulators that keeps two multiply-add units with a latency of four
/// cycles busy.
const ENOUGH_ACCUMULATORS: u32 = 8;

/// Maximum number of sets of accumulators.
const MOST_SETS: u32 = 4;

/// Columns of a panel of a constant operand: one cache line of them on every target, or all if
/// there are fewer.
pub(crate) fn panel(n: i64, element_bytes: usize) -> i64 {
    let all = u64::try_from(n.max(1)).map_or(u64::MAX, u64::next_power_of_two);
    (CACHE_LINE / element_bytes.max(1) as i64).max(1).min(i64::try_from(all).unwrap_or(i64::MAX))
}

/// Properties of a product besides its extents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// True if the right operand comes from beyond the second-level cache. Tiles are then high
    /// rather than wide, so that fewer of them read it.
    pub(crate) rhs_streams: bool,
    /// True if rows of the left operand are read as vectors of which multiply-adds take one lane
    /// each; see [`takes_lanes`].
    pub(crate) lhs_by_lane: bool,
}

/// Chooses the tile of an `m x n` result with the given element size. A tile covers whole panels,
/// or a panel whole tiles.
pub(crate) fn choose_with(m: i64, n: i64, element_bytes: usize, access: Access, target: &Target) -> Tile {
    let panel = panel(n, element_bytes) as u32;
    let lanes = target.lanes(element_bytes).min(panel);
    let needed = u32::try_from((n.max(1) + i64::from(lanes) - 1) / i64::from(lanes)).unwrap_or(u32::MAX);
    let many_registers = target.vector_registers >= 32;
    let most = match (m, many_registers) {
        // Whole panels of two or of four vectors.
        (1, false) if panel / lanes <= 2 => 6,
        (1, false) => 8,
        // A single remaining vector keeps few multiply-adds busy. With many panels, that does not
        // matter.
        (7.., true) if access.rhs_streams && panel == lanes && (needed % 3 == 0 || needed >= 32) => 3,
        // Keeps streams of panels few enough for the prefetchers, even where a single row would
        // leave registers for more.
        (_, true) => 4,
        (_, false) => 2,
    };
    // Prefers panels of equal width to wide ones and a narrow remainder.
    let panels = needed.div_ceil(most);
    let vectors = aligned(needed.div_ceil(panels), panel / lanes);
    let most_rows = i64::from(most_rows_of(vectors, access.lhs_by_lane, target));
    let tiles = (m.max(1) + most_rows - 1) / most_rows;
    let rows = ((m.max(1) + tiles - 1) / tiles) as u32;
    let k_split = if runs_in_order(lanes, target) { 1 } else { k_split(rows, vectors) };
    Tile { rows, vectors, lanes, k_split }
}

/// True for scalars of microcontrollers, whose results are there for the next instruction.
pub(super) fn runs_in_order(lanes: u32, target: &Target) -> bool {
    target.is_microcontroller && lanes == 1
}

/// Number of sets of `rows * vectors` accumulators that keeps the multiply-add units busy.
pub(super) fn k_split(rows: u32, vectors: u32) -> u32 {
    prev_power_of_two((ENOUGH_ACCUMULATORS / (rows * vectors).max(1)).clamp(1, MOST_SETS))
}

/// Divides `m` rows evenly into tiles of at most `most` rows.
pub(super) fn with_rows(tile: Tile, m: i64, most: u32) -> Tile {
    let most = i64::from(tile.rows.min(most).max(1));
    let tiles = (m.max(1) + most - 1) / most;
    let rows = ((m.max(1) + tiles - 1) / tiles) as u32;
    Tile { rows, k_split: k_split(rows, tile.vectors), ..tile }
}

/// Upper bound of the rows of a tile with this many vectors.
pub(super) fn most_rows_of(vectors: u32, lhs_by_lane: bool, target: &Target) -> u32 {
    if lhs_by_lane { most_rows_by_lane(vectors, target) } else { most_rows(vectors, target) }
}

/// Upper bound of the rows whose accumulators fit the registers, with a vector of columns each and
/// some registers to spare.
pub(crate) fn most_rows(vectors: u32, target: &Target) -> u32 {
    if let Some(registers) = target.registers_in_order() {
        return (registers.saturating_sub(vectors + 1) / vectors.max(1)).clamp(1, 8);
    }
    match (vectors, target.vector_registers >= 32) {
        (1..=3, true) => 8,
        (4, true) => 6,
        (1, false) => 8,
        // Without multiply-add, each product takes a register of its own.
        (2, false) if !target.has_fma => 4,
        (2, false) => 6,
        (_, true) => 3,
        (_, false) => 2,
    }
}

/// Same as [`most_rows`] if each row takes one more register.
fn most_rows_by_lane(vectors: u32, target: &Target) -> u32 {
    match (vectors, target.vector_registers >= 32) {
        (1..=2, true) => 8,
        (3, true) => 6,
        (4, true) => 5,
        (1, false) => 6,
        (2, false) => 3,
        (_, true) => 3,
        (_, false) => 2,
    }
}

/// True if multiply-adds can take one lane of a vector for all lanes, so that neighbors of a row
/// are loaded together. Those of SVE with longer vectors take one lane of each 16 bytes.
pub(crate) fn takes_lanes(target: &Target) -> bool {
    matches!(target.triple.architecture, Architecture::Aarch64 | Architecture::Arm)
        && target.vector_bytes == 16
}

/// True if every processor of the architecture has a prefetch instruction. Without one, computing
/// the address only costs time.
pub(crate) fn has_prefetch(target: &Target) -> bool {
    use Architecture::{Aarch64, Arm, X86, X86_64};
    matches!(target.triple.architecture, X86 | X86_64 | Aarch64 | Arm)
}

/// Summands per iteration of a tile's loop: at least the sets of accumulators, preferably several,
/// but the columns of all summands need registers at the same time.
pub(crate) fn unroll(tile: Tile, lhs_by_lane: bool, target: &Target) -> i64 {
    if lhs_by_lane {
        return i64::from(tile.lanes.max(tile.k_split));
    }
    let sums = tile.rows * tile.vectors;
    let several: u32 = if sums >= 16 { 2 } else { 4 };
    let most = most_together(sums * tile.k_split, tile.vectors, target);
    i64::from(several.min(most).max(tile.k_split))
}

/// Upper bound of the summands per iteration, a power of two, whose columns fit into registers
/// beside this many sums.
pub fn most_together(sums: u32, vectors: u32, target: &Target) -> u32 {
    // One operand of an x86 multiply-add may be in memory. With AVX2, that is the columns; a single
    // vector of them is better kept in a register.
    if target.has_fma && matches!(target.triple.architecture, Architecture::X86_64) {
        return match (vectors, sums) {
            (1, 10..) if target.vector_registers < 32 => 1,
            (1, 4..=7) if target.vector_registers < 32 => 2,
            _ => 4,
        };
    }
    let products = if target.has_fma { 0 } else { 4 * vectors };
    let spare = target.vector_registers.saturating_sub(sums + 2 + products);
    // Loads that are scheduled early quickly use up a small register file.
    let each = if target.vector_registers >= 32 { vectors } else { 2 * vectors };
    prev_power_of_two((spare / each.max(1)).clamp(1, 4))
}

/// Above this many rows, tiles of columns are faster, even if they require transposing the right
/// operand.
pub(super) const MOST_ROWS_ALONG_K: i64 = 4;

/// Tile of results computed one by one along `k`: up to four columns at once, and all rows if there
/// are few, so that the right operand is read once.
pub(super) fn row_dot(shape: DotShape, element_bytes: usize, target: &Target) -> Tile {
    let DotShape { m, n, k, .. } = shape;
    let lanes = target.lanes(element_bytes);
    let rows = if n > 1 && m <= MOST_ROWS_ALONG_K { m.max(1) as u32 } else { 1 };
    // Registers hold a vector of each column, one of a row, and the sums.
    let most = if rows > 2 && target.vector_registers < 32 { 2 } else { 4 };
    let vectors = n.clamp(1, most) as u32;
    let k_split = if k >= i64::from(lanes) * 8 { ENOUGH_ACCUMULATORS / 2 / (rows * vectors) } else { 1 };
    Tile { rows, vectors, lanes, k_split: k_split.max(1) }
}

/// The smallest number of vectors, at least `vectors`, that is a multiple of a panel's or divides
/// it.
fn aligned(vectors: u32, panel_vectors: u32) -> u32 {
    if vectors >= panel_vectors {
        vectors.next_multiple_of(panel_vectors)
    } else {
        vectors.next_power_of_two()
    }
}

fn prev_power_of_two(x: u32) -> u32 {
    1 << x.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_the_registers_and_split_evenly() {
        let avx512 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        let avx2 = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a valid triple");
        let sse = Target::new("x86_64-pc-linux", "", "").expect("a valid triple");
        let neon = Target::new("aarch64-linux-gnu", "", "").expect("a valid triple");
        let table = [
            // (target, m, n), (rows, vectors, lanes, k_split)
            ((&avx512, 128, 768), (6, 4, 16, 1)),
            ((&avx512, 8, 512), (4, 4, 16, 1)),
            ((&avx512, 49, 512), (6, 4, 16, 1)),
            ((&avx512, 128, 80), (8, 3, 16, 1)),
            ((&avx512, 100, 10), (8, 1, 16, 1)),
            ((&avx512, 1, 256), (1, 4, 16, 2)),
            ((&avx512, 1, 10), (1, 1, 16, 4)),
            ((&avx512, 2, 2), (2, 1, 2, 4)),
            ((&avx2, 128, 768), (6, 2, 8, 1)),
            ((&avx2, 9, 8), (5, 1, 8, 1)),
            ((&avx2, 1, 1000), (1, 6, 8, 1)),
            ((&avx2, 1, 40), (1, 6, 8, 1)),
            ((&avx2, 128, 8), (8, 1, 8, 1)),
            ((&sse, 1, 1000), (1, 8, 4, 1)),
            ((&sse, 128, 768), (4, 2, 4, 1)),
            ((&sse, 1, 20), (1, 8, 4, 1)),
            ((&neon, 128, 12), (6, 4, 4, 1)),
        ];
        for ((target, m, n), (rows, vectors, lanes, k_split)) in table {
            let tile = choose_with(m, n, 4, Access::default(), target);
            let (columns, panel) = (tile.columns(), panel(n, 4));
            assert!(columns % panel == 0 || panel % columns == 0, "{m}x{n}");
            assert_eq!(tile, Tile { rows, vectors, lanes, k_split }, "{m}x{n}");
            assert!(
                tile.rows * tile.vectors * tile.k_split + tile.vectors <= target.vector_registers,
                "{m}x{n}"
            );
        }
    }

    #[test]
    fn tiles_of_an_operand_that_streams_are_high() {
        let avx512 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        let avx2 = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a valid triple");
        let table = [
            ((&avx512, 128, 768), (8, 3)),
            ((&avx512, 8, 1024), (8, 3)),
            ((&avx512, 6, 1024), (6, 4)),
            ((&avx512, 64, 64), (6, 4)),
            ((&avx512, 64, 256), (6, 4)),
            ((&avx512, 1, 1024), (1, 4)),
            ((&avx2, 128, 768), (6, 2)),
        ];
        for ((target, m, n), (rows, vectors)) in table {
            let access = Access { rhs_streams: true, ..Access::default() };
            let tile = choose_with(m, n, 4, access, target);
            assert_eq!((tile.rows, tile.vectors), (rows, vectors), "{m}x{n}");
        }
    }

    #[test]
    fn unrolling_leaves_registers_for_the_columns() {
        let new = |triple, cpu, features| Target::new(triple, cpu, features).expect("a valid triple");
        let avx2 = new("x86_64-pc-linux", "x86-64-v3", "");
        let sse = new("x86_64-pc-linux", "", "");
        let neon = new("aarch64-linux-gnu", "", "");
        let arm = new("armv7-unknown-linux-gnueabihf", "", "+neon");
        let plain = new("riscv64-unknown-linux-gnu", "", "");
        let vectors = new("riscv64-unknown-linux-gnu", "", "+v");
        let table = [
            // (target, rows, vectors, k_split, by lane), summands
            ((&avx2, 6, 2, 1, false), 4),
            ((&avx2, 5, 1, 1, false), 2),
            ((&avx2, 8, 1, 1, false), 4),
            ((&avx2, 10, 1, 1, false), 1),
            ((&sse, 4, 2, 1, false), 1),
            ((&sse, 1, 8, 1, false), 1),
            ((&sse, 1, 2, 4, false), 4),
            ((&neon, 5, 4, 1, true), 4),
            ((&neon, 6, 4, 1, false), 1),
            ((&arm, 3, 2, 1, true), 4),
            ((&plain, 6, 4, 1, false), 1),
            ((&vectors, 6, 4, 1, false), 1),
        ];
        for ((target, rows, vectors, k_split, by_lane), expected) in table {
            let lanes = target.lanes(4);
            let tile = Tile { rows, vectors, lanes, k_split };
            assert_eq!(unroll(tile, by_lane, target), expected, "{} {tile:?}", target.triple.as_str());
        }
    }
}
