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
        let elf64 = target.triple.object_format == ObjectFormat::Elf && target.pointer_bytes == 8;
        // The address sanitizer guards the end of the block, so it must know the size.
        let in_place = options.sanitize == Some(Sanitizer::Address) && size <= options.large_constants;
        if size == 0 {
            return Ok(Self::None);
        }
        if elf64 && !in_place {
            let large = size > options.large_constants;
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
        if needed.is_none_or(|needed| Vec::<u8>::new().try_reserve_exact(needed).is_err()) {
            return Err(no_memory(size));
        }
        Ok(Self::InPlace(u32::try_from(size).expect("MAX_CONSTANTS is below 2^32")))
    }
}

pub(crate) fn no_memory(size: u64) -> Error {
    Error::unsupported(format!("not enough memory to write an object file with {size} bytes of constants"))
}
