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

use crate::ir::Module;
use operation::Reader;
use support::Result;

/// How deep regions, attributes and types may nest in each other.
pub const MAX_NESTING: usize = 200;

/// Reads a file. Takes time and memory in proportion to the text.
///
/// An error's message starts with the line: `7: %2 is used before it is defined`.
pub fn parse(text: &str) -> Result<Module> {
    Reader::new(text).file()
}
