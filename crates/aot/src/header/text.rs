//! Text assembled from lines, and names escaped for comments and string literals.

/// Upper bound of the length of wrapped comment lines.
const COLUMNS: usize = 100;

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

    /// Appends a comment, wrapped at 100 columns. All its lines are indented as `text` is. Must not
    /// contain text from a user, because a line could end in a backslash.
    pub(crate) fn paragraph(&mut self, text: &str) {
        let content = text.trim_start();
        self.wrapped(&text[..text.len() - content.len()], content.split(' '));
    }

    /// Appends the signature of a computation as a comment, wrapped between parameters and between
    /// results.
    pub(crate) fn signature(&mut self, parameters: &[String], results: &[String]) {
        let text = format!("({}) -> ({})", parameters.join(", "), results.join(", "));
        self.wrapped("  ", text.split_inclusive(", ").map(str::trim_end));
    }

    /// Appends pieces of a comment with spaces between them, and a line break where a piece would
    /// exceed the columns.
    fn wrapped<'a>(&mut self, indentation: &str, pieces: impl Iterator<Item = &'a str>) {
        let width = COLUMNS - self.indentation.len() - "// ".len();
        let mut line = indentation.to_string();
        for piece in pieces {
            if line.len() > indentation.len() {
                if line.len() + 1 + piece.len() > width {
                    self.comment(&line);
                    line.truncate(indentation.len());
                } else {
                    line.push(' ');
                }
            }
            line.push_str(piece);
        }
        self.comment(&line);
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
    fn paragraphs_are_wrapped_and_keep_their_indentation() {
        let words = |count| vec!["0123456789abcde"; count].join(" ");
        let mut out = Text::new();
        out.paragraph(&format!("  {}", words(7)));
        out.indented(|out| out.paragraph(&format!("{} end", words(6))));
        let first = format!("//   {}\n//   {}\n", words(6), words(1));
        let second = format!("  // {}\n  // end\n", words(6));
        assert_eq!(out.into_string(), first + &second);
    }

    #[test]
    fn signatures_break_between_parameters() {
        let parameters: Vec<String> = (0..10).map(|n| format!("arg{n}: f32[1,2]")).collect();
        let mut out = Text::new();
        out.signature(&parameters, &["f32[]".to_string()]);
        let (first, second) = (parameters[..5].join(", "), parameters[5..].join(", "));
        assert_eq!(out.into_string(), format!("//   ({first},\n//   {second}) -> (f32[])\n"));
    }

    #[test]
    fn any_text_becomes_one_harmless_literal() {
        assert_eq!(quoted("tower/x:0"), r#""tower/x:0""#);
        assert_eq!(quoted("a\"b\\"), r#""a\"b\\""#);
        assert_eq!(quoted("l1\nl2 é ??/"), r#""l1\012l2 \303\251 \?\?/""#);
    }
}
