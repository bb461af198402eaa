//! Reads table files in LevelDB's format, which both checkpoint versions use. Verifies the checksum
//! of every block.

use super::{crc32c, damaged};
use bytes::Bytes;
use prost::encoding::decode_varint;
use support::Result;

/// Size of the footer of a table file: two block handles, padding, and the magic number.
pub(super) const FOOTER: usize = 48;
pub(super) const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Size of the trailer after each block: the compression type and a checksum.
const TRAILER: usize = 5;

/// Upper bound on Snappy's compression ratio: a copy of 64 bytes takes at least two bytes.
const MAX_EXPANSION: usize = 32;

/// Limits for the number of entries of a file, and for the total size of their keys with shared
/// prefixes expanded.
const MAX_ENTRIES: usize = 2 << 20;
const MAX_KEYS: usize = 256 << 20;

/// A key, its value, and the file offset of its block.
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) value: Bytes,
    pub(super) at: usize,
}

/// Reads all keys and values of a table file, in order.
pub(super) fn entries(file: &Bytes) -> Result<Vec<Entry>> {
    let start = file.len().checked_sub(FOOTER).ok_or_else(|| damaged(0, "too short for a table file"))?;
    let footer = &file[start..];
    if footer[40..] != MAGIC.to_le_bytes() {
        return Err(damaged(start + 40, "not a checkpoint: the table's magic number is missing"));
    }
    let mut handles = &footer[..40];
    let cut = || damaged(start, "the footer is truncated");
    let metaindex = read_handle(&mut handles).ok_or_else(cut)?;
    let index = read_handle(&mut handles).ok_or_else(cut)?;
    if handles.iter().any(|&byte| byte != 0) {
        return Err(damaged(start, "the padding of the footer is not zero"));
    }
    // The block is unused, but reading it detects damage.
    read_block(file, metaindex)?;
    let mut all = Table::default();
    let mut blocks = Table::default();
    blocks.add(&read_block(file, index)?, index.offset)?;
    for Entry { value, at, .. } in blocks.entries {
        let handle = read_handle(&mut value.as_ref());
        let handle = handle.ok_or_else(|| damaged(at, "a block handle is truncated"))?;
        all.add(&read_block(file, handle)?, handle.offset)?;
    }
    Ok(all.entries)
}

/// Location of a block in its file.
#[derive(Clone, Copy)]
struct Handle {
    offset: usize,
    size: usize,
}

fn read_handle(bytes: &mut &[u8]) -> Option<Handle> {
    Some(Handle { offset: read_size(bytes)?, size: read_size(bytes)? })
}

fn read_size(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(decode_varint(bytes).ok()?).ok()
}

fn read_block(file: &Bytes, handle: Handle) -> Result<Bytes> {
    let Handle { offset, size } = handle;
    let end = offset.checked_add(size).and_then(|end| end.checked_add(TRAILER));
    let Some(end) = end.filter(|&end| end <= file.len()) else {
        return Err(damaged(offset, "a block extends past the end of the file"));
    };
    let trailer = end - TRAILER;
    let checksum = u32::from_le_bytes(std::array::from_fn(|i| file[trailer + 1 + i]));
    if !crc32c::fits(checksum, crc32c::masked(&file[offset..=trailer])) {
        return Err(damaged(offset, "wrong checksum of the block at this offset"));
    }
    let block = file.slice(offset..trailer);
    match file[trailer] {
        0 => Ok(block),
        1 => {
            let length = snap::raw::decompress_len(&block).map_err(|e| damaged(offset, &e.to_string()))?;
            if length > block.len().saturating_mul(MAX_EXPANSION) {
                return Err(damaged(offset, "a compressed block states an impossible size"));
            }
            let bytes = snap::raw::Decoder::new().decompress_vec(&block);
            Ok(bytes.map_err(|e| damaged(offset, &e.to_string()))?.into())
        }
        _ => Err(damaged(trailer, "unknown compression type of a block")),
    }
}

/// Entries read so far, and the total size of their keys.
#[derive(Default)]
struct Table {
    entries: Vec<Entry>,
    key_bytes: usize,
}

impl Table {
    /// Adds the entries of a block. Each key is stored as a shared prefix length and a suffix. The
    /// block ends with restart points, which only a search needs, and their count.
    fn add(&mut self, block: &Bytes, at: usize) -> Result<()> {
        let cut = || damaged(at, "a block is truncated");
        let count_at = block.len().checked_sub(4).ok_or_else(cut)?;
        let restarts = u32::from_le_bytes(std::array::from_fn(|i| block[count_at + i])) as usize;
        let end = restarts.checked_mul(4).and_then(|size| count_at.checked_sub(size)).ok_or_else(cut)?;
        let mut rest = block.slice(..end);
        let mut key: Vec<u8> = Vec::new();
        while !rest.is_empty() {
            let mut head: &[u8] = &rest;
            let mut size = || read_size(&mut head).ok_or_else(cut);
            let (shared, unshared, length) = (size()?, size()?, size()?);
            let start = rest.len() - head.len();
            if shared > key.len() || unshared > head.len() || length > head.len() - unshared {
                return Err(cut());
            }
            key.truncate(shared);
            key.extend_from_slice(&head[..unshared]);
            let value = rest.slice(start + unshared..start + unshared + length);
            rest = rest.slice(start + unshared + length..);
            if self.entries.last().is_some_and(|last| last.key >= key) {
                return Err(damaged(at, "the keys are not sorted"));
            }
            self.key_bytes += key.len();
            if self.entries.len() >= MAX_ENTRIES || self.key_bytes > MAX_KEYS {
                return Err(damaged(at, "too many entries"));
            }
            self.entries.push(Entry { key: key.clone(), value, at });
        }
        Ok(())
    }
}
