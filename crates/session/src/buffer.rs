//! Tensor memory: aligned blocks, which the thread that drops them reuses.

use jit::AlignedBytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use support::Result;

/// Maximum number of bytes that a thread retains for reuse.
const MAX_FREE_BYTES: usize = 64 << 20;

/// Smaller blocks are rounded up to powers of two, larger ones to multiples of this.
const LARGE: usize = 64 << 10;

/// Size of the smallest block in bytes.
const SMALLEST: usize = 64;

/// Free blocks by size.
#[derive(Default)]
struct FreeBlocks {
    blocks: BTreeMap<usize, Vec<AlignedBytes>>,
    bytes: usize,
}

thread_local! {
    static FREE_BLOCKS: RefCell<FreeBlocks> = RefCell::default();
}

/// Bytes at an address that is a multiple of 64; uninitialized at first.
#[derive(Debug)]
pub struct Buffer {
    /// `None` only during `drop`.
    block: Option<AlignedBytes>,
    len: usize,
}

impl Buffer {
    /// `len` uninitialized bytes. Fails if the memory cannot be allocated.
    pub fn uninitialized(len: usize) -> Result<Self> {
        let size = block_size(len);
        let block = FREE_BLOCKS.try_with(|free| {
            let free = &mut *free.borrow_mut();
            let block = free.blocks.get_mut(&size)?.pop()?;
            free.bytes -= size;
            Some(block)
        });
        let block = match block.ok().flatten() {
            Some(block) => block,
            None => AlignedBytes::zeroed(size)?,
        };
        Ok(Self { block: Some(block), len })
    }

    /// A copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut buffer = Self::uninitialized(bytes.len())?;
        buffer.copy_from_slice(bytes);
        Ok(buffer)
    }

    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> Result<Self> {
        let mut buffer = Self::uninitialized(len)?;
        buffer.fill(0);
        Ok(buffer)
    }
}

/// Size of the block that backs a buffer of `len` bytes.
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
        // The thread-local list may already be gone if the thread is exiting.
        let _ = FREE_BLOCKS.try_with(|free| {
            let free = &mut *free.borrow_mut();
            if free.bytes + size <= MAX_FREE_BYTES {
                free.bytes += size;
                free.blocks.entry(size).or_default().push(block);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let block = self.block.as_ref().expect("the buffer was already dropped");
        &block[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let block = self.block.as_mut().expect("the buffer was already dropped");
        &mut block[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_reused_and_stay_aligned() {
        for len in [0, 1, 64, 100, 70_000] {
            let first = Buffer::uninitialized(len).expect("small");
            let address = first.as_ptr();
            assert_eq!((first.len(), address.align_offset(jit::ALIGNMENT)), (len, 0));
            drop(first);
            let second = Buffer::zeroed(len).expect("small");
            assert_eq!(second.as_ptr(), address);
            assert!(second.iter().all(|&byte| byte == 0));
        }
        assert!(Buffer::uninitialized(usize::MAX / 2).is_err());
    }
}
