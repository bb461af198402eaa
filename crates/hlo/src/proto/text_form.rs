//! Helpers that all parts of a module's text share.

use super::messages::ShapeProto;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) const INFALLIBLE: &str = "writing to a string cannot fail";

/// Joins numbers with commas.
pub(super) fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The shapes of a computation's instructions, by number.
pub(super) type Shapes<'m> = BTreeMap<i64, &'m ShapeProto>;

/// Unique names of computations or instructions, by number.
pub(super) type Names = BTreeMap<i64, String>;

/// Escapes bytes for a quoted string; unprintable bytes become octal, as in C.
pub(super) fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b' '..=b'~' => text.push(byte as char),
            _ => write!(text, "\\{byte:03o}").expect(INFALLIBLE),
        }
    }
    text
}
