//! Types: `tensor<2x?xf32>`, `tuple<...>`, `!stablehlo.token`, `!quant.uniform<...>`, functions.

use super::scanner::Scanner;
use crate::attribute::Attribute;
use crate::types::{Quantization, TensorType, Type};
use shape::PrimitiveType;
use support::Result;

/// Returns the number type with the given name in MLIR.
fn scalar(name: &str) -> Option<PrimitiveType> {
    use PrimitiveType::*;
    Some(match name {
        "i1" => Pred,
        "i2" | "si2" => S2,
        "i4" | "si4" => S4,
        "i8" | "si8" => S8,
        "i16" | "si16" => S16,
        "i32" | "si32" => S32,
        "i64" | "si64" => S64,
        "ui2" => U2,
        "ui4" => U4,
        "ui8" => U8,
        "ui16" => U16,
        "ui32" => U32,
        "ui64" => U64,
        "f16" => F16,
        "bf16" => Bf16,
        "f32" => F32,
        "f64" => F64,
        "f4E2M1FN" => F4e2m1fn,
        "f6E2M3FN" => F6e2m3fn,
        "f6E3M2FN" => F6e3m2fn,
        "f8E3M4" => F8e3m4,
        "f8E4M3" => F8e4m3,
        "f8E4M3B11FNUZ" => F8e4m3b11fnuz,
        "f8E4M3FN" => F8e4m3fn,
        "f8E4M3FNUZ" => F8e4m3fnuz,
        "f8E5M2" => F8e5m2,
        "f8E5M2FNUZ" => F8e5m2fnuz,
        "f8E8M0FNU" => F8e8m0fnu,
        _ => return None,
    })
}

/// Reads a type.
pub(super) fn read_type(scanner: &mut Scanner<'_>) -> Result<Type> {
    scanner.nest(|scanner| match scanner.peek() {
        b'!' => read_dialect_type(scanner),
        b'(' => read_function(scanner),
        _ => read_builtin(scanner),
    })
}

/// True if a type begins here, so that the text is not another attribute.
pub(super) fn is_type(scanner: &mut Scanner<'_>) -> bool {
    let word = scanner.peek_word();
    scanner.at("!")
        || matches!(word, "tensor" | "tuple" | "complex" | "index" | "none" | "vector" | "memref")
        || (word.starts_with(['i', 's', 'u', 'f', 'b', 't'])
            && (scalar(word).is_some() || is_other_number(word)))
}

/// True for unsupported number types: `i128`, `f80`, `tf32`.
fn is_other_number(word: &str) -> bool {
    let digits = word.trim_start_matches(['s', 'u']).strip_prefix('i');
    let integer =
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
    let float = ["f4E", "f6E", "f8E", "f80", "f128", "tf32"].iter().any(|start| word.starts_with(start));
    integer || float
}

fn read_builtin(scanner: &mut Scanner<'_>) -> Result<Type> {
    let start = scanner.position();
    let word = scanner.word();
    if let Some(scalar) = scalar(word) {
        return Ok(Type::Scalar(scalar));
    }
    match word {
        "index" => Ok(Type::Index),
        "none" => Ok(Type::None),
        "tensor" => {
            scanner.expect("<")?;
            read_tensor(scanner)
        }
        "tuple" => {
            scanner.expect("<")?;
            Ok(Type::Tuple(scanner.list(">", read_type)?))
        }
        "complex" => {
            scanner.expect("<")?;
            let part = read_type(scanner)?;
            scanner.expect(">")?;
            match part {
                Type::Scalar(PrimitiveType::F32) => Ok(Type::Scalar(PrimitiveType::C64)),
                Type::Scalar(PrimitiveType::F64) => Ok(Type::Scalar(PrimitiveType::C128)),
                _ => Err(scanner.error("the parts of a complex number must be f32 or f64")),
            }
        }
        "vector" | "memref" => {
            scanner.expect("<")?;
            scanner.skip_balanced()?;
            Ok(Type::Other(scanner.since(start).to_owned()))
        }
        word if is_other_number(word) => Ok(Type::Other(word.to_owned())),
        _ => {
            scanner.set_position(start);
            Err(scanner.expected("a type"))
        }
    }
}

/// `2x?xf32, encoding>`, or `*xf32>`.
fn read_tensor(scanner: &mut Scanner<'_>) -> Result<Type> {
    let start = scanner.position();
    let mut sizes = Vec::new();
    if scanner.eat("*") {
        scanner.skip_balanced()?;
        return Ok(Type::Other(format!("tensor<{}", scanner.since(start))));
    }
    loop {
        if scanner.eat("?") {
            sizes.push(None);
        } else if scanner.peek().is_ascii_digit() {
            sizes.push(Some(scanner.digits()?));
        } else {
            break;
        }
        scanner.expect("x")?;
    }
    let element = Box::new(read_type(scanner)?);
    let encoding = if scanner.eat(",") { Some(Box::new(super::attribute::read(scanner)?)) } else { None };
    scanner.expect(">")?;
    Ok(Type::Tensor(TensorType { sizes, element, encoding }))
}

fn read_function(scanner: &mut Scanner<'_>) -> Result<Type> {
    let (inputs, results) = read_signature(scanner)?;
    Ok(Type::Function { inputs, results })
}

/// `(a, b) -> c` or `(a, b) -> (c, d)`: arguments and results.
pub(super) fn read_signature(scanner: &mut Scanner<'_>) -> Result<(Vec<Type>, Vec<Type>)> {
    scanner.expect("(")?;
    let inputs = scanner.list(")", read_type)?;
    scanner.expect("->")?;
    Ok((inputs, read_results(scanner)?))
}

/// Reads the types after `->`: `c` or `(c, d)`.
pub(super) fn read_results(scanner: &mut Scanner<'_>) -> Result<Vec<Type>> {
    if scanner.eat("(") { scanner.list(")", read_type) } else { Ok(vec![read_type(scanner)?]) }
}

fn read_dialect_type(scanner: &mut Scanner<'_>) -> Result<Type> {
    let start = scanner.position();
    scanner.expect("!")?;
    let name = scanner.suffix();
    if let Some(&alias) = scanner.aliases.get(&scanner.since(start)) {
        return scanner.read_alias(alias, read_type);
    }
    match name {
        "stablehlo.token" | "mhlo.token" => Ok(Type::Token),
        "quant.uniform" => {
            scanner.expect("<")?;
            read_quantized(scanner)
        }
        _ => {
            if scanner.eat("<") {
                scanner.skip_balanced()?;
            }
            Ok(Type::Other(scanner.since(start).to_owned()))
        }
    }
}

/// `i8<-127:127>:f32:1, {0.5:3, 0.25}>` of the quant dialect.
fn read_quantized(scanner: &mut Scanner<'_>) -> Result<Type> {
    let number = |scanner: &mut Scanner<'_>| match read_type(scanner)? {
        Type::Scalar(scalar) => Ok(scalar),
        _ => Err(scanner.error("expected a number type in a quantized type")),
    };
    // An unsigned storage type is spelled `u8`, which is not a type anywhere else.
    let unsigned = scanner.peek_word().strip_prefix('u').and_then(|width| scalar(&format!("ui{width}")));
    let storage = match unsigned {
        Some(storage) => {
            scanner.word();
            storage
        }
        None => number(scanner)?,
    };
    let mut storage_range = None;
    if scanner.eat("<") {
        let least = scanner.integer()?;
        scanner.expect(":")?;
        storage_range = Some((least, scanner.integer()?));
        scanner.expect(">")?;
    }
    scanner.expect(":")?;
    let expressed = number(scanner)?;
    let dimension = if scanner.eat(":") {
        Some(
            usize::try_from(scanner.integer()?)
                .map_err(|_| scanner.error("a quantized type has a negative dimension"))?,
        )
    } else {
        None
    };
    scanner.expect(",")?;
    let pairs = if scanner.eat("{") { scanner.list("}", read_scale)? } else { vec![read_scale(scanner)?] };
    scanner.expect(">")?;
    let (scales, zero_points) = pairs.into_iter().unzip();
    Ok(Type::Quantized(Box::new(Quantization {
        storage,
        storage_range,
        expressed,
        dimension,
        scales,
        zero_points,
    })))
}

fn read_scale(scanner: &mut Scanner<'_>) -> Result<(f64, i64)> {
    let scale = match super::attribute::read_number(scanner)? {
        Attribute::Float(scale) => scale,
        Attribute::Integer(scale) => scale as f64,
        _ => return Err(scanner.error("expected a number as the scale")),
    };
    let zero_point = if scanner.eat(":") { scanner.integer()? } else { 0 };
    Ok((scale, zero_point))
}
