//! Constants in a separate file: its format, and the condition under which two such files are
//! interchangeable.
//!
//! The file consists of a header of 64 bytes and the constants block, byte for byte as the object
//! would contain it:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | `TFCCONST` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | size of this header in bytes, 64 |
//! | 16 | 32 | layout hash |
//! | 48 | 8 | size of the block in bytes |
//! | 56 | 8 | 0 |
//!
//! Numbers are little-endian. In a mapped file, the block is aligned to 64 bytes.

use sha2::{Digest, Sha256};
use std::borrow::Cow;
use support::{Error, Result};

/// First bytes of the file.
pub const CONSTANTS_FILE_MAGIC: [u8; 8] = *b"TFCCONST";

/// Version of the file's layout.
pub const CONSTANTS_FILE_VERSION: u32 = 1;

/// Size of the file's header in bytes, which is the offset of the block.
pub const CONSTANTS_FILE_HEADER: usize = 64;

/// Location of a program's constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConstantsMode {
    /// In the object.
    #[default]
    Embed,
    /// In a file that the program loads at run time ([`constants_file`]). The object then contains
    /// a constants block of size 0.
    File,
}

/// Identity of a constants layout. A constants file must have the same hash as the object that uses
/// it.
///
/// The hash is a SHA-256 over the object, which contains no constants, and over the offset and size
/// of each constant in the block. The object is included because its code may depend on the
/// *values* of constants: a constant with equal elements becomes an immediate operand, and a
/// multiplication by one disappears. Two trainings of one architecture have the same hash if and
/// only if they yield the same code. Otherwise the file is rejected, as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayoutHash(pub [u8; 32]);

impl std::fmt::Display for LayoutHash {
    /// Formats the hash in hexadecimal.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl LayoutHash {
    /// Computes the hash of `object` and the constants that it expects.
    ///
    /// `object` must have been compiled without its constants and be exactly as the code generator
    /// returned it: with metadata, the hash would depend on the config and the graph. `size` is the
    /// size of the block in bytes, and `chunks` has the offset and the bytes of each constant.
    pub fn new<B: AsRef<[u8]>>(object: &[u8], size: u64, chunks: &[(u64, B)]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"tfcompile constants layout 1\0");
        let mut number = |number: u64| hash.update(number.to_le_bytes());
        number(object.len() as u64);
        number(size);
        number(chunks.len() as u64);
        for (offset, bytes) in chunks {
            number(*offset);
            number(bytes.as_ref().len() as u64);
        }
        hash.update(object);
        Self(hash.finalize().into())
    }
}

/// Returns the constants file in pieces, in file order, so that a large file need not be held in
/// memory twice. Gaps between constants are zeros. `chunks` has the offset in the block and the
/// bytes of each constant, as in `LayoutHash::new`.
///
/// Fails if constants overlap or extend beyond `size`, which is a defect of earlier stages.
pub fn constants_file_parts<'a, B: AsRef<[u8]>>(
    layout: &LayoutHash,
    size: u64,
    chunks: &'a [(u64, B)],
) -> Result<Vec<Cow<'a, [u8]>>> {
    let mut sorted: Vec<(u64, &[u8])> =
        chunks.iter().map(|(offset, bytes)| (*offset, bytes.as_ref())).collect();
    sorted.sort_by_key(|&(offset, bytes)| (offset, bytes.len()));
    let mut parts = vec![Cow::Owned(file_header(layout, size))];
    let mut position = 0u64;
    for (offset, bytes) in sorted {
        push_zeros(&mut parts, position, offset)?;
        position = offset.saturating_add(bytes.len() as u64);
        parts.push(Cow::Borrowed(bytes));
    }
    push_zeros(&mut parts, position, size)?;
    Ok(parts)
}

/// Returns the constants file in one piece; see [`constants_file_parts`].
pub fn constants_file<B: AsRef<[u8]>>(
    layout: &LayoutHash,
    size: u64,
    chunks: &[(u64, B)],
) -> Result<Vec<u8>> {
    Ok(constants_file_parts(layout, size, chunks)?.concat())
}

fn push_zeros(parts: &mut Vec<Cow<'_, [u8]>>, from: u64, to: u64) -> Result<()> {
    let gap = to.checked_sub(from).and_then(|gap| usize::try_from(gap).ok());
    let gap = gap.ok_or_else(|| {
        Error::internal(format!(
            "a constant ends at {from}, after the start of the next constant or the end of the block at {to}"
        ))
    })?;
    if gap > 0 {
        parts.push(Cow::Owned(vec![0; gap]));
    }
    Ok(())
}

fn file_header(layout: &LayoutHash, size: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(CONSTANTS_FILE_HEADER);
    header.extend_from_slice(&CONSTANTS_FILE_MAGIC);
    header.extend_from_slice(&CONSTANTS_FILE_VERSION.to_le_bytes());
    header.extend_from_slice(&(CONSTANTS_FILE_HEADER as u32).to_le_bytes());
    header.extend_from_slice(&layout.0);
    header.extend_from_slice(&size.to_le_bytes());
    header.resize(CONSTANTS_FILE_HEADER, 0);
    header
}

/// Contents of a constants file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantsFileHeader {
    /// Layout hash of the objects that may use the file.
    pub layout: LayoutHash,
    /// Size of the block in bytes.
    pub size: u64,
}

impl ConstantsFileHeader {
    /// Parses the first bytes of a file of `file_size` bytes. Returns `None` if it is not a
    /// constants file.
    ///
    /// Fails for other versions and for truncated files.
    pub fn parse(start: &[u8], file_size: u64) -> Result<Option<Self>> {
        if !start.starts_with(&CONSTANTS_FILE_MAGIC) {
            return Ok(None);
        }
        let Some(header) = start.first_chunk::<CONSTANTS_FILE_HEADER>() else {
            return Err(Error::invalid("the constants file is truncated: it ends within its header"));
        };
        let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if version != CONSTANTS_FILE_VERSION {
            return Err(Error::invalid(format!(
                "unsupported constants file version: expected {CONSTANTS_FILE_VERSION}, got {version}"
            )));
        }
        let mut layout = [0; 32];
        layout.copy_from_slice(&header[16..48]);
        let mut size = [0; 8];
        size.copy_from_slice(&header[48..56]);
        let size = u64::from_le_bytes(size);
        if size.checked_add(CONSTANTS_FILE_HEADER as u64) != Some(file_size) {
            return Err(Error::invalid(format!(
                "the constants file is damaged: expected {size} bytes after its header, got {}",
                file_size.saturating_sub(CONSTANTS_FILE_HEADER as u64)
            )));
        }
        Ok(Some(Self { layout: LayoutHash(layout), size }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_its_header_and_the_block() {
        let layout = LayoutHash(std::array::from_fn(|i| i as u8));
        let chunks: [(u64, &[u8]); 2] = [(64, b"abc"), (0, b"x")];
        let file = constants_file(&layout, 128, &chunks).unwrap();
        assert_eq!(file.len(), 64 + 128);
        assert_eq!(file[..16], *b"TFCCONST\x01\0\0\0\x40\0\0\0");
        assert_eq!(file[16..48], layout.0);
        assert_eq!(file[48..64], [128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(file[64..66], *b"x\0");
        assert_eq!(file[128..132], *b"abc\0");
        assert_eq!(
            ConstantsFileHeader::parse(&file, 192).unwrap(),
            Some(ConstantsFileHeader { layout, size: 128 })
        );
    }

    #[test]
    fn other_files_and_broken_constants_files_have_different_errors() {
        assert_eq!(ConstantsFileHeader::parse(b"\x7fELF", 4).unwrap(), None);
        let chunks: [(u64, &[u8]); 0] = [];
        let mut file = constants_file(&LayoutHash([7; 32]), 64, &chunks).unwrap();
        assert!(ConstantsFileHeader::parse(&file, 127).unwrap_err().message().contains("got 63"));
        assert!(
            ConstantsFileHeader::parse(&file[..63], 63).unwrap_err().message().contains("within its header")
        );
        file[8] = 2;
        assert!(ConstantsFileHeader::parse(&file, 128).unwrap_err().message().contains("got 2"));
        file[8] = 1;
        file[48..56].fill(0xff);
        assert!(ConstantsFileHeader::parse(&file, 63).is_err());
    }

    #[test]
    fn the_layout_is_places_and_code_but_not_contents() {
        let hash = |object: &[u8], size, chunks: &[(u64, &[u8])]| LayoutHash::new(object, size, chunks);
        let one = hash(b"code", 128, &[(0, b"ab"), (64, b"c")]);
        assert_eq!(one, hash(b"code", 128, &[(0, b"xy"), (64, b"z")]));
        assert_ne!(one, hash(b"edoc", 128, &[(0, b"ab"), (64, b"c")]));
        assert_ne!(one, hash(b"code", 192, &[(0, b"ab"), (64, b"c")]));
        assert_ne!(one, hash(b"code", 128, &[(0, b"ab"), (64, b"cd")]));
        assert_ne!(one, hash(b"code", 128, &[(0, b"ab"), (65, b"c")]));
        assert_eq!(one.to_string().len(), 64);
    }

    #[test]
    fn constants_that_overlap_or_stick_out_are_refused() {
        let overlapping: [(u64, &[u8]); 2] = [(0, b"abc"), (2, b"d")];
        assert!(constants_file(&LayoutHash([0; 32]), 64, &overlapping).is_err());
        let beyond: [(u64, &[u8]); 1] = [(62, b"abc")];
        assert!(constants_file(&LayoutHash([0; 32]), 64, &beyond).is_err());
    }
}
