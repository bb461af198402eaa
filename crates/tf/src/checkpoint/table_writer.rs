//! Writes table files in LevelDB's format; [`super::table`] reads them.

use super::{crc32c, table};
use prost::encoding::encode_varint;

/// A block of the index is closed when it is larger.
const BLOCK_BYTES: usize = 256 << 10;

/// Every so many entries of a block a key is written whole, so that readers can search; in the index every one.
const RESTART_INTERVAL: usize = 16;

/// A table file in the making; keys come in order.
pub(super) struct TableWriter {
    file: Vec<u8>,
    block: BlockWriter,
    /// The index: behind which key each block ends, and where the block is.
    blocks: BlockWriter,
    last_key: Vec<u8>,
    /// The place of the last block, until it is known which key comes behind it.
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
            self.blocks.add(&behind(&self.last_key), &handle);
        }
        let mut footer = write_block(&mut self.file, BlockWriter::new(RESTART_INTERVAL));
        footer.extend(write_block(&mut self.file, self.blocks));
        footer.resize(table::FOOTER - 8, 0);
        self.file.extend(footer);
        self.file.extend(table::MAGIC.to_le_bytes());
        self.file
    }
}

/// A short key that is no less than one key and less than the next one.
fn between(key: &[u8], next: &[u8]) -> Vec<u8> {
    let at = key.iter().zip(next).take_while(|(a, b)| a == b).count();
    match (key.get(at), next.get(at)) {
        (Some(&byte), Some(&limit)) if byte < 0xff && byte + 1 < limit => raised(key, at),
        _ => key.to_vec(),
    }
}

/// A short key that is no less than a key.
fn behind(key: &[u8]) -> Vec<u8> {
    key.iter().position(|&byte| byte < 0xff).map_or_else(|| key.to_vec(), |at| raised(key, at))
}

/// A key up to a byte, and one more in that.
fn raised(key: &[u8], at: usize) -> Vec<u8> {
    let mut short = key[..=at].to_vec();
    short[at] += 1;
    short
}

/// Appends a block with its trailer; gives back its encoded place.
fn write_block(file: &mut Vec<u8>, block: BlockWriter) -> Vec<u8> {
    let start = file.len();
    file.extend(block.finish());
    let mut handle = Vec::new();
    encode_varint(start as u64, &mut handle);
    encode_varint((file.len() - start) as u64, &mut handle);
    // Not compressed.
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
    /// Every so many entries a key is written whole.
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
            let found = between(key, next);
            assert_eq!(found, short);
            assert!(key <= &found[..] && &found[..] < next);
        }
        assert_eq!(behind(b"uint8"), b"v");
        assert_eq!(behind(b"\xffab"), b"\xffb");
        assert_eq!(behind(b"\xff"), b"\xff");
    }
}
