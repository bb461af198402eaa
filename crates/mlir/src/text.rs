//! Reads MLIR text.
//!
//! The grammar is that of MLIR's language reference, without control flow between blocks. The
//! assembly of StableHLO operations follows the assembly formats in `StablehloOps.td`. They are so
//! similar that one parser for "operands and `key = value` items, attributes, types" serves nearly
//! all of them ([`assembly`]).

mod assembly;
mod attribute;
mod dense;
mod dialect;
mod forms;
mod operation;
mod scanner;
mod types;

#[cfg(test)]
mod tests;

use crate::attribute::Attribute;
use crate::ir::Module;
use crate::types::Type;
use operation::Reader;
use scanner::Scanner;
use support::Result;

/// Maximum nesting depth of regions, attributes, and types.
pub const MAX_NESTING: usize = 200;

/// Reads a file. Takes time and memory in proportion to the text.
///
/// An error message starts with the line: `7: %2 is used before it is defined`.
pub fn parse(text: &str) -> Result<Module> {
    Reader::new(text).file()
}

/// Reads a standalone attribute.
pub(crate) fn parse_attribute(text: &str) -> Result<Attribute> {
    attribute::read(&mut Scanner::new(text))
}

/// Reads a standalone type.
pub(crate) fn parse_type(text: &str) -> Result<Type> {
    types::read_type(&mut Scanner::new(text))
}
