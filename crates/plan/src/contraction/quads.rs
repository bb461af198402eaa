//! Products of bytes: groups of four summands that an instruction multiplies and adds at once.
//!
//! A group takes the place of one summand: four neighboring bytes of the left operand meet four
//! bytes per column of a packed right operand. The panels begin with the sums of their columns,
//! which correct the result if the instruction takes left bytes of the other kind.

use super::panels::PanelLayout;
use super::tile::{self, Tile};
use shape::PrimitiveType;
use target::{ByteProducts, Target};

/// Summands of a group.
pub const QUAD: i64 = 4;

/// Half the number of values of a byte: the difference between a signed byte and the unsigned byte
/// that differs in the upper bit only.
const HALF: i32 = 128;

/// Columns that justify a panel of groups.
const ENOUGH_COLUMNS: i64 = 4;

/// Summands in groups of four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quads {
    /// Summands of the last group of a run, if it is not whole; otherwise 0.
    pub tail: u32,
    /// True if the instruction takes signed bytes of the left operand.
    pub is_signed: bool,
    /// True if the left operand's bytes are of the other kind. Their upper bits are flipped, and
    /// the sums of the columns correct the result.
    pub is_flipped: bool,
}

impl Quads {
    /// Groups of products of a left and a constant right type in runs of `run` summands, if the
    /// target sums such products; `None` if there are too few columns.
    pub(crate) fn of(
        [lhs, rhs, accumulator]: [PrimitiveType; 3],
        run: i64,
        columns: i64,
        target: &Target,
    ) -> Option<Self> {
        use PrimitiveType::{S8, S32, U8, U32};
        let products = target.byte_products?;
        let are_bytes = matches!(lhs, S8 | U8) && rhs == S8 && matches!(accumulator, S32 | U32);
        if !are_bytes || columns < ENOUGH_COLUMNS || run < QUAD - 1 {
            return None;
        }
        let is_flipped = !products.takes(lhs == S8);
        Some(Self { tail: (run % QUAD) as u32, is_signed: (lhs == S8) != is_flipped, is_flipped })
    }

    /// Limits the rows of a tile if the target's products take more registers than a multiply-add.
    pub(crate) fn limited(tile: Tile, m: i64, target: &Target) -> Tile {
        tile::with_rows(tile, m, Self::most_rows(tile.vectors, target).unwrap_or(tile.rows))
    }

    /// Upper bound of the rows of a tile if the target widens bytes. Each vector of columns then
    /// takes two registers, and so does the left operand.
    pub(crate) fn most_rows(vectors: u32, target: &Target) -> Option<u32> {
        // Two-operand instructions copy what they overwrite.
        let others = if target.has_fma { 3 } else { 5 };
        let spare = target.vector_registers.saturating_sub(others + 2 * vectors) / vectors.max(1);
        (target.byte_products == Some(ByteProducts::Widened)).then_some(spare.clamp(1, 8))
    }

    /// Upper bound of the groups per iteration of a tile's loop. Widened bytes leave no registers
    /// for a second group.
    pub(crate) fn most_unrolled(tile: Tile, target: &Target) -> i64 {
        if target.byte_products == Some(ByteProducts::Widened) { i64::from(tile.k_split) } else { i64::MAX }
    }

    /// Upper bound of the pixels of a convolution's tile, given that of other tiles. Flipping bytes
    /// takes registers, of which the operands from memory of AVX2 save one.
    pub(crate) fn most_pixels(self, vectors: u32, most: u32, target: &Target) -> u32 {
        let widened = Self::most_rows(vectors, target).unwrap_or(most);
        let others = if target.vector_registers >= 32 { 3 } else { 2 };
        let flipped = target.vector_registers.saturating_sub(others + vectors) / vectors.max(1);
        most.min(widened).min(if self.is_flipped { flipped } else { most }).max(1)
    }

    /// Groups of a run of summands.
    pub(crate) fn groups(run: i64) -> i64 {
        (run + QUAD - 1) / QUAD
    }
}

/// Fills a panel. `byte` returns the factor of a row, a column, and a summand in the row's group.
/// Each of the panel's headers sums as many rows as the others.
pub(crate) fn fill(packed: &mut [u8], layout: PanelLayout, byte: impl Fn(usize, usize, usize) -> i8) {
    let width = layout.width as usize;
    let (header, groups) = packed.split_at_mut((layout.header * layout.row_bytes()) as usize);
    let rows_of_sum = (layout.rows / layout.header.max(1)).max(1) as usize;
    let mut sums = vec![0i32; header.len() / 4];
    for (row, groups) in groups.chunks_exact_mut(layout.row_bytes() as usize).enumerate() {
        let sums = &mut sums[row / rows_of_sum * width..][..width];
        for (column, (group, sum)) in groups.chunks_exact_mut(QUAD as usize).zip(sums).enumerate() {
            for (number, to) in group.iter_mut().enumerate() {
                let factor = byte(row, column, number);
                *to = factor as u8;
                *sum = sum.wrapping_add(i32::from(factor));
            }
        }
    }
    for (to, sum) in header.chunks_exact_mut(4).zip(sums) {
        to.copy_from_slice(&sum.wrapping_mul(-HALF).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrimitiveType::{S8, S32, U8};

    #[test]
    fn bytes_are_flipped_where_the_instruction_takes_the_other_kind() {
        let target = |triple, cpu| Target::new(triple, cpu, "").expect("a valid triple");
        let (vnni, avx2) = (target("x86_64-pc-linux", "znver4"), target("x86_64-pc-linux", "x86-64-v3"));
        let (arm, plain) =
            (target("aarch64-linux-gnu", "neoverse-n1"), target("aarch64-linux-gnu", "cortex-a53"));
        let of = |lhs, target| Quads::of([lhs, S8, S32], 10, 16, target);
        let quads = |is_signed, is_flipped| Some(Quads { tail: 2, is_signed, is_flipped });
        assert_eq!(of(S8, &vnni), quads(false, true));
        assert_eq!(of(U8, &vnni), quads(false, false));
        assert_eq!(of(S8, &avx2), quads(true, false));
        assert_eq!(of(U8, &avx2), quads(false, false));
        assert_eq!(of(S8, &arm), quads(true, false));
        assert_eq!(of(U8, &arm), quads(true, true));
        assert_eq!(of(S8, &plain), None);
        assert_eq!(Quads::of([S8, U8, S32], 10, 16, &vnni), None);
        assert_eq!(Quads::of([S8, S8, S32], 10, 1, &vnni), None);
    }

    #[test]
    fn a_panel_begins_with_the_sums_of_its_columns() {
        let layout = PanelLayout { rows: 2, columns: 2, width: 2, element_bytes: 4, header: 1 };
        let mut packed = vec![0; layout.panel_bytes() as usize];
        fill(&mut packed, layout, |row, column, number| (4 * row + number) as i8 * [1, -1][column]);
        let sums: Vec<i32> =
            packed[..8].chunks(4).map(|b| i32::from_le_bytes(b.try_into().expect("four bytes"))).collect();
        assert_eq!(sums, [-128 * 28, 128 * 28]);
        assert_eq!(packed[8..16], [0, 1, 2, 3, 0, 255, 254, 253]);
        assert_eq!(packed[16..24], [4, 5, 6, 7, 252, 251, 250, 249]);
    }
}
