//! The ways in which constants get into an object.

use support::{Error, Result};
use target::{ObjectFormat, Target};

use crate::{CodegenOptions, Sanitizer};

/// The largest constants block of formats whose sizes and relocations have 32 bits.
const MAX_CONSTANTS: u64 = (1 << 31) - 64;

/// How the constants get into the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// There are none; 64 zero bytes stand in their place.
    None,
    /// LLVM writes so many zeros, which are overwritten.
    InPlace(u32),
    /// LLVM writes a section of 64 bytes, which is replaced by a longer one at the end of the file: LLVM never holds
    /// them. ELF of 64 bits.
    Appended,
    /// As `Appended`, in a section that may lie anywhere in the address space, with a pointer to it.
    Large,
}

impl Placement {
    /// The placement of constants, or why they cannot be placed.
    pub(crate) fn of(size: u64, target: &Target, options: &CodegenOptions) -> Result<Self> {
        let elf64 = target.triple.object_format == ObjectFormat::Elf && target.pointer_bytes == 8;
        // The address sanitizer guards the end of the block, and has to know where it is.
        let in_place = options.sanitize == Some(Sanitizer::Address) && size <= options.large_constants;
        if size == 0 {
            return Ok(Self::None);
        }
        if target.triple.object_format == ObjectFormat::Wasm {
            return Err(Error::unsupported("constants inside of WebAssembly objects"));
        }
        if elf64 && !in_place {
            let large = size > options.large_constants;
            return Ok(if large { Self::Large } else { Self::Appended });
        }
        if size > MAX_CONSTANTS {
            return Err(Error::unsupported(format!(
                "{} bytes of constants do not fit into an object file of this format, which holds less than 2 GiB; \
                 keep them in a file beside the program instead",
                size
            )));
        }
        // LLVM and the object's copy need the bytes twice, and LLVM does not say if it gets none.
        let needed = usize::try_from(size).ok().and_then(|bytes| bytes.checked_mul(3));
        if needed.is_none_or(|needed| Vec::<u8>::new().try_reserve_exact(needed).is_err()) {
            return Err(no_memory(size));
        }
        Ok(Self::InPlace(u32::try_from(size).expect("MAX_CONSTANTS is below 2^32")))
    }
}

pub(crate) fn no_memory(size: u64) -> Error {
    Error::unsupported(format!(
        "{size} bytes of constants: there is not enough memory to write an object file with them"
    ))
}
