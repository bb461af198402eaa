//! Constants: `dense<...>`.

use shape::{Literal, PrimitiveType, Scalar, index};
use std::fmt::Write as _;

/// Constants with more elements are written as bytes if their elements consist of whole bytes.
const MAX_LISTED: i64 = 64;

/// Returns the literal as `dense<...>`, without its type. A splat is written as one number, and a
/// large constant as a string of bytes.
pub(super) fn dense(literal: &Literal) -> String {
    let shape = literal.array_shape();
    let count = shape.element_count();
    if count == 0 {
        return "dense<>".to_owned();
    }
    if literal.is_splat() {
        return format!("dense<{}>", scalar(literal.scalar_at(0), shape.element_type));
    }
    let has_bytes = shape.element_type.bit_width() >= 8;
    if count > MAX_LISTED && has_bytes {
        let mut out = String::with_capacity(2 * literal.bytes().len() + 16);
        out.push_str("dense<\"0x");
        for byte in literal.bytes().iter() {
            out.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0').to_ascii_uppercase());
            out.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0').to_ascii_uppercase());
        }
        out.push_str("\">");
        return out;
    }
    let sizes = shape.sizes();
    let mut out = String::from("dense<");
    for (k, value) in literal.scalars().enumerate() {
        let position = index::multi_index(&sizes, k as i64);
        // A bracket opens for each trailing index that is at its first value, and closes for each
        // at its last.
        let opening = position.iter().rev().take_while(|&&i| i == 0).count();
        out.push_str(if k > 0 { ", " } else { "" });
        out.extend(std::iter::repeat_n('[', opening));
        out.push_str(&scalar(value, shape.element_type));
        let closing = position.iter().zip(&sizes).rev().take_while(|&(&i, &size)| i + 1 == size).count();
        out.extend(std::iter::repeat_n(']', closing));
    }
    out.push('>');
    out
}

fn scalar(value: Scalar, element_type: PrimitiveType) -> String {
    match value {
        Scalar::Pred(value) => value.to_string(),
        Scalar::Signed(value) => value.to_string(),
        Scalar::Unsigned(value) => value.to_string(),
        Scalar::Float(value) => float(value, element_type),
        Scalar::Complex(re, im) => {
            let part = element_type.real_part();
            format!("({}, {})", float(re, part), float(im, part))
        }
    }
}

/// A decimal number with the period that MLIR requires; infinities and NaN are written as bits.
fn float(value: f64, element_type: PrimitiveType) -> String {
    if !value.is_finite() {
        let shape = shape::ArrayShape::new(element_type, &[]);
        let literal = Literal::from_scalars(shape, [Scalar::Float(value)]);
        let mut out = String::from("0x");
        for byte in literal.bytes().iter().rev() {
            let _ = write!(out, "{byte:02X}");
        }
        return out;
    }
    // The shortest decimal that round-trips. For narrow types, the one for f32 does, because f32
    // represents all their values.
    let text = match element_type {
        PrimitiveType::F64 => format!("{value:e}"),
        _ => format!("{:e}", value as f32),
    };
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0e{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_lists_one_number_or_bytes() {
        assert_eq!(dense(&Literal::from_elements(&[2, 2], &[1i32, 2, 3, 4])), "dense<[[1, 2], [3, 4]]>");
        assert_eq!(dense(&Literal::from_elements(&[1, 2, 1], &[1i32, 2])), "dense<[[[1], [2]]]>");
        assert_eq!(dense(&Literal::from_elements(&[3], &[5i32; 3])), "dense<5>");
        assert_eq!(dense(&Literal::from_elements::<f32>(&[0], &[])), "dense<>");
        assert_eq!(dense(&Literal::scalar(true)), "dense<true>");
        assert_eq!(dense(&Literal::from_elements(&[2], &[1.0f32, -0.5])), "dense<[1.0e0, -5.0e-1]>");
        assert_eq!(dense(&Literal::scalar(f32::INFINITY)), "dense<0x7F800000>");
        assert_eq!(dense(&Literal::scalar(f64::NEG_INFINITY)), "dense<0xFFF0000000000000>");
        let long: Vec<u16> = (0..65).collect();
        let text = dense(&Literal::from_elements(&[65], &long));
        assert!(text.starts_with("dense<\"0x00000100020003"), "{text}");
    }
}
