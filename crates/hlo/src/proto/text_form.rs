//! Pieces of text that all parts of a module's text share.

use super::messages::ShapeProto;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) const INFALLIBLE: &str = "a string takes everything";

/// Numbers with commas between.
pub(super) fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The shapes of a computation's instructions, by number.
pub(super) type Shapes<'m> = BTreeMap<i64, &'m ShapeProto>;

/// Computations by number, each with a name of its own.
pub(super) type Names = BTreeMap<i64, String>;

/// Bytes between quotes: what is not printed is octal, as in C.
pub(super) fn escaped(bytes: &[u8]) -> String {
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
