//! Reads [FlexBuffers](https://flatbuffers.dev/flatbuffers/internals/#flexbuffers): values that
//! describe their own types. Only maps, numbers, and vectors of integers are read.
//!
//! Offsets point backward from where they are stored, and a value is read from the end of the
//! buffer on. Every offset is checked before it is followed. Numbers and vectors contain no offsets
//! that are followed further, so that reading ends. All errors are `invalid`.

use crate::{bytes, damaged};
use support::{Error, Result};

const INT: u8 = 1;
const UINT: u8 = 2;
const FLOAT: u8 = 3;
const INDIRECT_INT: u8 = 6;
const INDIRECT_FLOAT: u8 = 8;
const MAP: u8 = 9;
const VECTOR: u8 = 10;
const VECTOR_INT: u8 = 11;
const VECTOR_UINT: u8 = 12;
const BOOL: u8 = 26;

/// A value in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    buffer: &'a [u8],
    /// Position of the number, or of the offset to the rest.
    at: usize,
    /// Bytes at `at`.
    width: usize,
    kind: u8,
    /// Bytes of each element at the offset's target.
    target_width: usize,
}

impl<'a> Value<'a> {
    /// Returns the outermost value.
    pub fn root(buffer: &'a [u8]) -> Result<Self> {
        let [.., packed, width] = buffer else { return Err(damaged()) };
        let width = usize::from(*width);
        let at = (buffer.len() - 2).checked_sub(width).ok_or_else(damaged)?;
        if !matches!(width, 1 | 2 | 4 | 8) {
            return Err(damaged());
        }
        Ok(Self::packed(buffer, at, width, *packed))
    }

    /// A value whose type and width are packed in a byte.
    fn packed(buffer: &'a [u8], at: usize, width: usize, packed: u8) -> Self {
        Self { buffer, at, width, kind: packed >> 2, target_width: 1 << (packed & 3) }
    }

    /// Returns the member of a map with this key; `None` if there is none.
    pub fn member(&self, key: &str) -> Result<Option<Self>> {
        if self.kind != MAP {
            return Err(Error::invalid("expected a FlexBuffers map"));
        }
        let Self { buffer, target_width: width, .. } = *self;
        let start = self.target()?;
        let count = size_before(buffer, start, width)?;
        // Before the elements: the offset of the vector of keys, the width of its elements, and the
        // number of elements.
        let keys = follow(buffer, start.checked_sub(3 * width).ok_or_else(damaged)?, width)?;
        let keys_width = size_before(buffer, start - width, width)?;
        if !matches!(keys_width, 1 | 2 | 4 | 8) || size_before(buffer, keys, keys_width)? != count {
            return Err(damaged());
        }
        // The elements are followed by a byte with the type of each.
        let types = count.checked_mul(width).and_then(|size| size.checked_add(start)).ok_or_else(damaged)?;
        let types = buffer.get(types..).and_then(|rest| rest.get(..count)).ok_or_else(damaged)?;
        for (k, packed) in types.iter().enumerate() {
            let at = k.checked_mul(keys_width).and_then(|size| size.checked_add(keys)).ok_or_else(damaged)?;
            let own = &buffer[follow(buffer, at, keys_width)?..];
            if own.strip_prefix(key.as_bytes()).is_some_and(|rest| rest.first() == Some(&0)) {
                return Ok(Some(Self::packed(buffer, start + k * width, width, *packed)));
            }
        }
        Ok(None)
    }

    /// Returns an integer.
    pub fn int(&self) -> Result<i64> {
        let number = self.direct()?;
        match number.kind {
            INT => signed(number.buffer, number.at, number.width),
            UINT | BOOL => i64::try_from(unsigned(number.buffer, number.at, number.width)?)
                .map_err(|_| Error::invalid("an integer does not fit 64 bits with a sign")),
            _ => Err(Error::invalid("expected an integer")),
        }
    }

    /// Returns a number.
    pub fn float(&self) -> Result<f64> {
        let number = self.direct()?;
        match (number.kind, number.width) {
            (FLOAT, 4) => Ok(f64::from(f32::from_le_bytes(bytes(number.buffer, number.at)?))),
            (FLOAT, 8) => Ok(f64::from_le_bytes(bytes(number.buffer, number.at)?)),
            (INT | UINT, _) => Ok(number.int()? as f64),
            _ => Err(Error::invalid("expected a number")),
        }
    }

    /// Returns the elements of a vector of integers.
    pub fn ints(&self) -> Result<Vec<i64>> {
        let Self { buffer, target_width: width, kind, .. } = *self;
        if !matches!(kind, VECTOR | VECTOR_INT | VECTOR_UINT) {
            return Err(Error::invalid("expected a vector of integers"));
        }
        let start = self.target()?;
        let count = size_before(buffer, start, width)?;
        let size = count.checked_mul(width).ok_or_else(damaged)?;
        let rest = buffer[start..].get(size..).ok_or_else(damaged)?;
        let element = |k: usize| {
            let packed = match kind {
                VECTOR => *rest.get(k).ok_or_else(damaged)?,
                VECTOR_INT => INT << 2,
                _ => UINT << 2,
            };
            Self::packed(buffer, start + k * width, width, packed).int()
        };
        (0..count).map(element).collect()
    }

    /// The number itself if this is an offset of one.
    fn direct(&self) -> Result<Self> {
        match self.kind {
            INDIRECT_INT..=INDIRECT_FLOAT => Ok(Self {
                at: self.target()?,
                width: self.target_width,
                kind: self.kind - INDIRECT_INT + INT,
                ..*self
            }),
            _ => Ok(*self),
        }
    }

    fn target(&self) -> Result<usize> {
        follow(self.buffer, self.at, self.width)
    }
}

/// Returns the target of the offset at `at`, which is in the buffer.
fn follow(buffer: &[u8], at: usize, width: usize) -> Result<usize> {
    let offset = usize::try_from(unsigned(buffer, at, width)?).map_err(|_| damaged())?;
    at.checked_sub(offset).ok_or_else(damaged)
}

/// Returns the number before the elements of a vector that begin at `start`.
fn size_before(buffer: &[u8], start: usize, width: usize) -> Result<usize> {
    let size = unsigned(buffer, start.checked_sub(width).ok_or_else(damaged)?, width)?;
    usize::try_from(size).map_err(|_| damaged())
}

fn unsigned(buffer: &[u8], at: usize, width: usize) -> Result<u64> {
    Ok(match width {
        1 => u64::from(u8::from_le_bytes(bytes(buffer, at)?)),
        2 => u64::from(u16::from_le_bytes(bytes(buffer, at)?)),
        4 => u64::from(u32::from_le_bytes(bytes(buffer, at)?)),
        _ => u64::from_le_bytes(bytes(buffer, at)?),
    })
}

fn signed(buffer: &[u8], at: usize, width: usize) -> Result<i64> {
    let unused = 64 - 8 * width as u32;
    Ok((unsigned(buffer, at, width)? << unused) as i64 >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// {"a": -2, "b": 1.5, "v": [300, 7]}
    const BUFFER: &[u8] = &[
        b'a', 0, b'b', 0, b'v', 0, // keys
        2, 0, 44, 1, 7, 0, // a vector of 16-bit integers
        3, 13, 12, 11, // the vector of keys
        3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, // offset and width of the keys, number of elements
        0xfe, 0xff, 0xff, 0xff, 0, 0, 0xc0, 0x3f, 28, 0, 0, 0, // elements
        6, 14, 45, // their types
        15, 38, 1, // the root
    ];

    fn members(buffer: &[u8]) -> Result<(i64, f64, Vec<i64>)> {
        let root = Value::root(buffer)?;
        let of = |key: &str| root.member(key)?.ok_or_else(|| Error::invalid("missing"));
        Ok((of("a")?.int()?, of("b")?.float()?, of("v")?.ints()?))
    }

    #[test]
    fn members_of_maps_are_found_by_their_keys() {
        let root = Value::root(BUFFER).expect("a root");
        assert_eq!(members(BUFFER).expect("members"), (-2, 1.5, vec![300, 7]));
        assert!(root.member("c").expect("a map").is_none());
        assert!(root.member("").expect("a map").is_none());
        assert_eq!(
            root.int().expect_err("a map is no integer").to_string(),
            Error::invalid("expected an integer").to_string()
        );
    }

    #[test]
    fn every_damaged_byte_is_an_error_or_another_value() {
        for length in 0..BUFFER.len() {
            let _ = members(&BUFFER[..length]);
            let _ = members(&BUFFER[length..]);
        }
        for at in 0..BUFFER.len() {
            for value in 0..=255 {
                let mut buffer = BUFFER.to_vec();
                buffer[at] = value;
                let _ = members(&buffer);
            }
        }
    }
}
