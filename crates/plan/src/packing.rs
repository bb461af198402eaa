//! Packing: operands in a kernel's own layout.

use bytes::Bytes;

/// Where a kernel reads an operand from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// In place.
    None,
    /// Packed at compile time.
    Constant,
    /// Packed into scratch on each call.
    Scratch,
}

/// Constants in a kernel's own layout.
#[derive(Clone, Debug)]
pub struct PackedConstant {
    /// The position of the operand that the kernel reads in this form; nothing for tables that the plan made up.
    pub operand: Option<usize>,
    /// The packed elements; 64-byte aligned in the constants block.
    pub bytes: Bytes,
}
