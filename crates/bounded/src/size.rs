//! A size that is an operand: a constant, or a run-time value with a known upper bound.

use hlo::InstructionId;

/// A size, known at compile time or bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The size, or its upper bound.
    pub bound: i64,
    /// The size as an `s32` scalar, if it is only known at run time.
    pub size: Option<InstructionId>,
}

impl Size {
    /// Creates a size that is known at compile time.
    pub fn known(size: i64) -> Self {
        Self { bound: size, size: None }
    }
}

/// The runs in which two arrays have equally many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameCount {
    /// In every run, as far as is known when compiling.
    Always,
    /// In the runs in which a `pred` is true.
    If(InstructionId),
    /// In the runs with one size of a named dimension, or in none.
    OneSizeAtMost,
}
