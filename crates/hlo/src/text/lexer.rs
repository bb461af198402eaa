//! Tokens of HLO text.

use support::{Error, Result};

/// A token. Lexing cannot fail: invalid text becomes a symbol that no parser expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    /// An identifier, a keyword, a number, or a pattern such as `1x2` or `0_1x2_3`.
    Word(&'t str),
    /// A name, without its sigil: `%add.1`.
    Name(&'t str),
    /// The contents of a quoted string, with its escapes.
    Quoted(&'t str),
    /// Any other character.
    Symbol(char),
    /// `->`.
    Arrow,
    /// `<=`.
    AtMost,
    /// `...`.
    Dots,
    /// The end of the text.
    End,
}

/// Iterates over a text with one token of lookahead. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'t> {
    /// The text from the start of the file, for line numbers, to the end of this lexer's part.
    text: &'t str,
    /// Position after the next token.
    position: usize,
    /// Start of the next token.
    start: usize,
    next: Token<'t>,
}

impl<'t> Lexer<'t> {
    /// Starts at the first token at or after `start`.
    pub(crate) fn new(text: &'t str, start: usize) -> Self {
        let mut lexer = Self { text, position: start, start, next: Token::End };
        lexer.scan();
        lexer
    }

    /// Returns a lexer for one part of the text.
    pub(crate) fn part(&self, range: std::ops::Range<usize>) -> Self {
        Self::new(&self.text[..range.end], range.start)
    }

    /// Returns the next token.
    pub(crate) fn peek(&self) -> Token<'t> {
        self.next
    }

    /// Returns the token after the next one.
    pub(crate) fn peek_second(&self) -> Token<'t> {
        let mut ahead = self.clone();
        ahead.scan();
        ahead.next
    }

    /// Returns the start of the next token.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Consumes the next token.
    pub(crate) fn take(&mut self) -> Token<'t> {
        let token = self.next;
        self.scan();
        token
    }

    /// Consumes the next token if it equals `token`.
    pub(crate) fn eat(&mut self, token: Token<'_>) -> bool {
        let is_next = self.next == token;
        if is_next {
            self.scan();
        }
        is_next
    }

    /// Consumes the next token if it is this symbol.
    pub(crate) fn eat_symbol(&mut self, symbol: char) -> bool {
        self.eat(Token::Symbol(symbol))
    }

    /// Consumes this symbol, or returns an error.
    pub(crate) fn expect_symbol(&mut self, symbol: char) -> Result<()> {
        if self.eat_symbol(symbol) { Ok(()) } else { Err(self.expected(&format!("'{symbol}'"))) }
    }

    /// Consumes a name, with or without its sigil; a colon directly after it is ignored.
    pub(crate) fn expect_name(&mut self, what: &str) -> Result<&'t str> {
        let name = match self.next {
            Token::Name(name) => name,
            Token::Word(name) if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => name,
            _ => return Err(self.expected(what)),
        };
        self.position += usize::from(self.rest().starts_with(':'));
        self.scan();
        Ok(name)
    }

    /// Consumes a word of any kind.
    pub(crate) fn expect_word(&mut self, what: &str) -> Result<&'t str> {
        match self.next {
            Token::Word(word) => {
                self.scan();
                Ok(word)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Consumes an integer of the type `T`.
    pub(crate) fn expect_integer<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        let value = match self.next {
            Token::Word(word) => word.parse().ok(),
            _ => None,
        };
        let value = value.ok_or_else(|| self.expected(what))?;
        self.scan();
        Ok(value)
    }

    /// Continues at a later position.
    pub(crate) fn skip_to(&mut self, position: usize) {
        self.position = position.clamp(self.start, self.text.len());
        self.scan();
    }

    /// Consumes and returns the entire rest.
    pub(crate) fn take_rest(&mut self) -> &'t str {
        let rest = &self.text[self.start..];
        self.position = self.text.len();
        self.scan();
        rest
    }

    /// Returns the text from a position up to the next token.
    pub(crate) fn text_from(&self, start: usize) -> &'t str {
        &self.text[start..self.start]
    }

    /// Checks that nothing remains.
    pub(crate) fn expect_end(&self) -> Result<()> {
        if self.next == Token::End { Ok(()) } else { Err(self.expected("the end")) }
    }

    /// Creates an error that states what was expected and what was found.
    pub(crate) fn expected(&self, what: &str) -> Error {
        let actual = match self.next {
            Token::Word(word) => format!("'{}'", shorten(word)),
            Token::Name(name) => format!("'%{}'", shorten(name)),
            Token::Quoted(_) => "a string".to_owned(),
            Token::Symbol(symbol) => format!("'{}'", symbol.escape_default()),
            Token::Arrow => "'->'".to_owned(),
            Token::AtMost => "'<='".to_owned(),
            Token::Dots => "'...'".to_owned(),
            Token::End => "the end".to_owned(),
        };
        self.error_at(self.start, &format!("expected {what}, found {actual}"))
    }

    /// Creates an error at the next token.
    pub(crate) fn error(&self, message: &str) -> Error {
        self.error_at(self.start, message)
    }

    /// Creates an error with the line of a position.
    pub(crate) fn error_at(&self, position: usize, message: &str) -> Error {
        let before = &self.text.as_bytes()[..position.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Error::invalid(format!("{line}: {message}"))
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    /// Skips spaces and comments; an unterminated comment is not skipped.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let length = if rest.starts_with("//") {
                rest.find(['\n', '\r']).unwrap_or(rest.len())
            } else if let Some(comment) = rest.strip_prefix("/*") {
                comment.find("*/").map_or(0, |end| end + 4)
            } else {
                rest.len() - rest.trim_start().len()
            };
            if length == 0 {
                return;
            }
            self.position += length;
        }
    }

    fn scan(&mut self) {
        self.skip_blanks();
        self.start = self.position;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            self.next = Token::End;
            return;
        };
        let (token, length) = match first {
            '%' => match identifier(&rest[1..]) {
                "" => (Token::Symbol('%'), 1),
                name => (Token::Name(name), name.len() + 1),
            },
            '"' => match quoted(&rest[1..]) {
                Some(inside) => (Token::Quoted(inside), inside.len() + 2),
                None => (Token::Symbol('"'), 1),
            },
            _ if rest.starts_with("->") => (Token::Arrow, 2),
            _ if rest.starts_with("<=") => (Token::AtMost, 2),
            _ if rest.starts_with("...") => (Token::Dots, 3),
            'a'..='z' | 'A'..='Z' | '_' => {
                let word = identifier(rest);
                // `x->y` is a word, an arrow, and a word.
                let word = match word.strip_suffix('-') {
                    Some(shorter) if rest[word.len()..].starts_with('>') => shorter,
                    _ => word,
                };
                (Token::Word(word), word.len())
            }
            '0'..='9' | '-' | '.' => match number(rest) {
                "" => (Token::Symbol(first), 1),
                word => (Token::Word(word), word.len()),
            },
            _ => (Token::Symbol(first), first.len_utf8()),
        };
        self.position += length;
        self.next = token;
    }
}

/// Returns the longest prefix that is an identifier: `[a-zA-Z_][a-zA-Z0-9_.-]*`.
fn identifier(text: &str) -> &str {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return "";
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')));
    &text[..end.unwrap_or(text.len())]
}

/// Returns the longest prefix that could be a number or a pattern of numbers. A sign can be at the
/// start, or after an exponent's `e`, a window's `x`, or a padding's `_`.
fn number(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut end = usize::from(bytes[0] == b'-');
    if !bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'.') {
        return "";
    }
    while let Some(&byte) = bytes.get(end) {
        let continues = match byte {
            b'-' | b'+' => matches!(bytes[end - 1], b'e' | b'E' | b'x' | b'_'),
            _ => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'),
        };
        if !continues {
            break;
        }
        end += 1;
    }
    &text[..end]
}

/// Returns the contents of a quoted string; `text` starts after the opening quote.
fn quoted(text: &str) -> Option<&str> {
    let mut escaped = false;
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(&text[..i]),
            _ => {}
        }
    }
    None
}

fn shorten(word: &str) -> String {
    match word.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &word[..end]),
        None => word.to_owned(),
    }
}
