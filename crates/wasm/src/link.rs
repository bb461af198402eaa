//! The linker: one object to a module with its own memory.
//!
//! The stack lies at the start of memory, so that a stack that is too long traps instead of
//! overwriting data. Data follows, then `__heap_base`, from which on memory is the caller's.
//! Numbers in the code that the object pads to five bytes become as short as they can be.

use crate::cursor::damaged;
use crate::encode::{append_custom_section, name, section, signed, unsigned};
use crate::object::{SymbolKind, WasmObject, id};
use crate::relocation::{Holds, Relocation};
use crate::{Cursor, MAGIC};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Size of a page of memory.
const PAGE: u64 = 1 << 16;
/// Most pages that a memory of 32 bits has.
const MAX_PAGES: u64 = 1 << 16;
/// Alignment of the stack, and of what follows the data.
const ALIGNMENT: u64 = 64;
/// Types of values.
const I32: u8 = 0x7f;
const I64: u8 = 0x7e;
/// Instructions.
const I32_CONST: u8 = 0x41;
const END: u8 = 0x0b;

/// Memory that workers share, and the function that gives them work.
#[derive(Clone, Copy, Debug)]
pub struct Threads<'a> {
    /// Name of the imported function with the signature of `tfcompile_parallel_for`. Its address is
    /// exported under the same name.
    pub parallel_for: &'a str,
}

/// Options of the linker.
#[derive(Clone, Copy, Debug)]
pub struct LinkOptions<'a> {
    /// Functions and data to export. The address of data is exported as a global. Names that the
    /// object does not define are ignored.
    pub exports: &'a [&'a str],
    /// Size of the stack in bytes.
    pub stack_bytes: u64,
    /// `None` for a memory of its own. Otherwise the memory is imported as `env.memory`, and the
    /// exported function `__init_memory` fills it once.
    pub threads: Option<Threads<'a>>,
}

/// A linked module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedModule {
    /// The module.
    pub bytes: Vec<u8>,
    /// Address from which on memory is the caller's.
    pub heap_base: u64,
}

/// Links an object to a module that exports `memory` (or imports it), `__heap_base`,
/// `__stack_pointer`, `__indirect_function_table`, and the given names. Functions that the object
/// does not define are imported.
///
/// Fails if data does not fit into 4 GiB, or if the object uses data that it does not define.
pub fn link(object: &WasmObject<'_>, options: &LinkOptions<'_>) -> Result<LinkedModule> {
    let linker = Linker::new(object, options)?;
    Ok(LinkedModule { bytes: linker.module()?, heap_base: linker.heap_base })
}

struct Linker<'a> {
    object: &'a WasmObject<'a>,
    options: &'a LinkOptions<'a>,
    /// Address of each segment.
    addresses: Vec<u64>,
    stack_end: u64,
    heap_base: u64,
    /// Functions whose address is taken, with their index in the table.
    table: BTreeMap<u32, u32>,
    /// Number of functions that the linker imports before all others.
    added: u32,
}

impl<'a> Linker<'a> {
    fn new(object: &'a WasmObject<'a>, options: &'a LinkOptions<'a>) -> Result<Self> {
        let stack_end = options.stack_bytes.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let (mut addresses, mut end) = (Vec::new(), stack_end);
        for segment in &object.segments {
            end = end.next_multiple_of(1 << segment.alignment);
            addresses.push(end);
            end += segment.bytes.len() as u64;
        }
        let heap_base = end.next_multiple_of(ALIGNMENT);
        if heap_base >= MAX_PAGES * PAGE {
            return Err(Error::unsupported(format!(
                "the program needs {heap_base} bytes for its code's data and stack, but WebAssembly has 4 GiB of memory: keep \
                 the constants in a separate file (--constants=file)"
            )));
        }
        let added = u32::from(options.threads.is_some());
        let mut linker =
            Self { object, options, addresses, stack_end, heap_base, table: BTreeMap::new(), added };
        for relocation in object.code_relocations.iter().chain(&object.data_relocations) {
            if relocation.holds == Holds::TableIndex {
                let function = linker.function(relocation)?;
                // A null function has index 0.
                let next = linker.table.len() as u32 + 1 + added;
                linker.table.entry(function).or_insert(next);
            }
        }
        Ok(linker)
    }

    fn symbol(&self, relocation: &Relocation) -> Result<SymbolKind> {
        let symbol = self.object.symbols.get(relocation.index);
        Ok(symbol.ok_or_else(|| damaged("a relocation of no symbol"))?.kind)
    }

    /// Returns the index in the module of the function that a relocation names.
    fn function(&self, relocation: &Relocation) -> Result<u32> {
        match self.symbol(relocation)? {
            SymbolKind::Function(index) => Ok(index + self.added),
            _ => Err(damaged("expected a function")),
        }
    }

    /// Returns the number for the place of a relocation; `None` if it stays.
    fn value(&self, relocation: &Relocation) -> Result<Option<u32>> {
        Ok(match relocation.holds {
            Holds::Function => Some(self.function(relocation)?),
            Holds::TableIndex => self.table.get(&self.function(relocation)?).copied(),
            Holds::Type => Some(relocation.index as u32),
            Holds::Global | Holds::Table => Some(0),
            Holds::Nothing => None,
            Holds::Address => {
                let SymbolKind::Data(Some(place)) = self.symbol(relocation)? else {
                    return Err(damaged("an address of data that it does not define"));
                };
                let address = self.addresses[place.segment] + u64::from(place.offset);
                Some((address as i64).wrapping_add(relocation.addend) as u32)
            }
        })
    }

    /// Appends bytes of a section with the relocations among them. `start` is their position in the
    /// section.
    fn relocate(
        &self,
        out: &mut Vec<u8>,
        start: usize,
        bytes: &[u8],
        relocations: &[Relocation],
    ) -> Result<()> {
        let first = relocations.partition_point(|r| r.offset < start);
        let mut done = 0;
        for relocation in &relocations[first..] {
            let at = relocation.offset - start;
            if at >= bytes.len() {
                break;
            }
            let Some(value) = self.value(relocation)? else { continue };
            let between = bytes.get(done..at).ok_or_else(|| damaged("relocations overlap"))?;
            out.extend_from_slice(between);
            relocation.form.write(out, value);
            done = at + relocation.form.size();
        }
        let rest = bytes.get(done..).ok_or_else(|| damaged("a relocation beyond the end"))?;
        out.extend_from_slice(rest);
        Ok(())
    }

    fn module(&self) -> Result<Vec<u8>> {
        let mut out = MAGIC.to_vec();
        let types = Cursor::new(self.object.types).u32()?;
        section(&mut out, id::TYPE, &self.types()?);
        self.imports(&mut out, types);
        let functions = Cursor::new(self.object.functions).u32()?;
        if self.options.threads.is_some() {
            let mut bytes = self.object.functions.to_vec();
            unsigned(&mut bytes, u64::from(types) + 1);
            section(&mut out, id::FUNCTION, &recounted(&bytes, 1)?);
        } else {
            section(&mut out, id::FUNCTION, self.object.functions);
        }
        let entries = self.table.len() as u64 + 1 + u64::from(self.added);
        let mut table = vec![1, 0x70, 1];
        unsigned(&mut table, entries);
        unsigned(&mut table, entries);
        section(&mut out, id::TABLE, &table);
        if self.options.threads.is_none() {
            let mut memory = vec![1, 0];
            unsigned(&mut memory, self.heap_base.div_ceil(PAGE));
            section(&mut out, id::MEMORY, &memory);
        }
        let init = self.added + self.object.imports.len() as u32 + functions;
        let globals = self.exports(&mut out, init)?;
        // Sections are in the order of their kinds.
        let exports = out.split_off(globals.1);
        section(&mut out, id::GLOBAL, &globals.0);
        out.extend_from_slice(&exports);
        self.elements(&mut out);
        if self.options.threads.is_some() {
            let mut count = Vec::new();
            unsigned(&mut count, self.object.segments.len() as u64);
            section(&mut out, id::DATA_COUNT, &count);
        }
        self.code(&mut out)?;
        self.data(&mut out)?;
        append_custom_section(&mut out, "producers", &producers());
        Ok(out)
    }

    /// Types of the object; with threads, also those of `parallel_for` and of `__init_memory`.
    fn types(&self) -> Result<Vec<u8>> {
        if self.options.threads.is_none() {
            return Ok(self.object.types.to_vec());
        }
        let mut types = self.object.types.to_vec();
        types.extend([0x60, 4, I32, I64, I32, I32, 1, I32]);
        types.extend([0x60, 0, 0]);
        recounted(&types, 2)
    }

    fn imports(&self, out: &mut Vec<u8>, types: u32) {
        let mut imports = Vec::new();
        let mut count = self.object.imports.len() as u64;
        if let Some(threads) = self.options.threads {
            count += 2;
            name(&mut imports, "env");
            name(&mut imports, "memory");
            // Shared memory with limits.
            imports.extend([2, 3]);
            unsigned(&mut imports, self.heap_base.div_ceil(PAGE));
            unsigned(&mut imports, MAX_PAGES);
            name(&mut imports, "env");
            name(&mut imports, threads.parallel_for);
            imports.push(0);
            unsigned(&mut imports, u64::from(types));
        }
        for import in &self.object.imports {
            name(&mut imports, import.module);
            name(&mut imports, import.name);
            imports.push(0);
            unsigned(&mut imports, u64::from(import.ty));
        }
        if count > 0 {
            let mut bytes = Vec::new();
            unsigned(&mut bytes, count);
            bytes.extend(imports);
            section(out, id::IMPORT, &bytes);
        }
    }

    /// Appends the exports. Returns the contents of the section of globals, and its position.
    fn exports(&self, out: &mut Vec<u8>, init: u32) -> Result<(Vec<u8>, usize)> {
        let position = out.len();
        let mut globals: Vec<(bool, u64)> = vec![(true, self.stack_end), (false, self.heap_base)];
        let mut exports = vec![
            ("memory", 2u8, 0u32),
            ("__indirect_function_table", 1, 0),
            ("__stack_pointer", 3, 0),
            ("__heap_base", 3, 1),
        ];
        if let Some(threads) = self.options.threads {
            exports.push(("__init_memory", 0, init));
            exports.push((threads.parallel_for, 3, globals.len() as u32));
            globals.push((false, 1));
        }
        for &wanted in self.options.exports {
            let Some(symbol) = self.object.symbols.iter().find(|s| s.name == wanted) else { continue };
            match symbol.kind {
                SymbolKind::Function(index) => exports.push((wanted, 0, index + self.added)),
                SymbolKind::Data(Some(place)) => {
                    exports.push((wanted, 3, globals.len() as u32));
                    globals.push((false, self.addresses[place.segment] + u64::from(place.offset)));
                }
                _ => return Err(damaged("an export that it does not define")),
            }
        }
        let mut bytes = Vec::new();
        unsigned(&mut bytes, exports.len() as u64);
        for (export, kind, index) in exports {
            name(&mut bytes, export);
            bytes.push(kind);
            unsigned(&mut bytes, u64::from(index));
        }
        section(out, id::EXPORT, &bytes);
        let mut bytes = Vec::new();
        unsigned(&mut bytes, globals.len() as u64);
        for (is_mutable, value) in globals {
            bytes.extend([I32, u8::from(is_mutable)]);
            constant(&mut bytes, value);
            bytes.push(END);
        }
        Ok((bytes, position))
    }

    fn elements(&self, out: &mut Vec<u8>) {
        let mut by_index: Vec<(u32, u32)> = self.table.iter().map(|(&f, &index)| (index, f)).collect();
        if self.added > 0 {
            by_index.push((1, 0));
        }
        if by_index.is_empty() {
            return;
        }
        by_index.sort_unstable();
        let mut bytes = vec![1, 0];
        constant(&mut bytes, 1);
        bytes.push(END);
        unsigned(&mut bytes, by_index.len() as u64);
        by_index.iter().for_each(|&(_, function)| unsigned(&mut bytes, u64::from(function)));
        section(out, id::ELEMENT, &bytes);
    }

    fn code(&self, out: &mut Vec<u8>) -> Result<()> {
        let mut bytes = Vec::new();
        unsigned(&mut bytes, self.object.bodies.len() as u64 + u64::from(self.added));
        for &(start, body) in &self.object.bodies {
            let mut relocated = Vec::with_capacity(body.len());
            self.relocate(&mut relocated, start, body, &self.object.code_relocations)?;
            unsigned(&mut bytes, relocated.len() as u64);
            bytes.extend(relocated);
        }
        if self.options.threads.is_some() {
            let body = self.init_memory();
            unsigned(&mut bytes, body.len() as u64);
            bytes.extend(body);
        }
        section(out, id::CODE, &bytes);
        Ok(())
    }

    /// Body of the function that copies the segments to memory.
    fn init_memory(&self) -> Vec<u8> {
        let mut body = vec![0];
        for (index, segment) in self.object.segments.iter().enumerate() {
            constant(&mut body, self.addresses[index]);
            constant(&mut body, 0);
            constant(&mut body, segment.bytes.len() as u64);
            // memory.init
            body.extend([0xfc, 8]);
            unsigned(&mut body, index as u64);
            body.push(0);
            // data.drop
            body.extend([0xfc, 9]);
            unsigned(&mut body, index as u64);
        }
        body.push(END);
        body
    }

    fn data(&self, out: &mut Vec<u8>) -> Result<()> {
        let mut bytes = Vec::new();
        unsigned(&mut bytes, self.object.segments.len() as u64);
        for (segment, &address) in self.object.segments.iter().zip(&self.addresses) {
            if self.options.threads.is_some() {
                bytes.push(1);
            } else {
                bytes.push(0);
                constant(&mut bytes, address);
                bytes.push(END);
            }
            unsigned(&mut bytes, segment.bytes.len() as u64);
            self.relocate(&mut bytes, segment.start, segment.bytes, &self.object.data_relocations)?;
        }
        section(out, id::DATA, &bytes);
        Ok(())
    }
}

/// Appends an instruction that pushes an address or a size.
fn constant(out: &mut Vec<u8>, value: u64) {
    out.push(I32_CONST);
    signed(out, i64::from(value as u32 as i32));
}

/// Adds to the count at the start of a section's contents.
fn recounted(contents: &[u8], more: u64) -> Result<Vec<u8>> {
    let mut cursor = Cursor::new(contents);
    let mut out = Vec::with_capacity(contents.len() + 1);
    unsigned(&mut out, u64::from(cursor.u32()?) + more);
    out.extend_from_slice(cursor.rest());
    Ok(out)
}

/// Contents of the custom section that names the tools.
fn producers() -> Vec<u8> {
    let mut bytes = vec![1];
    name(&mut bytes, "processed-by");
    bytes.push(1);
    name(&mut bytes, "tfcompile");
    name(&mut bytes, env!("CARGO_PKG_VERSION"));
    bytes
}
