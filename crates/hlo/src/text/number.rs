//! Single elements of literals: exact in both directions, including the bits of a NaN.

use super::lexer::{Lexer, Token};
use half::{bf16, f16};
use shape::{ArrayShape, FloatFormat, Literal, PrimitiveType, Scalar};
use std::fmt::Write;
use support::Result;

fn format_of(element_type: PrimitiveType) -> FloatFormat {
    element_type.float_format().expect("expected a floating-point type")
}

/// Appends one element, given as its little-endian bytes.
pub(super) fn write_element(element_type: PrimitiveType, bytes: &[u8], out: &mut String) {
    if element_type.is_complex() {
        let (re, im) = bytes.split_at(bytes.len() / 2);
        out.push('(');
        write_float(element_type.real_part(), re, out);
        out.push_str(", ");
        write_float(element_type.real_part(), im, out);
        out.push(')');
    } else if element_type.is_floating_point() {
        write_float(element_type, bytes, out);
    } else {
        let shape = ArrayShape::new(element_type, &[]);
        let literal =
            Literal::from_bytes(shape, bytes.to_vec().into()).expect("expected the bytes of one element");
        match literal.scalar_at(0) {
            Scalar::Pred(value) => write!(out, "{value}"),
            Scalar::Signed(value) => write!(out, "{value}"),
            Scalar::Unsigned(value) => write!(out, "{value}"),
            Scalar::Float(_) | Scalar::Complex(..) => unreachable!("expected an integer or pred"),
        }
        .expect("writing to a string cannot fail");
    }
}

fn write_float(element_type: PrimitiveType, bytes: &[u8], out: &mut String) {
    let shape = ArrayShape::new(element_type, &[]);
    let literal =
        Literal::from_bytes(shape, bytes.to_vec().into()).expect("expected the bytes of one element");
    let Scalar::Float(value) = literal.scalar_at(0) else { unreachable!("expected a float") };
    if value.is_nan() {
        return write_nan(format_of(element_type), bytes, out);
    }
    if value.is_infinite() {
        return out.push_str(if value < 0.0 { "-inf" } else { "inf" });
    }
    out.push_str(&shortest_text(element_type, value));
}

/// `nan`, with the sign and, unless it is the default quiet NaN, the mantissa's bits: `-nan(0x7)`.
fn write_nan(format: FloatFormat, bytes: &[u8], out: &mut String) {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    if bits & format.sign_bit() != 0 {
        out.push('-');
    }
    out.push_str("nan");
    let payload = bits & ((1 << format.mantissa_bits) - 1);
    if format.has_infinity() && payload != 1 << (format.mantissa_bits - 1) {
        write!(out, "(0x{payload:x})").expect("writing to a string cannot fail");
    }
}

/// Returns the shortest decimal that, read as `f64` and rounded to the element type, equals this
/// finite value; the exact value if that is not longer.
fn shortest_text(element_type: PrimitiveType, value: f64) -> String {
    let reads_back = |text: &str| {
        text.parse().is_ok_and(|read: f64| round(element_type, read).to_bits() == value.to_bits())
    };
    let exact = format!("{value:?}");
    let shorter = match element_type {
        // XLA converts `f8e8m0fnu` through `f32`, and rounds values that are denormal there to a
        // different power of two.
        PrimitiveType::F64 | PrimitiveType::F8e8m0fnu => None,
        PrimitiveType::F32 => Some(format!("{:?}", value as f32)),
        _ => {
            let digits = (0..17).map(|digits| format!("{value:.digits$e}")).find(|text| reads_back(text));
            // Rust's notation for numbers of common size: `1.5`, not `1.5e0`.
            digits.map(|text| format!("{:?}", text.parse::<f64>().unwrap_or(value)))
        }
    };
    let text = shorter.filter(|text| text.len() < exact.len() && reads_back(text)).unwrap_or(exact);
    // XLA also accepts an integer, but loses the sign of `-0`.
    match text.strip_suffix(".0") {
        Some(integer) if integer != "-0" => integer.to_owned(),
        _ => text,
    }
}

fn round(element_type: PrimitiveType, value: f64) -> f64 {
    match element_type {
        PrimitiveType::F64 => value,
        PrimitiveType::F32 => f64::from(value as f32),
        PrimitiveType::F16 => f16::from_f64(value).to_f64(),
        PrimitiveType::Bf16 => bf16::from_f64(value).to_f64(),
        _ => {
            let literal = Literal::from_scalars(ArrayShape::new(element_type, &[]), [Scalar::Float(value)]);
            match literal.scalar_at(0) {
                Scalar::Float(value) => value,
                _ => unreachable!("expected a float"),
            }
        }
    }
}

/// Reads one element and appends its little-endian bytes.
pub(super) fn read_element(
    element_type: PrimitiveType,
    lexer: &mut Lexer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if element_type.is_complex() {
        let part = element_type.real_part();
        lexer.expect_symbol('(')?;
        read_float(part, lexer, out)?;
        lexer.expect_symbol(',')?;
        read_float(part, lexer, out)?;
        return lexer.expect_symbol(')');
    }
    if element_type.is_floating_point() {
        return read_float(element_type, lexer, out);
    }
    let what = format!("a value of type {element_type}");
    let Token::Word(word) = lexer.peek() else { return Err(lexer.expected(&what)) };
    let value: i128 = match word {
        "true" => 1,
        "false" => 0,
        _ => word.parse().map_err(|_| lexer.expected(&what))?,
    };
    let value = match element_type {
        // As in XLA, whose parser reads signed 64-bit integers.
        PrimitiveType::Pred => i128::from(value != 0),
        PrimitiveType::U64 if value < 0 && value >= i128::from(i64::MIN) => value + (1 << 64),
        _ => value,
    };
    let width = element_type.bit_width();
    let (low, high) = match element_type {
        PrimitiveType::Pred => (0, 1),
        t if t.is_signed_integer() => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
        _ => (0, (1i128 << width) - 1),
    };
    if !(low..=high).contains(&value) {
        return Err(lexer.error(&format!("{value} is out of range for {element_type}")));
    }
    lexer.take();
    out.extend_from_slice(&value.to_le_bytes()[..element_type.byte_size()]);
    Ok(())
}

fn read_float(element_type: PrimitiveType, lexer: &mut Lexer<'_>, out: &mut Vec<u8>) -> Result<()> {
    let what = format!("a value of type {element_type}");
    let Token::Word(word) = lexer.peek() else { return Err(lexer.expected(&what)) };
    if let "nan" | "-nan" = word {
        lexer.take();
        return read_nan(element_type, word.starts_with('-'), lexer, out);
    }
    let value: f64 = match word {
        "inf" => f64::INFINITY,
        "-inf" => f64::NEG_INFINITY,
        // XLA reads this as an integer, which has no negative zero.
        "-0" => 0.0,
        _ if word.ends_with(|c: char| c.is_ascii_digit() || c == '.') => {
            word.parse().map_err(|_| lexer.expected(&what))?
        }
        _ => return Err(lexer.expected(&what)),
    };
    let overflows = !word.ends_with("inf") && !round(element_type, value).is_finite();
    if overflows {
        return Err(lexer.error(&format!("{word} is out of range for {element_type}")));
    }
    lexer.take();
    let literal = Literal::from_scalars(ArrayShape::new(element_type, &[]), [Scalar::Float(value)]);
    out.extend_from_slice(literal.bytes());
    Ok(())
}

/// Reads the part after `nan`: nothing, or the mantissa's bits in parentheses.
fn read_nan(
    element_type: PrimitiveType,
    negative: bool,
    lexer: &mut Lexer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let format = format_of(element_type);
    let mut nan = format.nan_bits(negative);
    if lexer.eat_symbol('(') {
        let Token::Word(word) = lexer.peek() else {
            return Err(lexer.expected("a NaN's payload such as 0x1"));
        };
        let bits = word.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let mask = (1u64 << format.mantissa_bits) - 1;
        // A NaN only has a payload in formats in which a whole exponent consists of NaNs.
        nan = match bits {
            Some(bits) if format.has_infinity() && bits != 0 && bits <= mask => nan & !mask | bits,
            _ => {
                return Err(
                    lexer.error(&format!("{word} is not a valid payload of a NaN of type {element_type}"))
                );
            }
        };
        lexer.take();
        lexer.expect_symbol(')')?;
    }
    out.extend_from_slice(&nan.to_le_bytes()[..element_type.byte_size()]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(literal: &Literal) -> String {
        let mut out = String::new();
        write_element(literal.array_shape().element_type, literal.bytes(), &mut out);
        out
    }

    #[test]
    fn floats_are_written_with_the_fewest_digits_that_read_back() {
        let f32_texts = [
            (0.1, "0.1"),
            (1.0, "1"),
            (-0.0, "-0.0"),
            (16777216.0, "16777216"),
            (1e20, "1e20"),
            (f32::MIN_POSITIVE, "1.1754944e-38"),
            (f32::from_bits(1), "1e-45"),
            (f32::MAX, "3.4028235e38"),
            (f32::NEG_INFINITY, "-inf"),
        ];
        for (value, expected) in f32_texts {
            assert_eq!(text_of(&Literal::scalar(value)), expected);
        }
        assert_eq!(text_of(&Literal::scalar(bf16::from_f32(0.1))), "0.1");
        assert_eq!(text_of(&Literal::scalar(f16::from_f32(65504.0))), "65504");
        assert_eq!(text_of(&Literal::scalar(0.1f64 + 0.2)), "0.30000000000000004");
        assert_eq!(text_of(&Literal::scalar([1.0f32, -2.5])), "(1, -2.5)");
    }

    #[test]
    fn every_16_bit_float_reads_back_to_its_bits() {
        for element_type in [PrimitiveType::F16, PrimitiveType::Bf16] {
            for bits in 0..=u16::MAX {
                let mut text = String::new();
                write_element(element_type, &bits.to_le_bytes(), &mut text);
                let mut read = Vec::new();
                read_element(element_type, &mut Lexer::new(&text, 0), &mut read).expect(&text);
                assert_eq!(read, bits.to_le_bytes(), "{text}");
            }
        }
    }

    #[test]
    fn every_narrower_float_reads_back_to_its_bits() {
        for element_type in PrimitiveType::ALL.into_iter().filter(|t| t.is_minifloat()) {
            for bits in 0..=u8::MAX >> (8 - element_type.bit_width()) {
                let mut text = String::new();
                write_element(element_type, &[bits], &mut text);
                let mut read = Vec::new();
                read_element(element_type, &mut Lexer::new(&text, 0), &mut read).expect(&text);
                assert_eq!(read, [bits], "{text}");
            }
        }
    }

    #[test]
    fn nan_payloads_are_xlas() {
        assert_eq!(text_of(&Literal::scalar(f32::from_bits(0x7fc0_0000))), "nan");
        assert_eq!(text_of(&Literal::scalar(f32::from_bits(0xff80_0001))), "-nan(0x1)");
        assert_eq!(text_of(&Literal::scalar(f64::from_bits(0x7ff8_0000_0000_0007))), "nan(0x8000000000007)");
    }

    #[test]
    fn values_out_of_range_are_rejected() {
        for (element_type, text) in [
            (PrimitiveType::S8, "128"),
            (PrimitiveType::U8, "-1"),
            (PrimitiveType::U64, "-9223372036854775809"),
            (PrimitiveType::F16, "70000"),
            (PrimitiveType::F32, "1e39"),
            (PrimitiveType::F8e4m3fn, "nan(0x1)"),
            (PrimitiveType::F32, "nan(0x800000)"),
            (PrimitiveType::F32, "infinity"),
        ] {
            let result = read_element(element_type, &mut Lexer::new(text, 0), &mut Vec::new());
            assert!(result.is_err(), "{text}");
        }
    }
}
