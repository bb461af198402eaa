//! Tokens of Rust source with their lines, without comments, strings, lifetimes, attributes, and
//! code for tests.

/// A token of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// An identifier, a number, `::`, or a single character.
    pub text: &'a str,
    /// Its line, from 1.
    pub line: usize,
}

impl Token<'_> {
    /// True for identifiers and keywords.
    pub fn is_word(&self) -> bool {
        self.text.starts_with(is_word_start)
    }
}

/// The tokens of a file, without items that only tests see.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    without_tests(&scan(text))
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn scan(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match c {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            '\'' => quoted(rest),
            '0'..='9' => {
                let length = number(rest);
                found.push(Token { text: &rest[..length], line });
                length
            }
            _ if is_word_start(c) => match prefixed_literal(rest) {
                Some(length) => length,
                None => {
                    // A raw identifier is named without its mark.
                    let mark = if rest.starts_with("r#") { 2 } else { 0 };
                    let end = rest[mark..].find(|c| !is_word_part(c)).map_or(rest.len(), |n| mark + n);
                    found.push(Token { text: &rest[mark..end], line });
                    end
                }
            },
            _ if rest.starts_with("::") => {
                found.push(Token { text: &rest[..2], line });
                2
            }
            _ => {
                if !c.is_whitespace() {
                    found.push(Token { text: &rest[..c.len_utf8()], line });
                }
                c.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        at += length;
    }
    found
}

/// Length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        let Some(next) = text[at..].find(['/', '*']) else { return text.len() };
        at += next;
        let step = match text.get(at..at + 2) {
            Some("/*") => {
                depth += 1;
                2
            }
            Some("*/") => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
    }
    at
}

/// Length of a string with escapes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Length of a character or a lifetime.
fn quoted(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    let Some((_, first)) = chars.next() else { return 1 };
    if first == '\\' {
        let end = text[3..].find('\'');
        return end.map_or(text.len(), |end| end + 4);
    }
    match chars.next() {
        Some((at, '\'')) => at + 1,
        _ => text[1..].find(|c| !is_word_part(c)).map_or(text.len(), |end| end.max(1) + 1),
    }
}

/// Length of a number. `0..n` and `1.max(2)` end before the point.
fn number(text: &str) -> usize {
    let end = |from: usize| text[from..].find(|c| !is_word_part(c)).map_or(text.len(), |n| from + n);
    let whole = end(0);
    let fraction =
        text[whole..].strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if fraction { end(whole + 1) } else { whole }
}

/// Length of a literal that begins with letters: `b"…"`, `r#"…"#`, `b'…'`. `None` for an
/// identifier.
fn prefixed_literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c"].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix).unwrap_or_default().trim_start_matches('#');
        rest.starts_with('"') || (*prefix == "b" && text.starts_with("b'"))
    })?;
    let rest = &text[prefix.len()..];
    if rest.starts_with('\'') {
        return Some(prefix.len() + quoted(rest));
    }
    if !prefix.ends_with('r') {
        return rest.starts_with('"').then(|| prefix.len() + string(rest));
    }
    let marks = rest.len() - rest.trim_start_matches('#').len();
    let close = format!("\"{}", &rest[..marks]);
    let body = prefix.len() + marks + 1;
    Some(text[body..].find(&close).map_or(text.len(), |end| body + end + close.len()))
}

/// Removes attributes, and each item after a `#[cfg(test)]`.
fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some(end) = attribute_end(tokens, at) else {
            kept.push(tokens[at]);
            at += 1;
            continue;
        };
        let words: Vec<&str> = tokens[at..end].iter().filter(|t| t.is_word()).map(|t| t.text).collect();
        at = end;
        if words.first() == Some(&"cfg") && words.contains(&"test") && !words.contains(&"not") {
            at = item_end(tokens, at);
        }
    }
    kept
}

/// End of the attribute that begins here.
fn attribute_end(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let text = |at: usize| tokens.get(at).map(|t| t.text);
    let open = if text(at + 1) == Some("!") { at + 2 } else { at + 1 };
    (text(at) == Some("#") && text(open) == Some("[")).then(|| closed(tokens, open))
}

/// End of the item that begins here: after its `;` or its closing brace. The braces of a `use` do
/// not end it.
fn item_end(tokens: &[Token<'_>], mut at: usize) -> usize {
    let mut import = false;
    while let Some(token) = tokens.get(at) {
        import |= token.text == "use";
        match token.text {
            ";" | "," => return at + 1,
            "{" if !import => return closed(tokens, at),
            "{" => at = closed(tokens, at),
            "(" | "[" => at = closed(tokens, at),
            "}" => return at,
            _ => at += 1,
        }
    }
    at
}

/// Index after the bracket that closes the one at `open`.
pub fn closed(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        tokens(text).iter().map(|t| t.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_strings_and_lifetimes_are_left_out() {
        assert_eq!(words("a // b\n/* c /* d */ e */ f"), "a f");
        assert_eq!(words(r##"a "b\" c" r#"d " e"# b"f" br"g\" c"h" i"##), "a i");
        assert_eq!(words(r"a 'b' '\'' '\u{1f}' b'c' 'd: e<'f> '(' g"), "a : e < > g");
        assert_eq!(
            words("1.5f32 0..n 1.max(2) x.0.y 0x1f_u8"),
            "1.5f32 0 . . n 1 . max ( 2 ) x . 0 . y 0x1f_u8"
        );
        assert_eq!(words("r#type::b ró"), "type :: b ró");
    }

    #[test]
    fn lines_are_counted_in_all_of_them() {
        let text = "\"a\nb\" /* \n */ 'x' r\"\n\"\nlast";
        assert_eq!(tokens(text), [Token { text: "last", line: 5 }]);
    }

    #[test]
    fn items_for_tests_are_left_out() {
        assert_eq!(words("#[cfg(test)]\nmod tests { use a; { } }\nfn b() {}"), "fn b ( ) { }");
        assert_eq!(words("#[cfg(test)] use a::{b, c}; d"), "d");
        assert_eq!(words("#[cfg(all(test, unix))] #[x] fn a(b: [u8; 2]) -> C { d }\ne"), "e");
        assert_eq!(words("#[cfg(not(test))] fn a() {}"), "fn a ( ) { }");
        assert_eq!(words("#![allow(x)] #[derive(Y)] struct Z;"), "struct Z ;");
    }
}
