//! Text assembled from lines, and names escaped for comments and string literals.

/// A C++ text under construction.
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

    /// Appends a one-line comment. Text from a user must be [`quoted`].
    pub(crate) fn comment(&mut self, comment: &str) {
        self.line(format!("// {comment}").trim_end());
    }

    /// Appends an empty line.
    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Appends lines indented as the members of a class.
    pub(crate) fn indented(&mut self, lines: impl FnOnce(&mut Self)) {
        self.indentation = "  ";
        lines(self);
        self.indentation = "";
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }
}

/// Returns a C++ string literal of ASCII characters for any text. The literal contains no line
/// break and does not end in a backslash, so it may also appear in a comment. Question marks are
/// escaped because of trigraphs.
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
