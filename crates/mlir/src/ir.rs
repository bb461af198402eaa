//! Operations and the values between them.

use crate::attribute::{Attribute, Attributes};
use crate::types::Type;
use std::ops::Index;
use support::IdVec;

support::id_type!(
    /// A result of an operation or an argument of a block.
    ValueId,
    "value"
);

/// A result of an operation or an argument of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The type of the value.
    pub value_type: Type,
    /// The name in the text, without `%`; empty if it has none.
    pub name: String,
}

/// A file: its top-level operations and the values of all operations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// The operations: one `builtin.module`, or the contents of a file without one.
    pub operations: Vec<Operation>,
    /// The values in all regions.
    pub values: IdVec<ValueId, Value>,
}

impl Index<ValueId> for Module {
    type Output = Value;

    fn index(&self, id: ValueId) -> &Value {
        &self.values[id]
    }
}

/// An operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Dialect and name: `stablehlo.add`.
    pub name: String,
    /// Values that the operation reads.
    pub operands: Vec<ValueId>,
    /// Values that the operation defines.
    pub results: Vec<ValueId>,
    /// Properties and discardable attributes together.
    pub attributes: Attributes,
    /// Nested regions.
    pub regions: Vec<Region>,
    /// The name in its location, such as `jit(f)/add`; empty if it has none.
    pub location: String,
    /// The line on which it begins, counted from 1; 0 if it was not read from text.
    pub line: usize,
}

impl Operation {
    /// Returns the attribute called `name`.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.get(name)
    }
}

/// A list of blocks; exactly one in every region that this crate reads, unless the region is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// A list of operations; the last one is the terminator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The arguments.
    pub arguments: Vec<ValueId>,
    /// The operations.
    pub operations: Vec<Operation>,
}
