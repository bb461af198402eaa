//! Givens rotations of two neighbors, for loops that move a bulge along a diagonal.

use super::jacobi::epsilon;
use super::matrix::in_type_of;
use crate::expression::Expression;

/// `cosine x + sine z = norm` and `cosine z - sine x = 0`, all scalars.
pub(super) struct Givens<'f> {
    pub(super) cosine: Expression<'f>,
    pub(super) sine: Expression<'f>,
    pub(super) norm: Expression<'f>,
}

impl<'f> Givens<'f> {
    /// Returns the rotation that eliminates `z`, for matrices whose largest element is about 1.
    pub(super) fn new(x: Expression<'f>, z: Expression<'f>) -> Self {
        // Squares of smaller numbers underflow. Such numbers are negligible relative to 1.
        let least = epsilon(x.element_type()).powi(2) * 1e-3;
        let is_small = x.abs().max(z.abs()).lt(least);
        let norm = (x * x + z * z).sqrt();
        let divisor = is_small.select(norm.splat(1.0), norm);
        Givens {
            cosine: is_small.select(norm.splat(1.0), x / divisor),
            sine: is_small.select(norm.splat(0.0), z / divisor),
            norm: is_small.select(x, norm),
        }
    }

    /// Rotates two rows.
    pub(super) fn rotate(
        &self,
        row: Expression<'f>,
        next: Expression<'f>,
    ) -> (Expression<'f>, Expression<'f>) {
        let [c, s] = [self.cosine, self.sine].map(|x| in_type_of(x, row).spread_like(row));
        (c * row + s * next, c * next - s * row)
    }
}

/// Returns the element of `[1, n]` at an index.
pub(super) fn at<'f>(x: Expression<'f>, index: Expression<'f>) -> Expression<'f> {
    x.dynamic_slice_in(1, index).reshape(&[])
}

/// Replaces the element of `[1, n]` at an index.
pub(super) fn with<'f>(x: Expression<'f>, index: Expression<'f>, element: Expression<'f>) -> Expression<'f> {
    x.dynamic_update_in(element.reshape(&[1, 1]), 1, index)
}

/// Flushes negligible off-diagonal elements to zero: those that are tiny relative to their
/// neighbors on the diagonal, or to 1, the largest element. Each element is in the column of the
/// later of its neighbors.
pub(super) fn deflate<'f>(diagonal: Expression<'f>, before: Expression<'f>) -> Expression<'f> {
    let n = diagonal.size_from_end(0);
    let epsilon = epsilon(diagonal.element_type());
    let magnitude = diagonal.abs();
    let earlier = magnitude.slice_in(1, 0, n - 1).pad_in(1, 1, 0, 0.0);
    let limit = (magnitude + earlier) * epsilon + epsilon * epsilon;
    // NaN becomes 0, which ends the loop.
    before.abs().gt(limit).select(before, 0.0)
}

/// Returns the last index with a nonzero off-diagonal element, or 0 if there is none.
pub(super) fn last_coupled(before: Expression<'_>) -> Expression<'_> {
    let indices = before.function().iota(shape::PrimitiveType::S32, &before.sizes(), 1);
    before.not_equal(0.0).select(indices, 0.0).maximum(&[0, 1])
}

/// Returns the first index of the block that ends with `last`.
pub(super) fn first_coupled<'f>(before: Expression<'f>, last: Expression<'f>) -> Expression<'f> {
    let indices = before.function().iota(shape::PrimitiveType::S32, &before.sizes(), 1);
    let starts = before.equal(0.0) & indices.lt(last.spread_like(indices));
    starts.select(indices, 0.0).maximum(&[0, 1])
}
