//! Byte buffers aligned to 64 bytes, as compiled code requires for temporaries, results, and
//! constants.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use support::{Code, Error, Result};

/// Alignment in bytes.
pub const ALIGNMENT: usize = 64;

/// A fixed number of bytes, initially zero, at a multiple of [`ALIGNMENT`].
pub struct AlignedBytes {
    start: NonNull<u8>,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes. Fails if the memory cannot be allocated.
    pub fn zeroed(len: usize) -> Result<Self> {
        let too_large = || {
            let message = format!("cannot allocate a buffer of {len} bytes; provide more memory");
            Error::unsupported(message).coded(Code::Resources)
        };
        let layout = layout(len).ok_or_else(too_large)?;
        // SAFETY: the size of the layout is never 0.
        #[expect(unsafe_code, reason = "an allocation with an alignment of our own")]
        let start = support::attempt(|| unsafe { alloc_zeroed(layout) });
        let start = NonNull::new(start).ok_or_else(too_large)?;
        Ok(Self { start, len })
    }

    /// A copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut aligned = Self::zeroed(bytes.len())?;
        aligned.copy_from_slice(bytes);
        Ok(aligned)
    }
}

/// Layout of a buffer. It has at least one byte, so that every buffer has a distinct address.
fn layout(len: usize) -> Option<Layout> {
    Layout::from_size_align(len.max(1), ALIGNMENT).ok()
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        let layout = layout(self.len).expect("the layout of an existing buffer is invalid");
        // SAFETY: allocated with the same layout by `zeroed`, freed once.
        #[expect(unsafe_code, reason = "an allocation with an alignment of our own")]
        unsafe {
            dealloc(self.start.as_ptr(), layout);
        }
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `len` initialized bytes that this owns.
        #[expect(unsafe_code, reason = "an allocation with an alignment of our own")]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.len)
        }
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len` initialized bytes that this owns, borrowed uniquely.
        #[expect(unsafe_code, reason = "an allocation with an alignment of our own")]
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len)
        }
    }
}

// SAFETY: plain bytes with one owner.
#[expect(unsafe_code, reason = "an owned pointer to bytes")]
unsafe impl Send for AlignedBytes {}
// SAFETY: shared access only reads.
#[expect(unsafe_code, reason = "an owned pointer to bytes")]
unsafe impl Sync for AlignedBytes {}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBytes({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zero_aligned_and_writable() {
        for len in [0, 1, 63, 64, 1000] {
            let mut bytes = AlignedBytes::zeroed(len).expect("a small buffer");
            assert_eq!(bytes.as_ptr().align_offset(ALIGNMENT), 0);
            assert_eq!(bytes.len(), len);
            assert!(bytes.iter().all(|&b| b == 0));
            bytes.fill(7);
            assert!(bytes.iter().all(|&b| b == 7));
        }
        assert!(AlignedBytes::zeroed(usize::MAX).is_err());
    }
}
