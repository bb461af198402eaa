//! Random bits on a device: a thread for each block of words.

use hlo::{Op, RandomAlgorithm};
use shape::ArrayShape;

/// Number of blocks of words of a generator of random bits: its tasks on a device. The state is
/// advanced by the same number.
pub(crate) fn blocks(op: &Op, data: &ArrayShape) -> i64 {
    let count = data.element_count();
    let is_wide = data.element_type.bit_width() == 64;
    match op {
        Op::RngBitGenerator { algorithm: RandomAlgorithm::ThreeFry } if is_wide => count,
        Op::RngBitGenerator { algorithm: RandomAlgorithm::ThreeFry } => {
            let [outer, size, inner] = paired_sizes(&data.sizes());
            outer * ((size + 1) / 2) * inner
        }
        _ if is_wide => (count + 1) / 2,
        _ => (count + 3) / 4,
    }
}

/// Returns the size of the dimension along which ThreeFry's pairs of words are neighbors, and the
/// products of the sizes before and after it: before, it, after. The dimension is the first even
/// one, or else the largest.
pub fn paired_sizes(sizes: &[i64]) -> [i64; 3] {
    let even = sizes.iter().position(|size| size % 2 == 0);
    let largest = || (0..sizes.len()).rev().max_by_key(|&d| sizes[d]);
    let Some(split) = even.or_else(largest) else { return [1, 1, 1] };
    [sizes[..split].iter().product(), sizes[split], sizes[split + 1..].iter().product()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::PrimitiveType;

    #[test]
    fn blocks_cover_all_elements() {
        let philox = Op::RngBitGenerator { algorithm: RandomAlgorithm::Philox };
        let three_fry = Op::RngBitGenerator { algorithm: RandomAlgorithm::ThreeFry };
        let table: [(&Op, PrimitiveType, &[i64], i64); 8] = [
            (&philox, PrimitiveType::U32, &[4, 5], 5),
            (&philox, PrimitiveType::U32, &[7, 3], 6),
            (&philox, PrimitiveType::U64, &[7], 4),
            (&philox, PrimitiveType::U8, &[0], 0),
            (&three_fry, PrimitiveType::U64, &[7, 3], 21),
            (&three_fry, PrimitiveType::U32, &[7, 4, 3], 42),
            (&three_fry, PrimitiveType::U32, &[7, 3], 12),
            (&three_fry, PrimitiveType::U32, &[], 1),
        ];
        for (op, element, sizes, count) in table {
            assert_eq!(blocks(op, &ArrayShape::new(element, sizes)), count, "{op:?} {element} {sizes:?}");
        }
        assert_eq!(paired_sizes(&[7, 4, 3]), [7, 4, 3]);
        assert_eq!(paired_sizes(&[5, 7, 3]), [5, 7, 3]);
    }
}
