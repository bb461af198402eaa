//! Constants of programs that keep their weights in a file (`--constants=file`).

use crate::Error;
use core::ffi::c_void;

/// Size in bytes of the header of a constants file.
pub const CONSTANTS_HEADER_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"TFCCONST";
const VERSION: u32 = 1;

/// Contents of a constants file. They are checked when a model takes them, not before. Clones share
/// the memory.
#[derive(Clone, Debug)]
pub struct Constants(Bytes);

#[derive(Clone, Debug)]
enum Bytes {
    Static(&'static [u8]),
    #[cfg(feature = "std")]
    Shared(std::sync::Arc<crate::AlignedBlock>, usize),
}

impl Constants {
    /// Uses a file that is in memory for the life of the program: in flash, in a permanent mapping,
    /// or in a static `Aligned(*include_bytes!(..))`. The bytes must be aligned to 64 bytes.
    pub const fn from_static(file: &'static [u8]) -> Self {
        Self(Bytes::Static(file))
    }

    /// Reads a file into memory. All models that take clones of the value share one copy.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or there is not enough memory for it.
    #[cfg(feature = "std")]
    pub fn read(path: impl AsRef<std::path::Path>) -> std::io::Result<Self> {
        use std::io::Read as _;
        let mut file = std::fs::File::open(path)?;
        let size = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
        let mut block = crate::AlignedBlock::zeroed(size).map_err(std::io::Error::other)?;
        file.read_exact(&mut block.bytes_mut()[..size])?;
        Ok(Self(Bytes::Shared(std::sync::Arc::new(block), size)))
    }

    fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Static(bytes) => bytes,
            #[cfg(feature = "std")]
            Bytes::Shared(block, size) => &block.bytes()[..*size],
        }
    }

    /// Returns the address of the constants block, for
    /// [`Frame::constants`](crate::Frame::constants). The memory lives as long as `self`.
    pub fn address(&self) -> *const c_void {
        self.bytes()[CONSTANTS_HEADER_BYTES.min(self.bytes().len())..].as_ptr().cast()
    }

    /// Checks that these are the constants for code with this layout hash.
    ///
    /// # Errors
    /// Returns an error that says why they are not.
    pub fn check(&self, layout: &[u8; 32]) -> Result<(), Error> {
        let file = self.bytes();
        let Some((header, block)) = file.split_first_chunk::<CONSTANTS_HEADER_BYTES>() else {
            return Err(Error::new("the constants file is shorter than its header"));
        };
        if header[..8] != *MAGIC {
            return Err(Error::new("not a constants file of tfcompile: it does not begin with TFCCONST"));
        }
        if header[8..12] != VERSION.to_le_bytes() {
            return Err(Error::new(
                "unsupported version of the constants file: build the program and the file with the same tfcompile",
            ));
        }
        if header[16..48] != *layout {
            return Err(Error::new(
                "the constants are for other code: their layout hash differs from that of this program. They come from \
                 another model, other flags, or another tfcompile; or the program was built from untrained weights, such as \
                 zeros, which simplify the code: build it from trained ones",
            ));
        }
        if header[48..56] != (block.len() as u64).to_le_bytes() {
            return Err(Error::new(
                "the constants file is cut off: its size differs from the size in its header",
            ));
        }
        if !file.as_ptr().addr().is_multiple_of(64) {
            return Err(Error::new("the constants are not aligned to 64 bytes: wrap them in Aligned"));
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    const LAYOUT: [u8; 32] = [7; 32];

    fn file(block: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        file.extend(b"TFCCONST");
        file.extend(1u32.to_le_bytes());
        file.extend(64u32.to_le_bytes());
        file.extend(LAYOUT);
        file.extend((block.len() as u64).to_le_bytes());
        file.extend([0; 8]);
        file.extend(block);
        file
    }

    /// Checks a file with these bytes.
    fn checked(bytes: &[u8]) -> Result<(), Error> {
        let mut block = crate::AlignedBlock::zeroed(bytes.len()).expect("a little memory");
        block.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Constants(Bytes::Shared(std::sync::Arc::new(block), bytes.len())).check(&LAYOUT)
    }

    #[test]
    fn damaged_files_and_files_of_other_programs_are_refused() {
        assert_eq!(checked(&file(b"abc")), Ok(()));
        let damaged = |at: usize| {
            let mut bytes = file(b"abc");
            bytes[at] ^= 1;
            checked(&bytes).expect_err("damaged").message()
        };
        assert!(damaged(0).contains("TFCCONST"));
        assert!(damaged(8).contains("version"));
        assert!(damaged(20).contains("other code"));
        assert!(damaged(48).contains("cut off"));
        assert!(checked(&file(b"")[..63]).is_err());
    }

    #[test]
    fn misaligned_constants_are_refused() {
        static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| file(&[0; 200]));
        let bytes: &'static [u8] = &FILE;
        let aligned = bytes.as_ptr().addr().is_multiple_of(64);
        assert_eq!(Constants::from_static(bytes).check(&LAYOUT).is_ok(), aligned);
    }
}
