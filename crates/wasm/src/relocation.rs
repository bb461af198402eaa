//! Relocations: places in code and data that hold an index or an address.

use crate::cursor::damaged;
use crate::{Cursor, encode};
use support::Result;

/// Kind of the number in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Index of a function.
    Function,
    /// Index of a function in the table, which is its address.
    TableIndex,
    /// Address of data.
    Address,
    /// Index of a type, which does not change.
    Type,
    /// Index of a global.
    Global,
    /// Number of a table.
    Table,
    /// Offset in a debug section.
    Nothing,
}

/// Form of the number in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Five bytes for an unsigned number of variable length.
    Unsigned,
    /// Five bytes for a signed number of variable length.
    Signed,
    /// Four bytes, little-endian.
    Fixed,
}

/// A relocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    pub(crate) holds: Holds,
    pub(crate) form: Form,
    /// Position in the section's contents.
    pub(crate) offset: usize,
    /// Number of the symbol, or of the type.
    pub(crate) index: usize,
    pub(crate) addend: i64,
}

/// Reads the relocations of a section, in the order of their places.
pub(crate) fn relocations(cursor: &mut Cursor<'_>) -> Result<Vec<Relocation>> {
    let mut all = Vec::new();
    for _ in 0..cursor.u32()? {
        let (holds, form) = match cursor.byte()? {
            0 => (Holds::Function, Form::Unsigned),
            1 => (Holds::TableIndex, Form::Signed),
            2 => (Holds::TableIndex, Form::Fixed),
            3 => (Holds::Address, Form::Unsigned),
            4 => (Holds::Address, Form::Signed),
            5 => (Holds::Address, Form::Fixed),
            6 => (Holds::Type, Form::Unsigned),
            7 => (Holds::Global, Form::Unsigned),
            // Offsets in debug sections, with an addend.
            8 | 9 => (Holds::Nothing, Form::Fixed),
            20 => (Holds::Table, Form::Unsigned),
            other => return Err(damaged(&format!("unexpected relocation of type {other}"))),
        };
        let (offset, index) = (cursor.size()?, cursor.size()?);
        let addend = if matches!(holds, Holds::Address | Holds::Nothing) { cursor.i64()? } else { 0 };
        all.push(Relocation { holds, form, offset, index, addend });
    }
    all.sort_by_key(|relocation| relocation.offset);
    Ok(all)
}

impl Form {
    /// Size in bytes of a place in an object.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Unsigned | Self::Signed => 5,
            Self::Fixed => 4,
        }
    }

    /// Appends a number in this form, in as few bytes as possible.
    pub(crate) fn write(self, out: &mut Vec<u8>, value: u32) {
        match self {
            Self::Unsigned => encode::unsigned(out, u64::from(value)),
            Self::Signed => encode::signed(out, i64::from(value as i32)),
            Self::Fixed => out.extend_from_slice(&value.to_le_bytes()),
        }
    }
}
