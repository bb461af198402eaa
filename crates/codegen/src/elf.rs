//! Modifications of 64-bit ELF objects from LLVM.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol};
use std::ops::Range;
use support::{Error, Result};

/// Offset of the section table's offset in the file header.
const E_SHOFF: usize = 0x28;
/// Size of a section table entry in bytes, and offsets in it.
const SECTION_HEADER: usize = 64;
const SH_OFFSET: usize = 24;
const SH_SIZE: usize = 32;
/// Size of a symbol table entry in bytes, and the offset of a symbol's size in it.
const SYMBOL: usize = 24;
const ST_SIZE: usize = 16;

/// Replaces the contents of the section that holds only one symbol by `size` bytes at the end of
/// the file. Returns the range of these bytes, at whose start the file now ends.
pub(crate) fn move_section_to_end(bytes: &mut Vec<u8>, symbol: &str, size: u64) -> Result<Range<usize>> {
    let broken = |what: &str| Error::internal(format!("in LLVM's object: {what} of '{symbol}'"));
    let file: ElfFile64<'_, Endianness> = ElfFile64::parse(&bytes[..])
        .map_err(|e| Error::internal(format!("cannot parse LLVM's object: {e}")))?;
    let endian = file.endian();
    let defined = file
        .symbols()
        .find(|s| s.is_definition() && s.name() == Ok(symbol))
        .ok_or_else(|| broken("no definition"))?;
    let section = defined.section_index().ok_or_else(|| broken("no section"))?;
    let others = file.symbols().filter(|s| s.section_index() == Some(section) && s.is_global()).count();
    if others != 1 || defined.address() != 0 {
        return Err(broken("unexpected contents in the section"));
    }
    let table =
        file.section_by_name(".symtab").and_then(|s| s.file_range()).ok_or_else(|| broken("no table"))?;
    let position = |start: u64, index: usize, entry: usize, field: usize| {
        usize::try_from(start).ok().and_then(|start| start.checked_add(index.checked_mul(entry)? + field))
    };
    let size_in_table = position(table.0, defined.index().0, SYMBOL, ST_SIZE);
    let headers = read_u64(bytes, E_SHOFF, endian).ok_or_else(|| broken("no head"))?;
    let header = position(headers, section.0, SECTION_HEADER, 0);
    let (Some(size_in_table), Some(header)) = (size_in_table, header) else { return Err(broken("no place")) };

    let start = bytes.len().next_multiple_of(64);
    let length = usize::try_from(size).map_err(|_| broken("size overflow"))?;
    let writes = [(header + SH_OFFSET, start as u64), (header + SH_SIZE, size), (size_in_table, size)];
    for (at, value) in writes {
        let place = bytes.get_mut(at..at + 8).ok_or_else(|| broken("no place"))?;
        place.copy_from_slice(&to_bytes(value, endian));
    }
    bytes.resize(start, 0);
    let end = start.checked_add(length).ok_or_else(|| broken("size overflow"))?;
    Ok(start..end)
}

fn read_u64(bytes: &[u8], at: usize, endian: Endianness) -> Option<u64> {
    let word = bytes.get(at..at + 8)?.try_into().ok()?;
    Some(match endian {
        Endianness::Little => u64::from_le_bytes(word),
        Endianness::Big => u64::from_be_bytes(word),
    })
}

fn to_bytes(value: u64, endian: Endianness) -> [u8; 8] {
    match endian {
        Endianness::Little => value.to_le_bytes(),
        Endianness::Big => value.to_be_bytes(),
    }
}
