//! The text of operations on tile registers: `tiles`, the operation, its numbers, and its values.

use std::fmt::{Formatter, Result as FormatResult};

use super::parse::Reader;
use super::{GROUPS, name_of, named};
use crate::language::TileOperation;
use support::{Error, Result};

/// Writes an operation.
pub(super) fn print(f: &mut Formatter<'_>, operation: TileOperation) -> FormatResult {
    match operation {
        TileOperation::Configure { rows, groups } => write!(f, "tiles configure {rows} {groups}"),
        TileOperation::Release => f.write_str("tiles release"),
        TileOperation::Zero { tile } => write!(f, "tiles zero {tile}"),
        TileOperation::Load { tile, pointer, stride } => write!(f, "tiles load {tile} {pointer}, {stride}"),
        TileOperation::Multiply { kind, sum, left, right } => {
            write!(f, "tiles multiply {} {sum} {left} {right}", name_of(GROUPS, &kind))
        }
        TileOperation::Store { tile, pointer, stride } => {
            write!(f, "tiles store {tile} {pointer}, {stride}")
        }
    }
}

impl Reader<'_> {
    /// Parses an operation.
    pub(super) fn tiles(&mut self) -> Result<TileOperation> {
        self.expect_word("tiles")?;
        match self.word("an operation")? {
            "configure" => Ok(TileOperation::Configure { rows: self.number()?, groups: self.number()? }),
            "release" => Ok(TileOperation::Release),
            "zero" => Ok(TileOperation::Zero { tile: self.number()? }),
            "load" => {
                let tile = self.number()?;
                let [pointer, stride] = self.exactly()?;
                Ok(TileOperation::Load { tile, pointer, stride })
            }
            "multiply" => {
                let word = self.word("the factors of a group")?;
                let kind = named(GROUPS, word)
                    .ok_or_else(|| Error::invalid(format!("unknown factors of a group '{word}'")))?;
                let (sum, left, right) = (self.number()?, self.number()?, self.number()?);
                Ok(TileOperation::Multiply { kind, sum, left, right })
            }
            "store" => {
                let tile = self.number()?;
                let [pointer, stride] = self.exactly()?;
                Ok(TileOperation::Store { tile, pointer, stride })
            }
            word => Err(Error::invalid(format!("unknown operation '{word}' on tile registers"))),
        }
    }
}
