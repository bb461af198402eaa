//! The constants of a program as an array of C.

use crate::Constants;
use std::fmt::Write as _;
use support::{Error, Result};

/// Most bytes of constants in a C file. Each takes about five characters and, in compilers, tens of
/// bytes of memory.
pub const MAX_CONSTANTS: u64 = 64 << 20;

/// Bytes of a line.
const LINE: usize = 16;

/// Writes the array.
pub(crate) fn write(
    out: &mut String,
    entry_point: &str,
    section: Option<&str>,
    constants: Constants<'_>,
) -> Result<()> {
    if constants.size > MAX_CONSTANTS {
        return Err(Error::unsupported(format!(
            "the constants have {} bytes, too many for a C file (at most {MAX_CONSTANTS}): add --constants=file, so that the \
             program loads them from a file",
            constants.size
        )));
    }
    let size = usize::try_from(constants.size.max(64)).unwrap_or_default();
    let mut block = vec![0; size];
    for &(offset, bytes) in constants.chunks {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let place = start.checked_add(bytes.len()).and_then(|end| block.get_mut(start..end));
        place
            .ok_or_else(|| Error::internal("a constant extends beyond the block of constants"))?
            .copy_from_slice(bytes);
    }
    let _ = writeln!(out, "extern const unsigned char {entry_point}_constants[];");
    let _ = writeln!(
        out,
        "/* The constants, aligned to 64 bytes: weights and tables in the order of their use. */"
    );
    if let Some(section) = section {
        out.push_str(
            "#if !defined(TFC_SECTION)\n\
             #if defined(__GNUC__) || defined(__TINYC__)\n\
             #define TFC_SECTION(name) __attribute__((section(name)))\n\
             #else\n\
             #error \"define TFC_SECTION(name), which places a variable in a section\"\n\
             #endif\n#endif\n",
        );
        let _ = writeln!(out, "TFC_SECTION(\"{section}\")");
    }
    let _ = write!(out, "TFC_ALIGNED(64) const unsigned char {entry_point}_constants[{size}] = {{");
    // Zeros at the end need not be written.
    let used = block.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
    out.reserve(used * 5);
    for (k, byte) in block[..used].iter().enumerate() {
        out.push_str(if k % LINE == 0 { "\n  " } else { " " });
        let _ = write!(out, "{byte}{}", if k + 1 == used { "" } else { "," });
    }
    out.push_str("\n};\n");
    Ok(())
}
