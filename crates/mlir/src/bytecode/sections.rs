//! Splits a file into sections, and reads the sections that are plain lists: strings, dialects,
//! sizes of attributes and types.

use super::cursor::Cursor;
use super::{BYTECODE_MAGIC, damaged};
use support::{Error, Result};

/// Newest supported version of the format.
const NEWEST: u64 = 6;

/// Versions of the format that introduced a feature.
pub(super) mod since {
    pub(in super::super) const DIALECT_VERSIONS: u64 = 1;
    pub(in super::super) const ISOLATED_SECTIONS: u64 = 2;
    pub(in super::super) const USE_LISTS: u64 = 3;
    pub(in super::super) const ELIDED_LOCATIONS: u64 = 4;
    pub(in super::super) const PROPERTIES: u64 = 5;
}

/// Numbers that identify sections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Strings = 0,
    Dialects = 1,
    Entries = 2,
    EntrySizes = 3,
    Operations = 4,
    Properties = 8,
}

/// Number of section kinds.
const KINDS: usize = 9;

/// Number of the section that holds operations.
pub(super) const OPERATIONS: u8 = Kind::Operations as u8;

/// An attribute or type as stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    /// Name of its dialect.
    pub(super) dialect: &'a str,
    /// Its bytes.
    pub(super) data: &'a [u8],
    /// True if the bytes are in the dialect's binary encoding; otherwise they are text.
    pub(super) is_encoded: bool,
}

/// The name of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperationName<'a> {
    pub(super) dialect: &'a str,
    pub(super) name: &'a str,
    /// True if the writer knew the operation, so that its properties have a native encoding.
    pub(super) is_registered: bool,
}

/// Position of a string in its section. Files can contain any number; only the lookup checks it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringIndex(pub(super) usize);

/// Position of an attribute in its section.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttributeIndex(pub(super) usize);

/// Position of a type in its section.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeIndex(pub(super) usize);

/// A file split into parts, before any reference between them is resolved.
pub(super) struct File<'a> {
    pub(super) version: u64,
    /// The producer of the file, such as `StableHLO_v1.15.0`.
    pub(super) producer: &'a str,
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) operation_names: Vec<OperationName<'a>>,
    pub(super) attributes: Vec<Entry<'a>>,
    pub(super) types: Vec<Entry<'a>>,
    /// Properties of operations.
    pub(super) properties: Vec<&'a [u8]>,
    /// Top-level operations.
    pub(super) operations: Cursor<'a>,
}

impl<'a> File<'a> {
    pub(super) fn split(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        if cursor.bytes(4).ok() != Some(&BYTECODE_MAGIC[..]) {
            return Err(Error::invalid("not MLIR bytecode: the file does not begin with ML\\xefR"));
        }
        let version = cursor.number()?;
        if version > NEWEST {
            return Err(Error::unsupported(format!(
                "MLIR bytecode version {version} is not supported; the newest is {NEWEST}: export the program for an older \
                 version of StableHLO"
            )));
        }
        let producer = std::str::from_utf8(cursor.terminated()?).unwrap_or("");
        let mut sections: [Option<Cursor<'a>>; KINDS] = [None; KINDS];
        while !cursor.is_empty() {
            let (kind, data) = section(&mut cursor)?;
            let place = sections.get_mut(usize::from(kind));
            let place = place.ok_or_else(|| damaged(format_args!("a section of kind {kind}")))?;
            if place.replace(data).is_some() {
                return Err(damaged(format_args!("two sections of kind {kind}")));
            }
        }
        let need = |kind: Kind| {
            let section = sections[kind as usize];
            section.ok_or_else(|| damaged(format_args!("missing section {}", kind as u8)))
        };
        let strings = strings(need(Kind::Strings)?.rest())?;
        let (dialects, operation_names) = dialects(need(Kind::Dialects)?, version, &strings)?;
        let (attributes, types) = entries(need(Kind::EntrySizes)?, need(Kind::Entries)?, &dialects)?;
        Ok(Self {
            version,
            producer,
            operations: need(Kind::Operations)?,
            properties: properties(sections[Kind::Properties as usize])?,
            strings,
            operation_names,
            attributes,
            types,
        })
    }

    /// Returns a string of the file.
    pub(super) fn string(&self, index: StringIndex) -> Result<&'a [u8]> {
        string(&self.strings, index)
    }

    /// Returns an attribute as stored.
    pub(super) fn attribute(&self, index: AttributeIndex) -> Result<Entry<'a>> {
        let entry = self.attributes.get(index.0).copied();
        entry.ok_or_else(|| damaged(format_args!("attribute {} does not exist", index.0)))
    }

    /// Returns a type as stored.
    pub(super) fn type_at(&self, index: TypeIndex) -> Result<Entry<'a>> {
        let entry = self.types.get(index.0).copied();
        entry.ok_or_else(|| damaged(format_args!("type {} does not exist", index.0)))
    }
}

fn string<'a>(strings: &[&'a [u8]], index: StringIndex) -> Result<&'a [u8]> {
    strings.get(index.0).copied().ok_or_else(|| damaged(format_args!("string {} does not exist", index.0)))
}

/// Looks up a name among the strings.
fn name<'a>(strings: &[&'a [u8]], index: StringIndex) -> Result<&'a str> {
    std::str::from_utf8(string(strings, index)?).map_err(|_| damaged("a name is not UTF-8"))
}

/// Reads a section's number and takes its bytes. Aligned sections are preceded by padding.
pub(super) fn section<'a>(cursor: &mut Cursor<'a>) -> Result<(u8, Cursor<'a>)> {
    let kind = cursor.byte()?;
    let size = cursor.index()?;
    if kind & 0x80 != 0 {
        let alignment = cursor.index()?;
        if !alignment.is_power_of_two() {
            return Err(damaged(format_args!("alignment {alignment} is not a power of two")));
        }
        cursor.align(alignment)?;
    }
    Ok((kind & 0x7f, cursor.part(size)?))
}

/// Reads strings. They fill the end of their section in reverse order; each ends with a zero.
fn strings(data: &[u8]) -> Result<Vec<&[u8]>> {
    let mut cursor = Cursor::new(data);
    let count = cursor.count()?;
    let mut end = data.len();
    let mut strings = Vec::new();
    for _ in 0..count {
        let size = cursor.index()?;
        let start = end.checked_sub(size).filter(|_| size > 0);
        let start = start.ok_or_else(|| damaged("strings exceed their section"))?;
        strings.push(&data[start..end - 1]);
        end = start;
    }
    if cursor.remaining() != data.len() - end {
        return Err(damaged("strings do not fill their section"));
    }
    strings.reverse();
    Ok(strings)
}

/// Reads the names of dialects and of operations.
fn dialects<'a>(
    mut cursor: Cursor<'a>,
    version: u64,
    strings: &[&'a [u8]],
) -> Result<(Vec<&'a str>, Vec<OperationName<'a>>)> {
    let mut dialects = Vec::new();
    for _ in 0..cursor.count()? {
        if version < since::DIALECT_VERSIONS {
            dialects.push(name(strings, StringIndex(cursor.index()?))?);
            continue;
        }
        let (index, has_version) = cursor.number_with_flag()?;
        dialects.push(name(strings, StringIndex(index as usize))?);
        if has_version {
            section(&mut cursor)?;
        }
    }
    if version >= since::ELIDED_LOCATIONS {
        cursor.count()?;
    }
    let mut operations = Vec::new();
    while !cursor.is_empty() {
        let (dialect, count) = group(&mut cursor, &dialects)?;
        for _ in 0..count {
            let (index, is_registered) = if version >= since::PROPERTIES {
                cursor.number_with_flag()?
            } else {
                (cursor.number()?, true)
            };
            let name = name(strings, StringIndex(index as usize))?;
            operations.push(OperationName { dialect, name, is_registered });
        }
    }
    Ok((dialects, operations))
}

/// Reads a dialect and the number of its entries that follow.
fn group<'a>(cursor: &mut Cursor<'_>, dialects: &[&'a str]) -> Result<(&'a str, usize)> {
    let index = cursor.index()?;
    let dialect = dialects.get(index).copied();
    Ok((dialect.ok_or_else(|| damaged(format_args!("dialect {index} does not exist")))?, cursor.count()?))
}

/// Reads the attributes and the types. Their bytes are contiguous in `data`; `cursor` holds their
/// lengths.
fn entries<'a>(
    mut cursor: Cursor<'a>,
    mut data: Cursor<'a>,
    dialects: &[&'a str],
) -> Result<(Vec<Entry<'a>>, Vec<Entry<'a>>)> {
    let (attributes, types) = (cursor.index()?, cursor.index()?);
    let mut read = |expected: usize| {
        let mut list = Vec::new();
        while list.len() < expected {
            let (dialect, count) = group(&mut cursor, dialects)?;
            for _ in 0..count {
                let (size, is_encoded) = cursor.number_with_flag()?;
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                list.push(Entry { dialect, data: data.bytes(size)?, is_encoded });
            }
        }
        if list.len() == expected { Ok(list) } else { Err(damaged("more attributes or types than declared")) }
    };
    Ok((read(attributes)?, read(types)?))
}

/// Reads the properties of operations, each preceded by its length.
fn properties<'a>(cursor: Option<Cursor<'a>>) -> Result<Vec<&'a [u8]>> {
    let Some(mut cursor) = cursor else { return Ok(Vec::new()) };
    (0..cursor.count()?).map(|_| cursor.blob()).collect()
}
