//! A single row in block floating point, multiplied by weights of four bits as bytes.

use super::weights::Weights;
use shape::PrimitiveType;
use target::{ByteProducts, Target};

/// Bytes of the integer of an element.
const INTEGER_BYTES: i64 = 4;

/// Bytes of the sums and the step that follow the integers of a block, on a multiple of 32.
const HEADER_BYTES: i64 = 32;

/// With fewer elements in a block, scaling its sums takes longer than the products do.
const MIN_BLOCK: i64 = 16;

/// With more, the sum of a digit's products could have more than the 24 bits of a float.
const MAX_BLOCK: i64 = (1 << 24) / (15 * 128);

/// The form of a row whose blocks share an exponent each: integers of 32 bits, which are digits of
/// eight bits. Products of digits and numbers of four bits, and sums of such products, are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFloat {
    /// Elements of a block: those of a block of the weights.
    pub block: i64,
    /// True if the instruction takes signed first factors, false if unsigned ones.
    pub is_signed: bool,
}

impl BlockFloat {
    /// Returns the form of a row that is multiplied by the weights, if the target's products of
    /// bytes make it worthwhile.
    pub(crate) fn of(weights: Weights, lhs: PrimitiveType, target: &Target) -> Option<Self> {
        let is_signed = match target.byte_products? {
            ByteProducts::Unsigned => false,
            ByteProducts::Signed | ByteProducts::Either => true,
            ByteProducts::Widened
            | ByteProducts::Signs
            | ByteProducts::Halves
            | ByteProducts::Dual
            | ByteProducts::Single
            | ByteProducts::Across => {
                return None;
            }
        };
        let block = weights.blocks?.summands;
        (weights.are_nibbles() && lhs == PrimitiveType::F32 && (MIN_BLOCK..=MAX_BLOCK).contains(&block))
            .then_some(Self { block, is_signed })
    }

    /// Bytes from one block to the next.
    pub fn block_bytes(self) -> i64 {
        self.block * INTEGER_BYTES + HEADER_BYTES
    }

    /// Bytes of a row of `k` elements.
    pub(crate) fn row_bytes(self, k: i64) -> u64 {
        let blocks = (k + self.block - 1) / self.block;
        blocks.saturating_mul(self.block_bytes()).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::super::weights::Blocks;
    use super::*;

    #[test]
    fn only_processors_with_products_of_bytes_take_the_form() {
        let weights = |stored, summands| Weights {
            stored,
            blocks: Some(Blocks { summands, scale: PrimitiveType::F16 }),
            is_finite: true,
        };
        let of = |weights, cpu: &str| {
            let target = Target::new("x86_64-linux-gnu", cpu, "").expect("a triple");
            BlockFloat::of(weights, PrimitiveType::F32, &target)
        };
        let form = Some(BlockFloat { block: 32, is_signed: false });
        assert_eq!(of(weights(PrimitiveType::S4, 32), "icelake-server"), form);
        assert_eq!(of(weights(PrimitiveType::U4, 32), "alderlake"), form);
        assert_eq!(of(weights(PrimitiveType::S4, 32), "x86-64-v3"), None);
        assert_eq!(of(weights(PrimitiveType::S4, 8), "icelake-server"), None);
        assert_eq!(of(weights(PrimitiveType::S8, 32), "icelake-server"), None);
        assert_eq!(of(weights(PrimitiveType::S4, 1 << 14), "icelake-server"), None);
    }
}
