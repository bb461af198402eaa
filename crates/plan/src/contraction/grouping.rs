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

use super::panels::PanelLayout;
use super::tile::{self, Tile};
use shape::PrimitiveType;
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

/// Summands in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// The factors of a group.
    pub factors: Factors,
    /// Summands of the last group of a run, if it is not whole; otherwise 0.
    pub tail: u32,
    /// True if the target has no such instruction. Each product then takes more registers.
    pub is_widened: bool,
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
    /// A scalar for each column. Groups are four times as long: an instruction adds the products of
    /// all lanes to the sum.
    Across,
}

impl Grouping {
    /// Groups of products of a left and a constant right type in runs of `run` summands, if the
    /// target sums such products; `None` if there are too few columns.
    pub(crate) fn of(
        [lhs, rhs, accumulator]: [PrimitiveType; 3],
        run: i64,
        [rows, columns]: [i64; 2],
        target: &Target,
    ) -> Option<Self> {
        use PrimitiveType::{Bf16, F32, S8, S32, U8, U32};
        let (factors, is_widened) = match (lhs, rhs, accumulator) {
            (S8 | U8, S8, S32 | U32) => {
                let products = target.byte_products?;
                let is_flipped = !products.takes(lhs == S8);
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
        let grouping = Self { factors, tail: 0, is_widened, sums };
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
        matches!(self.factors, Factors::Bytes { .. }) && matches!(self.sums, Sums::Lanes | Sums::Halves)
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
            Sums::Lanes | Sums::Pairs => tile.vectors,
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
            Sums::Lanes => {}
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
mod tests {
    use super::*;
    use PrimitiveType::{Bf16, F16, F32, S8, S32, U8};

    #[test]
    fn single_rows_of_words_share_few_registers() {
        let of = |cpu, triple| {
            let target = Target::new(triple, cpu, "").expect("a valid triple");
            let tile = tile::choose_with(1, 128, 4, tile::Access::default(), &target);
            let grouping = Grouping::of([S8, S8, S32], 640, [1, 128], &target).expect("groups");
            let limited = grouping.limited(tile, 1, &target);
            (tile.vectors, limited.vectors, limited.lanes, limited.k_split)
        };
        // Without groups, as many columns as other processors have vectors.
        assert_eq!(of("cortex-m4", "thumbv7em-none-eabihf"), (8, 4, 1, 1));
        assert_eq!(of("cortex-m0plus", "thumbv6m-none-eabi"), (8, 2, 1, 1));
        assert_eq!(of("", "riscv32-unknown-none-elf"), (4, 2, 1, 1));
    }

    #[test]
    fn vectors_of_bytes_take_whole_runs_of_signed_bytes() {
        let m55 = Target::new("thumbv8.1m.main-none-eabihf", "cortex-m55", "").expect("a valid triple");
        let of = |lhs, run, columns| Grouping::of([lhs, S8, S32], run, [4, columns], &m55);
        let grouping = of(S8, 40, 8).expect("vectors of bytes");
        assert_eq!((grouping.sums, grouping.summands(), grouping.bytes()), (Sums::Across, 16, 16));
        assert_eq!((grouping.tail, grouping.groups(40), grouping.header(1)), (8, 3, 0));
        // The last group is loaded with summands of the one before, whose factors are 0.
        let places = [0, 7, 8, 15].map(|place| grouping.summand(40, 2, place));
        assert_eq!(places, [None, None, Some(32), Some(39)]);
        assert_eq!((of(S8, 15, 8), of(U8, 40, 8), of(S8, 40, 1)), (None, None, None));
        for (m, sums) in [(1, (1, 4)), (9, (2, 2))] {
            let tile = tile::choose_with(m, 64, 4, tile::Access::default(), &m55.for_groups());
            let Tile { rows, vectors, lanes, .. } = grouping.limited(tile, m, &m55.for_groups());
            assert_eq!((rows, vectors, lanes), (sums.0, sums.1, 1), "{m} rows");
        }
    }

    #[test]
    fn bytes_are_flipped_where_the_instruction_takes_the_other_kind() {
        let target = |triple, cpu| Target::new(triple, cpu, "").expect("a valid triple");
        let (vnni, avx2) = (target("x86_64-pc-linux", "znver4"), target("x86_64-pc-linux", "x86-64-v3"));
        let (arm, plain) =
            (target("aarch64-linux-gnu", "neoverse-n1"), target("aarch64-linux-gnu", "cortex-a53"));
        let of = |lhs, target| Grouping::of([lhs, S8, S32], 10, [8, 16], target);
        let grouping = |is_signed, is_flipped| {
            let factors = Factors::Bytes { is_signed, is_flipped };
            Some(Grouping { factors, tail: 2, is_widened: false, sums: Sums::Lanes })
        };
        assert_eq!(of(S8, &vnni), grouping(false, true));
        assert_eq!(of(U8, &vnni), grouping(false, false));
        let widened = |grouping: Option<Grouping>| grouping.map(|g| Grouping { is_widened: true, ..g });
        assert_eq!(of(S8, &avx2), widened(grouping(true, false)));
        assert_eq!(of(U8, &avx2), widened(grouping(false, false)));
        assert_eq!(of(S8, &arm), grouping(true, false));
        assert_eq!(of(U8, &arm), grouping(true, true));
        let halves = |grouping: Option<Grouping>| {
            grouping.map(|g| Grouping { is_widened: true, sums: Sums::Halves, ..g })
        };
        assert_eq!(of(S8, &plain), halves(grouping(true, false)));
        assert_eq!(of(U8, &plain), halves(grouping(true, true)));
        assert_eq!(Grouping::of([S8, U8, S32], 10, [8, 16], &vnni), None);
        assert_eq!(Grouping::of([S8, S8, S32], 10, [8, 1], &vnni), None);
    }

    #[test]
    fn narrow_floats_are_pairs() {
        let target = |triple, cpu| Target::new(triple, cpu, "").expect("a valid triple");
        let table = [
            (Bf16, target("x86_64-pc-linux", "znver4"), Some((Factors::Bf16, false))),
            (Bf16, target("x86_64-pc-linux", "x86-64-v3"), Some((Factors::Bf16, true))),
            (Bf16, target("aarch64-linux-gnu", "neoverse-n2"), Some((Factors::Bf16, false))),
            (F16, target("x86_64-pc-linux", "znver4"), None),
            (Bf16, target("thumbv7em-none-eabi", "cortex-m4"), None),
        ];
        for (ty, target, expected) in table {
            let grouping = Grouping::of([ty, ty, F32], 7, [1, 16], &target);
            assert_eq!(grouping.map(|g| (g.factors, g.is_widened)), expected, "{ty} for '{}'", target.cpu);
            assert!(grouping.is_none_or(|g| (g.tail, g.tail_bytes(), g.groups(7)) == (1, 2, 4)));
            assert_eq!(Grouping::of([ty, F32, F32], 7, [1, 16], &target), None);
        }
    }

    #[test]
    fn rows_and_columns_are_multiplied_in_pairs() {
        let i8mm = Target::new("aarch64-linux-gnu", "neoverse-n2", "").expect("a valid triple");
        let table = [
            // (types, run, rows), (summands of a group, its bytes, those of the last group)
            ([S8, S8, S32], 13, 8, Some((8, 8, 5))),
            ([U8, S8, S32], 16, 2, Some((8, 8, 0))),
            ([Bf16, Bf16, F32], 7, 3, Some((4, 8, 6))),
            // Groups that would be half empty, one row, and factors without such an instruction.
            ([S8, S8, S32], 4, 8, Some((4, 4, 0))),
            ([S8, S8, S32], 13, 1, Some((4, 4, 1))),
        ];
        for (types, run, rows, expected) in table {
            let grouping = Grouping::of(types, run, [rows, 16], &i8mm);
            assert_eq!(
                grouping.map(|g| (g.summands(), g.bytes(), g.tail_bytes())),
                expected,
                "{types:?} {run}"
            );
            assert!(grouping.is_some_and(|g| !g.is_flipped()));
        }
        let signed = Target::new("aarch64-linux-gnu", "neoverse-n1", "").expect("a valid triple");
        assert!(Grouping::of([S8, S8, S32], 13, [8, 16], &signed).is_some_and(|g| g.sums == Sums::Lanes));
    }

    #[test]
    fn tiles_of_pairs_have_even_numbers_of_rows_if_the_product_has() {
        let i8mm = Target::new("aarch64-linux-gnu", "neoverse-n2", "").expect("a valid triple");
        let grouping = Grouping::of([S8, S8, S32], 64, [8, 64], &i8mm).expect("groups");
        let tile = Tile { rows: 8, vectors: 2, lanes: 4, k_split: 1 };
        // The other tiles have `step` rows less, and all together exactly `m`.
        for (m, rows, step) in [(16, 8, 2), (10, 6, 2), (12, 6, 2), (26, 8, 2), (13, 7, 1), (7, 7, 1)] {
            let limited = grouping.limited(tile, m, &i8mm);
            let (most, tiles) = (i64::from(limited.rows), (m + rows - 1) / rows);
            assert_eq!((most, grouping.row_step(m, limited.rows)), (rows, step), "{m}");
            assert!(
                tiles * (most - step) <= m && m <= tiles * most && (m - tiles * (most - step)) % step == 0
            );
        }
    }

    #[test]
    fn a_panel_of_bytes_begins_with_the_sums_of_its_columns() {
        let layout = PanelLayout {
            rows: 2,
            columns: 2,
            width: 2,
            element_bytes: 4,
            header: 1,
            block_rows: 0,
            scale_bytes: 0,
        };
        let mut packed = vec![0; layout.panel_bytes() as usize];
        let factors = Factors::Bytes { is_signed: true, is_flipped: false };
        let grouping = Grouping { factors, tail: 0, is_widened: false, sums: Sums::Lanes };
        let source: Vec<u8> = (0..8).chain((0..8).map(|x: u8| x.wrapping_neg())).collect();
        grouping.fill(&mut packed, layout, &source, |row, column, k| Some(8 * column + 4 * row + k));
        let sums: Vec<i32> =
            packed[..8].chunks(4).map(|b| i32::from_le_bytes(b.try_into().expect("four bytes"))).collect();
        assert_eq!(sums, [-128 * 28, 128 * 28]);
        assert_eq!(packed[8..16], [0, 1, 2, 3, 0, 255, 254, 253]);
        assert_eq!(packed[16..24], [4, 5, 6, 7, 252, 251, 250, 249]);
    }

    #[test]
    fn a_panel_for_pairs_has_eight_bytes_of_each_column() {
        let layout = PanelLayout {
            rows: 1,
            columns: 2,
            width: 2,
            element_bytes: 8,
            header: 0,
            block_rows: 0,
            scale_bytes: 0,
        };
        let factors = Factors::Bytes { is_signed: true, is_flipped: false };
        let grouping = Grouping { factors, tail: 7, is_widened: false, sums: Sums::Pairs };
        assert_eq!(grouping.header(1), 0);
        let mut packed = vec![0; layout.panel_bytes() as usize];
        let source: Vec<u8> = (1..=14).collect();
        grouping.fill(&mut packed, layout, &source, |_, column, k| (k < 7).then_some(2 * k + column));
        assert_eq!(packed, [1, 3, 5, 7, 9, 11, 13, 0, 2, 4, 6, 8, 10, 12, 14, 0]);
    }

    #[test]
    fn a_panel_of_pairs_has_no_sums() {
        let layout = PanelLayout {
            rows: 1,
            columns: 2,
            width: 2,
            element_bytes: 4,
            header: 0,
            block_rows: 0,
            scale_bytes: 0,
        };
        let mut packed = vec![0; layout.panel_bytes() as usize];
        let grouping = Grouping { factors: Factors::Bf16, tail: 1, is_widened: false, sums: Sums::Lanes };
        let source = [1, 2, 3, 4];
        grouping.fill(&mut packed, layout, &source, |_, column, k| (k == 0).then_some(column));
        assert_eq!(packed, [1, 2, 0, 0, 3, 4, 0, 0]);
    }

    #[test]
    fn the_last_group_of_a_run_ends_with_its_summands() {
        let factors = Factors::Bytes { is_signed: false, is_flipped: true };
        let grouping = |tail| Grouping { factors, tail, is_widened: false, sums: Sums::Lanes };
        let of = |tail, run, group| [0, 1, 2, 3].map(|place| grouping(tail).summand(run, group, place));
        assert_eq!(of(1, 9, 1), [4, 5, 6, 7].map(Some));
        assert_eq!(of(1, 9, 2), [None, None, None, Some(8)]);
        assert_eq!(of(3, 11, 2), [None, Some(8), Some(9), Some(10)]);
        assert_eq!(of(0, 8, 1), [4, 5, 6, 7].map(Some));
        assert_eq!(of(3, 3, 0), [Some(0), Some(1), Some(2), None]);
    }
}
