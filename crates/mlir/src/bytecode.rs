//! Reads MLIR bytecode: portable artifacts of StableHLO, which use its versioned dialect VHLO.
//!
//! A file is a list of sections: strings, dialects with the names of their operations, attributes
//! and types preceded by a table of their sizes, properties, and the operations themselves. Numbers
//! in one section index another. The reader supports versions 0 to 6 of the bytecode format in
//! MLIR's documentation. It converts all versions of VHLO operations to StableHLO operations
//! ([`upgrade`]), so that code downstream sees no difference between text and artifacts.
//!
//! Files are untrusted: every index and length is checked before use, no count in the file alone
//! determines the size of an allocation, and a budget bounds the amount of data that indices can
//! multiply ([`pool`]).

mod builtin;
mod cursor;
mod operation;
mod pool;
mod sections;
mod upgrade;
mod vhlo;
mod vhlo_codes;
mod vhlo_operations;

use crate::ir::Module;
use support::{Error, Result};

/// The first bytes of every file.
pub const BYTECODE_MAGIC: [u8; 4] = *b"ML\xefR";

/// Reads a bytecode file. Takes time and memory in proportion to its size.
pub fn parse_bytecode(bytes: &[u8]) -> Result<Module> {
    let file = sections::File::split(bytes)?;
    operation::read(&file).map_err(|error| match file.producer {
        "" => error,
        producer => error.context(format_args!("bytecode of {producer}")),
    })
}

/// An error about bytes that are not valid bytecode.
fn damaged(what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the bytecode is damaged: {what}"))
}

/// An error about a feature of a newer StableHLO version.
fn newer(what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!(
        "vhlo {what} is not available in StableHLO 1.20.0 or earlier: export the program for an older version"
    ))
}
