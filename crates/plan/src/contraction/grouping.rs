//! Products of narrow numbers: groups of four bytes or two narrow floats that an instruction
//! multiplies and adds at once.
//!
//! A group has 32 bits and takes the place of one summand: neighboring elements of the left operand
//! are multiplied by as many elements in each column of a packed right operand. Panels of bytes
//! begin with the sums of their columns, which correct the result if the instruction takes left
//! bytes of the other kind.

use super::panels::PanelLayout;
use super::tile::{self, Tile};
use shape::PrimitiveType;
use target::{Architecture, ByteProducts, Target};

/// Bytes of a group.
pub const GROUP_BYTES: i64 = 4;

/// Half the number of values of a byte: the difference between a signed byte and the unsigned byte
/// that differs in the upper bit only.
const HALF: i32 = 128;

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
    /// Two `f16`.
    F16,
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
}

impl Grouping {
    /// Groups of products of a left and a constant right type in runs of `run` summands, if the
    /// target sums such products; `None` if there are too few columns.
    pub(crate) fn of(
        [lhs, rhs, accumulator]: [PrimitiveType; 3],
        run: i64,
        columns: i64,
        target: &Target,
    ) -> Option<Self> {
        use PrimitiveType::{Bf16, F16, F32, S8, S32, U8, U32};
        let (factors, is_widened) = match (lhs, rhs, accumulator) {
            (S8 | U8, S8, S32 | U32) => {
                let products = target.byte_products?;
                let is_flipped = !products.takes(lhs == S8);
                let factors = Factors::Bytes { is_signed: (lhs == S8) != is_flipped, is_flipped };
                (factors, products == ByteProducts::Widened)
            }
            (Bf16, Bf16, F32) if has_pairs(target) => (Factors::Bf16, !target.has_bf16_products),
            (F16, F16, F32) if has_pairs(target) && target.has_f16_conversion => (Factors::F16, true),
            _ => return None,
        };
        let size = factors.summands();
        let tail = (run % size) as u32;
        (columns >= hlo::MIN_TILE_COLUMNS && run >= size - 1 && run > 1).then_some(Self {
            factors,
            tail,
            is_widened,
        })
    }

    /// Number of summands of a group.
    pub fn summands(self) -> i64 {
        self.factors.summands()
    }

    /// Bytes of the last group of a run, if it is not whole; otherwise 0.
    pub fn tail_bytes(self) -> u32 {
        self.tail * (GROUP_BYTES / self.summands()) as u32
    }

    /// True if the left operand's bytes are flipped.
    pub fn is_flipped(self) -> bool {
        matches!(self.factors, Factors::Bytes { is_flipped: true, .. })
    }

    /// Rows of a panel's header, given the number of sums of each column.
    pub(crate) fn header(self, sums: i64) -> i64 {
        if matches!(self.factors, Factors::Bytes { .. }) { sums } else { 0 }
    }

    /// Limits the rows of a tile if the target's products take more registers than a multiply-add.
    pub(crate) fn limited(self, tile: Tile, m: i64, target: &Target) -> Tile {
        tile::with_rows(tile, m, self.most_rows(tile.vectors, target).unwrap_or(tile.rows))
    }

    /// Upper bound of the rows of a tile if the target widens factors. Each vector of columns then
    /// takes two registers, and so does the left operand.
    pub(crate) fn most_rows(self, vectors: u32, target: &Target) -> Option<u32> {
        // Two-operand instructions copy what they overwrite. Only those of x86 read an operand from
        // memory.
        let is_x86 = target.triple.architecture == Architecture::X86_64;
        let others = if target.has_fma && is_x86 { 3 } else { 5 };
        let spare = target.vector_registers.saturating_sub(others + 2 * vectors) / vectors.max(1);
        self.is_widened.then_some(spare.clamp(1, 8))
    }

    /// Upper bound of the groups per iteration of a tile's loop. Widened factors leave no registers
    /// for a second group.
    pub(crate) fn most_unrolled(self, tile: Tile) -> i64 {
        if self.is_widened { i64::from(tile.k_split) } else { i64::MAX }
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
        let size = (GROUP_BYTES / self.summands()) as usize;
        let (header, groups) = packed.split_at_mut((layout.header * layout.row_bytes()) as usize);
        for (row, groups) in groups.chunks_exact_mut(layout.row_bytes() as usize).enumerate() {
            for (column, group) in groups.chunks_exact_mut(GROUP_BYTES as usize).enumerate() {
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
        f.write_str(match self.factors {
            Factors::Bytes { .. } => "four bytes at once",
            Factors::Bf16 => "two bf16 at once",
            Factors::F16 => "two f16 at once",
        })
    }
}

impl Factors {
    /// Number of summands of a group.
    fn summands(self) -> i64 {
        match self {
            Self::Bytes { .. } => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }
}

/// True if narrow floats are multiplied in groups even if the code widens them. Long vectors of
/// aarch64, and other architectures, convert them to `f32` in advance.
fn has_pairs(target: &Target) -> bool {
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
    fn bytes_are_flipped_where_the_instruction_takes_the_other_kind() {
        let target = |triple, cpu| Target::new(triple, cpu, "").expect("a valid triple");
        let (vnni, avx2) = (target("x86_64-pc-linux", "znver4"), target("x86_64-pc-linux", "x86-64-v3"));
        let (arm, plain) =
            (target("aarch64-linux-gnu", "neoverse-n1"), target("aarch64-linux-gnu", "cortex-a53"));
        let of = |lhs, target| Grouping::of([lhs, S8, S32], 10, 16, target);
        let grouping = |is_signed, is_flipped| {
            let factors = Factors::Bytes { is_signed, is_flipped };
            Some(Grouping { factors, tail: 2, is_widened: false })
        };
        assert_eq!(of(S8, &vnni), grouping(false, true));
        assert_eq!(of(U8, &vnni), grouping(false, false));
        let widened = |grouping: Option<Grouping>| grouping.map(|g| Grouping { is_widened: true, ..g });
        assert_eq!(of(S8, &avx2), widened(grouping(true, false)));
        assert_eq!(of(U8, &avx2), widened(grouping(false, false)));
        assert_eq!(of(S8, &arm), grouping(true, false));
        assert_eq!(of(U8, &arm), grouping(true, true));
        assert_eq!(of(S8, &plain), None);
        assert_eq!(Grouping::of([S8, U8, S32], 10, 16, &vnni), None);
        assert_eq!(Grouping::of([S8, S8, S32], 10, 1, &vnni), None);
    }

    #[test]
    fn narrow_floats_are_pairs() {
        let target = |triple, cpu| Target::new(triple, cpu, "").expect("a valid triple");
        let table = [
            (Bf16, target("x86_64-pc-linux", "znver4"), Some((Factors::Bf16, false))),
            (Bf16, target("x86_64-pc-linux", "x86-64-v3"), Some((Factors::Bf16, true))),
            (Bf16, target("aarch64-linux-gnu", "neoverse-n2"), Some((Factors::Bf16, false))),
            (F16, target("x86_64-pc-linux", "znver4"), Some((Factors::F16, true))),
            (F16, target("x86_64-pc-linux", "x86-64-v2"), None),
            (Bf16, target("thumbv7em-none-eabi", "cortex-m4"), None),
        ];
        for (ty, target, expected) in table {
            let grouping = Grouping::of([ty, ty, F32], 7, 16, &target);
            assert_eq!(grouping.map(|g| (g.factors, g.is_widened)), expected, "{ty} for '{}'", target.cpu);
            assert!(grouping.is_none_or(|g| (g.tail, g.tail_bytes(), g.groups(7)) == (1, 2, 4)));
            assert_eq!(Grouping::of([ty, F32, F32], 7, 16, &target), None);
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
        let grouping = Grouping { factors, tail: 0, is_widened: false };
        let source: Vec<u8> = (0..8).chain((0..8).map(|x: u8| x.wrapping_neg())).collect();
        grouping.fill(&mut packed, layout, &source, |row, column, k| Some(8 * column + 4 * row + k));
        let sums: Vec<i32> =
            packed[..8].chunks(4).map(|b| i32::from_le_bytes(b.try_into().expect("four bytes"))).collect();
        assert_eq!(sums, [-128 * 28, 128 * 28]);
        assert_eq!(packed[8..16], [0, 1, 2, 3, 0, 255, 254, 253]);
        assert_eq!(packed[16..24], [4, 5, 6, 7, 252, 251, 250, 249]);
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
        let grouping = Grouping { factors: Factors::Bf16, tail: 1, is_widened: false };
        let source = [1, 2, 3, 4];
        grouping.fill(&mut packed, layout, &source, |_, column, k| (k == 0).then_some(column));
        assert_eq!(packed, [1, 2, 0, 0, 3, 4, 0, 0]);
    }
}
