//! Memory for compiled code: aligned to 64 bytes, and valid when all its bytes are zero.

use core::ops::{Deref, DerefMut};

/// Numeric types, and arrays of them, that are valid when all their bytes are zero.
///
/// # Safety
/// A value whose bytes are all zero must be valid, and dropping a value must do nothing.
#[expect(unsafe_code, reason = "the promise that lets memory begin as zeros")]
pub unsafe trait Plain {}

macro_rules! plain {
    ($($type:ty)*) => {
        $(
            // SAFETY: the value is the number 0, or `false`.
            #[expect(unsafe_code, reason = "the trait's promise")]
            unsafe impl Plain for $type {}
        )*
    };
}

plain!(bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);

// SAFETY: all elements are valid when zero.
#[expect(unsafe_code, reason = "the trait's promise")]
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

// SAFETY: the inner value is valid when zero, and padding has no value.
#[expect(unsafe_code, reason = "the trait's promise")]
unsafe impl<T: Plain> Plain for Aligned<T> {}

/// Value aligned to 64 bytes, as compiled code requires of its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub struct Aligned<T>(pub T);

impl<T: Plain> Aligned<T> {
    /// Creates a value whose bytes are all zero.
    pub const fn zeroed() -> Self {
        // SAFETY: guaranteed by `Plain`.
        #[expect(unsafe_code, reason = "types that may be zero")]
        unsafe {
            core::mem::zeroed()
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// Allocates a value whose bytes are all zero. The value is never on the stack, so it may be larger
/// than the stack.
#[cfg(feature = "std")]
pub fn zeroed_box<T: Plain>() -> Box<T> {
    use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        // SAFETY: a type without bytes is valid when zero.
        #[expect(unsafe_code, reason = "types that may be zero")]
        return Box::new(unsafe { core::mem::zeroed() });
    }
    // SAFETY: the layout has a size. The allocation has the layout of `T` and holds zeros, which
    // are valid for `T`.
    #[expect(unsafe_code, reason = "an allocation that begins as zeros")]
    unsafe {
        let start = alloc_zeroed(layout);
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Box::from_raw(start.cast())
    }
}

/// Bytes on the heap, aligned to 64. The size is rounded up to a multiple of 64.
#[cfg(feature = "std")]
#[derive(Clone, Debug, Default)]
pub struct AlignedBlock(Vec<Aligned<[u8; 64]>>);

#[cfg(feature = "std")]
impl AlignedBlock {
    /// Allocates at least `bytes` bytes, all zero.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub fn zeroed(bytes: usize) -> Result<Self, crate::Error> {
        let blocks = bytes.div_ceil(64);
        let mut block = Vec::new();
        let reserved = block.try_reserve_exact(blocks);
        reserved.map_err(|_| {
            crate::Error::new("not enough memory for the workers' scratch or for the constants")
        })?;
        block.resize(blocks, Aligned::zeroed());
        Ok(Self(block))
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the blocks are contiguous and have 64 bytes each, without padding.
        #[expect(unsafe_code, reason = "blocks as bytes")]
        unsafe {
            core::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 64)
        }
    }

    /// Returns the bytes for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, borrowed uniquely.
        #[expect(unsafe_code, reason = "blocks as bytes")]
        unsafe {
            core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * 64)
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zero() {
        let boxed = zeroed_box::<Aligned<[[f32; 3]; 1000]>>();
        assert_eq!(std::ptr::from_ref(&*boxed).addr() % 64, 0);
        assert!(boxed.iter().flatten().all(|&x| x == 0.0));
        assert_eq!(zeroed_box::<[f32; 0]>().len(), 0);
        let mut block = AlignedBlock::zeroed(100).expect("a little memory");
        assert_eq!((block.bytes().len(), block.bytes().as_ptr().addr() % 64), (128, 0));
        block.bytes_mut()[127] = 5;
        assert_eq!(block.bytes().iter().map(|&b| u32::from(b)).sum::<u32>(), 5);
        assert!(AlignedBlock::zeroed(usize::MAX / 2).is_err());
    }
}
