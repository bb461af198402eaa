//! Modification of a finished object's bytes, and checks of its symbols.

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};
use support::{Error, Result};
use target::{Architecture, ObjectFormat, Target};

use wasm::WasmObject;

use crate::placement::{Placement, no_memory};
use crate::{CodegenOptions, FunctionSize, elf};

/// The only external functions that an object may call.
const ALLOWED: [&str; 3] = ["memcpy", "memset", "memmove"];

/// Names that linkers define. Position-independent code of some processors refers to them.
const LINKER_DEFINED: [&str; 2] = ["_GLOBAL_OFFSET_TABLE_", ".TOC."];

/// Block of constants of an object.
pub(crate) struct Block<'a> {
    pub(crate) entry_point: &'a str,
    pub(crate) size: u64,
    pub(crate) placement: Placement,
}

/// Writes the constants to their section, chunk by chunk. Each chunk is dropped once it is written.
pub(crate) fn write_constants<B: AsRef<[u8]>>(
    bytes: &mut Vec<u8>,
    target: &Target,
    block: &Block<'_>,
    chunks: impl IntoIterator<Item = (u64, B)>,
) -> Result<()> {
    let name = format!("{}_constants", block.entry_point);
    let beyond = |offset: u64| {
        Error::internal(format!(
            "a constant at offset {offset} overlaps the preceding one, or extends beyond the block of {} bytes",
            block.size
        ))
    };
    match block.placement {
        Placement::None => Ok(()),
        Placement::InPlace(_) => {
            let place = existing_range(bytes, target, &name, block.size)?;
            let place =
                bytes.get_mut(place).ok_or_else(|| Error::internal("the object ends within a section"))?;
            for (offset, chunk) in chunks {
                let chunk = chunk.as_ref();
                let start = usize::try_from(offset).map_err(|_| beyond(offset))?;
                let end = start.checked_add(chunk.len()).ok_or_else(|| beyond(offset))?;
                place.get_mut(start..end).ok_or_else(|| beyond(offset))?.copy_from_slice(chunk);
            }
            Ok(())
        }
        Placement::Appended | Placement::Large => {
            let size = usize::try_from(block.size).map_err(|_| no_memory(block.size))?;
            let reserve = || bytes.try_reserve_exact(size.saturating_add(64));
            support::attempt(reserve).map_err(|_| no_memory(block.size))?;
            let place = elf::move_section_to_end(bytes, &name, block.size)?;
            // Chunks are written in order, so that each page is first touched with its final
            // contents.
            for (offset, chunk) in chunks {
                let chunk = chunk.as_ref();
                let start = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(place.start));
                let start = start.filter(|&start| start >= bytes.len()).ok_or_else(|| beyond(offset))?;
                if start.checked_add(chunk.len()).is_none_or(|end| end > place.end) {
                    return Err(beyond(offset));
                }
                bytes.resize(start, 0);
                bytes.extend_from_slice(chunk);
            }
            bytes.resize(place.end, 0);
            Ok(())
        }
    }
}

/// Returns the file range of a symbol's bytes.
fn existing_range(bytes: &[u8], target: &Target, name: &str, size: u64) -> Result<std::ops::Range<usize>> {
    if is_wasm(target) {
        let range = WasmObject::parse(bytes)?.data_range(name);
        return range
            .filter(|range| range.len() as u64 >= size)
            .ok_or_else(|| Error::internal(format!("the object has no {size} bytes of symbol '{name}'")));
    }
    let file = parse(bytes)?;
    let symbol = file
        .symbols()
        .find(|symbol| symbol.is_definition() && symbol_name(target, symbol.name()) == name)
        .ok_or_else(|| Error::internal(format!("the object does not define symbol '{name}'")))?;
    let section = symbol
        .section_index()
        .and_then(|index| file.section_by_index(index).ok())
        .ok_or_else(|| Error::internal(format!("symbol '{name}' is in no section")))?;
    let (start, available) = section.file_range().ok_or_else(|| {
        Error::internal(format!("the section of symbol '{name}' has no contents in the object"))
    })?;
    let offset = symbol.address().saturating_sub(section.address());
    if offset.checked_add(size).is_none_or(|end| end > available) {
        return Err(Error::internal(format!("the section of symbol '{name}' is too small")));
    }
    let range = || {
        let start = start.checked_add(offset)?;
        Some(usize::try_from(start).ok()?..usize::try_from(start.checked_add(size)?).ok()?)
    };
    range().ok_or_else(|| Error::internal("an offset in the object exceeds the address space"))
}

/// Returns the sizes of the functions that the object defines, in address order.
pub(crate) fn function_sizes(bytes: &[u8], target: &Target) -> Result<Vec<FunctionSize>> {
    if is_wasm(target) {
        let sizes = WasmObject::parse(bytes)?.function_sizes().into_iter();
        return Ok(sizes.map(|size| FunctionSize { name: size.name, bytes: size.bytes }).collect());
    }
    let file = parse(bytes)?;
    let mut functions: Vec<(u64, u64, String)> = file
        .symbols()
        .filter(|s| s.is_definition() && s.kind() == object::SymbolKind::Text)
        .map(|s| (s.address(), s.size(), symbol_name(target, s.name()).to_owned()))
        .collect();
    functions.sort();
    // In formats without symbol sizes, a function extends to the next function or the end of the
    // code.
    let code_end = file
        .sections()
        .filter(|s| s.kind() == object::SectionKind::Text)
        .map(|s| s.address().saturating_add(s.size()))
        .max()
        .unwrap_or(0);
    let ends: Vec<u64> = functions.iter().skip(1).map(|f| f.0).chain([code_end]).collect();
    let sizes = functions.into_iter().zip(ends).map(|((address, size, name), end)| FunctionSize {
        name,
        bytes: if size == 0 { end.saturating_sub(address) } else { size },
    });
    Ok(sizes.collect())
}

/// Rejects an object that calls external functions other than the allowed ones and the user's.
pub(crate) fn check_undefined_symbols(
    bytes: &[u8],
    target: &Target,
    options: &CodegenOptions,
    external: &std::collections::BTreeSet<&str>,
) -> Result<()> {
    let allowed: &[&str] = if options.freestanding { &[] } else { &ALLOWED };
    for (name, user) in undefined_symbols(bytes, target)? {
        let name = name.as_str();
        // `_fltused` is not a function: it marks objects with floating-point code for Windows'
        // linkers, which define it.
        let marker = target.triple.object_format == ObjectFormat::Coff
            && matches!(name, "_fltused" | "__fltused" | "fltused");
        let sanitizers = options.sanitize.is_some_and(|s| s.brings(name));
        if name.is_empty()
            || marker
            || sanitizers
            || allowed.contains(&name)
            || external.contains(name)
            || LINKER_DEFINED.contains(&name)
        {
            continue;
        }
        let user = user.unwrap_or_else(|| "(unknown)".to_owned());
        let message = format!(
            "the code for {} calls the library function '{name}' in function '{user}'; of such, an object may call \
             only these: [{}]",
            target.triple.as_str(),
            allowed.join(", ")
        );
        // Functions that implement missing instructions have such names: `__mulsf3`,
        // `__aeabi_fmul`.
        return Err(if name.starts_with("__") {
            Error::unsupported(format!(
                "{message}; the processor has no instruction for it: choose one that has floating point and \
                 multiplication, by its name (--target-cpu) or its features (--target-features)"
            ))
        } else {
            Error::internal(message)
        });
    }
    Ok(())
}

/// Returns the names of the undefined symbols, each with a function that uses it, if known.
fn undefined_symbols(bytes: &[u8], target: &Target) -> Result<Vec<(String, Option<String>)>> {
    if is_wasm(target) {
        let object = WasmObject::parse(bytes)?;
        return Ok(object.undefined_symbols().map(|name| (name.to_owned(), None)).collect());
    }
    let file = parse(bytes)?;
    let undefined = file.symbols().filter(|s| s.is_undefined());
    let named = undefined.map(|symbol| {
        let name = symbol_name(target, symbol.name()).to_owned();
        (name, using_function(&file, symbol.index(), target))
    });
    Ok(named.collect())
}

fn is_wasm(target: &Target) -> bool {
    target.triple.object_format == ObjectFormat::Wasm
}

/// Returns the first function whose code refers to a symbol.
fn using_function(
    file: &object::File<'_>,
    target_symbol: object::SymbolIndex,
    target: &Target,
) -> Option<String> {
    file.sections().find_map(|section| {
        let (offset, _) = section
            .relocations()
            .find(|(_, relocation)| relocation.target() == RelocationTarget::Symbol(target_symbol))?;
        let address = section.address() + offset;
        file.symbols()
            .filter(|s| {
                s.kind() == object::SymbolKind::Text
                    && s.section_index() == Some(section.index())
                    && s.address() <= address
            })
            .max_by_key(|s| s.address())
            .map(|s| symbol_name(target, s.name()).to_owned())
    })
}

pub(crate) fn parse(bytes: &[u8]) -> Result<object::File<'_>> {
    object::File::parse(bytes).map_err(|e| Error::internal(format!("cannot parse LLVM's object: {e}")))
}

/// Returns a symbol as C spells it. Some platforms prefix every name with an underscore.
fn symbol_name<'s>(target: &Target, name: object::Result<&'s str>) -> &'s str {
    let name = name.unwrap_or_default();
    let prefixed = match target.triple.object_format {
        ObjectFormat::MachO => true,
        ObjectFormat::Coff => target.triple.architecture == Architecture::X86,
        ObjectFormat::Elf | ObjectFormat::Wasm => false,
    };
    if prefixed { name.strip_prefix('_').unwrap_or(name) } else { name }
}
