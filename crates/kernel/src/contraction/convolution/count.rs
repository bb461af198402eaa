//! Trip counts that are constants, or values with an upper bound.

use nest::{FunctionBuilder, ValueId};

/// Trip count of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) value: ValueId,
    /// Upper bound on the count.
    pub(super) most: i64,
}

impl Count {
    pub(super) fn constant(b: &mut FunctionBuilder, count: i64) -> Self {
        Self { value: b.index(count), most: count }
    }
}
