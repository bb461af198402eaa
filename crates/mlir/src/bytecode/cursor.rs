//! Reads numbers and bytes from the front of a section.

use super::damaged;
use support::Result;

/// The unread rest of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    data: &'a [u8],
    /// Offset of the section's end in the file, for data that is aligned relative to the file.
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor over a whole file, or over bytes without aligned data.
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, end: data.len() }
    }

    /// Returns all remaining bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.data
    }

    /// Splits off the next `count` bytes as a cursor.
    pub(super) fn part(&mut self, count: usize) -> Result<Self> {
        let data = self.bytes(count)?;
        Ok(Self { data, end: self.end - self.data.len() })
    }

    /// Skips to a multiple of a power of two, counted from the start of the file.
    pub(super) fn align(&mut self, alignment: usize) -> Result<()> {
        let position = self.end - self.data.len();
        self.bytes(position.wrapping_neg() & (alignment - 1)).map(|_| ())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Number of remaining bytes, which is also an upper bound for the entries of the next list.
    pub(super) fn remaining(&self) -> usize {
        self.data.len()
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((head, tail)) = self.data.split_at_checked(count) else {
            return Err(damaged("unexpected end of data"));
        };
        self.data = tail;
        Ok(head)
    }

    /// Reads a number: the trailing zeros of the first byte give the number of bytes that follow
    /// it.
    pub(super) fn number(&mut self) -> Result<u64> {
        let first = self.byte()?;
        let following = first.trailing_zeros().min(8) as usize;
        let mut wide = [0; 8];
        if following == 8 {
            wide.copy_from_slice(self.bytes(8)?);
            return Ok(u64::from_le_bytes(wide));
        }
        wide[0] = first;
        wide[1..=following].copy_from_slice(self.bytes(following)?);
        Ok(u64::from_le_bytes(wide) >> (following + 1))
    }

    /// Reads a number whose lowest bit is a flag.
    pub(super) fn number_with_flag(&mut self) -> Result<(u64, bool)> {
        let number = self.number()?;
        Ok((number >> 1, number & 1 == 1))
    }

    /// Reads a number with its sign in the lowest bit.
    pub(super) fn signed(&mut self) -> Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a number that fits the address space.
    pub(super) fn index(&mut self) -> Result<usize> {
        let number = self.number()?;
        usize::try_from(number)
            .map_err(|_| damaged(format_args!("number {number} exceeds the address space")))
    }

    /// Reads the length of a list in which each entry takes at least one byte.
    pub(super) fn count(&mut self) -> Result<usize> {
        let count = self.index()?;
        if count > self.remaining() {
            return Err(damaged(format_args!("a list of {count} entries in {} bytes", self.remaining())));
        }
        Ok(count)
    }

    /// Reads a length and that number of bytes.
    pub(super) fn blob(&mut self) -> Result<&'a [u8]> {
        let length = self.index()?;
        self.bytes(length)
    }

    /// Reads bytes up to a zero.
    pub(super) fn terminated(&mut self) -> Result<&'a [u8]> {
        let length = self.data.iter().position(|byte| *byte == 0);
        let text = self.bytes(length.ok_or_else(|| damaged("a string without a terminating zero"))?)?;
        self.byte()?;
        Ok(text)
    }

    /// Reads the bits of an integer of known width, sign-extended to 64 bits. Of a wider integer,
    /// returns the lowest 64 bits.
    pub(super) fn integer_of_width(&mut self, width: u32) -> Result<i64> {
        match width {
            0 => Ok(0),
            1..=8 => {
                let shift = 64 - width;
                Ok(i64::from(self.byte()?) << shift >> shift)
            }
            9..=64 => self.signed(),
            _ => {
                let words: Vec<i64> = (0..self.count()?).map(|_| self.signed()).collect::<Result<_>>()?;
                Ok(words.first().copied().unwrap_or(0))
            }
        }
    }
}
