//! A text that grows by lines, and names made safe for comments and string literals.

/// C++ text in the making.
pub(crate) struct Text {
    text: String,
    indentation: &'static str,
}

impl Text {
    pub(crate) fn new() -> Self {
        Self { text: String::new(), indentation: "" }
    }

    /// Appends a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(self.indentation);
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Appends a comment of one line. The text must not come from a user, unless [`quoted`].
    pub(crate) fn comment(&mut self, comment: &str) {
        self.line(format!("// {comment}").trim_end());
    }

    /// Appends an empty line.
    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Appends lines that are indented as the members of a class.
    pub(crate) fn indented(&mut self, lines: impl FnOnce(&mut Self)) {
        self.indentation = "  ";
        lines(self);
        self.indentation = "";
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }
}

/// A C++ string literal of ASCII characters for any text. It has no line break and does not end in a backslash, so
/// it may also stand in a comment; question marks are escaped for the sake of trigraphs.
pub(crate) fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => {
                literal.push('\\');
                literal.push(char::from(byte));
            }
            b' '..=b'~' => literal.push(char::from(byte)),
            _ => literal.push_str(&format!("\\{byte:03o}")),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_becomes_one_harmless_literal() {
        assert_eq!(quoted("tower/x:0"), r#""tower/x:0""#);
        assert_eq!(quoted("a\"b\\"), r#""a\"b\\""#);
        assert_eq!(quoted("l1\nl2 é ??/"), r#""l1\012l2 \303\251 \?\?/""#);
    }
}
