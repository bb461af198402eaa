//! Lists of attributes, `, name=value`, and the extent of a value.

use super::lexer::{Lexer, Token};
use std::collections::BTreeSet;
use support::Result;

/// An attribute in the text.
pub(super) struct RawAttribute<'t> {
    pub(super) name: &'t str,
    pub(super) name_start: usize,
    pub(super) value: std::ops::Range<usize>,
    pub(super) is_used: bool,
}

/// Reads any number of `, name=value`.
pub(super) fn read_attributes<'t>(lexer: &mut Lexer<'t>, text: &'t str) -> Result<Vec<RawAttribute<'t>>> {
    let mut attributes: Vec<RawAttribute<'t>> = Vec::new();
    let mut names = BTreeSet::new();
    while lexer.eat_symbol(',') {
        let name_start = lexer.start();
        let name = lexer.expect_name("the name of an attribute")?;
        if !names.insert(name) {
            return Err(lexer.error_at(name_start, &format!("duplicate attribute '{name}'")));
        }
        if lexer.peek() != Token::Symbol('=') {
            return Err(lexer.expected("'='"));
        }
        let mut value = value_range(text, lexer.start() + 1);
        if name == "literal" && text[value.clone()].ends_with([']', '}']) {
            // A shape, then a space and the elements.
            value.end = value_range(text, value.end).end;
        }
        lexer.skip_to(value.end);
        attributes.push(RawAttribute { name, name_start, value, is_used: false });
    }
    Ok(attributes)
}

/// Returns the range of the value after `from`: up to the first space or comma that is not in
/// brackets or a string.
pub(super) fn value_range(text: &str, from: usize) -> std::ops::Range<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    let start = at;
    let mut depth = 0usize;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while bytes.get(at).is_some_and(|&b| b != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += text.get(at + 2..).and_then(|rest| rest.find("*/")).map_or(1, |end| end + 3);
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') && depth == 0 => break,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => break,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => break,
            _ if depth == 0 && byte.is_ascii_whitespace() => break,
            _ => {}
        }
        at += 1;
    }
    // An unterminated string or comment can lead beyond the end of the text or into a character.
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    start..at
}
