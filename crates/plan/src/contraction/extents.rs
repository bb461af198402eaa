//! The extents of a dot, independent of the order of its dimensions.

/// The extents of a contraction: `batch` products of `m x k` and `k x n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotShape {
    /// Number of products.
    pub batch: i64,
    /// Rows of the left operand and the result.
    pub m: i64,
    /// Columns of the right operand and the result.
    pub n: i64,
    /// Number of summands.
    pub k: i64,
}
