//! Splits text into words, numbers, and punctuation.

use super::MAX_NESTING;
use std::borrow::Cow;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Maximum number of bytes that the values of aliases may expand to, counted at every use.
const MAX_EXPANDED: usize = 16 << 20;

/// A position in the text.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
    /// Number of bytes of alias values read so far in place of their names.
    expanded: usize,
    /// A position and its line, from which later lines are counted.
    counted: (usize, usize),
    /// `#name = ...` and `!name = ...`: the position of an alias's value, by its name with the
    /// sign.
    pub(super) aliases: BTreeMap<&'a str, usize>,
    /// `dialect_resources`: the hexadecimal text of a blob, by its name.
    pub(super) resources: BTreeMap<&'a str, &'a str>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            position: 0,
            depth: 0,
            expanded: 0,
            counted: (0, 1),
            aliases: BTreeMap::new(),
            resources: BTreeMap::new(),
        }
    }

    /// Returns the position of the next character that is not a space.
    pub(super) fn position(&mut self) -> usize {
        self.skip_space();
        self.position
    }

    /// Continues at another position.
    pub(super) fn set_position(&mut self, position: usize) {
        self.position = position;
    }

    /// Returns the text from `start` up to the current position.
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.position]
    }

    /// Returns the line of a position, counted from 1.
    fn line_at(&self, position: usize) -> usize {
        1 + self.text.as_bytes()[..position].iter().filter(|&&byte| byte == b'\n').count()
    }

    /// Returns the current line. A forward pass over a text counts each line once.
    pub(super) fn line(&mut self) -> usize {
        let (place, line) = self.counted;
        self.counted = match self.text.as_bytes().get(place..self.position) {
            Some(between) => (self.position, line + between.iter().filter(|&&byte| byte == b'\n').count()),
            None => (self.position, self.line_at(self.position)),
        };
        self.counted.1
    }

    /// Creates an error at the current position.
    pub(super) fn error(&self, message: impl std::fmt::Display) -> Error {
        let position = self.position.min(self.text.len());
        Error::invalid(format!("{}: {message}", self.line_at(position)))
    }

    /// Creates an error that states what was expected at the current position.
    pub(super) fn expected(&mut self, what: impl std::fmt::Display) -> Error {
        let start = self.position();
        let excerpt: String = self.text[start..].chars().take(20).take_while(|c| *c != '\n').collect();
        if excerpt.is_empty() {
            self.error(format!("expected {what}, found the end of the file"))
        } else {
            self.error(format!("expected {what}, found '{excerpt}'"))
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.position..]
    }

    fn skip_space(&mut self) {
        loop {
            let space = self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.position += space;
            if !self.rest().starts_with(b"//") {
                return;
            }
            self.position += self.rest().iter().take_while(|&&byte| byte != b'\n').count();
        }
    }

    /// Returns the next character that is not a space; 0 at the end.
    pub(super) fn peek(&mut self) -> u8 {
        self.skip_space();
        self.rest().first().copied().unwrap_or(0)
    }

    /// Number of bytes of the next character, so that it can be skipped.
    pub(super) fn next_char_length(&mut self) -> usize {
        self.skip_space();
        self.text[self.position..].chars().next().map_or(0, char::len_utf8)
    }

    /// True if this punctuation comes next.
    pub(super) fn at(&mut self, sign: &str) -> bool {
        self.skip_space();
        self.rest().starts_with(sign.as_bytes())
    }

    /// Consumes this punctuation if it comes next.
    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let is_next = self.at(sign);
        if is_next {
            self.position += sign.len();
        }
        is_next
    }

    /// Consumes this punctuation, or fails.
    pub(super) fn expect(&mut self, sign: &str) -> Result<()> {
        if self.eat(sign) { Ok(()) } else { Err(self.expected(format!("'{sign}'"))) }
    }

    /// Returns the next word without consuming it: letters, digits, `_`, `$`, `.`; empty if there
    /// is none.
    pub(super) fn peek_word(&mut self) -> &'a str {
        self.skip_space();
        let length = self.rest().iter().take_while(|&&byte| is_word(byte)).count();
        match self.rest().first() {
            Some(first) if first.is_ascii_digit() => "",
            _ => &self.text[self.position..self.position + length],
        }
    }

    /// Consumes the next word; empty if there is none.
    pub(super) fn word(&mut self) -> &'a str {
        let word = self.peek_word();
        self.position += word.len();
        word
    }

    /// Consumes this word if it comes next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let is_next = self.peek_word() == word;
        if is_next {
            self.position += word.len();
        }
        is_next
    }

    /// Consumes this word, or fails.
    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(format!("'{word}'"))) }
    }

    /// Consumes the characters of a name after `%`, `^`, `#`, or `!`, which can begin with a digit
    /// and contain `-`.
    pub(super) fn suffix(&mut self) -> &'a str {
        let start = self.position;
        self.position += self.rest().iter().take_while(|&&byte| is_word(byte) || byte == b'-').count();
        &self.text[start..self.position]
    }

    /// Consumes a string in quotes, or fails.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>> {
        self.expect("\"")?;
        let start = self.position;
        let mut escaped = false;
        loop {
            match self.rest().first() {
                None => return Err(self.error("unterminated string")),
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.position += 2;
                    if self.position > self.text.len() {
                        self.position = self.text.len();
                    }
                }
                Some(_) => self.position += 1,
            }
        }
        let raw = &self.text.as_bytes()[start..self.position];
        self.position += 1;
        if !escaped {
            return Ok(String::from_utf8_lossy(raw));
        }
        Ok(Cow::Owned(String::from_utf8_lossy(&unescape(raw)).into_owned()))
    }

    /// Consumes `@name` or `@"name"` and any nested parts; returns the last part.
    pub(super) fn symbol(&mut self) -> Result<String> {
        loop {
            self.expect("@")?;
            let name = if self.rest().first() == Some(&b'"') {
                self.string()?.into_owned()
            } else {
                self.suffix().to_owned()
            };
            if !self.eat("::") {
                return Ok(name);
            }
        }
    }

    /// Consumes the characters of a number, including its sign; empty if there is none.
    pub(super) fn number(&mut self) -> &'a str {
        self.skip_space();
        let start = self.position;
        let rest = self.rest();
        let mut length = usize::from(matches!(rest.first(), Some(b'-' | b'+')));
        if !rest.get(length).is_some_and(u8::is_ascii_digit) {
            return "";
        }
        if rest[length..].starts_with(b"0x") {
            length += 2;
            length += rest[length..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        } else {
            let digits = |at: usize| rest[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            length += digits(length);
            if rest.get(length) == Some(&b'.') {
                length += 1;
                length += digits(length);
            }
            if matches!(rest.get(length), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(rest.get(length + 1), Some(b'-' | b'+')));
                if digits((length + 1 + sign).min(rest.len())) > 0 {
                    length += 1 + sign;
                    length += digits(length);
                }
            }
        }
        self.position += length;
        &self.text[start..self.position]
    }

    /// Consumes digits only, which must come immediately.
    pub(super) fn digits(&mut self) -> Result<i64> {
        let length = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = &self.text[self.position..self.position + length];
        let value = digits.parse().map_err(|_| self.expected("an integer that fits 64 bits"))?;
        self.position += length;
        Ok(value)
    }

    /// Consumes a signed integer, or fails.
    pub(super) fn integer(&mut self) -> Result<i64> {
        let start = self.position();
        let text = self.number();
        text.parse().map_err(|_| {
            self.position = start;
            self.expected("an integer")
        })
    }

    /// Skips text up to and including the closing bracket, after the opening one.
    pub(super) fn skip_balanced(&mut self) -> Result<()> {
        let mut open = 1;
        while open > 0 {
            match self.rest().first() {
                None => return Err(self.error("unclosed bracket")),
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'/') if self.rest().get(1) == Some(&b'/') => {
                    self.skip_space();
                    continue;
                }
                Some(b'-') if self.rest().get(1) == Some(&b'>') => self.position += 1,
                Some(b'<' | b'(' | b'[' | b'{') => open += 1,
                Some(b'>' | b')' | b']' | b'}') => open -= 1,
                Some(_) => {}
            }
            self.position += 1;
        }
        Ok(())
    }

    /// Reads a list after its opening bracket: items separated by commas, up to the closing
    /// bracket.
    pub(super) fn list<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(end) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(end) {
                return Ok(items);
            }
            if !self.eat(",") {
                return Err(self.expected(format!("',' or '{end}'")));
            }
        }
    }

    /// Reads the value of an alias at its definition. Aliases of aliases could expand a short text
    /// into a huge one, so the expanded size is bounded.
    pub(super) fn read_alias<T>(
        &mut self,
        definition: usize,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let after = self.position;
        self.position = definition;
        let value = self.nest(read)?;
        self.expanded += self.position.saturating_sub(definition);
        if self.expanded > MAX_EXPANDED {
            return Err(self.error(format!("the values of aliases exceed {MAX_EXPANDED} bytes")));
        }
        self.position = after;
        Ok(value)
    }

    /// Reads a construct that can contain others of its kind.
    pub(super) fn nest<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.enter()?;
        let result = read(self);
        self.leave();
        result
    }

    /// Enters one nesting level.
    pub(super) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(self.error(format!("brackets and regions nest deeper than {MAX_NESTING} levels")));
        }
        Ok(())
    }

    /// Leaves one nesting level.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
}

/// Resolves `\n`, `\t`, `\\`, `\"`, and `\0A` (a byte).
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&first, tail)) = rest.split_first() {
        let hex = |at: usize| tail.get(at).and_then(|&byte| (byte as char).to_digit(16));
        rest = match (first, tail.first()) {
            (b'\\', Some(b'n')) => push(&mut out, b'\n', &tail[1..]),
            (b'\\', Some(b't')) => push(&mut out, b'\t', &tail[1..]),
            (b'\\', Some(_)) => match (hex(0), hex(1)) {
                (Some(high), Some(low)) => push(&mut out, (high * 16 + low) as u8, &tail[2..]),
                _ => push(&mut out, tail[0], &tail[1..]),
            },
            _ => push(&mut out, first, tail),
        };
    }
    out
}

fn push<'r>(out: &mut Vec<u8>, byte: u8, rest: &'r [u8]) -> &'r [u8] {
    out.push(byte);
    rest
}
