//! Protocol buffers' text format, produced from the binary format with tables of field names and
//! kinds.

use super::pbtxt_tables::Kind::{self, Bool, Bytes, Double, ElementType, Float, Message, Signed, Unsigned};
use super::pbtxt_tables::{Fields, HLO_MODULE};
use shape::PrimitiveType;
use std::fmt::Write as _;
use support::{Error, Result};

/// Returns the text of a serialized `xla.HloModuleProto`.
pub(super) fn module_text(bytes: &[u8]) -> Result<String> {
    let mut out = String::new();
    message(bytes, &HLO_MODULE, 0, &mut out)
        .ok_or_else(|| Error::internal("cannot decode the encoded message"))?;
    Ok(out)
}

/// Appends a message's fields, one per line; `None` if the bytes are not a valid message.
fn message(mut bytes: &[u8], fields: &Fields, level: usize, out: &mut String) -> Option<()> {
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let (number, wire) = ((key >> 3) as u32, key & 7);
        let &(_, name, kind) = fields.0.iter().find(|(field, ..)| *field == number)?;
        let indent = "  ".repeat(level);
        match (wire, kind) {
            (2, Message(nested)) => {
                let content = block(&mut bytes)?;
                let _ = writeln!(out, "{indent}{name} {{");
                message(content, nested, level + 1, out)?;
                let _ = writeln!(out, "{indent}}}");
            }
            (2, Bytes) => {
                let text = escape(block(&mut bytes)?);
                let _ = writeln!(out, "{indent}{name}: \"{text}\"");
            }
            // A packed list of numbers.
            (2, _) => {
                let mut packed = block(&mut bytes)?;
                while !packed.is_empty() {
                    let value = scalar(&mut packed, kind)?;
                    let _ = writeln!(out, "{indent}{name}: {value}");
                }
            }
            _ => {
                let value = scalar(&mut bytes, kind)?;
                let _ = writeln!(out, "{indent}{name}: {value}");
            }
        }
    }
    Some(())
}

fn scalar(bytes: &mut &[u8], kind: Kind) -> Option<String> {
    Some(match kind {
        Signed => (varint(bytes)? as i64).to_string(),
        Unsigned => varint(bytes)?.to_string(),
        Bool => (varint(bytes)? != 0).to_string(),
        Float => number(f32::from_le_bytes(*take::<4>(bytes)?)),
        Double => number(f64::from_le_bytes(*take::<8>(bytes)?)),
        ElementType => element_type(varint(bytes)?),
        Bytes | Message(_) => return None,
    })
}

/// Formats a float for the text format.
fn number(value: impl Into<f64> + std::fmt::LowerExp) -> String {
    let text = format!("{value:e}");
    let wide: f64 = value.into();
    if wide.is_nan() {
        "nan".to_owned()
    } else if wide.is_infinite() {
        if wide > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else {
        text
    }
}

fn element_type(value: u64) -> String {
    match i32::try_from(value) {
        Ok(super::TUPLE) => "TUPLE".to_owned(),
        Ok(super::TOKEN) => "TOKEN".to_owned(),
        _ => match PrimitiveType::ALL.iter().find(|candidate| **candidate as u64 == value) {
            Some(candidate) => candidate.name().to_uppercase(),
            None => value.to_string(),
        },
    }
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', byte.into()]),
            0x20..0x7f => out.push(byte.into()),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'b, const N: usize>(bytes: &mut &'b [u8]) -> Option<&'b [u8; N]> {
    let (value, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(value)
}

fn block<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(varint(bytes)?).ok()?;
    let (value, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the messages in a source file: each struct's name and its fields with their numbers.
    fn messages(source: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
        let mut messages: Vec<(&str, Vec<(&str, &str)>)> = Vec::new();
        let mut number = None;
        for line in source.lines() {
            if let Some(name) = line.strip_prefix("pub struct ") {
                messages.push((name.trim_end_matches(" {"), Vec::new()));
            } else if let Some(tag) = line.split("tag = \"").nth(1) {
                number = tag.split('"').next();
            } else if let (Some(field), Some((_, fields))) =
                (line.strip_prefix("    pub "), messages.last_mut())
            {
                let name = field.split(':').next().expect("a name");
                fields.push((name, number.take().expect("a number before the field")));
            }
        }
        messages
    }

    /// Every field has a row with its name and number.
    #[test]
    fn the_tables_have_every_field() {
        let sources = [
            include_str!("messages.rs"),
            include_str!("instruction_messages.rs"),
            include_str!("data_messages.rs"),
        ];
        let messages = sources.into_iter().flat_map(messages);
        let written = messages.filter(|(name, _)| !["HloSnapshot", "HloProto"].contains(name));
        let expected: Vec<(&str, &str)> = written.flat_map(|(_, fields)| fields).collect();
        assert!(expected.len() > 200, "{} fields", expected.len());
        let table = include_str!("pbtxt_tables.rs");
        for (name, number) in expected {
            // `type` is a keyword in Rust; a sharding by named axes is never written.
            let name = if name == "kind" && number == "1" { "type" } else { name };
            let row = format!("({number}, \"{name}\", ");
            assert!(table.contains(&row) || name == "named_sharding", "no row {row}");
        }
    }

    #[test]
    fn a_module_is_fields_by_name() {
        let text = "HloModule m\nENTRY e {\n  ROOT c = f32[2] constant({-1.5, inf})\n}\n";
        let module = crate::parse(text).expect("a module");
        let text = crate::proto::to_hlo_module_proto_text(&module).expect("messages");
        assert!(text.starts_with("name: \"m\"\nentry_computation_name: \"e\"\ncomputations {\n"), "{text}");
        for line in
            ["      f32s: -1.5e0\n      f32s: inf\n", "        element_type: F32\n        dimensions: 2\n"]
        {
            assert!(text.contains(line), "{text}");
        }
        let text = "HloModule m\nENTRY e {\n  ROOT p = f32[8]{0:T(8)S(1)} parameter(0), sharding={devices=[2]<=[2]}\n}\n";
        let module = crate::parse(text).expect("a module");
        let text = crate::proto::to_hlo_module_proto_text(&module).expect("messages");
        for line in ["        tiles {\n          dimensions: 8\n", "    sharding {\n      type: 3\n"] {
            assert!(text.contains(line), "{text}");
        }
        assert_eq!(escape(b"a\"\\\n"), "a\\\"\\\\\\012");
    }
}
