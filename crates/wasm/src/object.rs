//! LLVM's relocatable objects: sections, symbols, and relocations.

use crate::cursor::damaged;
use crate::relocation::{Relocation, relocations};
use crate::{Cursor, MAGIC};
use std::ops::Range;
use support::{Error, Result};

/// Numbers of sections.
pub(crate) mod id {
    pub(crate) const TYPE: u8 = 1;
    pub(crate) const IMPORT: u8 = 2;
    pub(crate) const FUNCTION: u8 = 3;
    pub(crate) const TABLE: u8 = 4;
    pub(crate) const MEMORY: u8 = 5;
    pub(crate) const GLOBAL: u8 = 6;
    pub(crate) const EXPORT: u8 = 7;
    pub(crate) const ELEMENT: u8 = 9;
    pub(crate) const CODE: u8 = 10;
    pub(crate) const DATA: u8 = 11;
    pub(crate) const DATA_COUNT: u8 = 12;
}

/// Flag of symbols that other objects do not see.
const LOCAL: u32 = 0x2;
/// Flag of symbols that another object defines.
const UNDEFINED: u32 = 0x10;
/// Flag of undefined symbols whose name is not that of the import.
const EXPLICIT_NAME: u32 = 0x40;

/// A section of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    pub(crate) id: u8,
    /// Contents without the header.
    pub(crate) bytes: &'a [u8],
    /// Position of the contents in the file.
    pub(crate) start: usize,
}

/// Returns the sections of an object or module, in order.
pub(crate) fn sections(file: &[u8]) -> Result<Vec<Section<'_>>> {
    if !file.starts_with(&MAGIC) {
        return Err(Error::invalid("not a WebAssembly file"));
    }
    let mut cursor = Cursor::new(file);
    cursor.position = MAGIC.len();
    let mut sections = Vec::new();
    while !cursor.is_empty() {
        let id = cursor.byte()?;
        let size = cursor.size()?;
        let start = cursor.position;
        sections.push(Section { id, bytes: cursor.take(size)?, start });
    }
    Ok(sections)
}

/// Meaning of an index or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolKind {
    /// Function with an index in the object.
    Function(u32),
    /// Bytes of a segment; `None` if undefined.
    Data(Option<Place>),
    /// Global with an index in the object.
    Global(u32),
    /// Table with an index in the object.
    Table,
    /// Anything else, which only debug information refers to.
    Other,
}

/// Bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: usize,
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: SymbolKind,
    pub(crate) is_undefined: bool,
    is_local: bool,
}

/// A data segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment<'a> {
    /// Contents.
    pub(crate) bytes: &'a [u8],
    /// Position of the contents in the data section.
    pub(crate) start: usize,
    /// Base-2 logarithm of the alignment.
    pub(crate) alignment: u32,
}

/// An import of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportedFunction<'a> {
    pub(crate) module: &'a str,
    pub(crate) name: &'a str,
    pub(crate) ty: u32,
}

/// A function's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSize {
    /// Symbol.
    pub name: String,
    /// Size of the code in bytes.
    pub bytes: u64,
}

/// A parsed object.
#[derive(Clone, Debug, Default)]
pub struct WasmObject<'a> {
    /// Contents of the section of types.
    pub(crate) types: &'a [u8],
    pub(crate) imports: Vec<ImportedFunction<'a>>,
    /// Contents of the section of functions: their types.
    pub(crate) functions: &'a [u8],
    /// Bodies of functions, without their sizes: position in the section, and bytes.
    pub(crate) bodies: Vec<(usize, &'a [u8])>,
    pub(crate) segments: Vec<Segment<'a>>,
    pub(crate) symbols: Vec<Symbol<'a>>,
    pub(crate) code_relocations: Vec<Relocation>,
    pub(crate) data_relocations: Vec<Relocation>,
    /// Position of the data section's contents in the file.
    data_start: usize,
}

impl<'a> WasmObject<'a> {
    /// Parses an object.
    ///
    /// Fails for damaged files, and for sections that LLVM does not write for our code.
    pub fn parse(file: &'a [u8]) -> Result<Self> {
        let mut object = Self::default();
        let sections = sections(file)?;
        for section in &sections {
            let mut cursor = Cursor::new(section.bytes);
            match section.id {
                id::TYPE => object.types = section.bytes,
                id::IMPORT => object.read_imports(&mut cursor)?,
                id::FUNCTION => object.functions = section.bytes,
                id::CODE => {
                    for _ in 0..cursor.u32()? {
                        let size = cursor.size()?;
                        object.bodies.push((cursor.position, cursor.take(size)?));
                    }
                }
                id::DATA => {
                    object.data_start = section.start;
                    object.read_segments(&mut cursor)?;
                }
                0 => match cursor.name()? {
                    "linking" => object.read_linking(&mut cursor)?,
                    name if name.starts_with("reloc.") => {
                        let of = cursor.size()?;
                        let target = sections.get(of).ok_or_else(|| damaged("a relocation of no section"))?;
                        match target.id {
                            id::CODE => object.code_relocations = relocations(&mut cursor)?,
                            id::DATA => object.data_relocations = relocations(&mut cursor)?,
                            _ => {}
                        }
                    }
                    _ => {}
                },
                // Elements follow from the relocations.
                id::ELEMENT | id::DATA_COUNT => {}
                other => return Err(damaged(&format!("unexpected section {other}"))),
            }
        }
        Ok(object)
    }

    fn read_imports(&mut self, cursor: &mut Cursor<'a>) -> Result<()> {
        for _ in 0..cursor.u32()? {
            let (module, name) = (cursor.name()?, cursor.name()?);
            match cursor.byte()? {
                0 => self.imports.push(ImportedFunction { module, name, ty: cursor.u32()? }),
                1 => {
                    cursor.byte()?;
                    limits(cursor)?;
                }
                2 => limits(cursor)?,
                3 if name == "__stack_pointer" => {
                    cursor.take(2)?;
                }
                _ => return Err(damaged(&format!("unexpected import '{name}'"))),
            }
        }
        Ok(())
    }

    fn read_segments(&mut self, cursor: &mut Cursor<'a>) -> Result<()> {
        for _ in 0..cursor.u32()? {
            // Active segments of memory 0, as all objects of LLVM have.
            if cursor.u32()? != 0 || cursor.byte()? != 0x41 {
                return Err(damaged("unexpected kind of data segment"));
            }
            cursor.i64()?;
            if cursor.byte()? != 0x0b {
                return Err(damaged("unexpected address of a data segment"));
            }
            let size = cursor.size()?;
            let start = cursor.position;
            self.segments.push(Segment { bytes: cursor.take(size)?, start, alignment: 0 });
        }
        Ok(())
    }

    fn read_linking(&mut self, cursor: &mut Cursor<'a>) -> Result<()> {
        const SEGMENTS: u8 = 5;
        const SYMBOLS: u8 = 8;
        let version = cursor.u32()?;
        if version != 2 {
            return Err(damaged(&format!("expected version 2 of its linking section, got {version}")));
        }
        while !cursor.is_empty() {
            let kind = cursor.byte()?;
            let size = cursor.size()?;
            let mut part = Cursor::new(cursor.take(size)?);
            match kind {
                SEGMENTS => {
                    let count = part.size()?;
                    for index in 0..count {
                        part.name()?;
                        let alignment = part.u32()?;
                        part.u32()?;
                        let segment =
                            self.segments.get_mut(index).ok_or_else(|| damaged("no such segment"))?;
                        segment.alignment = alignment;
                        if alignment > 16 {
                            return Err(damaged("a segment's alignment"));
                        }
                    }
                }
                SYMBOLS => {
                    for _ in 0..part.u32()? {
                        let symbol = self.read_symbol(&mut part)?;
                        self.symbols.push(symbol);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_symbol(&self, part: &mut Cursor<'a>) -> Result<Symbol<'a>> {
        let (kind, flags) = (part.byte()?, part.u32()?);
        let is_undefined = flags & UNDEFINED != 0;
        let has_name = !is_undefined || flags & EXPLICIT_NAME != 0;
        let mut name = "";
        let kind = match kind {
            // A function, a global, or a table.
            0 | 2 | 5 => {
                let index = part.u32()?;
                if has_name {
                    name = part.name()?;
                } else if kind == 0 {
                    let import = self.imports.get(index as usize);
                    name = import.ok_or_else(|| damaged("a symbol of no import"))?.name;
                }
                match kind {
                    0 => SymbolKind::Function(index),
                    2 => SymbolKind::Global(index),
                    _ => SymbolKind::Table,
                }
            }
            1 => {
                name = part.name()?;
                let place = if is_undefined {
                    None
                } else {
                    let (segment, offset, size) = (part.size()?, part.u32()?, part.u32()?);
                    let available = self.segments.get(segment).map_or(0, |s| s.bytes.len() as u64);
                    if u64::from(offset) + u64::from(size) > available {
                        return Err(damaged(&format!("symbol '{name}' is outside of its segment")));
                    }
                    Some(Place { segment, offset, size })
                };
                SymbolKind::Data(place)
            }
            3 => {
                part.u32()?;
                SymbolKind::Other
            }
            _ => return Err(damaged("unexpected kind of symbol")),
        };
        Ok(Symbol { name, kind, is_undefined, is_local: flags & LOCAL != 0 })
    }

    /// Returns the symbols that the object uses and does not define, without those that every
    /// linker defines.
    pub fn undefined_symbols(&self) -> impl Iterator<Item = &'a str> + '_ {
        let is_missing = |symbol: &&Symbol<'_>| {
            symbol.is_undefined && matches!(symbol.kind, SymbolKind::Function(_) | SymbolKind::Data(_))
        };
        self.symbols.iter().filter(is_missing).map(|symbol| symbol.name)
    }

    /// Returns the symbols that the object defines for others.
    pub fn defined_symbols(&self) -> impl Iterator<Item = &'a str> + '_ {
        let is_defined = |symbol: &&Symbol<'_>| {
            let has_place = matches!(symbol.kind, SymbolKind::Function(_) | SymbolKind::Data(_));
            has_place && !symbol.is_undefined && !symbol.is_local
        };
        self.symbols.iter().filter(is_defined).map(|symbol| symbol.name)
    }

    /// Returns the range in the file of the bytes that a symbol names.
    pub fn data_range(&self, name: &str) -> Option<Range<usize>> {
        let place = self.symbols.iter().find_map(|symbol| match symbol.kind {
            SymbolKind::Data(place) if symbol.name == name => place,
            _ => None,
        })?;
        let start = self.data_start + self.segments.get(place.segment)?.start + place.offset as usize;
        Some(start..start + place.size as usize)
    }

    /// Returns the sizes of the functions that the object defines, in order.
    pub fn function_sizes(&self) -> Vec<FunctionSize> {
        let size = |symbol: &Symbol<'_>| match symbol.kind {
            SymbolKind::Function(index) if !symbol.is_undefined => {
                let body = (index as usize).checked_sub(self.imports.len())?;
                let bytes = self.bodies.get(body)?.1.len() as u64;
                Some((index, FunctionSize { name: symbol.name.to_owned(), bytes }))
            }
            _ => None,
        };
        let mut sizes: Vec<_> = self.symbols.iter().filter_map(size).collect();
        sizes.sort_by_key(|&(index, _)| index);
        sizes.into_iter().map(|(_, size)| size).collect()
    }
}

fn limits(cursor: &mut Cursor<'_>) -> Result<()> {
    let flags = cursor.byte()?;
    cursor.u32()?;
    if flags & 1 != 0 {
        cursor.u32()?;
    }
    Ok(())
}
