//! Tokens of protocol buffers' text format.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Letters, digits, and `_`, without a leading digit.
    Identifier,
    /// A decimal, hexadecimal, or octal integer.
    Integer,
    /// A number with a point, an exponent, or a trailing `f`.
    Float,
    /// A string with its quotes and escapes.
    String,
    /// Any other single character.
    Symbol,
    /// End of the text.
    End,
}

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a [u8],
    /// Counted from 1.
    pub(super) line: usize,
    /// Counted from 1. A tab advances to the next multiple of 8.
    pub(super) column: usize,
}

/// A position and a message about it, as libprotobuf prints them: `1:13: Expected identifier.`
#[derive(Debug)]
pub(super) struct TextError {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
}

impl Token<'_> {
    /// An error at this token.
    pub(super) fn error(&self, message: impl Into<String>) -> TextError {
        TextError { line: self.line, column: self.column, message: message.into() }
    }
}

/// Splits a text into tokens.
pub(super) struct Tokenizer<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
    column: usize,
}

impl<'a> Tokenizer<'a> {
    /// Creates a tokenizer at the beginning of a text.
    pub(super) fn new(text: &'a [u8]) -> Self {
        let at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Self { text, at, line: 0, column: 0 }
    }

    /// Returns the next token, or `End` at the end of the text.
    pub(super) fn next(&mut self) -> Result<Token<'a>, TextError> {
        self.skip_blanks();
        let (start, line, column) = (self.at, self.line + 1, self.column + 1);
        let kind = match self.peek() {
            None => TokenKind::End,
            Some(c) if c.is_ascii_alphabetic() || c == b'_' => {
                self.skip_while(|c| c.is_ascii_alphanumeric() || c == b'_');
                TokenKind::Identifier
            }
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(b'.') if self.text.get(start + 1).is_some_and(u8::is_ascii_digit) => self.number(),
            Some(quote @ (b'"' | b'\'')) => self.string(quote)?,
            Some(c) if c < b' ' || c == 0x7f => {
                return Err(self.error_here("Invalid control characters encountered in text."));
            }
            Some(c) if c >= 0x80 => {
                return Err(self.error_here(format!("Interpreting non ascii codepoint {c}.")));
            }
            Some(_) => {
                self.bump();
                TokenKind::Symbol
            }
        };
        Ok(Token { kind, text: &self.text[start..self.at], line, column })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn bump(&mut self) {
        match self.text[self.at] {
            b'\n' => (self.line, self.column) = (self.line + 1, 0),
            b'\t' => self.column = (self.column / 8 + 1) * 8,
            _ => self.column += 1,
        }
        self.at += 1;
    }

    fn skip_while(&mut self, holds: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&holds) {
            self.bump();
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            self.skip_while(|c| matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c));
            if self.peek() != Some(b'#') {
                return;
            }
            self.skip_while(|c| c != b'\n');
        }
    }

    fn number(&mut self) -> TokenKind {
        if self.text[self.at..].starts_with(b"0x") || self.text[self.at..].starts_with(b"0X") {
            self.bump();
            self.skip_while(|c| c.is_ascii_alphanumeric());
            return TokenKind::Integer;
        }
        let mut kind = TokenKind::Integer;
        self.skip_while(|c| c.is_ascii_digit());
        if self.peek() == Some(b'.') {
            kind = TokenKind::Float;
            self.bump();
            self.skip_while(|c| c.is_ascii_digit());
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            kind = TokenKind::Float;
            self.bump();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.bump();
            }
            self.skip_while(|c| c.is_ascii_digit());
        }
        if matches!(self.peek(), Some(b'f' | b'F')) {
            kind = TokenKind::Float;
            self.bump();
        }
        kind
    }

    fn string(&mut self, quote: u8) -> Result<TokenKind, TextError> {
        self.bump();
        loop {
            match self.peek() {
                None => return Err(self.error_here("Unexpected end of string.")),
                Some(b'\n') => return Err(self.error_here("String literals cannot cross line boundaries.")),
                Some(b'\\') => {
                    self.bump();
                    if self.peek().is_some_and(|c| c != b'\n') {
                        self.bump();
                    }
                }
                Some(c) => {
                    self.bump();
                    if c == quote {
                        return Ok(TokenKind::String);
                    }
                }
            }
        }
    }

    fn error_here(&self, message: impl Into<String>) -> TextError {
        TextError { line: self.line + 1, column: self.column + 1, message: message.into() }
    }
}

/// Appends the bytes of a string token, without quotes and with escapes replaced. Returns an error
/// message for an invalid escape.
pub(super) fn unescape(token: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let body = token.get(1..token.len() - 1).unwrap_or_default();
    let mut rest = body.iter().copied().peekable();
    while let Some(c) = rest.next() {
        if c != b'\\' {
            out.push(c);
            continue;
        }
        let digits = |rest: &mut std::iter::Peekable<_>, radix: u32, most: usize| {
            let mut value = 0u32;
            let mut count = 0;
            while count < most {
                let next: Option<&u8> = std::iter::Peekable::peek(rest);
                let Some(digit) = next.and_then(|&c| char::from(c).to_digit(radix)) else { break };
                value = value * radix + digit;
                count += 1;
                std::iter::Iterator::next(rest);
            }
            (value, count)
        };
        match rest.next() {
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b't') => out.push(b'\t'),
            Some(b'v') => out.push(11),
            Some(c @ (b'\\' | b'\'' | b'"' | b'?')) => out.push(c),
            Some(first @ b'0'..=b'7') => {
                let (value, count) = digits(&mut rest, 8, 2);
                out.push((u32::from(first - b'0') * 8u32.pow(count as u32) + value) as u8);
            }
            Some(b'x' | b'X') => match digits(&mut rest, 16, 2) {
                (_, 0) => return Err("Expected hex digits for escape sequence."),
                (value, _) => out.push(value as u8),
            },
            Some(c @ (b'u' | b'U')) => {
                let length = if c == b'u' { 4 } else { 8 };
                let (value, count) = digits(&mut rest, 16, length);
                let character = char::from_u32(value).filter(|_| count == length);
                let character = character.ok_or("Expected four hex digits for \\u escape sequence.")?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return Err("Invalid escape sequence in string literal."),
        }
    }
    Ok(())
}
