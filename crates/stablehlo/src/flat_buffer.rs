//! Reads FlatBuffers: tables of numbered fields, vectors, and strings, linked by offsets.
//!
//! Offsets of tables and vectors point forward, so no structure contains itself. Every offset is
//! checked before it is followed. A missing field reads as its default.

use support::{Error, Result};

/// A table in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    buffer: &'a [u8],
    position: usize,
}

/// A vector in a buffer: `count` elements that begin at `start`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector<'a> {
    buffer: &'a [u8],
    start: usize,
    count: usize,
}

fn damaged() -> Error {
    Error::invalid("the artifact is damaged: an offset is out of bounds")
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

impl<'a> Table<'a> {
    /// Returns the outermost table.
    pub(crate) fn root(buffer: &'a [u8]) -> Result<Self> {
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

    pub(crate) fn byte(&self, number: usize) -> Result<u8> {
        self.field(number)?.map_or(Ok(0), |at| Ok(bytes::<1>(self.buffer, at)?[0]))
    }

    pub(crate) fn u16(&self, number: usize) -> Result<u16> {
        self.field(number)?.map_or(Ok(0), |at| Ok(u16::from_le_bytes(bytes(self.buffer, at)?)))
    }

    pub(crate) fn u32(&self, number: usize) -> Result<u32> {
        self.field(number)?.map_or(Ok(0), |at| Ok(u32::from_le_bytes(bytes(self.buffer, at)?)))
    }

    pub(crate) fn table(&self, number: usize) -> Result<Option<Self>> {
        let at = self.field(number)?;
        at.map(|at| Ok(Self { position: follow(self.buffer, at)?, ..*self })).transpose()
    }

    /// Returns a vector whose elements take `width` bytes each; empty if the field is missing.
    pub(crate) fn vector(&self, number: usize, width: usize) -> Result<Vector<'a>> {
        let Some(at) = self.field(number)? else {
            return Ok(Vector { buffer: self.buffer, start: 0, count: 0 });
        };
        Vector::at(self.buffer, follow(self.buffer, at)?, width)
    }

    pub(crate) fn text(&self, number: usize) -> Result<&'a str> {
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
    pub(crate) fn as_bytes(&self) -> &'a [u8] {
        &self.buffer[self.start..self.start + self.count]
    }

    fn as_text(&self) -> Result<&'a str> {
        std::str::from_utf8(self.as_bytes())
            .map_err(|_| Error::invalid("the artifact is damaged: a name is not UTF-8"))
    }

    /// Returns the elements of a vector of 16-bit numbers.
    pub(crate) fn u16s(&self) -> Result<Vec<u16>> {
        (0..self.count).map(|k| Ok(u16::from_le_bytes(bytes(self.buffer, self.start + 2 * k)?))).collect()
    }

    /// Returns the elements of a vector of 32-bit numbers.
    pub(crate) fn u32s(&self) -> Result<Vec<u32>> {
        (0..self.count).map(|k| Ok(u32::from_le_bytes(bytes(self.buffer, self.start + 4 * k)?))).collect()
    }

    /// Iterates over a vector of tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = Result<Table<'a>>> + use<'a> {
        let Self { buffer, start, count } = *self;
        (0..count).map(move |k| Ok(Table { buffer, position: follow(buffer, start + 4 * k)? }))
    }

    /// Returns a vector of strings.
    pub(crate) fn texts(&self) -> Result<Vec<&'a str>> {
        let at = |k| Self::at(self.buffer, follow(self.buffer, self.start + 4 * k)?, 1)?.as_text();
        (0..self.count).map(at).collect()
    }
}
