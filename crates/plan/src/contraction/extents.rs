//! The extents of a dot, whatever the order of its dimensions.

/// The extents of a contraction: `batch` products of `m x k` and `k x n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotShape {
    /// Products.
    pub batch: i64,
    /// Rows of the left operand and the result.
    pub m: i64,
    /// Columns of the right operand and the result.
    pub n: i64,
    /// Summands.
    pub k: i64,
}
