//! Attributes.

use super::scanner::Scanner;
use super::{dense, dialect, types};
use crate::attribute::{Attribute, Attributes};
use support::Result;

/// Reads an attribute, with the type after its colon if it has one.
pub(super) fn read(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    scanner.nest(|scanner| match scanner.peek() {
        b'"' => {
            let text = scanner.string()?.into_owned();
            skip_type(scanner)?;
            Ok(Attribute::String(text))
        }
        b'@' => Ok(Attribute::Symbol(scanner.symbol()?)),
        b'[' => {
            scanner.expect("[")?;
            let items = scanner.list("]", read)?;
            Ok(Attribute::list(items))
        }
        b'{' => Ok(Attribute::Dictionary(read_dictionary(scanner)?)),
        b'#' => dialect::read(scanner),
        b'(' => Ok(Attribute::Type(types::read_type(scanner)?)),
        b'-' | b'+' | b'0'..=b'9' => read_number(scanner),
        _ => read_word(scanner),
    })
}

fn read_word(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    if types::is_type(scanner) {
        return Ok(Attribute::Type(types::read_type(scanner)?));
    }
    let start = scanner.position();
    match scanner.word() {
        "true" => Ok(Attribute::Bool(true)),
        "false" => Ok(Attribute::Bool(false)),
        "unit" => Ok(Attribute::Unit),
        "array" => read_array(scanner),
        "dense" => dense::read(scanner),
        "dense_resource" => dense::read_resource(scanner),
        "loc" | "affine_map" | "affine_set" | "distinct" | "opaque" | "strided" => {
            while !scanner.eat("<") && !scanner.eat("(") {
                scanner.expect("[")?;
                scanner.skip_balanced()?;
            }
            scanner.skip_balanced()?;
            Ok(Attribute::Other(scanner.since(start).to_owned()))
        }
        _ => {
            scanner.set_position(start);
            Err(scanner.expected("an attribute"))
        }
    }
}

/// A number, with the type after its colon if it has one: `3 : i64`, `1.0e-5 : f32`, `0x7FC00000 :
/// f32`.
pub(super) fn read_number(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    let text = scanner.number();
    let suffix = if scanner.at(":") && !scanner.at("::") {
        let before = scanner.position();
        scanner.expect(":")?;
        // In a range such as `0:3` and a scale such as `0.5:3`, a number follows the colon.
        if types::is_type(scanner) {
            Some(types::read_type(scanner)?)
        } else {
            scanner.set_position(before);
            None
        }
    } else {
        None
    };
    let element = match suffix {
        Some(crate::Type::Scalar(scalar)) if scalar.is_floating_point() => Some(scalar),
        _ => None,
    };
    if let Some(element) = element {
        let value = dense::float(text, element).map(Attribute::Float);
        return value.ok_or_else(|| scanner.error(format!("'{text}' is not a number of type {element}")));
    }
    untyped(scanner, text)
}

/// Reads a number without a type. A colon after it belongs to the enclosing syntax.
pub(super) fn read_untyped_number(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    let text = scanner.number();
    untyped(scanner, text)
}

fn untyped(scanner: &mut Scanner<'_>, text: &str) -> Result<Attribute> {
    let hexadecimal = text.trim_start_matches('-').strip_prefix("0x");
    let integer = match hexadecimal {
        Some(digits) => {
            let magnitude = i128::from_str_radix(digits, 16).ok();
            magnitude.map(|value| if text.starts_with('-') { -value } else { value })
        }
        None => text.parse().ok(),
    };
    match integer {
        Some(value) => Ok(Attribute::Integer(value)),
        None => text.parse().map(Attribute::Float).map_err(|_| scanner.expected("a number")),
    }
}

fn skip_type(scanner: &mut Scanner<'_>) -> Result<()> {
    if scanner.at(":") && !scanner.at("::") {
        let before = scanner.position();
        scanner.expect(":")?;
        if types::is_type(scanner) {
            types::read_type(scanner)?;
        } else {
            scanner.set_position(before);
        }
    }
    Ok(())
}

/// `array<i64: 1, 2>`, after the word `array`.
fn read_array(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    scanner.expect("<")?;
    let crate::Type::Scalar(element) = types::read_type(scanner)? else {
        return Err(scanner.expected("the type of the array's numbers"));
    };
    if scanner.eat(">") {
        return Ok(if element.is_floating_point() {
            Attribute::Floats(Vec::new())
        } else {
            Attribute::Integers(Vec::new())
        });
    }
    scanner.expect(":")?;
    if element.is_floating_point() {
        let read = |scanner: &mut Scanner<'_>| {
            let text = scanner.number();
            dense::float(text, element).ok_or_else(|| scanner.expected("a number"))
        };
        return Ok(Attribute::Floats(scanner.list(">", read)?));
    }
    let read = |scanner: &mut Scanner<'_>| match scanner.peek_word() {
        word @ ("true" | "false") => {
            scanner.word();
            Ok(i64::from(word == "true"))
        }
        _ => scanner.integer(),
    };
    Ok(Attribute::Integers(scanner.list(">", read)?))
}

/// `{name = value, name}`: a name alone is [`Attribute::Unit`].
pub(super) fn read_dictionary(scanner: &mut Scanner<'_>) -> Result<Attributes> {
    scanner.expect("{")?;
    let mut attributes = Attributes::default();
    let entries = scanner.list("}", |scanner| {
        let name = match scanner.peek() {
            b'"' => scanner.string()?.into_owned(),
            _ => scanner.word().to_owned(),
        };
        if name.is_empty() {
            return Err(scanner.expected("the name of an attribute"));
        }
        let value = if scanner.eat("=") { read(scanner)? } else { Attribute::Unit };
        Ok((name, value))
    })?;
    for (name, value) in entries {
        if attributes.set(name.clone(), value).is_some() {
            return Err(scanner.error(format!("duplicate attribute '{name}'")));
        }
    }
    Ok(attributes)
}
