//! The `.npy` format, versions 1 to 3: magic, version, header length, a Python dictionary, and the
//! raw elements.
//!
//! The layout follows NumPy's `numpy.lib.format` documentation. A scanner reads the three keys of
//! the dictionary and accepts exactly the syntax that NumPy writes: strings, `True`/`False`, and
//! tuples of integers.

use bytes::Bytes;
use shape::{ArrayShape, Literal, PrimitiveType, index};
use support::{Error, Result};

/// First bytes of every file.
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy's limit for the rank of an array.
const MAX_RANK: usize = 64;
/// Upper bound for the size of a header that describes [`MAX_RANK`] dimensions.
const MAX_HEADER: usize = 64 * 1024;
/// Number of characters of a malformed header that a message quotes.
const MAX_SHOWN: usize = 200;

/// Reads an array. The array shares the bytes of `data` where the format allows it.
pub fn parse_npy(data: &Bytes) -> Result<Literal> {
    let (header, start) = split_header(data)?;
    let header = Header::parse(header)?;
    let element_type = element_type(&header.descr)?;
    // A column-major array is the transpose of a row-major one with its dimensions reversed.
    let mut stored = header.shape.clone();
    if header.fortran_order {
        stored.reverse();
    }
    let expected = index::element_count(&stored)
        .and_then(|count| count.checked_mul(element_type.byte_size() as i64))
        .ok_or_else(|| Error::invalid(format!("array of shape {stored:?} is too large")))?;
    let payload = data.slice(start..);
    if payload.len() as i64 != expected {
        return Err(Error::invalid(format!(
            "array of shape {:?} and type {} needs {expected} bytes, the file holds {}",
            header.shape,
            header.descr,
            payload.len()
        )));
    }
    let payload = if element_type == PrimitiveType::Pred { canonical_bools(payload) } else { payload };
    let literal = Literal::from_bytes(ArrayShape::new(element_type, &stored), payload)
        .expect("the number of bytes was compared above");
    if header.fortran_order {
        let reversed: Vec<usize> = (0..stored.len()).rev().collect();
        return Ok(literal.transpose(&reversed));
    }
    Ok(literal)
}

/// Writes a row-major array in version 1.0. Types without a NumPy name are written as unsigned
/// integers of their width (`bf16` as `u16`); integers narrower than a byte are written as bytes.
/// Panics on a tuple.
pub fn write_npy(literal: &Literal) -> Vec<u8> {
    let shape = literal.array_shape();
    let sizes = shape.sizes();
    let tuple = match sizes.as_slice() {
        [] => "()".to_owned(),
        [one] => format!("({one},)"),
        many => format!("({})", many.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut header =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': {tuple}, }}", descr(shape.element_type));
    // The elements begin at a multiple of 64. Magic, version, and length take ten bytes, and the
    // newline takes one.
    let padding = (64 - (header.len() + 11) % 64) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut out = Vec::with_capacity(10 + header.len() + literal.bytes().len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    let length = u16::try_from(header.len()).expect("a header of at most 64 sizes of 20 digits");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(literal.bytes());
    out
}

/// Text of the header and start of the elements.
fn split_header(data: &[u8]) -> Result<(&str, usize)> {
    let version = match data {
        [m0, m1, m2, m3, m4, m5, major @ 1..=3, 0, ..] if [*m0, *m1, *m2, *m3, *m4, *m5] == *MAGIC => *major,
        _ => return Err(Error::invalid("not a .npy array of version 1, 2 or 3")),
    };
    let length_bytes = if version == 1 { 2 } else { 4 };
    let cut = || Error::invalid("the .npy header is cut short");
    let field = data.get(8..8 + length_bytes).ok_or_else(cut)?;
    let length = field.iter().rev().fold(0usize, |n, &byte| n << 8 | usize::from(byte));
    if length > MAX_HEADER {
        return Err(Error::invalid(format!("a .npy header of {length} bytes is too long")));
    }
    let start = 8 + length_bytes + length;
    let text = data.get(8 + length_bytes..start).ok_or_else(cut)?;
    let text = std::str::from_utf8(text).map_err(|_| Error::invalid("the .npy header is not valid UTF-8"))?;
    Ok((text, start))
}

/// Dictionary of a header.
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<i64>,
}

impl Header {
    fn parse(text: &str) -> Result<Self> {
        let shown: String = text.trim_end().chars().take(MAX_SHOWN).collect();
        let bad = || Error::invalid(format!("malformed .npy header {shown:?}"));
        let body = text.trim().strip_prefix('{').and_then(|t| t.strip_suffix('}')).ok_or_else(bad)?;
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        let mut rest = body.trim();
        while !rest.is_empty() {
            let (key, after) = quoted(rest).ok_or_else(bad)?;
            let value = after.trim_start().strip_prefix(':').ok_or_else(bad)?.trim_start();
            let after = match key {
                "descr" => {
                    let (text, after) = quoted(value).ok_or_else(bad)?;
                    descr = Some(text.to_owned());
                    after
                }
                "fortran_order" => {
                    let (flag, after) = boolean(value).ok_or_else(bad)?;
                    fortran_order = Some(flag);
                    after
                }
                "shape" => {
                    let (sizes, after) = tuple(value).ok_or_else(bad)?;
                    shape = Some(sizes);
                    after
                }
                _ => return Err(bad()),
            };
            let after = after.trim_start();
            rest = match after.strip_prefix(',') {
                Some(next) => next.trim_start(),
                None if after.is_empty() => after,
                None => return Err(bad()),
            };
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Self { descr, fortran_order, shape }),
            _ => Err(bad()),
        }
    }
}

/// Parses a Python string literal without escapes. Returns it and the remaining text.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote).filter(|(inner, _)| !inner.contains('\\'))
}

/// Parses `True` or `False`. Returns it and the remaining text.
fn boolean(text: &str) -> Option<(bool, &str)> {
    let yes = text.strip_prefix("True").map(|rest| (true, rest));
    yes.or_else(|| text.strip_prefix("False").map(|rest| (false, rest)))
}

/// Parses a tuple of sizes. Returns it and the remaining text.
fn tuple(text: &str) -> Option<(Vec<i64>, &str)> {
    let (inner, rest) = text.strip_prefix('(')?.split_once(')')?;
    let items: Vec<&str> = inner.split(',').map(str::trim).collect();
    let items = match items.split_last() {
        Some((&"", front)) => front,
        _ => &items,
    };
    if items.len() > MAX_RANK {
        return None;
    }
    let size = |item: &&str| item.parse::<i64>().ok().filter(|&size| size >= 0);
    Some((items.iter().map(size).collect::<Option<_>>()?, rest))
}

/// Element type for a `descr`.
fn element_type(descr: &str) -> Result<PrimitiveType> {
    use PrimitiveType::*;
    Ok(match descr {
        "|b1" => Pred,
        "|i1" => S8,
        "<i2" => S16,
        "<i4" => S32,
        "<i8" => S64,
        "|u1" => U8,
        "<u2" => U16,
        "<u4" => U32,
        "<u8" => U64,
        "<f2" => F16,
        "<f4" => F32,
        "<f8" => F64,
        "<c8" => C64,
        "<c16" => C128,
        _ => {
            return Err(Error::invalid(format!(
                "unsupported array type '{descr}'; store booleans, integers, floats or complex numbers, little-endian"
            )));
        }
    })
}

/// `descr` of an element type, or of the integer that holds its bits.
fn descr(element_type: PrimitiveType) -> &'static str {
    use PrimitiveType::*;
    match element_type {
        Pred => "|b1",
        S16 => "<i2",
        S32 => "<i4",
        S64 => "<i8",
        U16 | Bf16 => "<u2",
        U32 => "<u4",
        U64 => "<u8",
        F16 => "<f2",
        F32 => "<f4",
        F64 => "<f8",
        C64 => "<c8",
        C128 => "<c16",
        byte if byte.is_signed_integer() => "|i1",
        _ => "|u1",
    }
}

/// Normalizes booleans to 0 or 1. A file may hold any nonzero byte for true.
fn canonical_bools(payload: Bytes) -> Bytes {
    if payload.iter().all(|&byte| byte <= 1) {
        return payload;
    }
    payload.iter().map(|&byte| u8::from(byte != 0)).collect::<Vec<u8>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a file with this header text and payload.
    fn file(version: u8, header: &str, payload: &[u8]) -> Bytes {
        let mut out = MAGIC.to_vec();
        out.extend([version, 0]);
        let length = header.len() as u32;
        out.extend(if version == 1 {
            length.to_le_bytes()[..2].to_vec()
        } else {
            length.to_le_bytes().to_vec()
        });
        out.extend(header.as_bytes());
        out.extend(payload);
        out.into()
    }

    #[test]
    fn a_long_malformed_header_makes_a_short_message() {
        let text = format!("{{'descr': '<f4', 'shape': {}", "(".repeat(10_000));
        let mut data = MAGIC.to_vec();
        data.extend_from_slice(&[1, 0]);
        data.extend_from_slice(&(text.len() as u16).to_le_bytes());
        data.extend_from_slice(text.as_bytes());
        let message = parse_npy(&data.into()).unwrap_err().message().to_owned();
        assert!(message.starts_with("malformed .npy header") && message.len() < 300, "{message}");
    }

    #[test]
    fn an_array_as_numpy_1_26_writes_it_is_read() {
        // numpy.save of numpy.array([[1, 2, 3], [4, 5, -6]], "int16").
        let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
        let payload = [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 0xfa, 0xff];
        for version in 1..=3 {
            let literal = parse_npy(&file(version, &format!("{header:<117}\n"), &payload)).unwrap();
            assert_eq!(
                literal,
                Literal::from_elements(&[2, 3], &[1i16, 2, 3, 4, 5, -6]),
                "version {version}"
            );
        }
    }

    #[test]
    fn column_major_arrays_are_turned_around() {
        let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n";
        let literal = parse_npy(&file(1, header, &[1, 4, 2, 5, 3, 6])).unwrap();
        assert_eq!(literal, Literal::from_elements(&[2, 3], &[1u8, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn every_type_and_rank_survives_the_round_trip() {
        for sizes in [vec![], vec![1], vec![0, 4], vec![2, 3], vec![2, 1, 2, 1]] {
            for element_type in PrimitiveType::ALL {
                let shape = ArrayShape::new(element_type, &sizes);
                let bytes: Vec<u8> = (0..shape.byte_size()).map(|i| (i % 2) as u8).collect();
                let literal = Literal::from_bytes(shape, bytes.into()).unwrap();
                let read = parse_npy(&write_npy(&literal).into()).unwrap();
                assert_eq!(read.bytes(), literal.bytes(), "{element_type}{sizes:?}");
                assert_eq!(read.array_shape().sizes(), sizes);
                assert_eq!(read.array_shape().element_type.byte_size(), element_type.byte_size());
            }
        }
    }

    #[test]
    fn elements_begin_at_a_multiple_of_64_bytes() {
        let literal = Literal::from_elements(&[3], &[1.0f32, 2.0, 3.0]);
        let written = write_npy(&literal);
        assert_eq!((written.len() - 12) % 64, 0);
        assert_eq!(written[written.len() - 13], b'\n');
    }

    #[test]
    fn malformed_files_are_refused_with_a_reason() {
        let ok = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
        let refused = |data: &Bytes| parse_npy(data).unwrap_err().to_string();
        assert!(refused(&Bytes::from_static(b"PK")).contains("not a .npy"));
        assert!(refused(&file(4, ok, &[0; 4])).contains("not a .npy"));
        assert!(refused(&file(1, ok, &[0; 3])).contains("needs 4 bytes, the file holds 3"));
        assert!(refused(&file(1, ok, &[0; 5])).contains("needs 4 bytes, the file holds 5"));
        assert!(refused(&file(1, &ok.replace("<f4", ">f4"), &[0; 4])).contains("'>f4'"));
        assert!(refused(&file(1, &ok.replace("<f4", "|O"), &[0; 4])).contains("'|O'"));
        assert!(refused(&file(1, &ok.replace("(1,)", "(-1,)"), &[0; 4])).contains("malformed"));
        assert!(
            refused(&file(1, &ok.replace("(1,)", "(4611686018427387904, 4)"), &[])).contains("too large")
        );
        assert!(refused(&file(1, "{'descr': '<f4'}", &[])).contains("malformed"));
        let cut = file(1, ok, &[]).slice(..30);
        assert!(refused(&cut).contains("cut short"));
    }
}
