//! Types and names.

use super::Version;
use shape::{ArrayShape, Dimension, PrimitiveType, Shape};
use std::fmt::Write as _;
use support::{Error, Result};

/// Returns the element type as spelled in MLIR: `f32`, `i8`, `ui8`, `i1`, `complex<f32>`,
/// `f8E4M3FN`.
pub(super) fn element_type(element_type: PrimitiveType) -> String {
    let name = element_type.name();
    match name {
        "pred" => "i1".to_owned(),
        "c64" => "complex<f32>".to_owned(),
        "c128" => "complex<f64>".to_owned(),
        "f16" | "bf16" | "f32" | "f64" => name.to_owned(),
        // In `f8e4m3fn`, the part after the width is in upper case.
        _ if name.starts_with('f') => format!("{}{}", &name[..2], name[2..].to_uppercase()),
        _ if name.starts_with('s') => format!("i{}", &name[1..]),
        _ => format!("ui{}", &name[1..]),
    }
}

/// Returns the first version with an element type.
fn version_of(element_type: PrimitiveType) -> Version {
    match element_type.name() {
        "s2" | "u2" => Version::new(1, 2, 0),
        "f8e3m4" | "f8e4m3" => Version::new(1, 7, 0),
        "f4e2m1fn" | "f8e8m0fnu" => Version::new(1, 8, 0),
        "f8e4m3b11fnuz" => Version::new(0, 11, 0),
        "f8e4m3fnuz" | "f8e5m2fnuz" => Version::new(0, 10, 0),
        _ => Version::OLDEST,
    }
}

/// `tensor<2x?xf32, #stablehlo.bounds<?, 3>>`. Returns an error if the version does not support the
/// element type.
pub(super) fn tensor(array: &ArrayShape, version: Version) -> Result<String> {
    let needed = version_of(array.element_type);
    if needed > version {
        return Err(Error::unsupported(format!(
            "elements of type {} require StableHLO {needed} or later, not {version}",
            array.element_type
        )));
    }
    if matches!(array.element_type.name(), "s1" | "u1") {
        return Err(Error::unsupported(format!(
            "StableHLO does not support elements of type {}",
            array.element_type
        )));
    }
    let mut out = String::from("tensor<");
    for dimension in &array.dimensions {
        let _ = if dimension.is_dynamic { write!(out, "?x") } else { write!(out, "{}x", dimension.size) };
    }
    out.push_str(&element_type(array.element_type));
    let is_bounded = |dimension: &Dimension| dimension.is_dynamic && *dimension != Dimension::UNBOUNDED;
    if array.dimensions.iter().any(is_bounded) {
        let bounds = array
            .dimensions
            .iter()
            .map(|dimension| if is_bounded(dimension) { dimension.size.to_string() } else { "?".to_owned() });
        let _ = write!(out, ", #stablehlo.bounds<{}>", bounds.collect::<Vec<_>>().join(", "));
    }
    out.push('>');
    Ok(out)
}

/// Converts a name to an MLIR identifier that needs no quotes.
pub(super) fn sanitize(name: &str) -> String {
    let mut out: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, '_');
    }
    out
}

/// Quotes a string for MLIR.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x20..0x7f => out.push(byte.into()),
            _ => {
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
    out.push('"');
    out
}

/// Returns the paths of a shape's arrays and tokens, in order.
pub(super) fn leaf_paths(shape: &Shape) -> Vec<Vec<usize>> {
    match shape {
        Shape::Tuple(elements) => {
            let nested_paths = |(k, element): (usize, &Shape)| {
                leaf_paths(element).into_iter().map(move |path| std::iter::once(k).chain(path).collect())
            };
            elements.iter().enumerate().flat_map(nested_paths).collect()
        }
        _ => vec![Vec::new()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_spelled_as_in_mlir() {
        let text_of = |element_type, sizes: &[i64]| {
            tensor(&ArrayShape::new(element_type, sizes), Version::default()).expect("a type")
        };
        assert_eq!(text_of(PrimitiveType::F32, &[2, 0]), "tensor<2x0xf32>");
        assert_eq!(text_of(PrimitiveType::Pred, &[]), "tensor<i1>");
        assert_eq!(text_of(PrimitiveType::U8, &[1]), "tensor<1xui8>");
        assert_eq!(text_of(PrimitiveType::S4, &[]), "tensor<i4>");
        assert_eq!(text_of(PrimitiveType::C128, &[]), "tensor<complex<f64>>");
        assert_eq!(text_of(PrimitiveType::F8e4m3fn, &[]), "tensor<f8E4M3FN>");
        assert_eq!(text_of(PrimitiveType::F8e5m2, &[]), "tensor<f8E5M2>");
        assert_eq!(text_of(PrimitiveType::Bf16, &[]), "tensor<bf16>");
        let mut bounded = ArrayShape::new(PrimitiveType::S32, &[4, 3]);
        bounded.dimensions[0].is_dynamic = true;
        let text = tensor(&bounded, Version::default()).expect("a type");
        assert_eq!(text, "tensor<?x3xi32, #stablehlo.bounds<4, ?>>");
    }

    #[test]
    fn a_type_that_the_version_does_not_support_is_rejected() {
        let shape = ArrayShape::new(PrimitiveType::U2, &[]);
        let error = tensor(&shape, Version::new(1, 1, 0)).expect_err("too old");
        assert!(error.message().contains("require StableHLO 1.2.0 or later, not 1.1.0"), "{error}");
    }

    #[test]
    fn names_and_strings_are_valid_in_mlir() {
        assert_eq!(sanitize("dense/kernel:0"), "dense_kernel_0");
        assert_eq!(sanitize("0"), "_0");
        assert_eq!(sanitize(""), "_");
        assert_eq!(quote("a\"b\\\n\u{e9}"), r#""a\"b\\\0A\C3\A9""#);
    }
}
