//! Methods of placing constants in an object.

use support::{Error, Result};
use target::{ObjectFormat, Target};

use crate::{CodegenOptions, Sanitizer};

/// Largest constants block for formats with 32-bit sizes and relocations.
const MAX_CONSTANTS: u64 = (1 << 31) - 64;

/// Method of placing the constants in the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// No constants. The block has 64 zero bytes.
    None,
    /// LLVM writes this many zeros, which are overwritten.
    InPlace(u32),
    /// LLVM writes a section of 64 bytes, which a longer one at the end of the file replaces, so
    /// LLVM never holds the constants. 64-bit ELF only.
    Appended,
    /// As `Appended`, in a section that may be anywhere in the address space, with a pointer to it.
    Large,
}

impl Placement {
    /// Selects the placement of constants. Fails if they cannot be placed.
    pub(crate) fn of(size: u64, target: &Target, options: &CodegenOptions) -> Result<Self> {
        if let Some(section) = &options.constants_section {
            check_section(section, target)?;
        }
        let elf64 = target.triple.object_format == ObjectFormat::Elf && target.pointer_bytes == 8;
        // The address sanitizer guards the end of the block, so it must know the size.
        let in_place = options.sanitize == Some(Sanitizer::Address) && size <= options.large_constants;
        if size == 0 {
            return Ok(Self::None);
        }
        if elf64 && !in_place {
            let large = size > options.large_constants;
            if let (true, Some(section)) = (large, &options.constants_section) {
                return Err(Error::unsupported(format!(
                    "{size} bytes of constants are too many for the section '{section}', which must be near the code (at \
                     most {}): remove --constants-section, or keep them in a separate file (--constants=file)",
                    options.large_constants
                )));
            }
            return Ok(if large { Self::Large } else { Self::Appended });
        }
        if size > MAX_CONSTANTS {
            return Err(Error::unsupported(format!(
                "{} bytes of constants exceed the limit of this object file format (2 GiB): \
                 keep them in a separate file (--constants=file)",
                size
            )));
        }
        // LLVM and the object's copy need the bytes twice, and LLVM does not report failed
        // allocations.
        let needed = usize::try_from(size).ok().and_then(|bytes| bytes.checked_mul(3));
        let is_available = |needed| support::attempt(|| Vec::<u8>::new().try_reserve_exact(needed)).is_ok();
        if !needed.is_some_and(is_available) {
            return Err(no_memory(size));
        }
        Ok(Self::InPlace(u32::try_from(size).expect("MAX_CONSTANTS is below 2^32")))
    }
}

/// First parts of the names of sections that have a meaning for linkers or debuggers, or hold code.
const RESERVED: [&str; 26] = [
    "text",
    "ltext",
    "lbss",
    "bss",
    "sbss",
    "tbss",
    "tdata",
    "init",
    "fini",
    "init_array",
    "fini_array",
    "preinit_array",
    "ctors",
    "dtors",
    "note",
    "comment",
    "symtab",
    "strtab",
    "shstrtab",
    "rel",
    "rela",
    "group",
    "eh_frame",
    "ARM",
    "riscv",
    "dynamic",
];

/// Checks the name of a section for constants.
///
/// Errors: `invalid` for names that linker scripts cannot state without quotes and for sections
/// with another meaning; `unsupported` for objects that are not in ELF.
pub fn check_section(name: &str, target: &Target) -> Result<()> {
    if target.triple.object_format != ObjectFormat::Elf {
        return Err(Error::unsupported(format!(
            "--constants-section: only ELF objects have sections with names of one's choice, and those for '{}' are not in \
             ELF: remove the flag",
            target.triple.as_str()
        )));
    }
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || "._".contains(c))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if !is_plain || name.trim_matches('.').is_empty() {
        return Err(Error::invalid(format!(
            "--constants-section: '{name}' is not the name of a section: use letters, digits, and . _ -, and begin with a \
             letter, '.', or '_', as in .flash_weights"
        )));
    }
    let first = name.strip_prefix('.').unwrap_or_default().split('.').next().unwrap_or_default();
    if RESERVED.contains(&first) || first.starts_with("debug") {
        return Err(Error::invalid(format!(
            "--constants-section: '{name}' has another meaning for linkers: choose a name such as .rodata.weights or \
             .flash_weights"
        )));
    }
    Ok(())
}

pub(crate) fn no_memory(size: u64) -> Error {
    Error::unsupported(format!("not enough memory to write an object file with {size} bytes of constants"))
}
