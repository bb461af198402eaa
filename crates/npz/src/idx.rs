//! The IDX format of the MNIST files, optionally compressed with gzip: two zero bytes, a byte for
//! the type, a byte for the rank, the sizes, and the elements. Numbers are big-endian.
//!
//! Layout after Y. LeCun, C. Cortes and C. Burges, "The MNIST database of handwritten digits".

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use shape::{ArrayShape, Literal, PrimitiveType, index};
use std::io::Read as _;
use support::{Error, Result};

/// First bytes of every gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Number of bytes before the sizes.
const HEAD: usize = 4;
/// Number of bytes of a size.
const SIZE: usize = 4;
/// Upper bound for the rank.
const MAX_RANK: usize = 16;

/// Reads an array.
///
/// # Errors
/// Fails for malformed files, unknown element types, and files larger than `limit` bytes when
/// uncompressed.
pub fn parse_idx(data: &Bytes, limit: u64) -> Result<Literal> {
    let data = &unpacked(data, limit)?;
    let &[0, 0, code, rank, ..] = &data[..] else {
        return Err(Error::invalid(
            "not an IDX file: it does not begin with two zero bytes, a type and a rank",
        ));
    };
    let element_type = element_type(code)?;
    let rank = usize::from(rank);
    if rank > MAX_RANK {
        return Err(Error::invalid(format!("an IDX file of {rank} dimensions; {MAX_RANK} can be read")));
    }
    let start = HEAD + SIZE * rank;
    let sizes =
        data.get(HEAD..start).ok_or_else(|| Error::invalid("the sizes of the IDX file are cut short"))?;
    let sizes: Vec<i64> = sizes
        .chunks_exact(SIZE)
        .map(|size| size.iter().fold(0i64, |n, &byte| n << 8 | i64::from(byte)))
        .collect();
    let width = element_type.byte_size();
    let expected = index::element_count(&sizes).and_then(|count| count.checked_mul(width as i64));
    let elements = data.slice(start..);
    if expected != i64::try_from(elements.len()).ok() {
        let expected = expected.map_or("more bytes than there are".to_owned(), |n| format!("{n} bytes"));
        return Err(Error::invalid(format!(
            "an IDX file of sizes {sizes:?} and {element_type} needs {expected}, it holds {}",
            elements.len()
        )));
    }
    let elements = match width {
        1 => elements,
        // The bytes already have the order of big-endian machines.
        _ if cfg!(target_endian = "big") => elements,
        _ => elements.chunks_exact(width).flat_map(|element| element.iter().rev().copied()).collect(),
    };
    Literal::from_bytes(ArrayShape::new(element_type, &sizes), elements)
        .ok_or_else(|| Error::internal("an IDX file's bytes were counted wrongly"))
}

/// Returns the file itself, or its content if it is compressed with gzip.
fn unpacked(data: &Bytes, limit: u64) -> Result<Bytes> {
    let too_long = || Error::invalid(format!("more than {limit} bytes; split the file"));
    if !data.starts_with(&GZIP) {
        return if data.len() as u64 > limit { Err(too_long()) } else { Ok(data.clone()) };
    }
    let mut out = Vec::new();
    // One byte beyond the limit shows that there is more data.
    let mut reader = MultiGzDecoder::new(&data[..]).take(limit.saturating_add(1));
    reader.read_to_end(&mut out).map_err(|e| Error::invalid(format!("gzip cannot unpack it: {e}")))?;
    if out.len() as u64 > limit { Err(too_long()) } else { Ok(out.into()) }
}

fn element_type(code: u8) -> Result<PrimitiveType> {
    Ok(match code {
        0x08 => PrimitiveType::U8,
        0x09 => PrimitiveType::S8,
        0x0b => PrimitiveType::S16,
        0x0c => PrimitiveType::S32,
        0x0d => PrimitiveType::F32,
        0x0e => PrimitiveType::F64,
        _ => {
            return Err(Error::invalid(format!(
                "not an IDX file: no type of elements has the code {code:#04x}"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    fn packed(data: &[u8]) -> Bytes {
        let mut writer = GzEncoder::new(Vec::new(), Compression::best());
        writer.write_all(data).expect("memory");
        writer.finish().expect("memory").into()
    }

    #[test]
    fn images_and_numbers_of_several_bytes_are_read() {
        let bytes = b"\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03\x01\x02\x03\x04\x05\xff";
        let images = Literal::from_elements(&[2, 1, 3], &[1u8, 2, 3, 4, 5, 255]);
        assert_eq!(parse_idx(&Bytes::from_static(bytes), 100).expect("valid"), images);
        assert_eq!(parse_idx(&packed(bytes), 100).expect("valid"), images);
        let bytes = b"\0\0\x0c\x01\0\0\0\x02\0\0\x01\x02\xff\xff\xff\xfe";
        let numbers = parse_idx(&Bytes::from_static(bytes), 100).expect("valid");
        assert_eq!(numbers, Literal::from_elements(&[2], &[258i32, -2]));
        let bytes = b"\0\0\x0d\x00\x3f\xc0\0\0";
        assert_eq!(parse_idx(&Bytes::from_static(bytes), 100).expect("valid"), Literal::scalar(1.5f32));
    }

    #[test]
    fn malformed_and_large_files_are_refused() {
        let bomb = packed(&[0; 1 << 20]);
        let cut = packed(b"\0\0\x08\x01\0\0\0\x01\x07");
        let cases: [(Bytes, &str); 8] = [
            (Bytes::new(), "two zero bytes"),
            (Bytes::from_static(b"\0\0\x08"), "two zero bytes"),
            (Bytes::from_static(b"\0\0\x0a\x01\0\0\0\0"), "code 0x0a"),
            (Bytes::from_static(b"\0\0\x08\xff"), "255 dimensions"),
            (Bytes::from_static(b"\0\0\x08\x02\0\0\0\x01"), "cut short"),
            // Sizes with an overflowing product.
            (
                Bytes::from_static(b"\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
                "more bytes",
            ),
            (bomb.clone(), "more than 1000 bytes"),
            (cut.slice(..cut.len() - 9), "gzip cannot unpack"),
        ];
        for (data, expected) in cases {
            let error = parse_idx(&data, 1000).expect_err(expected);
            assert!(error.to_string().contains(expected), "{error}, not {expected}");
        }
        let error =
            parse_idx(&Bytes::from_static(b"\0\0\x08\x01\0\0\0\x03\x01"), 100).expect_err("too short");
        assert!(error.to_string().contains("needs 3 bytes, it holds 1"), "{error}");
    }
}
