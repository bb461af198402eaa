//! Writes table files in LevelDB's format; [`super::table`] reads them.

use super::{crc32c, table};
use prost::encoding::encode_varint;

/// Size above which a data block is closed.
const BLOCK_BYTES: usize = 256 << 10;

/// Number of entries between restart points of a data block, where a key is written in full so that
/// readers can search. The index has a restart point at every entry.
const RESTART_INTERVAL: usize = 16;

/// Table file under construction. Keys must be added in order.
pub(super) struct TableWriter {
    file: Vec<u8>,
    block: BlockWriter,
    /// Index: a separator key after each block, and the block's location.
    blocks: BlockWriter,
    last_key: Vec<u8>,
    /// Location of the last closed block. Its index entry is added once the next key is known.
    closed: Option<Vec<u8>>,
}

impl Default for TableWriter {
    fn default() -> Self {
        Self {
            file: Vec::new(),
            block: BlockWriter::new(RESTART_INTERVAL),
            blocks: BlockWriter::new(1),
            last_key: Vec::new(),
            closed: None,
        }
    }
}

impl TableWriter {
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        if let Some(handle) = self.closed.take() {
            self.blocks.add(&between(&self.last_key, key), &handle);
        }
        self.block.add(key, value);
        key.clone_into(&mut self.last_key);
        if self.block.bytes.len() >= BLOCK_BYTES {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        if self.block.count > 0 {
            let block = std::mem::replace(&mut self.block, BlockWriter::new(RESTART_INTERVAL));
            self.closed = Some(write_block(&mut self.file, block));
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.close_block();
        if let Some(handle) = self.closed.take() {
            self.blocks.add(&successor(&self.last_key), &handle);
        }
        let mut footer = write_block(&mut self.file, BlockWriter::new(RESTART_INTERVAL));
        footer.extend(write_block(&mut self.file, self.blocks));
        footer.resize(table::FOOTER - 8, 0);
        self.file.extend(footer);
        self.file.extend(table::MAGIC.to_le_bytes());
        self.file
    }
}

/// Returns a short key that is at least `key` and less than `next`.
fn between(key: &[u8], next: &[u8]) -> Vec<u8> {
    let at = key.iter().zip(next).take_while(|(a, b)| a == b).count();
    match (key.get(at), next.get(at)) {
        (Some(&byte), Some(&limit)) if byte < 0xff && byte + 1 < limit => raised(key, at),
        _ => key.to_vec(),
    }
}

/// Returns a short key that is at least `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    key.iter().position(|&byte| byte < 0xff).map_or_else(|| key.to_vec(), |at| raised(key, at))
}

/// Truncates a key after byte `at` and increments that byte.
fn raised(key: &[u8], at: usize) -> Vec<u8> {
    let mut short = key[..=at].to_vec();
    short[at] += 1;
    short
}

/// Appends a block and its trailer. Returns the encoded block handle.
fn write_block(file: &mut Vec<u8>, block: BlockWriter) -> Vec<u8> {
    let start = file.len();
    file.extend(block.finish());
    let mut handle = Vec::new();
    encode_varint(start as u64, &mut handle);
    encode_varint((file.len() - start) as u64, &mut handle);
    // Compression type: none.
    file.push(0);
    let checksum = crc32c::masked(&file[start..]);
    file.extend(checksum.to_le_bytes());
    handle
}

struct BlockWriter {
    interval: usize,
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    count: usize,
    last_key: Vec<u8>,
}

impl BlockWriter {
    /// Creates a writer that stores a key in full every `interval` entries.
    fn new(interval: usize) -> Self {
        Self { interval, bytes: Vec::new(), restarts: Vec::new(), count: 0, last_key: Vec::new() }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = if self.count.is_multiple_of(self.interval) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            self.last_key.iter().zip(key).take_while(|(a, b)| a == b).count()
        };
        for size in [shared, key.len() - shared, value.len()] {
            encode_varint(size as u64, &mut self.bytes);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        key.clone_into(&mut self.last_key);
        self.count += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        if self.restarts.is_empty() {
            self.restarts.push(0);
        }
        let count = self.restarts.len() as u32;
        for number in self.restarts.into_iter().chain([count]) {
            self.bytes.extend(number.to_le_bytes());
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_blocks_lie_between_those_of_their_tensors() {
        for (key, next, short) in [
            (&b"layer1/kernel"[..], &b"layer7"[..], &b"layer2"[..]),
            (b"layer1/kernel", b"layer2", b"layer1/kernel"),
            (b"layer", b"layer2", b"layer"),
            (b"a\xff", b"b", b"a\xff"),
        ] {
            let separator = between(key, next);
            assert_eq!(separator, short);
            assert!(key <= &separator[..] && &separator[..] < next);
        }
        assert_eq!(successor(b"uint8"), b"v");
        assert_eq!(successor(b"\xffab"), b"\xffb");
        assert_eq!(successor(b"\xff"), b"\xff");
    }
}
