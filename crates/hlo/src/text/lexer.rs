//! Tokens of HLO text.

use support::{Error, Result};

/// A token. Lexing cannot fail: what is no token is a symbol that nobody expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    /// An identifier, a keyword or a number, also a pattern such as `1x2` or `0_1x2_3`.
    Word(&'t str),
    /// A name with its sigil, which is left out: `%add.1`.
    Name(&'t str),
    /// The inside of a quoted string, escapes and all.
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

/// Walks over a text, one token ahead. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'t> {
    /// From the start of the file, for line numbers, to where this lexer ends.
    text: &'t str,
    /// Behind the token that is next.
    position: usize,
    /// Where the next token starts.
    start: usize,
    next: Token<'t>,
}

impl<'t> Lexer<'t> {
    /// Starts at the first token from `start` on.
    pub(crate) fn new(text: &'t str, start: usize) -> Self {
        let mut lexer = Self { text, position: start, start, next: Token::End };
        lexer.scan();
        lexer
    }

    /// A lexer of one part of the text.
    pub(crate) fn part(&self, range: std::ops::Range<usize>) -> Self {
        Self::new(&self.text[..range.end], range.start)
    }

    /// The next token.
    pub(crate) fn peek(&self) -> Token<'t> {
        self.next
    }

    /// The token behind the next.
    pub(crate) fn peek_second(&self) -> Token<'t> {
        let mut ahead = self.clone();
        ahead.scan();
        ahead.next
    }

    /// Where the next token starts.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Takes the next token.
    pub(crate) fn take(&mut self) -> Token<'t> {
        let token = self.next;
        self.scan();
        token
    }

    /// Takes the next token if it is this one.
    pub(crate) fn eat(&mut self, token: Token<'_>) -> bool {
        let found = self.next == token;
        if found {
            self.scan();
        }
        found
    }

    /// Takes the next token if it is this symbol.
    pub(crate) fn eat_symbol(&mut self, symbol: char) -> bool {
        self.eat(Token::Symbol(symbol))
    }

    /// Takes this symbol, or says what is there instead.
    pub(crate) fn expect_symbol(&mut self, symbol: char) -> Result<()> {
        if self.eat_symbol(symbol) { Ok(()) } else { Err(self.expected(&format!("'{symbol}'"))) }
    }

    /// Takes a name, with its sigil or without; a colon right behind it says nothing.
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

    /// Takes a word of any kind.
    pub(crate) fn expect_word(&mut self, what: &str) -> Result<&'t str> {
        match self.next {
            Token::Word(word) => {
                self.scan();
                Ok(word)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Takes an integer of the type that the caller wants.
    pub(crate) fn expect_integer<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        let value = match self.next {
            Token::Word(word) => word.parse().ok(),
            _ => None,
        };
        let value = value.ok_or_else(|| self.expected(what))?;
        self.scan();
        Ok(value)
    }

    /// Goes on at a position further on.
    pub(crate) fn skip_to(&mut self, position: usize) {
        self.position = position.clamp(self.start, self.text.len());
        self.scan();
    }

    /// Takes everything that is left, as it stands.
    pub(crate) fn take_rest(&mut self) -> &'t str {
        let rest = &self.text[self.start..];
        self.position = self.text.len();
        self.scan();
        rest
    }

    /// What stands between a position and the next token.
    pub(crate) fn text_from(&self, start: usize) -> &'t str {
        &self.text[start..self.start]
    }

    /// Checks that nothing is left.
    pub(crate) fn expect_end(&self) -> Result<()> {
        if self.next == Token::End { Ok(()) } else { Err(self.expected("nothing more")) }
    }

    /// The error that something else was expected.
    pub(crate) fn expected(&self, what: &str) -> Error {
        let found = match self.next {
            Token::Word(word) => format!("'{}'", shortened(word)),
            Token::Name(name) => format!("'%{}'", shortened(name)),
            Token::Quoted(_) => "a string".to_owned(),
            Token::Symbol(symbol) => format!("'{}'", symbol.escape_default()),
            Token::Arrow => "'->'".to_owned(),
            Token::AtMost => "'<='".to_owned(),
            Token::Dots => "'...'".to_owned(),
            Token::End => "the end".to_owned(),
        };
        self.error_at(self.start, &format!("expected {what}, found {found}"))
    }

    /// An error at the next token.
    pub(crate) fn error(&self, message: &str) -> Error {
        self.error_at(self.start, message)
    }

    /// An error with the line of a position.
    pub(crate) fn error_at(&self, position: usize, message: &str) -> Error {
        let before = &self.text.as_bytes()[..position.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Error::invalid(format!("{line}: {message}"))
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    /// Skips blanks and comments; an unterminated comment is left where it is.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let skipped = if rest.starts_with("//") {
                rest.find(['\n', '\r']).unwrap_or(rest.len())
            } else if let Some(comment) = rest.strip_prefix("/*") {
                comment.find("*/").map_or(0, |end| end + 4)
            } else {
                rest.len() - rest.trim_start().len()
            };
            if skipped == 0 {
                return;
            }
            self.position += skipped;
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
                // `x->y` is a word, an arrow and a word.
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

/// The longest prefix that is an identifier: `[a-zA-Z_][a-zA-Z0-9_.-]*`.
fn identifier(text: &str) -> &str {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return "";
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')));
    &text[..end.unwrap_or(text.len())]
}

/// The longest prefix that could be a number or a pattern of numbers: a sign may start it or stand behind an exponent's
/// `e`, a window's `x` and a padding's `_`.
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

/// The inside of a quoted string that starts behind its opening quote.
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

fn shortened(word: &str) -> String {
    match word.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &word[..end]),
        None => word.to_owned(),
    }
}
