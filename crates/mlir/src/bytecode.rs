//! Reads MLIR bytecode: portable artefacts of StableHLO, which hold its versioned dialect VHLO.
//!
//! A file is a list of sections: strings, dialects with the names of their operations, attributes and types behind a
//! table of their sizes, properties, the operations themselves. Numbers in one section index another. What MLIR's
//! documentation calls the bytecode format is read in its versions 0 to 6; VHLO's operations of all versions become
//! those of StableHLO ([`upgrade`]), so that nothing behind this reader tells a text from an artefact.
//!
//! Files come from anywhere: every index and length is checked before it is used, nothing is allocated on the word of a
//! number alone, and what indices may multiply is counted ([`pool`]).

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

/// Reads a file of bytecode. Takes time and memory in proportion to its size.
pub fn parse_bytecode(bytes: &[u8]) -> Result<Module> {
    let file = sections::File::split(bytes)?;
    operation::read(&file).map_err(|error| match file.producer {
        "" => error,
        producer => error.context(format_args!("bytecode of {producer}")),
    })
}

/// An error about bytes that are no such file.
fn damaged(what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the bytecode is damaged: {what}"))
}

/// An error about what only a newer StableHLO has.
fn newer(what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!(
        "vhlo {what}, which StableHLO has not up to version 1.20.0: write the program for an older version"
    ))
}
