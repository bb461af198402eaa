//! A reader of bytes that checks their end.

use support::{Error, Result};

/// Error for an object that LLVM cannot have written.
pub(crate) fn damaged(what: &str) -> Error {
    Error::invalid(format!("the WebAssembly object is damaged: {what}"))
}

/// Position in bytes.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    /// Number of bytes read.
    pub(crate) position: usize,
}

fn truncated() -> Error {
    Error::invalid("the WebAssembly file is damaged: it ends early, or has a number that is too long")
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// True if no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.position >= self.bytes.len()
    }

    /// Returns all bytes that are left, without reading them.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position.min(self.bytes.len())..]
    }

    /// Reads `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.position.checked_add(count).ok_or_else(truncated)?;
        let bytes = self.bytes.get(self.position..end).ok_or_else(truncated)?;
        self.position = end;
        Ok(bytes)
    }

    /// Reads a byte.
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Reads an unsigned number of at most 32 bits.
    pub fn u32(&mut self) -> Result<u32> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| truncated());
            }
        }
        Err(truncated())
    }

    /// Reads a signed number of at most 64 bits.
    pub fn i64(&mut self) -> Result<i64> {
        let mut value = 0i64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                let unused = 64u32.saturating_sub(shift + 7);
                return Ok(if unused == 0 { value } else { value << unused >> unused });
            }
        }
        Err(truncated())
    }

    /// Reads a number that is a size or an index.
    pub fn size(&mut self) -> Result<usize> {
        Ok(self.u32()? as usize)
    }

    /// Reads a name.
    pub fn name(&mut self) -> Result<&'a str> {
        let length = self.size()?;
        std::str::from_utf8(self.take(length)?)
            .map_err(|_| Error::invalid("the WebAssembly file is damaged: a name is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of DWARF's specification, and the limits.
    #[test]
    fn numbers_have_their_values() {
        let unsigned = |bytes: &[u8]| Cursor::new(bytes).u32();
        assert_eq!(unsigned(&[2]).unwrap(), 2);
        assert_eq!(unsigned(&[0x80, 1]).unwrap(), 128);
        assert_eq!(unsigned(&[0xe4, 0x80, 0x80, 0x80, 0]).unwrap(), 100);
        assert_eq!(unsigned(&[0xff, 0xff, 0xff, 0xff, 0x0f]).unwrap(), u32::MAX);
        assert!(unsigned(&[0xff, 0xff, 0xff, 0xff, 0x1f]).is_err());
        assert!(unsigned(&[0x80]).is_err());
        let signed = |bytes: &[u8]| Cursor::new(bytes).i64();
        assert_eq!(signed(&[0x7e]).unwrap(), -2);
        assert_eq!(signed(&[0x80, 0x7f]).unwrap(), -128);
        assert_eq!(signed(&[0xff, 0]).unwrap(), 127);
        assert_eq!(signed(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f]).unwrap(), i64::MIN);
    }

    #[test]
    fn reads_stop_at_the_end() {
        let mut cursor = Cursor::new(&[3, b'a', b'b']);
        assert!(cursor.name().is_err());
        assert_eq!(cursor.take(2).unwrap(), b"ab");
        assert!(cursor.is_empty() && cursor.byte().is_err());
    }
}
