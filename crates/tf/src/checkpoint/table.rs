//! Table files in LevelDB's format, as both versions of checkpoints use it.

use super::{corrupt, crc32c};
use bytes::Bytes;
use prost::encoding::decode_varint;
use support::Result;

/// The end of a table file: two block handles, padding, the magic number.
const FOOTER: usize = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Behind each block: how it is compressed, and a checksum.
const TRAILER: usize = 5;

/// No compression of Snappy's gets better than this: a copy of 64 bytes takes at least two.
const MAX_EXPANSION: usize = 32;

/// A key and its value.
pub(super) type Entry = (Vec<u8>, Bytes);

/// All keys and values of a table file, in order.
pub(super) fn entries(file: &Bytes) -> Result<Vec<Entry>> {
    let start = file.len().checked_sub(FOOTER).ok_or_else(|| corrupt("it is too short for a table"))?;
    let footer = &file[start..];
    if footer[40..] != MAGIC.to_le_bytes() {
        return Err(corrupt("it does not end as a table does; is it a checkpoint?"));
    }
    let mut handles = &footer[..40];
    let _metaindex = read_handle(&mut handles)?;
    let index = read_handle(&mut handles)?;
    let mut all = Vec::new();
    for (_, handle) in block_entries(&read_block(file, index)?)? {
        let block = read_block(file, read_handle(&mut handle.as_ref())?)?;
        all.extend(block_entries(&block)?);
    }
    if all.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return Err(corrupt("its keys are not in order"));
    }
    Ok(all)
}

/// Offset and size of a block.
type Handle = (usize, usize);

fn read_handle(bytes: &mut &[u8]) -> Result<Handle> {
    Ok((read_size(bytes)?, read_size(bytes)?))
}

fn read_size(bytes: &mut &[u8]) -> Result<usize> {
    let value = decode_varint(bytes).map_err(|_| corrupt("a number is cut off"))?;
    usize::try_from(value).map_err(|_| corrupt("a number is too large"))
}

fn read_block(file: &Bytes, (offset, size): Handle) -> Result<Bytes> {
    let end = offset.checked_add(size).and_then(|end| end.checked_add(TRAILER));
    let Some(end) = end.filter(|&end| end <= file.len()) else {
        return Err(corrupt("a block lies beyond its end"));
    };
    let trailer = end - TRAILER;
    let checksum = u32::from_le_bytes(std::array::from_fn(|i| file[trailer + 1 + i]));
    if crc32c::masked(&file[offset..=trailer]) != checksum {
        return Err(corrupt("the checksum of a block is wrong"));
    }
    let block = file.slice(offset..trailer);
    match file[trailer] {
        0 => Ok(block),
        1 => {
            let length = snap::raw::decompress_len(&block).map_err(|e| corrupt(&e.to_string()))?;
            if length > block.len().saturating_mul(MAX_EXPANSION) {
                return Err(corrupt("a compressed block claims an impossible size"));
            }
            let bytes =
                snap::raw::Decoder::new().decompress_vec(&block).map_err(|e| corrupt(&e.to_string()))?;
            Ok(bytes.into())
        }
        _ => Err(corrupt("a block is compressed in an unknown way")),
    }
}

/// The entries of a block. Each key shares its beginning with the one before. At the end stand restart points, which only
/// a search needs, and their number.
fn block_entries(block: &Bytes) -> Result<Vec<Entry>> {
    let cut = || corrupt("a block is cut off");
    let count_at = block.len().checked_sub(4).ok_or_else(cut)?;
    let restarts = u32::from_le_bytes(std::array::from_fn(|i| block[count_at + i])) as usize;
    let end = restarts.checked_mul(4).and_then(|size| count_at.checked_sub(size)).ok_or_else(cut)?;
    let mut rest = block.slice(..end);
    let mut entries: Vec<Entry> = Vec::new();
    let mut key: Vec<u8> = Vec::new();
    while !rest.is_empty() {
        let mut head: &[u8] = &rest;
        let shared = read_size(&mut head)?;
        let unshared = read_size(&mut head)?;
        let length = read_size(&mut head)?;
        let at = rest.len() - head.len();
        if shared > key.len() || unshared > head.len() || length > head.len() - unshared {
            return Err(cut());
        }
        key.truncate(shared);
        key.extend_from_slice(&head[..unshared]);
        entries.push((key.clone(), rest.slice(at + unshared..at + unshared + length)));
        rest = rest.slice(at + unshared + length..);
    }
    Ok(entries)
}
