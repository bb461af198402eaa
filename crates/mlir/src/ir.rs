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
    /// Its type.
    pub value_type: Type,
    /// The name in the text, without `%`; empty where there was none.
    pub name: String,
}

/// A file: the operations at its top, and every value of all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// The operations: one `builtin.module`, or what a file without it holds.
    pub operations: Vec<Operation>,
    /// The values, across all regions.
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
    /// What it reads.
    pub operands: Vec<ValueId>,
    /// What it makes.
    pub results: Vec<ValueId>,
    /// Properties and discardable attributes together.
    pub attributes: Attributes,
    /// What it holds.
    pub regions: Vec<Region>,
    /// The name in its location, such as `jit(f)/add`; empty if it has none.
    pub location: String,
    /// The line of the text it began on, counted from 1; 0 if it was not read from text.
    pub line: usize,
}

impl Operation {
    /// An attribute.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.get(name)
    }
}

/// Blocks; one, for all that this reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// A list of operations, the last of which ends it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The arguments.
    pub arguments: Vec<ValueId>,
    /// The operations.
    pub operations: Vec<Operation>,
}
