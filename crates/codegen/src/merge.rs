//! Merges the ELF objects of one program, as `ld -r` does. References between units become local
//! symbols.

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::write::{Object as Writer, Relocation, SectionId, Symbol, SymbolId, SymbolSection};
use object::{
    BinaryFormat, Endianness, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SectionFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope, elf,
};
use support::{Error, Result};

type Reader<'d> = ElfFile64<'d, Endianness>;

/// Merges several objects for one target. Sections with the same name become one. Sections and
/// their contents keep the order of the objects. Symbols that are visible outside of the program
/// remain visible; all others become local.
pub(crate) fn merge(objects: &[Vec<u8>]) -> Result<Vec<u8>> {
    let readers = objects.iter().map(|bytes| {
        Reader::parse(&bytes[..]).map_err(|e| Error::internal(format!("cannot parse LLVM's object: {e}")))
    });
    let readers: Vec<Reader<'_>> = readers.collect::<Result<_>>()?;
    let first = readers.first().ok_or_else(|| Error::internal("no objects to merge"))?;
    let mut writer = Writer::new(BinaryFormat::Elf, first.architecture(), first.endianness());
    writer.flags = first.flags();
    let mut merged = Merged { writer, sections: BTreeMap::new(), symbols: BTreeMap::new() };
    let mut parts = Vec::with_capacity(readers.len());
    for reader in &readers {
        parts.push(merged.add_sections(reader)?);
    }
    let mut symbols = Vec::with_capacity(readers.len());
    for (reader, places) in readers.iter().zip(&parts) {
        symbols.push(merged.add_definitions(reader, places)?);
    }
    for (reader, symbols) in readers.iter().zip(&mut symbols) {
        merged.add_references(reader, symbols)?;
    }
    for ((reader, places), symbols) in readers.iter().zip(&parts).zip(&symbols) {
        merged.add_relocations(reader, places, symbols)?;
    }
    merged.writer.write().map_err(|e| Error::internal(format!("cannot write the merged object: {e}")))
}

/// Location of an object's sections in the merged object, by section number.
type Places = BTreeMap<usize, (SectionId, u64)>;

/// An object's symbols in the merged object, by symbol number, and the offset to add to addresses
/// relative to them.
type Symbols = BTreeMap<usize, (SymbolId, u64)>;

struct Merged<'a> {
    writer: Writer<'a>,
    sections: BTreeMap<Vec<u8>, SectionId>,
    /// Symbols that objects share, by name.
    symbols: BTreeMap<Vec<u8>, SymbolId>,
}

/// Upper bound of the alignment of a section: that of the largest pages that Linux has by default.
const MAX_ALIGNMENT: u64 = 1 << 16;

/// Upper bound of the size of a section that has no contents in the object.
const MAX_SIZE: u64 = 1 << 47;

/// Returns the position of an offset within an object's part of a section.
fn position(place: u64, offset: u64) -> Result<u64> {
    let position = place.checked_add(offset).filter(|&position| position <= MAX_SIZE);
    position.ok_or_else(|| Error::internal(format!("offset {offset:#x} in LLVM's object is too large")))
}

fn broken(e: object::Error) -> Error {
    Error::internal(format!("cannot parse LLVM's object: {e}"))
}

impl Merged<'_> {
    fn add_sections(&mut self, reader: &Reader<'_>) -> Result<Places> {
        let mut places = Places::new();
        for section in reader.sections() {
            let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else { continue };
            if matches!(sh_type, elf::SHT_SYMTAB | elf::SHT_STRTAB | elf::SHT_RELA | elf::SHT_NULL) {
                continue;
            }
            let name = section.name_bytes().map_err(broken)?.to_vec();
            let known = self.sections.get(&name).copied();
            let is_attributes = known.is_some() && !sh_flags.contains(elf::SHF_ALLOC);
            // Attributes of the whole file, such as the instruction set, are the same in all
            // objects.
            if is_attributes {
                continue;
            }
            let kind =
                if sh_type == elf::SHT_NOBITS { SectionKind::UninitializedData } else { section.kind() };
            let id = known.unwrap_or_else(|| {
                let id = self.writer.add_section(Vec::new(), name.clone(), kind);
                // Entry sizes are not kept, so the linker must not merge entries within a section.
                let sh_flags = elf::SectionFlags(sh_flags.0 & !(elf::SHF_MERGE | elf::SHF_STRINGS).0);
                self.writer.section_mut(id).flags = SectionFlags::Elf { sh_type, sh_flags };
                self.sections.insert(name, id);
                id
            });
            let align = section.align().max(1);
            if !align.is_power_of_two() || align > MAX_ALIGNMENT || section.size() > MAX_SIZE {
                return Err(Error::internal(format!(
                    "a section of LLVM's object has {} bytes aligned to {align}",
                    section.size()
                )));
            }
            let is_empty = sh_type == elf::SHT_NOBITS;
            if self.writer.section_mut(id).is_bss() != is_empty {
                return Err(Error::internal("sections of one name in LLVM's objects differ in type"));
            }
            let place = if is_empty {
                self.writer.append_section_bss(id, section.size(), align)
            } else {
                self.writer.append_section_data(id, section.data().map_err(broken)?, align)
            };
            places.insert(section.index().0, (id, place));
        }
        Ok(places)
    }

    /// Adds the symbols that an object defines.
    fn add_definitions(&mut self, reader: &Reader<'_>, places: &Places) -> Result<Symbols> {
        let mut symbols = Symbols::new();
        for symbol in reader.symbols().filter(|s| !s.is_undefined() && s.kind() != SymbolKind::File) {
            let Some(&(section, place)) = symbol.section_index().and_then(|index| places.get(&index.0))
            else {
                continue;
            };
            if symbol.kind() == SymbolKind::Section {
                let id = self.writer.section_symbol(section);
                symbols.insert(symbol.index().0, (id, place));
                continue;
            }
            // Labels of constants need no symbols of their own.
            let is_label = symbol.is_local() && symbol.name_bytes().is_ok_and(|name| name.starts_with(b".L"));
            let is_in_code = symbol
                .section_index()
                .and_then(|index| reader.section_by_index(index).ok())
                .is_none_or(|section| section.kind() == SectionKind::Text);
            if is_label && !is_in_code {
                symbols.insert(
                    symbol.index().0,
                    (self.writer.section_symbol(section), position(place, symbol.address())?),
                );
                continue;
            }
            let SymbolFlags::Elf { st_info, st_other } = symbol.flags() else { continue };
            let is_visible = symbol.is_global() && symbol.scope() == SymbolScope::Dynamic;
            let (scope, st_info) = if is_visible {
                (SymbolScope::Dynamic, st_info)
            } else {
                (SymbolScope::Compilation, elf::STB_LOCAL | st_info.st_type())
            };
            // Local symbols need no visibility. The other bits tell linkers about the calling
            // convention.
            let st_other = if is_visible { st_other } else { st_other.with_visibility(elf::STV_DEFAULT) };
            let id = self.writer.add_symbol(Symbol {
                name: symbol.name_bytes().map_err(broken)?.to_vec(),
                value: position(place, symbol.address())?,
                size: symbol.size(),
                kind: symbol.kind(),
                scope,
                weak: false,
                section: SymbolSection::Section(section),
                flags: SymbolFlags::Elf { st_info, st_other },
            });
            symbols.insert(symbol.index().0, (id, 0));
            if symbol.is_global() {
                self.symbols.insert(symbol.name_bytes().map_err(broken)?.to_vec(), id);
            }
        }
        Ok(symbols)
    }

    /// Adds the symbols that an object refers to: definitions in other objects, or references of
    /// the merged object.
    fn add_references(&mut self, reader: &Reader<'_>, symbols: &mut Symbols) -> Result<()> {
        for symbol in reader.symbols().filter(ObjectSymbol::is_undefined) {
            let name = symbol.name_bytes().map_err(broken)?;
            if symbol.kind() == SymbolKind::Section {
                return Err(Error::internal("LLVM's object refers to a section of no object"));
            }
            let id = match self.symbols.get(name) {
                Some(&id) => id,
                None => {
                    let id = self.writer.add_symbol(Symbol {
                        name: name.to_vec(),
                        value: 0,
                        size: 0,
                        kind: symbol.kind(),
                        scope: SymbolScope::Unknown,
                        weak: false,
                        section: SymbolSection::Undefined,
                        flags: SymbolFlags::None,
                    });
                    self.symbols.insert(name.to_vec(), id);
                    id
                }
            };
            symbols.insert(symbol.index().0, (id, 0));
        }
        Ok(())
    }

    fn add_relocations(&mut self, reader: &Reader<'_>, places: &Places, symbols: &Symbols) -> Result<()> {
        for section in reader.sections() {
            let Some(&(id, place)) = places.get(&section.index().0) else { continue };
            for (offset, relocation) in section.relocations() {
                let RelocationFlags::Elf { r_type } = relocation.flags() else {
                    return Err(Error::internal("a relocation has an unexpected format"));
                };
                let target = match relocation.target() {
                    RelocationTarget::Symbol(index) => symbols.get(&index.0),
                    _ => None,
                };
                let &(symbol, added) =
                    target.ok_or_else(|| Error::internal("a relocation refers to an unknown symbol"))?;
                let relocation = Relocation {
                    offset: position(place, offset)?,
                    symbol,
                    addend: relocation.addend().wrapping_add_unsigned(added),
                    flags: RelocationFlags::Elf { r_type },
                };
                self.writer
                    .add_relocation(id, relocation)
                    .map_err(|e| Error::internal(format!("cannot write a relocation: {e}")))?;
            }
        }
        Ok(())
    }
}
