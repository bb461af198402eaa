//! MLIR as data: operations, regions, attributes, and types, read from text or bytecode.
//!
//! This crate knows the syntax of operations, not their meaning: the generic form, and the assembly
//! of `builtin`, `func`, `stablehlo`, `chlo`, and `check`, whose attributes get the names of the
//! generic form. The only verification is the one that reading requires: a value is defined before
//! it is used.

mod attribute;
mod bytecode;
mod ir;
mod text;
mod types;

pub use attribute::{Attribute, Attributes, Elements};
pub use bytecode::{BYTECODE_MAGIC, parse_bytecode};
pub use ir::{Block, Module, Operation, Region, Value, ValueId};
pub use text::{MAX_NESTING, parse};
pub use types::{Quantization, TensorType, Type};
