//! What is done to the bytes of a finished object: the constants are written into it, and its symbols are checked.

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};
use support::{Error, Result};
use target::{Architecture, ObjectFormat, Target};

use crate::{Constants, FunctionSize};

/// The only functions that an object may need from outside.
const ALLOWED: [&str; 3] = ["memcpy", "memset", "memmove"];

/// Names that linkers define themselves; position-independent code of some processors refers to them.
const LINKER_DEFINED: [&str; 2] = ["_GLOBAL_OFFSET_TABLE_", ".TOC."];

/// Copies the constants into the section that was emitted for them, full of zeros.
pub(crate) fn write_constants(
    bytes: &mut [u8],
    target: &Target,
    entry_point: &str,
    constants: &Constants<'_>,
) -> Result<()> {
    if constants.size == 0 {
        return Ok(());
    }
    let name = format!("{entry_point}_constants");
    let range = {
        let file = parse(bytes)?;
        let symbol = file
            .symbols()
            .find(|symbol| symbol.is_definition() && symbol_name(target, symbol.name()) == name)
            .ok_or_else(|| Error::internal(format!("the object lacks the symbol {name}")))?;
        let section = symbol
            .section_index()
            .and_then(|index| file.section_by_index(index).ok())
            .ok_or_else(|| Error::internal(format!("{name} lies in no section")))?;
        let (start, size) = section
            .file_range()
            .ok_or_else(|| Error::internal(format!("the section of {name} has no bytes in the object")))?;
        let offset = symbol.address().saturating_sub(section.address());
        if offset.checked_add(constants.size).is_none_or(|end| end > size) {
            return Err(Error::internal(format!("the section of {name} is too small")));
        }
        let start = usize::try_from(start + offset).map_err(|_| Error::internal("an offset fits"))?;
        start..start + usize::try_from(constants.size).map_err(|_| Error::internal("a size fits"))?
    };
    let block = bytes.get_mut(range).ok_or_else(|| Error::internal("the object ends within a section"))?;
    constants.copy_to(block)
}

/// The sizes of the functions that the object defines, in the order of their addresses.
pub(crate) fn function_sizes(bytes: &[u8], target: &Target) -> Result<Vec<FunctionSize>> {
    let file = parse(bytes)?;
    let mut functions: Vec<(u64, u64, String)> = file
        .symbols()
        .filter(|s| s.is_definition() && s.kind() == object::SymbolKind::Text)
        .map(|s| (s.address(), s.size(), symbol_name(target, s.name()).to_owned()))
        .collect();
    functions.sort();
    // Formats without symbol sizes: up to the next function or the end of the code.
    let code_end = file
        .sections()
        .filter(|s| s.kind() == object::SectionKind::Text)
        .map(|s| s.address() + s.size())
        .max()
        .unwrap_or(0);
    let ends: Vec<u64> = functions.iter().skip(1).map(|f| f.0).chain([code_end]).collect();
    let sizes = functions.into_iter().zip(ends).map(|((address, size, name), end)| FunctionSize {
        name,
        bytes: if size == 0 { end.saturating_sub(address) } else { size },
    });
    Ok(sizes.collect())
}

/// Refuses an object that needs any function from outside but the allowed ones.
pub(crate) fn check_undefined_symbols(bytes: &[u8], target: &Target) -> Result<()> {
    let file = parse(bytes)?;
    for symbol in file.symbols().filter(|s| s.is_undefined()) {
        let name = symbol_name(target, symbol.name());
        // `_fltused` is no function: it marks objects with floating-point code for Windows' linkers, which define it.
        let marker = target.triple.object_format == ObjectFormat::Coff
            && matches!(name, "_fltused" | "__fltused" | "fltused");
        if name.is_empty() || marker || ALLOWED.contains(&name) || LINKER_DEFINED.contains(&name) {
            continue;
        }
        let user = using_function(&file, symbol.index(), target);
        return Err(Error::internal(format!(
            "the code for {} calls the library function '{name}' in function '{}'; only memcpy, memset and memmove \
             may stay undefined",
            target.triple.as_str(),
            user.unwrap_or_else(|| "(unknown)".to_owned())
        )));
    }
    Ok(())
}

/// The function whose code refers to a symbol first.
fn using_function(file: &object::File<'_>, wanted: object::SymbolIndex, target: &Target) -> Option<String> {
    file.sections().find_map(|section| {
        let (offset, _) = section
            .relocations()
            .find(|(_, relocation)| relocation.target() == RelocationTarget::Symbol(wanted))?;
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

fn parse(bytes: &[u8]) -> Result<object::File<'_>> {
    object::File::parse(bytes).map_err(|e| Error::internal(format!("LLVM's object cannot be read: {e}")))
}

/// A symbol as C spells it: some platforms put an underscore before every name.
fn symbol_name<'s>(target: &Target, name: object::Result<&'s str>) -> &'s str {
    let name = name.unwrap_or_default();
    let prefixed = match target.triple.object_format {
        ObjectFormat::MachO => true,
        ObjectFormat::Coff => target.triple.architecture == Architecture::X86,
        ObjectFormat::Elf | ObjectFormat::Wasm => false,
    };
    if prefixed { name.strip_prefix('_').unwrap_or(name) } else { name }
}
