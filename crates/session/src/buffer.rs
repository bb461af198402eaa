//! Memory of tensors: aligned, and used again by the thread that gives it back.

use jit::AlignedBytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use support::Result;

/// The most bytes that a thread keeps for later.
const MAX_KEPT: usize = 64 << 20;

/// Blocks up to this size are rounded up to powers of two, larger ones to multiples of it.
const LARGE: usize = 64 << 10;

/// The smallest block.
const SMALLEST: usize = 64;

/// Blocks that nobody uses, by their sizes.
#[derive(Default)]
struct Kept {
    blocks: BTreeMap<usize, Vec<AlignedBytes>>,
    bytes: usize,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// Bytes at a multiple of 64, of any content at first.
#[derive(Debug)]
pub struct Buffer {
    /// `None` only while it is dropped.
    block: Option<AlignedBytes>,
    len: usize,
}

impl Buffer {
    /// So many bytes; an error for more than there are to be had.
    pub fn of_any_content(len: usize) -> Result<Self> {
        let size = block_size(len);
        let kept = KEPT.try_with(|kept| {
            let kept = &mut *kept.borrow_mut();
            let block = kept.blocks.get_mut(&size)?.pop()?;
            kept.bytes -= size;
            Some(block)
        });
        let block = match kept.ok().flatten() {
            Some(block) => block,
            None => AlignedBytes::zeroed(size)?,
        };
        Ok(Self { block: Some(block), len })
    }

    /// A copy of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut buffer = Self::of_any_content(bytes.len())?;
        buffer.copy_from_slice(bytes);
        Ok(buffer)
    }

    /// So many zeros.
    pub fn zeroed(len: usize) -> Result<Self> {
        let mut buffer = Self::of_any_content(len)?;
        buffer.fill(0);
        Ok(buffer)
    }
}

/// How large the block of a buffer is.
fn block_size(len: usize) -> usize {
    match len {
        0..=LARGE => len.max(SMALLEST).next_power_of_two(),
        _ => len.checked_next_multiple_of(LARGE).unwrap_or(len),
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(block) = self.block.take() else { return };
        let size = block.len();
        // A thread that ends has nothing to keep it in any more.
        let _ = KEPT.try_with(|kept| {
            let kept = &mut *kept.borrow_mut();
            if kept.bytes + size <= MAX_KEPT {
                kept.bytes += size;
                kept.blocks.entry(size).or_default().push(block);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let block = self.block.as_ref().expect("the block is there until the buffer is dropped");
        &block[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let block = self.block.as_mut().expect("the block is there until the buffer is dropped");
        &mut block[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_used_again_and_stay_aligned() {
        for len in [0, 1, 64, 100, 70_000] {
            let first = Buffer::of_any_content(len).expect("small");
            let address = first.as_ptr();
            assert_eq!((first.len(), address.align_offset(jit::ALIGNMENT)), (len, 0));
            drop(first);
            let second = Buffer::zeroed(len).expect("small");
            assert_eq!(second.as_ptr(), address);
            assert!(second.iter().all(|&byte| byte == 0));
        }
        assert!(Buffer::of_any_content(usize::MAX / 2).is_err());
    }
}
