//! Packing: operands in a kernel's own layout.

use bytes::Bytes;

/// Memory from which a kernel reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The operand's own memory.
    None,
    /// Packed at compile time.
    Constant,
    /// Packed into scratch on each call.
    Scratch,
}

/// Constants in a kernel's own layout.
#[derive(Clone, Debug)]
pub struct PackedConstant {
    /// Index of the operand that the kernel reads in this form; `None` for tables that the plan
    /// computed.
    pub operand: Option<usize>,
    /// The packed elements, 64-byte aligned in the constants block.
    pub bytes: Bytes,
}
