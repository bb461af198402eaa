//! Static archives: object files in one file, with an index of the symbols that they define.
//!
//! All three formats begin with `!<arch>`, and each member follows a header of 60 bytes. They
//! differ in the index and in the encoding of long names. GNU's format (ELF) has one index,
//! Microsoft's (COFF) adds a sorted copy of it, and BSD's (Mach-O) has its own. Times, owners, and
//! modes are constant, so equal members yield equal archives.

use object::{BinaryFormat, Object as _, ObjectSymbol as _};
use std::collections::BTreeMap;
use support::{Error, Result};

const MAGIC: &[u8] = b"!<arch>\n";

/// Size of a member's header in bytes.
const HEAD: usize = 60;

/// An archive member: a file name and an object file.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// File name without a directory.
    pub name: &'a str,
    /// Contents of the object file.
    pub object: &'a [u8],
}

/// Returns a static archive of object files, which must all have the same format. The archive is in
/// the format that linkers expect for these objects.
///
/// Fails if a member is not an ELF, COFF, Mach-O, or WebAssembly object file, and for archives
/// larger than 4 GiB, the upper bound of the indices of all three formats.
pub fn archive(members: &[Member<'_>]) -> Result<Vec<u8>> {
    let mut symbols = Vec::new();
    let mut formats = Vec::new();
    for member in members {
        let (format, names) = defined_symbols(member)?;
        formats.push(format);
        symbols.push(names);
    }
    formats.dedup();
    match formats.as_slice() {
        [BinaryFormat::Elf] => gnu(members, &symbols, false),
        [BinaryFormat::Coff] => gnu(members, &symbols, true),
        [BinaryFormat::MachO] => bsd(members, &symbols),
        [BinaryFormat::Wasm] => gnu(members, &symbols, false),
        formats => Err(Error::internal(format!(
            "expected archive members of one format (ELF, COFF, Mach-O, or WebAssembly), got {formats:?}"
        ))),
    }
}

/// Returns the format of an object file and the names of its global definitions, in order.
fn defined_symbols(member: &Member<'_>) -> Result<(BinaryFormat, Vec<Vec<u8>>)> {
    let invalid =
        |e| Error::internal(format!("archive member '{}' is not a valid object file: {e}", member.name));
    if member.object.starts_with(&wasm::MAGIC) {
        let object = wasm::WasmObject::parse(member.object)?;
        return Ok((BinaryFormat::Wasm, object.defined_symbols().map(|name| name.into()).collect()));
    }
    let file = object::File::parse(member.object).map_err(invalid)?;
    let mut names = Vec::new();
    for symbol in file.symbols() {
        if symbol.is_global() && symbol.is_definition() {
            names.push(symbol.name_bytes().map_err(invalid)?.to_vec());
        }
    }
    Ok((file.format(), names))
}

/// Writes GNU's format, or Microsoft's, which has a second index.
fn gnu(members: &[Member<'_>], symbols: &[Vec<Vec<u8>>], coff: bool) -> Result<Vec<u8>> {
    let mut long_names = Vec::new();
    let mut names = Vec::new();
    for member in members {
        // A name and its terminating slash must fit into 16 bytes. Longer names go to the member
        // `//`.
        if member.name.len() < 16 {
            names.push(format!("{}/", member.name));
        } else {
            names.push(format!("/{}", long_names.len()));
            long_names.extend_from_slice(member.name.as_bytes());
            long_names.extend_from_slice(if coff { b"\0" } else { b"/\n" });
        }
    }
    let count: usize = symbols.iter().map(Vec::len).sum();
    let text: usize = symbols.iter().flatten().map(|name| name.len() + 1).sum();
    let first_size = 4 + 4 * count + text;
    let second_size = 4 + 4 * members.len() + 4 + 2 * count + text;
    let mut position = MAGIC.len() + HEAD + even(first_size);
    if coff {
        position += HEAD + even(second_size);
    }
    if !long_names.is_empty() {
        position += HEAD + even(long_names.len());
    }
    let offsets = offsets(members, position, |member| member.object.len())?;

    let mut out = MAGIC.to_vec();
    let mut index = be(count)?.to_vec();
    for (offset, symbols) in offsets.iter().zip(symbols) {
        symbols.iter().for_each(|_| index.extend_from_slice(&offset.to_be_bytes()));
    }
    symbols.iter().flatten().for_each(|name| push_name(&mut index, name));
    push_member(&mut out, "/", &index);
    if coff {
        push_member(&mut out, "/", &second_index(&offsets, symbols, count)?);
    }
    if !long_names.is_empty() {
        push_member(&mut out, "//", &long_names);
    }
    for (member, name) in members.iter().zip(&names) {
        push_member(&mut out, name, member.object);
    }
    Ok(out)
}

/// Microsoft's index: the offsets of the members, then the one-based member number of each symbol,
/// sorted by symbol name.
fn second_index(offsets: &[u32], symbols: &[Vec<Vec<u8>>], count: usize) -> Result<Vec<u8>> {
    let mut sorted = BTreeMap::new();
    for (number, symbols) in symbols.iter().enumerate() {
        let number = u16::try_from(number + 1).map_err(|_| {
            Error::unsupported("the archive would have more than 65535 members, the limit of COFF archives")
        })?;
        for symbol in symbols {
            *sorted.entry((symbol, number)).or_insert(0usize) += 1;
        }
    }
    let mut index = le(offsets.len())?.to_vec();
    offsets.iter().for_each(|offset| index.extend_from_slice(&offset.to_le_bytes()));
    index.extend_from_slice(&le(count)?);
    for ((_, number), times) in &sorted {
        (0..*times).for_each(|_| index.extend_from_slice(&number.to_le_bytes()));
    }
    for ((name, _), times) in &sorted {
        (0..*times).for_each(|_| push_name(&mut index, name));
    }
    Ok(index)
}

/// Writes BSD's format as linkers for Mach-O read it: names precede contents, and everything is
/// aligned to 8 bytes.
fn bsd(members: &[Member<'_>], symbols: &[Vec<Vec<u8>>]) -> Result<Vec<u8>> {
    const INDEX: &str = "__.SYMDEF";
    let count: usize = symbols.iter().map(Vec::len).sum();
    let text: usize = symbols.iter().flatten().map(|name| name.len() + 1).sum();
    let text = text.next_multiple_of(8);
    let index_size = 4 + 8 * count + 4 + text;
    let long = |name: &str, at: usize| (at + HEAD + name.len() + 1).next_multiple_of(8) - at - HEAD;
    let start = MAGIC.len() + HEAD + long(INDEX, MAGIC.len()) + index_size.next_multiple_of(8);
    let mut offsets = Vec::new();
    let mut position = start;
    for member in members {
        offsets.push(le_number(position)?);
        position += HEAD + long(member.name, position) + member.object.len().next_multiple_of(8);
    }
    le_number(position)?;

    let mut index = le(8 * count)?.to_vec();
    let mut name_offset = 0;
    for (offset, symbols) in offsets.iter().zip(symbols) {
        for name in symbols {
            index.extend_from_slice(&le(name_offset)?);
            index.extend_from_slice(&offset.to_le_bytes());
            name_offset += name.len() + 1;
        }
    }
    index.extend_from_slice(&le(text)?);
    let names = index.len();
    symbols.iter().flatten().for_each(|name| push_name(&mut index, name));
    index.resize(names + text, 0);

    let mut out = MAGIC.to_vec();
    let mut push = |name: &str, contents: &[u8]| {
        let length = long(name, out.len());
        let size = length + contents.len().next_multiple_of(8);
        push_head(&mut out, &format!("#1/{length}"), size);
        let begin = out.len();
        out.extend_from_slice(name.as_bytes());
        out.resize(begin + length, 0);
        out.extend_from_slice(contents);
        out.resize(begin + size, 0);
    };
    push(INDEX, &index);
    for member in members {
        push(member.name, member.object);
    }
    Ok(out)
}

/// Returns the offset of each member's header.
fn offsets(members: &[Member<'_>], first: usize, size: impl Fn(&Member<'_>) -> usize) -> Result<Vec<u32>> {
    let mut position = first;
    let mut offsets = Vec::new();
    for member in members {
        offsets.push(le_number(position)?);
        position += HEAD + even(size(member));
    }
    le_number(position)?;
    Ok(offsets)
}

fn push_member(out: &mut Vec<u8>, name: &str, contents: &[u8]) {
    push_head(out, name, contents.len());
    out.extend_from_slice(contents);
    if contents.len() % 2 == 1 {
        out.push(b'\n');
    }
}

/// Appends a member's header: name, time, owner, group, mode, and size, each padded with spaces.
fn push_head(out: &mut Vec<u8>, name: &str, size: usize) {
    let head = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
    debug_assert_eq!(head.len(), HEAD);
    out.extend_from_slice(head.as_bytes());
}

fn push_name(out: &mut Vec<u8>, name: &[u8]) {
    out.extend_from_slice(name);
    out.push(0);
}

fn even(size: usize) -> usize {
    size.next_multiple_of(2)
}

fn le_number(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| {
        Error::unsupported(
            "the archive would be larger than 4 GiB, the limit of its index: link the object directly, or keep the constants in a \
             file of their own (--constants=file)",
        )
    })
}

fn le(number: usize) -> Result<[u8; 4]> {
    le_number(number).map(u32::to_le_bytes)
}

fn be(number: usize) -> Result<[u8; 4]> {
    le_number(number).map(u32::to_be_bytes)
}
