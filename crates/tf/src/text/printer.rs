//! Prints the wire format in text format, like libprotobuf's Python and TensorFlow's `.pbtxt`
//! files.

use super::messages::{Field, Kind, MessageType};
use prost::encoding::{WireType, decode_key, decode_varint};
use std::fmt::Write as _;

/// Text of an encoded message: one field per line, sorted by number, with nested messages indented
/// by two spaces. Omits fields that the table of messages does not name, and everything after
/// malformed bytes, which no encoder in this crate produces.
pub(crate) fn to_text(wire: &[u8], message: &MessageType) -> String {
    let mut out = String::new();
    fields(wire, message, 0, &mut out);
    out
}

/// A field's value in wire format.
enum Value<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

fn fields(wire: &[u8], message: &MessageType, depth: usize, out: &mut String) {
    let mut values = Vec::new();
    let mut rest = wire;
    while let Some((number, value)) = next(&mut rest) {
        // `find` returns the current name of a field, because the former name follows it.
        if let Some(field) = message.fields.iter().find(|f| f.number == number) {
            values.push((field, value));
        }
    }
    if message.name.ends_with("Entry") {
        // The key and value of a map entry are printed even if the encoder omits them as defaults.
        let absent: Vec<_> =
            message.fields.iter().filter(|f| values.iter().all(|(g, _)| g.number != f.number)).collect();
        values.extend(absent.into_iter().map(|field| match field.kind {
            Kind::Message(_) | Kind::String => (field, Value::Bytes(&[])),
            _ => (field, Value::Varint(0)),
        }));
    }
    values.sort_by_key(|(field, _)| field.number);
    for (field, value) in values {
        match (field.kind, value) {
            (Kind::Message(inner), Value::Bytes(bytes)) => {
                let _ = writeln!(out, "{:1$}{2} {{", "", 2 * depth, field.name);
                fields(bytes, inner, depth + 1, out);
                let _ = writeln!(out, "{:1$}}}", "", 2 * depth);
            }
            (Kind::String | Kind::Bytes, Value::Bytes(bytes)) => line(out, depth, field, &quoted(bytes)),
            (Kind::Message(_) | Kind::String | Kind::Bytes | Kind::Skipped, _) => {}
            (_, Value::Bytes(bytes)) => packed(bytes, field, depth, out),
            (_, value) => line(out, depth, field, &scalar(field.kind, &value)),
        }
    }
}

fn line(out: &mut String, depth: usize, field: &Field, value: &str) {
    let _ = writeln!(out, "{:1$}{2}: {value}", "", 2 * depth, field.name);
}

/// Returns the next field. `None` at the end and at malformed bytes.
fn next<'a>(rest: &mut &'a [u8]) -> Option<(u32, Value<'a>)> {
    if rest.is_empty() {
        return None;
    }
    let (number, wire_type) = decode_key(rest).ok()?;
    Some((number, value(rest, wire_type)?))
}

fn value<'a>(rest: &mut &'a [u8], wire_type: WireType) -> Option<Value<'a>> {
    let mut take = |length: usize| -> Option<&'a [u8]> {
        let (bytes, tail) = rest.split_at_checked(length)?;
        *rest = tail;
        Some(bytes)
    };
    Some(match wire_type {
        WireType::ThirtyTwoBit => Value::Fixed32(u32::from_le_bytes(take(4)?.try_into().ok()?)),
        WireType::SixtyFourBit => Value::Fixed64(u64::from_le_bytes(take(8)?.try_into().ok()?)),
        WireType::Varint => Value::Varint(decode_varint(rest).ok()?),
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
            let (bytes, tail) = rest.split_at_checked(length)?;
            *rest = tail;
            Value::Bytes(bytes)
        }
        WireType::StartGroup | WireType::EndGroup => return None,
    })
}

/// Prints the elements of a packed list, one per line.
fn packed(mut bytes: &[u8], field: &Field, depth: usize, out: &mut String) {
    let wire_type = match field.kind {
        Kind::Float => WireType::ThirtyTwoBit,
        Kind::Double => WireType::SixtyFourBit,
        _ => WireType::Varint,
    };
    while !bytes.is_empty() {
        let Some(element) = value(&mut bytes, wire_type) else { return };
        line(out, depth, field, &scalar(field.kind, &element));
    }
}

fn scalar(kind: Kind, value: &Value<'_>) -> String {
    match (kind, value) {
        (Kind::Float, Value::Fixed32(bits)) => float(f32::from_bits(*bits)),
        (Kind::Double, Value::Fixed64(bits)) => double(f64::from_bits(*bits)),
        (Kind::Bool, Value::Varint(v)) => if *v == 0 { "false" } else { "true" }.to_owned(),
        // Negative numbers are encoded in 64 bits, regardless of the field's width.
        (Kind::Int32, Value::Varint(v)) => (*v as i32).to_string(),
        (Kind::Uint32, Value::Varint(v)) => (*v as u32).to_string(),
        (Kind::Int64, Value::Varint(v)) => (*v as i64).to_string(),
        (Kind::Enum(values), Value::Varint(v)) => {
            (values.name)(*v as i32).map_or_else(|| (*v as i32).to_string(), str::to_owned)
        }
        (_, Value::Varint(v) | Value::Fixed64(v)) => v.to_string(),
        (_, Value::Fixed32(v)) => v.to_string(),
        (_, Value::Bytes(_)) => String::new(),
    }
}

/// Prints the fewest digits that parse to the same number, but at least six.
fn float(value: f32) -> String {
    let rounded = |digits: usize| format!("{:.*e}", digits - 1, value).parse().unwrap_or(f64::from(value));
    let shortest = (6..9).map(rounded).find(|&read| read as f32 == value);
    double(shortest.unwrap_or_else(|| rounded(9)))
}

/// Prints the fewest digits that parse to the same number, in Python's format.
fn double(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        _ => format!("{value:?}"),
    }
}

/// Quotes a string, with escapes as in C.
pub(super) fn quoted(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in text {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}
