//! Reads MLIR text.
//!
//! The grammar is that of MLIR's language reference, without control flow between blocks; the assembly of StableHLO's
//! operations is that of the assembly formats in `StablehloOps.td`, which are so alike that one reading of "operands and
//! `key = value` items, attributes, types" serves nearly all ([`assembly`]).

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

/// How deep regions, attributes and types may nest in each other.
pub const MAX_NESTING: usize = 200;

/// Reads a file. Takes time and memory in proportion to the text.
///
/// An error's message starts with the line: `7: %2 is used before it is defined`.
pub fn parse(text: &str) -> Result<Module> {
    Reader::new(text).file()
}

/// Reads an attribute on its own.
pub(crate) fn parse_attribute(text: &str) -> Result<Attribute> {
    attribute::read(&mut Scanner::new(text))
}

/// Reads a type on its own.
pub(crate) fn parse_type(text: &str) -> Result<Type> {
    types::read_type(&mut Scanner::new(text))
}
