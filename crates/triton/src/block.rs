//! Copies between dense tensors and parts of larger arrays.
//!
//! An array whose dimensions have ranges has the memory of the largest sizes. A tensor of smaller
//! sizes is its corner, or the part that begins at a row.

/// Geometry of a tensor that is a part of an array. Sizes are at least 0 and at most the array's.
#[derive(Clone, Copy, Debug)]
pub struct Part<'s> {
    /// Sizes of the tensor.
    pub sizes: &'s [i64],
    /// Sizes of the array.
    pub whole: &'s [i64],
    /// First row of the array that belongs to the tensor.
    pub row: i64,
    /// Bytes of an element.
    pub element: usize,
}

/// Returns the bytes of a dense tensor, `None` if they exceed the address space.
pub fn dense_bytes(sizes: &[i64], element: usize) -> Option<usize> {
    sizes.iter().try_fold(element, |bytes, &size| bytes.checked_mul(usize::try_from(size).ok()?))
}

/// Copies a dense tensor to its part of an array.
pub fn place(part: Part<'_>, tensor: &[u8], array: &mut [u8]) {
    each_piece(part, &mut |in_tensor, in_array, bytes| {
        array[in_array..in_array + bytes].copy_from_slice(&tensor[in_tensor..in_tensor + bytes]);
    });
}

/// Copies a part of an array to a dense tensor.
pub fn take(part: Part<'_>, array: &[u8], tensor: &mut [u8]) {
    each_piece(part, &mut |in_tensor, in_array, bytes| {
        tensor[in_tensor..in_tensor + bytes].copy_from_slice(&array[in_array..in_array + bytes]);
    });
}

/// Calls `copy` with the offsets in the tensor and in the array and the bytes of each contiguous
/// piece.
fn each_piece(part: Part<'_>, copy: &mut dyn FnMut(usize, usize, usize)) {
    let Part { sizes, whole, row, element } = part;
    // Trailing dimensions that are complete, and one more, are contiguous.
    let equal = sizes.iter().zip(whole).rev().take_while(|(size, whole)| size == whole).count();
    let outer = sizes.len().saturating_sub(equal + 1);
    let product = |sizes: &[i64]| sizes.iter().map(|&size| size as usize).product::<usize>();
    let bytes = product(&sizes[outer..]) * element;
    if sizes.contains(&0) {
        return;
    }
    let row_bytes = whole.get(1..).map_or(0, |inner| product(inner) * element);
    let mut index = vec![0; outer];
    let mut in_tensor = 0;
    loop {
        let mut position = 0;
        for (d, &size) in whole.iter().enumerate() {
            position = position * size as usize + index.get(d).copied().unwrap_or(0);
        }
        copy(in_tensor, position * element + row as usize * row_bytes, bytes);
        in_tensor += bytes;
        let Some(d) = (0..outer).rev().find(|&d| index[d] + 1 < sizes[d] as usize) else { return };
        index[d] += 1;
        index[d + 1..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies element by element.
    fn expected(part: Part<'_>, tensor: &[u8], array: &mut [u8]) {
        let count: i64 = part.sizes.iter().product();
        for k in 0..count {
            let (mut rest, mut position, mut stride) = (k, 0, 1);
            for d in (0..part.sizes.len()).rev() {
                let first = if d == 0 { part.row } else { 0 };
                position += (rest % part.sizes[d] + first) * stride;
                rest /= part.sizes[d];
                stride *= part.whole[d];
            }
            let (from, to) = (k as usize * part.element, position as usize * part.element);
            array[to..to + part.element].copy_from_slice(&tensor[from..from + part.element]);
        }
    }

    #[test]
    fn parts_are_placed_and_taken_at_their_elements() {
        let cases: [(&[i64], &[i64], i64); 9] = [
            (&[], &[], 0),
            (&[3], &[8], 2),
            (&[2, 3], &[4, 3], 1),
            (&[2, 2], &[4, 3], 2),
            (&[1, 3, 2], &[2, 3, 5], 1),
            (&[2, 2, 5], &[2, 3, 5], 0),
            (&[2, 1, 2, 3], &[3, 2, 4, 3], 1),
            (&[0, 3], &[4, 3], 0),
            (&[2, 0], &[2, 3], 0),
        ];
        for (sizes, whole, row) in cases {
            for element in [1, 4] {
                let part = Part { sizes, whole, row, element };
                let bytes = dense_bytes(sizes, element).expect("small");
                let tensor: Vec<u8> = (1..=bytes as u8).collect();
                let mut array = vec![0; dense_bytes(whole, element).expect("small")];
                let mut expected_array = array.clone();
                expected(part, &tensor, &mut expected_array);
                place(part, &tensor, &mut array);
                assert_eq!(array, expected_array, "{part:?}");
                let mut back = vec![0; bytes];
                take(part, &array, &mut back);
                assert_eq!(back, tensor, "{part:?}");
            }
        }
    }

    #[test]
    fn sizes_beyond_the_address_space_have_no_bytes() {
        assert_eq!(dense_bytes(&[1 << 40, 1 << 40], 4), None);
        assert_eq!(dense_bytes(&[-1], 4), None);
        assert_eq!(dense_bytes(&[], 8), Some(8));
    }
}
