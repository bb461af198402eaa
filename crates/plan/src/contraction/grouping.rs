//! Products of narrow numbers: groups of four bytes or two `bf16` that an instruction
//! multiplies and adds at once.
//!
//! A group has 32 bits and takes the place of one summand: neighboring elements of the left operand
//! are multiplied by as many elements in each column of a packed right operand. Panels of bytes
//! begin with the sums of their columns, which correct the result if the instruction takes left
//! bytes of the other kind.
//!
//! If an instruction multiplies the groups of two rows by those of two columns, groups have 64
//! bits.

pub(crate) mod tiles;

use super::panels::PanelLayout;
use super::tile::{self, Tile};
use shape::{Literal, PrimitiveType};
use target::{Architecture, ByteProducts, Target};

/// Bytes of a group, unless rows and columns are multiplied in pairs.
pub const GROUP_BYTES: i64 = 4;

/// Half the number of values of a byte: the difference between a signed byte and the unsigned byte
/// that differs in the upper bit only.
const HALF: i32 = 128;

/// Upper bound of the vectors of columns whose sums are in twice as many vectors.
const MOST_HALVES: u32 = 4;

/// Upper bound of the columns of a single row whose groups are words in scalar registers. Products
/// of pairs share the row's widened bytes.
const MOST_WORDS: u32 = 2;
const MOST_WORDS_OF_PAIRS: u32 = 4;

/// Columns of a tile whose sums are scalars, of one row.
const SUMS_ACROSS: u32 = 4;

/// The factors of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factors {
    /// Four bytes.
    Bytes {
        /// True if the instruction takes signed bytes of the left operand.
        is_signed: bool,
        /// True if the left operand's bytes are of the other kind. Their upper bits are flipped,
        /// and the sums of the columns correct the result.
        is_flipped: bool,
    },
    /// Two `bf16`.
    Bf16,
}

/// The types of a product whose summands may be in groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FactorTypes {
    /// The type of the left operand.
    pub(crate) lhs: PrimitiveType,
    /// The type of the right operand.
    pub(crate) rhs: PrimitiveType,
    /// The type of the sums.
    pub(crate) sums: PrimitiveType,
    /// True if the right operand is a constant of signed bytes, none of which is -128.
    pub(crate) is_narrow: bool,
}

impl FactorTypes {
    /// Types of a product with a constant right operand, if it is one.
    pub(crate) fn new(
        [lhs, rhs, sums]: [PrimitiveType; 3],
        constant: Option<&Literal>,
        target: &Target,
    ) -> Self {
        let are_bytes = matches!(lhs, PrimitiveType::S8 | PrimitiveType::U8) && rhs == PrimitiveType::S8;
        let is_needed = are_bytes && target.byte_products == Some(ByteProducts::Signs);
        let is_narrow =
            is_needed && constant.is_some_and(|values| !values.bytes().contains(&(i8::MIN as u8)));
        Self { lhs, rhs, sums, is_narrow }
    }
}

/// Summands in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// The factors of a group.
    pub factors: Factors,
    /// Summands of the last group of a run, if it is not whole; otherwise 0.
    pub tail: u32,
    /// True if the target has no such instruction. Each product then takes more registers.
    pub is_widened: bool,
    /// True if the right operand's bytes take the signs of the left operand's.
    pub moves_signs: bool,
    /// The places of the sums.
    pub sums: Sums,
}

/// The places of a tile's sums in its vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// A lane for each column.
    Lanes,
    /// An instruction multiplies the groups of two rows by those of two columns. Groups are then
    /// twice as long. A pair of rows has as many vectors of sums as two rows, but the first one of
    /// each two vectors has the sums of two columns in both rows, and the second one those of the
    /// next two columns.
    Pairs,
    /// Two neighboring lanes for each column, which add up to its sum.
    Halves,
    /// A lane of a tile register for each column. An instruction multiplies up to 16 groups of 16
    /// rows by those of 16 columns.
    Tiles,
    /// A scalar for each column. Groups are four times as long: an instruction adds the products of
    /// all lanes to the sum.
    Across,
}

impl Grouping {
    /// Groups of products with a constant right operand in runs of `run` summands, if the target
    /// sums such products; `None` if there are too few columns.
    pub(crate) fn of(
        types: FactorTypes,
        run: i64,
        [rows, columns]: [i64; 2],
        target: &Target,
    ) -> Option<Self> {
        use PrimitiveType::{Bf16, F32, S8, S32, U8, U32};
        let (factors, is_widened) = match (types.lhs, types.rhs, types.sums) {
            (lhs @ (S8 | U8), S8, S32 | U32) => {
                let products = target.byte_products?;
                let is_flipped = !products.takes(lhs == S8) || types.is_narrow && lhs == U8;
                let factors = Factors::Bytes { is_signed: (lhs == S8) != is_flipped, is_flipped };
                (
                    factors,
                    !matches!(
                        products,
                        ByteProducts::Unsigned
                            | ByteProducts::Signed
                            | ByteProducts::Either
                            | ByteProducts::Across
                    ),
                )
            }
            (Bf16, Bf16, F32) if target.has_bf16_products || widens_pairs(target) => {
                (Factors::Bf16, !target.has_bf16_products)
            }
            _ => return None,
        };
        let size = factors.summands();
        let sums = factors.sums(rows > 1 && run > size, target);
        let grouping = Self { factors, tail: 0, is_widened, moves_signs: types.is_narrow, sums };
        // Vectors are loaded whole, and both have the same sign.
        if sums == Sums::Across && (run < grouping.summands() || grouping.is_flipped()) {
            return None;
        }
        (columns >= hlo::MIN_TILE_COLUMNS && run >= size - 1 && run > 1)
            .then_some(Self { tail: (run % grouping.summands()) as u32, ..grouping })
    }

    /// Number of summands of a group.
    pub fn summands(self) -> i64 {
        self.factors.summands() * self.words()
    }

    /// Number of bytes of a group.
    pub fn bytes(self) -> i64 {
        GROUP_BYTES * self.words()
    }

    /// Number of words of a group.
    fn words(self) -> i64 {
        if self.sums == Sums::Across { 4 } else { self.rows() }
    }

    /// Number of rows, and of columns, that are multiplied at once.
    pub fn rows(self) -> i64 {
        if self.sums == Sums::Pairs { 2 } else { 1 }
    }

    /// True if all vectors of columns are whole, with padding.
    pub fn takes_whole_vectors(self) -> bool {
        self.sums != Sums::Lanes
    }

    /// Bytes of the last group of a run, if it is not whole; otherwise 0.
    pub fn tail_bytes(self) -> u32 {
        self.tail * (self.bytes() / self.summands()) as u32
    }

    /// The number in its run of the summand at a place of a group; `None` for padding. The last
    /// group of a run holds the last summands at its end: it is loaded whole, with summands of the
    /// group before, whose factors are then 0. In a run of one group, padding follows the summands.
    pub(crate) fn summand(self, run: usize, group: usize, place: usize) -> Option<usize> {
        let (size, tail) = (self.summands() as usize, self.tail as usize);
        let padding = if tail > 0 && run > size && group == run / size { size - tail } else { 0 };
        Some(group * size + place.checked_sub(padding)?).filter(|&number| number < run)
    }

    /// True if the left operand's bytes are flipped.
    pub fn is_flipped(self) -> bool {
        matches!(self.factors, Factors::Bytes { is_flipped: true, .. })
    }

    /// True if sums of bytes can begin with a number for each column, which no panel has to hold.
    /// Other sums are in several places, or in scalars.
    pub(crate) fn begins_with_numbers(self) -> bool {
        matches!(self.factors, Factors::Bytes { .. })
            && matches!(self.sums, Sums::Lanes | Sums::Halves | Sums::Tiles)
    }

    /// Corrections of the sum of each column, with padding, for flipped bytes, given panels without
    /// a header; zeros if no bytes are flipped.
    pub(crate) fn corrections(self, layout: PanelLayout, panels: &[u8]) -> Vec<i32> {
        let sign: i32 = match self.factors {
            Factors::Bytes { is_flipped: true, is_signed: true } => -1,
            Factors::Bytes { is_flipped: true, is_signed: false } => 1,
            _ => 0,
        };
        let layout = PanelLayout { header: 1, ..layout };
        let mut header = vec![0; layout.row_bytes() as usize];
        let mut all = Vec::with_capacity(layout.padded_columns() as usize);
        for panel in panels.chunks_exact(layout.rows as usize * header.len()) {
            add_up(&mut header, panel, layout);
            all.extend(header.as_chunks().0.iter().map(|&sum| i32::from_le_bytes(sum).wrapping_mul(sign)));
        }
        all
    }

    /// Rows of a panel's header, given the number of sums of each column. Instructions that
    /// multiply pairs take left bytes of both kinds, and vectors are never flipped.
    pub(crate) fn header(self, sums: i64) -> i64 {
        if self.begins_with_numbers() { sums } else { 0 }
    }

    /// Limits the rows of a tile if the target's products take more registers than a multiply-add.
    pub(crate) fn limited(self, tile: Tile, m: i64, target: &Target) -> Tile {
        let most = match self.sums {
            Sums::Halves => MOST_HALVES,
            // Words of four bytes take two registers each.
            Sums::Lanes if m == 1 && tile::runs_in_order(tile.lanes, target) => {
                if target.byte_products == Some(ByteProducts::Dual) {
                    MOST_WORDS_OF_PAIRS
                } else {
                    MOST_WORDS
                }
            }
            // Sums are in every other one of the registers, and make one vector for the epilogue.
            Sums::Across => SUMS_ACROSS,
            Sums::Lanes | Sums::Pairs | Sums::Tiles => tile.vectors,
        };
        let tile = Tile { vectors: tile.vectors.min(most), ..tile };
        let most_rows = match self.sums {
            // Of fewer columns, two rows share what they read.
            Sums::Across => Some((SUMS_ACROSS / tile.vectors.max(1)).max(1)),
            _ => self.most_rows(tile.vectors, target),
        };
        let limited = tile::with_rows(tile, m, most_rows.unwrap_or(tile.rows));
        if tile::runs_in_order(tile.lanes, target) {
            return Tile { k_split: 1, ..limited };
        }
        if self.sums == Sums::Halves {
            return Tile { k_split: tile::k_split(limited.rows, 2 * limited.vectors), ..limited };
        }
        // Half a pair takes the time of a pair.
        let even = limited.rows.next_multiple_of(self.rows() as u32);
        let rows = if self.row_step(m, even) > 1 { even } else { limited.rows };
        Tile { rows, ..limited }
    }

    /// Rows by which the tiles of `m` rows differ in size, given the rows of the larger ones.
    pub(crate) fn row_step(self, m: i64, rows: u32) -> i64 {
        let is_even = [m, i64::from(rows)].iter().all(|rows| rows % self.rows() == 0);
        if is_even { self.rows() } else { 1 }
    }

    /// Upper bound of the rows of a tile if products take more registers than multiply-adds: if the
    /// target widens factors, or if it multiplies pairs.
    pub(crate) fn most_rows(self, vectors: u32, target: &Target) -> Option<u32> {
        let spare = |others: u32| target.vector_registers.saturating_sub(others);
        match self.sums {
            // Besides the sums, a register for each pair of rows, and some for columns, which are
            // loaded early.
            Sums::Pairs => return Some(2 * (spare(8) / (2 * vectors + 1)).clamp(1, 4)),
            // The columns, in halves where a register of 64 bits is not half of another one, a row,
            // and products.
            Sums::Halves => {
                let halves = if target.triple.architecture == Architecture::Aarch64 { 2 } else { 1 };
                return Some((spare(5 + halves * vectors) / (2 * vectors)).clamp(1, 8));
            }
            // A word of bytes takes two registers.
            Sums::Lanes
                if matches!(target.byte_products, Some(ByteProducts::Dual | ByteProducts::Single)) =>
            {
                return Some(2);
            }
            Sums::Across => return Some(1),
            Sums::Tiles => return Some(tiles::MOST_OF_TILE),
            Sums::Lanes => {}
        }
        // Besides the sums and the columns: a row, its magnitudes, ones, and products.
        if self.moves_signs {
            let copies = if target.vector_bytes > 16 { 0 } else { 1 };
            return Some((spare(4 + copies + vectors) / vectors.max(1)).clamp(1, 8));
        }
        // Each vector of columns takes two registers, and so does the left operand.
        // Two-operand instructions copy what they overwrite. Only those of x86 read an operand from
        // memory.
        let is_x86 = target.triple.architecture == Architecture::X86_64;
        let others = if target.has_fma && is_x86 { 3 } else { 5 };
        let spare = target.vector_registers.saturating_sub(others + 2 * vectors) / vectors.max(1);
        self.is_widened.then_some(spare.clamp(1, 8))
    }

    /// Upper bound of the groups per iteration of a tile's loop. Widened factors, and pairs, leave
    /// no registers for a second group.
    pub(crate) fn most_unrolled(self, tile: Tile) -> i64 {
        if tile.lanes == 1 {
            return if self.sums == Sums::Across { 4 } else { 2 };
        }
        if self.is_widened || self.sums == Sums::Pairs { i64::from(tile.k_split) } else { i64::MAX }
    }

    /// Upper bound of the pixels of a convolution's tile, given that of other tiles. Flipping bytes
    /// takes registers, of which the operands from memory of AVX2 save one.
    pub(crate) fn most_pixels(self, vectors: u32, most: u32, target: &Target) -> u32 {
        if self.sums == Sums::Tiles {
            return tiles::MOST_OF_TILE;
        }
        let widened = self.most_rows(vectors, target).unwrap_or(most);
        let others = if target.vector_registers >= 32 { 3 } else { 2 };
        let flipped = target.vector_registers.saturating_sub(others + vectors) / vectors.max(1);
        most.min(widened).min(if self.is_flipped() { flipped } else { most }).max(1)
    }

    /// Groups of a run of summands.
    pub fn groups(self, run: i64) -> i64 {
        (run + self.summands() - 1) / self.summands()
    }

    /// Fills a panel. `factor` returns the position, in elements, of the factor of a row, a column,
    /// and a summand in the row's group; `None` for padding. Each of the panel's headers sums as
    /// many rows as the others.
    pub(crate) fn fill(
        self,
        packed: &mut [u8],
        layout: PanelLayout,
        source: &[u8],
        factor: impl Fn(usize, usize, usize) -> Option<usize>,
    ) {
        let size = (self.bytes() / self.summands()) as usize;
        let (header, groups) = packed.split_at_mut((layout.header * layout.row_bytes()) as usize);
        for (row, groups) in groups.chunks_exact_mut(layout.row_bytes() as usize).enumerate() {
            for (column, group) in groups.chunks_exact_mut(self.bytes() as usize).enumerate() {
                for (number, to) in group.chunks_exact_mut(size).enumerate() {
                    if let Some(at) = factor(row, column, number) {
                        to.copy_from_slice(&source[at * size..(at + 1) * size]);
                    }
                }
            }
        }
        add_up(header, groups, layout);
    }
}

impl std::fmt::Display for Grouping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match (self.factors, self.sums) {
            (Factors::Bytes { .. }, Sums::Lanes | Sums::Halves) => "four bytes at once",
            (Factors::Bytes { .. }, Sums::Tiles) => "four bytes at once in tile registers",
            (Factors::Bf16, Sums::Tiles) => "two bf16 at once in tile registers",
            (Factors::Bytes { .. }, Sums::Across) => "16 bytes at once",
            (Factors::Bytes { .. }, Sums::Pairs) => "eight bytes of two rows and columns at once",
            (Factors::Bf16, Sums::Pairs) => "four bf16 of two rows and columns at once",
            (Factors::Bf16, _) => "two bf16 at once",
        })
    }
}

impl Factors {
    /// Number of summands of 32 bits.
    fn summands(self) -> i64 {
        match self {
            Self::Bytes { .. } => 4,
            Self::Bf16 => 2,
        }
    }

    /// The places of sums. `may_pair` is true if there are several rows of long groups.
    fn sums(self, may_pair: bool, target: &Target) -> Sums {
        let may_pair = may_pair && target.triple.architecture == Architecture::Aarch64;
        match (self, target.byte_products) {
            (Self::Bytes { .. }, Some(ByteProducts::Halves)) => Sums::Halves,
            (Self::Bytes { .. }, Some(ByteProducts::Across)) => Sums::Across,
            (Self::Bytes { .. }, Some(ByteProducts::Either)) if may_pair => Sums::Pairs,
            (Self::Bf16, _) if may_pair && target.has_bf16_products => Sums::Pairs,
            _ => Sums::Lanes,
        }
    }
}

/// True if `bf16` is multiplied in groups even if the code widens them. Long vectors of
/// aarch64, and other architectures, convert them to `f32` in advance.
fn widens_pairs(target: &Target) -> bool {
    match target.triple.architecture {
        Architecture::X86_64 => true,
        Architecture::Aarch64 => target.vector_bytes == 16,
        _ => false,
    }
}

/// Writes the sums of columns of bytes to a panel's header, if it has one.
fn add_up(header: &mut [u8], groups: &[u8], layout: PanelLayout) {
    let row_bytes = layout.row_bytes() as usize;
    let rows = (layout.rows / layout.header.max(1)).max(1) as usize;
    for (sums, groups) in header.chunks_exact_mut(row_bytes).zip(groups.chunks_exact(rows * row_bytes)) {
        for (column, to) in sums.chunks_exact_mut(GROUP_BYTES as usize).enumerate() {
            let at = column * GROUP_BYTES as usize;
            let of_row = |row: &[u8]| -> i32 {
                row[at..at + GROUP_BYTES as usize].iter().map(|&byte| i32::from(byte as i8)).sum()
            };
            let sum = groups.chunks_exact(row_bytes).fold(0i32, |sum, row| sum.wrapping_add(of_row(row)));
            to.copy_from_slice(&sum.wrapping_mul(-HALF).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
