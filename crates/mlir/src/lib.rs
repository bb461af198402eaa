//! MLIR as data: operations, regions, attributes and types, read from text or from bytecode.
//!
//! What an operation means is no matter here, only how its dialect spells it: the generic form, and the assembly of
//! `builtin`, `func`, `stablehlo`, `chlo` and `check`, whose attributes come out under the names of the generic form.
//! Nothing is verified but what reading needs: a value is defined before it is used.

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
