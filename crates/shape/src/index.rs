//! Arithmetic on multi-dimensional indices of row-major arrays.

/// Product of the sizes, 0 if any size is 0. Returns `None` on overflow of `i64`.
pub fn element_count(sizes: &[i64]) -> Option<i64> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().try_fold(1i64, |product, &size| product.checked_mul(size))
}

/// Distance in elements between neighbors along each dimension.
pub fn row_major_strides(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    for i in (0..sizes.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * sizes[i + 1];
    }
    strides
}

/// Linear position of a multi-index.
pub fn linear_index(sizes: &[i64], index: &[i64]) -> i64 {
    sizes.iter().zip(index).fold(0, |linear, (&size, &i)| linear * size + i)
}

/// Multi-index of a linear position.
pub fn multi_index(sizes: &[i64], mut linear: i64) -> Vec<i64> {
    let mut index = vec![0; sizes.len()];
    for (i, &size) in index.iter_mut().zip(sizes).rev() {
        *i = linear % size;
        linear /= size;
    }
    index
}

/// Advances to the next multi-index in row-major order. Returns `false` after the last.
pub fn advance(sizes: &[i64], index: &mut [i64]) -> bool {
    for (i, &size) in index.iter_mut().zip(sizes).rev() {
        *i += 1;
        if *i < size {
            return true;
        }
        *i = 0;
    }
    false
}

/// All multi-indices in row-major order: one empty index for rank 0, none if a size is 0.
pub fn indices(sizes: &[i64]) -> impl Iterator<Item = Vec<i64>> + '_ {
    let mut next = (!sizes.contains(&0)).then(|| vec![0; sizes.len()]);
    std::iter::from_fn(move || {
        let current = next.take()?;
        let mut following = current.clone();
        if advance(sizes, &mut following) {
            next = Some(following);
        }
        Some(current)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_and_multi_index_are_inverse() {
        let sizes = [2, 3, 5];
        assert_eq!(row_major_strides(&sizes), [15, 5, 1]);
        let all: Vec<Vec<i64>> = indices(&sizes).collect();
        assert_eq!(all.len(), 30);
        for (linear, index) in all.iter().enumerate() {
            assert_eq!(linear_index(&sizes, index), linear as i64);
            assert_eq!(&multi_index(&sizes, linear as i64), index);
        }
    }

    #[test]
    fn empty_arrays_have_no_index_and_scalars_one() {
        assert_eq!(indices(&[2, 0]).count(), 0);
        assert_eq!(indices(&[]).collect::<Vec<_>>(), [Vec::<i64>::new()]);
        assert_eq!(element_count(&[i64::MAX, 2, 0]), Some(0));
        assert_eq!(element_count(&[i64::MAX, 2]), None);
    }
}
