//! Reads [FlatBuffers](https://flatbuffers.dev/internals/): tables of numbered fields, vectors, and
//! strings, linked by offsets.
//!
//! Offsets of tables and vectors point forward, so no structure contains itself. Every offset is
//! checked before it is followed, and a field must lie within its table. A missing field reads as
//! its default. All errors are `invalid`.

pub mod flex;

use support::{Error, Result};

/// A table in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    buffer: &'a [u8],
    position: usize,
}

/// A vector in a buffer: `count` elements that begin at `start`.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a> {
    buffer: &'a [u8],
    start: usize,
    count: usize,
}

fn damaged() -> Error {
    Error::invalid("the file is damaged: an offset is out of bounds")
}

fn bytes<const N: usize>(buffer: &[u8], position: usize) -> Result<[u8; N]> {
    let end = position.checked_add(N).ok_or_else(damaged)?;
    let slice = buffer.get(position..end).ok_or_else(damaged)?;
    Ok(slice.try_into().expect("expected a slice of N bytes"))
}

/// Returns the target of the offset at `position`.
fn follow(buffer: &[u8], position: usize) -> Result<usize> {
    let offset = u32::from_le_bytes(bytes(buffer, position)?) as usize;
    let target = position.checked_add(offset).filter(|target| *target < buffer.len() && offset > 0);
    target.ok_or_else(damaged)
}

/// Defines accessors of scalar fields and of vectors of scalars.
macro_rules! scalars {
    ($($name:ident, $names:ident: $type:ty;)*) => {
        impl Table<'_> {
            $(
                #[doc = concat!("Returns a field of type `", stringify!($type), "`, or the default if it is missing.")]
                pub fn $name(&self, number: usize, default: $type) -> Result<$type> {
                    self.field(number)?.map_or(Ok(default), |at| Ok(<$type>::from_le_bytes(bytes(self.buffer, at)?)))
                }

                #[doc = concat!("Returns a vector of `", stringify!($type), "`; empty if the field is missing.")]
                pub fn $names(&self, number: usize) -> Result<Vec<$type>> {
                    let width = size_of::<$type>();
                    let Vector { buffer, start, count } = self.vector(number, width)?;
                    (0..count).map(|k| Ok(<$type>::from_le_bytes(bytes(buffer, start + width * k)?))).collect()
                }
            )*
        }
    };
}

scalars! {
    u8, u8s: u8;
    i8, i8s: i8;
    u16, u16s: u16;
    u32, u32s: u32;
    i32, i32s: i32;
    u64, u64s: u64;
    i64, i64s: i64;
    f32, f32s: f32;
}

impl<'a> Table<'a> {
    /// Returns the outermost table.
    pub fn root(buffer: &'a [u8]) -> Result<Self> {
        Ok(Self { buffer, position: follow(buffer, 0)? })
    }

    /// Returns the position of a field, counted from 0; `None` if it is missing.
    fn field(&self, number: usize) -> Result<Option<usize>> {
        let distance = i32::from_le_bytes(bytes(self.buffer, self.position)?);
        let fields =
            (self.position as i64).checked_sub(i64::from(distance)).and_then(|at| usize::try_from(at).ok());
        let fields = fields.ok_or_else(damaged)?;
        let size = usize::from(u16::from_le_bytes(bytes(self.buffer, fields)?));
        let entry = 4 + 2 * number;
        if entry + 2 > size {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(bytes(self.buffer, fields.checked_add(entry).ok_or_else(damaged)?)?);
        Ok((offset != 0).then(|| self.position + usize::from(offset)))
    }

    /// Returns a field of type `bool`, or the default if it is missing.
    pub fn bool(&self, number: usize, default: bool) -> Result<bool> {
        Ok(self.u8(number, u8::from(default))? != 0)
    }

    /// Returns a table; `None` if the field is missing.
    pub fn table(&self, number: usize) -> Result<Option<Self>> {
        let at = self.field(number)?;
        at.map(|at| Ok(Self { position: follow(self.buffer, at)?, ..*self })).transpose()
    }

    /// Returns a vector whose elements take `width` bytes each; empty if the field is missing.
    pub fn vector(&self, number: usize, width: usize) -> Result<Vector<'a>> {
        let Some(at) = self.field(number)? else {
            return Ok(Vector { buffer: self.buffer, start: 0, count: 0 });
        };
        Vector::at(self.buffer, follow(self.buffer, at)?, width)
    }

    /// Returns a vector of tables; empty if the field is missing.
    pub fn tables(
        &self,
        number: usize,
    ) -> Result<impl ExactSizeIterator<Item = Result<Table<'a>>> + use<'a>> {
        Ok(self.vector(number, 4)?.tables())
    }

    /// Returns a vector of bytes; empty if the field is missing.
    pub fn bytes(&self, number: usize) -> Result<&'a [u8]> {
        Ok(self.vector(number, 1)?.as_bytes())
    }

    /// Returns a string; empty if the field is missing.
    pub fn text(&self, number: usize) -> Result<&'a str> {
        self.vector(number, 1)?.as_text()
    }
}

impl<'a> Vector<'a> {
    fn at(buffer: &'a [u8], position: usize, width: usize) -> Result<Self> {
        let count = u32::from_le_bytes(bytes(buffer, position)?) as usize;
        let start = position + 4;
        let end = count.checked_mul(width).and_then(|size| size.checked_add(start));
        match end {
            Some(end) if end <= buffer.len() => Ok(Self { buffer, start, count }),
            _ => Err(damaged()),
        }
    }

    /// Returns the bytes of a byte vector.
    pub fn as_bytes(&self) -> &'a [u8] {
        &self.buffer[self.start..self.start + self.count]
    }

    fn as_text(&self) -> Result<&'a str> {
        std::str::from_utf8(self.as_bytes())
            .map_err(|_| Error::invalid("the file is damaged: a name is not UTF-8"))
    }

    /// Returns the tables of a vector of tables.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = Result<Table<'a>>> + use<'a> {
        let Self { buffer, start, count } = *self;
        (0..count).map(move |k| Ok(Table { buffer, position: follow(buffer, start + 4 * k)? }))
    }

    /// Returns a vector of strings.
    pub fn texts(&self) -> Result<Vec<&'a str>> {
        let at = |k| Self::at(self.buffer, follow(self.buffer, self.start + 4 * k)?, 1)?.as_text();
        (0..self.count).map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with the fields 0: u32 = 7, 2: the string "ab"; field 1 is missing.
    const BUFFER: &[u8] = &[
        16, 0, 0, 0, // the root's offset
        10, 0, 12, 0, 4, 0, 0, 0, 8, 0, 0, 0, // field table, padded
        12, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, // the table: distance, 7, offset of the string
        2, 0, 0, 0, b'a', b'b', 0, 0,
    ];

    #[test]
    fn fields_are_read_and_missing_ones_have_their_default() {
        let root = Table::root(BUFFER).expect("a root");
        assert_eq!(root.u32(0, 1).expect("a field"), 7);
        assert_eq!(root.u32(1, 1).expect("a default"), 1);
        assert_eq!(root.text(2).expect("a string"), "ab");
        assert_eq!(root.i32s(9).expect("nothing"), []);
    }

    #[test]
    fn every_damaged_byte_is_an_error_or_another_value() {
        for length in 0..BUFFER.len() {
            let root = Table::root(&BUFFER[..length]);
            let _ = root.and_then(|root| Ok((root.u32(0, 0)?, root.text(2)?.len())));
        }
        for at in 0..BUFFER.len() {
            for value in [0x00, 0x7f, 0x80, 0xff] {
                let mut buffer = BUFFER.to_vec();
                buffer[at] = value;
                let _ = Table::root(&buffer).and_then(|root| Ok((root.u32(0, 0)?, root.text(2)?.len())));
            }
        }
    }
}
