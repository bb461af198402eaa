//! Contractions.

use crate::{Fusion, InstructionPlan};
use support::{Error, Result};
use target::Target;

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

/// Where the right operand's panels come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Read in place.
    None,
    /// Packed at compile time.
    Constant,
    /// Packed into scratch at the start of each call.
    Scratch,
}

/// How a contraction looks.
#[derive(Clone, Debug, PartialEq)]
pub struct DotPlan {
    /// Its extents.
    pub shape: DotShape,
}

/// Plans a body that holds a dot.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<InstructionPlan> {
    let _ = (fusion, target);
    Err(Error::unsupported("opcode dot"))
}
