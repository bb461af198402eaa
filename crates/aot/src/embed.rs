//! Embeds the metadata record in the object that has the code, as a section that linkers omit.
//!
//! The object is not rewritten. The record is appended and the section table grows by one entry.
//! This works for anything that the code generator emits, and does not copy the constants.

use crate::object_file::{MACH_O_SECTION, SECTION, SEGMENT};
use object::BinaryFormat;
use support::{Error, Result};

/// Adds the record to an object, in a section `.tfcompile` that no linker copies to its output.
///
/// Fails if `object` is not a relocatable ELF, COFF, WebAssembly, or 64-bit Mach-O object, which is
/// a defect of earlier stages.
pub(crate) fn embed(mut object: Vec<u8>, record: &[u8]) -> Result<Vec<u8>> {
    if object.starts_with(&wasm::MAGIC) {
        // WebAssembly's linkers do copy it, which the size of modules shows.
        wasm::append_custom_section(&mut object, &String::from_utf8_lossy(SECTION), record);
        return Ok(object);
    }
    let format = object::File::parse(object.as_slice()).map(|file| file.format());
    let result = match format {
        Ok(BinaryFormat::Elf) => elf(object, record),
        Ok(BinaryFormat::Coff) => coff(object, record),
        Ok(BinaryFormat::MachO) => mach_o(object, record),
        _ => None,
    };
    result.ok_or_else(|| Error::internal("cannot embed metadata: unsupported object file format"))
}

/// Access to integers at offsets of a file.
struct Fields<'a> {
    bytes: &'a mut Vec<u8>,
    big_endian: bool,
}

impl Fields<'_> {
    /// Reads the integer of `size` bytes at `offset`.
    fn get(&self, offset: usize, size: usize) -> Option<u64> {
        let bytes = self.bytes.get(offset..offset.checked_add(size)?)?;
        let fold = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.big_endian { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }

    /// Reads an integer that is an offset within the file.
    fn place(&self, offset: usize, size: usize) -> Option<usize> {
        usize::try_from(self.get(offset, size)?).ok()
    }

    /// Writes an integer. Returns `None` if it does not fit.
    fn set(&mut self, offset: usize, size: usize, number: u64) -> Option<()> {
        let big_endian = self.big_endian;
        let target = self.bytes.get_mut(offset..offset.checked_add(size)?)?;
        if size < 8 && number >> (8 * size) != 0 {
            return None;
        }
        for (k, byte) in target.iter_mut().enumerate() {
            let shift = if big_endian { size - 1 - k } else { k };
            *byte = (number >> (8 * shift)) as u8;
        }
        Some(())
    }

    /// Adds `by` to an integer, unless it is 0, which means "absent".
    fn shift(&mut self, offset: usize, size: usize, by: usize) -> Option<()> {
        match self.get(offset, size)? {
            0 => Some(()),
            number => self.set(offset, size, number.checked_add(by as u64)?),
        }
    }

    /// Pads the file to a multiple of `alignment` and appends `bytes`. Returns their offset.
    fn append(&mut self, bytes: &[u8], alignment: usize) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at
    }
}

/// ELF: appends the record, the section names, and the section table. The old tables remain,
/// unused.
fn elf(mut object: Vec<u8>, record: &[u8]) -> Option<Vec<u8>> {
    const EXCLUDE: u64 = 0x8000_0000;
    let is_64 = *object.get(4)? == 2;
    let big_endian = *object.get(5)? == 2;
    let mut file = Fields { bytes: &mut object, big_endian };
    // Offsets of the section table's address, its entry count, and the index of the name section;
    // then the size of an address in bytes.
    let (table_at, count_at, names_at, word) =
        if is_64 { (0x28, 0x3c, 0x3e, 8) } else { (0x20, 0x30, 0x32, 4) };
    // Offsets within an entry: flags, file offset, size, and alignment; then the size of an entry.
    let (flags, place, size, align, entry) = if is_64 { (8, 24, 32, 48, 64) } else { (8, 16, 20, 32, 40) };
    let table = file.place(table_at, word)?;
    let count = file.place(count_at, 2)?;
    let names = file.place(names_at, 2)?;
    // Counts of 0xff00 and above are encoded differently. No code generator emits that many
    // sections.
    if table == 0 || count == 0 || count + 1 >= 0xff00 || names >= count {
        return None;
    }
    let names_entry = table.checked_add(names * entry)?;
    let old = file.place(names_entry + place, word)?;
    let old_size = file.place(names_entry + size, word)?;
    let mut new_names = file.bytes.get(old..old.checked_add(old_size)?)?.to_vec();
    let name = new_names.len() as u64;
    new_names.extend_from_slice(SECTION);
    new_names.push(0);
    let entries = file.bytes.get(table..table.checked_add(count * entry)?)?.to_vec();

    let record_at = file.append(record, 8);
    let new_names_at = file.append(&new_names, 1);
    let new_table = file.append(&entries, 8);
    file.set(new_table + names * entry + place, word, new_names_at as u64)?;
    file.set(new_table + names * entry + size, word, new_names.len() as u64)?;
    let new = file.append(&vec![0; entry], 1);
    file.set(new, 4, name)?;
    file.set(new + 4, 4, 1)?;
    file.set(new + flags, word, EXCLUDE)?;
    file.set(new + place, word, record_at as u64)?;
    file.set(new + size, word, record.len() as u64)?;
    file.set(new + align, word, 8)?;
    file.set(table_at, word, new_table as u64)?;
    file.set(count_at, 2, count as u64 + 1)?;
    Some(object)
}

/// COFF: the section table grows in place, so everything after it moves. The long section name goes
/// to the string table at the end.
fn coff(mut object: Vec<u8>, record: &[u8]) -> Option<Vec<u8>> {
    const HEAD: usize = 20;
    const ENTRY: usize = 40;
    const SYMBOL: usize = 18;
    /// Linker information that is removed from the image, aligned to 8 bytes.
    const FLAGS: u64 = 0x200 | 0x800 | 0x0040_0000;
    let mut file = Fields { bytes: &mut object, big_endian: false };
    let count = file.place(2, 2)?;
    if file.get(0, 2)? == 0 || file.get(16, 2)? != 0 || count >= 0x7fff {
        return None;
    }
    let end = HEAD + count * ENTRY;
    file.bytes.get(..end)?;
    for entry in 0..count {
        for pointer in [20, 24, 28] {
            file.shift(HEAD + entry * ENTRY + pointer, 4, ENTRY)?;
        }
    }
    file.shift(8, 4, ENTRY)?;
    file.set(2, 2, count as u64 + 1)?;
    file.bytes.splice(end..end, [0; ENTRY]);

    let strings = file.place(8, 4)?.checked_add(file.place(12, 4)?.checked_mul(SYMBOL)?)?;
    let size = file.place(strings, 4)?;
    if strings.checked_add(size)? != file.bytes.len() || size > 999_999 {
        return None;
    }
    file.append(SECTION, 1);
    file.append(&[0], 1);
    file.set(strings, 4, (size + SECTION.len() + 1) as u64)?;
    let name = format!("/{size}");
    file.bytes[end..end + name.len()].copy_from_slice(name.as_bytes());
    let at = file.append(record, 8);
    file.set(end + 16, 4, record.len() as u64)?;
    file.set(end + 20, 4, at as u64)?;
    file.set(end + 36, 4, FLAGS)?;
    Some(object)
}

/// Mach-O: appends a section to the segment, both in the load commands and in the contents. The
/// tables after them move.
fn mach_o(mut object: Vec<u8>, record: &[u8]) -> Option<Vec<u8>> {
    const HEAD: usize = 32;
    const SEGMENT_COMMAND: usize = 72;
    const ENTRY: usize = 80;
    /// Debugging information, which linkers do not copy.
    const FLAGS: u64 = 0x0200_0000;
    let mut file = Fields { bytes: &mut object, big_endian: false };
    if file.get(0, 4)? != 0xfeed_facf {
        return None;
    }
    let commands = command_places(&file, HEAD)?;
    let &(segment, _) = commands.iter().find(|(_, kind)| *kind == 0x19)?;
    let count = file.place(segment + 64, 4)?;
    let entries = segment + SEGMENT_COMMAND;
    let new = entries.checked_add(count.checked_mul(ENTRY)?)?;
    let address =
        (file.get(segment + 24, 8)?.checked_add(file.get(segment + 32, 8)?)?).checked_next_multiple_of(8)?;
    let contents_end = file.place(segment + 40, 8)?.checked_add(file.place(segment + 48, 8)?)?;
    let record_at = contents_end.checked_next_multiple_of(8)?;
    let added = (record_at - contents_end + record.len()).next_multiple_of(8);
    let tables_by = ENTRY + added;

    for entry in (0..count).map(|k| entries + k * ENTRY) {
        file.shift(entry + 48, 4, ENTRY)?;
        file.shift(entry + 56, 4, tables_by)?;
    }
    for &(at, kind) in &commands {
        let (fields, size): (&[usize], usize) = match kind {
            // LC_SYMTAB, LC_DYSYMTAB, and the commands that hold an offset and a size in the
            // tables.
            0x02 => (&[8, 16], 4),
            0x0b => (&[32, 40, 48, 56, 64, 72], 4),
            0x1e | 0x26 | 0x29 | 0x2b | 0x2e => (&[8], 4),
            // The segment itself, versions, and linker options, which hold no offsets.
            0x19 | 0x24 | 0x25 | 0x2d | 0x2f | 0x30 | 0x32 => (&[], 4),
            _ => return None,
        };
        for field in fields {
            file.shift(at + field, size, tables_by)?;
        }
    }
    file.shift(segment + 40, 8, ENTRY)?;
    file.set(segment + 32, 8, address + record.len() as u64 - file.get(segment + 24, 8)?)?;
    let file_size = file.get(segment + 48, 8)?;
    file.set(segment + 48, 8, file_size + (record_at - contents_end + record.len()) as u64)?;
    file.set(segment + 64, 4, count as u64 + 1)?;
    let command_size = file.get(segment + 4, 4)?;
    file.set(segment + 4, 4, command_size + ENTRY as u64)?;
    let commands_size = file.get(20, 4)?;
    file.set(20, 4, commands_size + ENTRY as u64)?;

    let mut contents = vec![0; added];
    let begin = record_at - contents_end;
    contents[begin..begin + record.len()].copy_from_slice(record);
    file.bytes.get(..contents_end)?;
    file.bytes.splice(contents_end..contents_end, contents);
    file.bytes.splice(new..new, [0; ENTRY]);
    file.bytes[new..new + MACH_O_SECTION.len()].copy_from_slice(MACH_O_SECTION);
    file.bytes[new + 16..new + 16 + SEGMENT.len()].copy_from_slice(SEGMENT);
    file.set(new + 32, 8, address)?;
    file.set(new + 40, 8, record.len() as u64)?;
    file.set(new + 48, 4, (record_at + ENTRY) as u64)?;
    file.set(new + 52, 4, 3)?;
    file.set(new + 64, 4, FLAGS)?;
    Some(object)
}

/// Offsets and kinds of the load commands.
fn command_places(file: &Fields<'_>, first: usize) -> Option<Vec<(usize, u64)>> {
    let count = file.get(16, 4)?;
    let mut at = first;
    let mut commands = Vec::new();
    for _ in 0..count {
        commands.push((at, file.get(at, 4)?));
        let size = file.place(at + 4, 4)?;
        if size < 8 {
            return None;
        }
        at = at.checked_add(size)?;
    }
    Some(commands)
}
