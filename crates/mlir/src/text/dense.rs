//! Tensor constants: `dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>`, `dense<"0x...">`, `dense<0.0>`.

use super::scanner::Scanner;
use super::types;
use crate::attribute::{Attribute, Elements};
use crate::types::Type;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::{Error, Result, check_memory};

/// Reads the rest of a constant after the word `dense`.
pub(super) fn read(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    scanner.expect("<")?;
    let start = scanner.position();
    scanner.skip_balanced()?;
    let shape = read_shape(scanner)?;
    let after = scanner.position();
    scanner.set_position(start);
    let elements = read_elements(scanner, shape)?;
    scanner.expect(">")?;
    scanner.set_position(after);
    Ok(Attribute::Elements(elements))
}

/// Reads the rest of a constant after the word `dense_resource`. It names a blob in the section at
/// the end of the file.
pub(super) fn read_resource(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    scanner.expect("<")?;
    let name = scanner.suffix();
    scanner.expect(">")?;
    let Some(text) = scanner.resources.get(name).copied() else {
        return Err(
            scanner.error(format!("missing resource '{name}': the file was printed without its constants"))
        );
    };
    let shape = read_shape(scanner)?;
    // The first four bytes are the alignment.
    let bytes = hexadecimal(text).filter(|bytes| bytes.len() >= 4);
    let bytes = bytes
        .ok_or_else(|| scanner.error(format!("resource '{name}' is not a blob of hexadecimal digits")))?;
    from_bytes(scanner, shape, &bytes[4..]).map(Attribute::Elements)
}

/// Reads the type after a constant.
fn read_shape(scanner: &mut Scanner<'_>) -> Result<ArrayShape> {
    scanner.expect(":")?;
    let start = scanner.position();
    let Type::Tensor(tensor) = types::read_type(scanner)? else {
        return Err(
            scanner.error(format!("expected a constant of a tensor type, got {}", scanner.since(start)))
        );
    };
    let element = match *tensor.element {
        Type::Scalar(scalar) => scalar,
        Type::Index => PrimitiveType::S64,
        _ => {
            let type_text = scanner.since(start);
            return Err(Error::unsupported(format!(
                "{}: a constant of type {type_text} is not supported",
                scanner.line()
            )));
        }
    };
    let Some(sizes) = tensor.sizes.into_iter().collect::<Option<Vec<i64>>>() else {
        return Err(scanner.error("a constant must have static sizes"));
    };
    let shape = ArrayShape::new(element, &sizes);
    if shape.element_count() == i64::MAX {
        return Err(scanner.error(format!("a constant of shape {shape} has too many elements")));
    }
    Ok(shape)
}

fn read_elements(scanner: &mut Scanner<'_>, shape: ArrayShape) -> Result<Elements> {
    if scanner.peek() == b'"' {
        let text = scanner.string()?;
        let bytes = text.strip_prefix("0x").and_then(hexadecimal);
        let bytes = bytes
            .ok_or_else(|| scanner.error("expected 0x and hexadecimal digits as the bytes of a constant"))?;
        return from_bytes(scanner, shape, &bytes);
    }
    let mut data = Vec::new();
    if !scanner.at(">") {
        let is_list = scanner.at("[");
        read_list(scanner, &shape, 0, &mut data)?;
        if !is_list {
            return Ok(Elements::splat(shape, &data));
        }
    }
    whole(scanner, shape, data)
}

/// Reads the elements of one dimension and those after it; checks their number against the size.
fn read_list(
    scanner: &mut Scanner<'_>,
    shape: &ArrayShape,
    dimension: usize,
    data: &mut Vec<u8>,
) -> Result<()> {
    if !scanner.at("[") {
        return read_element(scanner, shape.element_type, data);
    }
    if dimension == shape.rank() {
        return Err(
            scanner.error(format!("lists nest deeper than the {} dimensions of {shape}", shape.rank()))
        );
    }
    scanner.expect("[")?;
    let count = scanner.nest(|scanner| {
        scanner.list("]", |scanner| {
            if dimension + 1 < shape.rank() && !scanner.at("[") {
                return Err(scanner.expected(format!("a list: {shape} has {} dimensions", shape.rank())));
            }
            read_list(scanner, shape, dimension + 1, data)
        })
    })?;
    let size = shape.size(dimension);
    if count.len() as i64 != size {
        return Err(scanner.error(format!(
            "expected {size} elements in dimension {dimension} of {shape}, got {}",
            count.len()
        )));
    }
    Ok(())
}

fn read_element(scanner: &mut Scanner<'_>, element: PrimitiveType, data: &mut Vec<u8>) -> Result<()> {
    if element.is_complex() {
        scanner.expect("(")?;
        read_element(scanner, element.real_part(), data)?;
        scanner.expect(",")?;
        read_element(scanner, element.real_part(), data)?;
        return scanner.expect(")");
    }
    let start = scanner.position();
    let text = match scanner.peek_word() {
        "" => scanner.number(),
        word => {
            scanner.word();
            word
        }
    };
    append(text, element, data).ok_or_else(|| {
        scanner.set_position(start);
        scanner.expected(format!("an element of type {element}"))
    })
}

/// Appends the bytes of one element; `None` if the text is not a value of this type.
fn append(text: &str, element: PrimitiveType, data: &mut Vec<u8>) -> Option<()> {
    if element.is_floating_point() {
        if let Some(digits) = text.strip_prefix("0x") {
            let bits = u64::from_str_radix(digits, 16).ok()?;
            let width = element.byte_size();
            data.extend_from_slice(&bits.to_le_bytes()[..width]);
            return (width == 8 || bits >> (8 * width) == 0).then_some(());
        }
        let scalar = Scalar::Float(text.parse::<f64>().ok().filter(|_| starts_number(text))?);
        data.extend_from_slice(round(scalar, element, text)?.bytes());
        return Some(());
    }
    let value = match (text, text.strip_prefix("0x")) {
        ("true", _) => 1,
        ("false", _) => 0,
        (_, Some(digits)) => i128::from_str_radix(digits, 16).ok()?,
        _ => text.parse().ok()?,
    };
    let scalar = match element {
        PrimitiveType::Pred => Scalar::Pred(value != 0),
        _ if element.is_signed_integer() => {
            // Bits can be written as an unsigned number.
            let width = element.bit_width();
            (-(1i128 << (width - 1))..1i128 << width).contains(&value).then_some(())?;
            Scalar::Signed(value as i64)
        }
        _ => {
            let width = element.bit_width();
            (-(1i128 << (width - 1))..1i128 << width).contains(&value).then_some(())?;
            Scalar::Unsigned(value as u64)
        }
    };
    let literal = Literal::from_scalars(ArrayShape::new(element, &[]), [scalar]);
    data.extend_from_slice(literal.bytes());
    Some(())
}

fn starts_number(text: &str) -> bool {
    text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit())
}

/// Rounds a decimal once, directly to the element type: a conversion through `f64` could round
/// twice.
fn round(wide: Scalar, element: PrimitiveType, text: &str) -> Option<Literal> {
    match element {
        PrimitiveType::F32 => Some(Literal::scalar(text.parse::<f32>().ok()?)),
        _ => Some(Literal::from_scalars(ArrayShape::new(element, &[]), [wide])),
    }
}

/// Returns the value of a floating-point number in text, rounded to its type. Text that begins with
/// `0x` contains its bits.
pub(super) fn float(text: &str, element: PrimitiveType) -> Option<f64> {
    let mut data = Vec::new();
    append(text, element, &mut data)?;
    let literal = Literal::from_bytes(ArrayShape::new(element, &[]), data.into())?;
    literal.floats()?.first().copied()
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let value = |digit: u8| (digit as char).to_digit(16);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some((value(pair[0])? * 16 + value(pair[1])?) as u8)).collect()
}

/// Converts bytes in memory order: all elements, or a splat. Booleans are packed eight to a byte.
fn from_bytes(scanner: &Scanner<'_>, shape: ArrayShape, bytes: &[u8]) -> Result<Elements> {
    if shape.element_type == PrimitiveType::Pred {
        let count = shape.element_count() as usize;
        if bytes.len() == 1 && matches!(bytes[0], 0 | 0xFF) {
            return Ok(Elements::splat(shape, &[bytes[0] & 1]));
        }
        if bytes.len() == count.div_ceil(8) {
            let bits = (0..count).map(|index| bytes[index / 8] >> (index % 8) & 1).collect();
            return whole(scanner, shape, bits);
        }
    }
    if bytes.len() == shape.element_type.byte_size() {
        return Ok(Elements::splat(shape, bytes));
    }
    whole(scanner, shape, bytes.to_vec())
}

fn whole(scanner: &Scanner<'_>, shape: ArrayShape, data: Vec<u8>) -> Result<Elements> {
    check_memory(data.len() as u64, "a constant")?;
    let count = data.len() / shape.element_type.byte_size();
    let message = scanner.error(format!("{count} elements for a constant of shape {shape}"));
    Elements::whole(shape, data).ok_or(message)
}
