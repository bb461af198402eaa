//! The place where text is shown, and text that fits it.

use console::Term;

/// Columns of prose that does not go to a terminal.
const PROSE: usize = 100;

/// Maximum number of bytes of a name that are printed.
const MAX_PRINTED: usize = 500;

/// Width and colors of the place where text is shown.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Number of columns, or `None` without a limit.
    pub(crate) columns: Option<usize>,
    has_colors: bool,
}

/// Meaning of a piece of text. Colors only repeat what the words say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    /// Text.
    Plain,
    /// Titles of tables and columns: bold.
    Heading,
    /// Explanations: dimmed.
    Faint,
    /// Success: green.
    Good,
    /// Failure: red.
    Bad,
}

impl Screen {
    /// A file or a pipe: no limit and no colors.
    pub const PLAIN: Self = Self { columns: None, has_colors: false };

    /// A terminal with this number of columns.
    pub fn new(columns: usize, has_colors: bool) -> Self {
        Self { columns: Some(columns), has_colors }
    }

    /// The place where standard output goes. There are no colors if the environment variable
    /// `NO_COLOR` is set, or if the terminal has none.
    pub fn stdout() -> Self {
        Self::of(&Term::stdout(), console::colors_enabled())
    }

    /// The place where standard error goes, like [`Screen::stdout`].
    pub fn stderr() -> Self {
        Self::of(&Term::stderr(), console::colors_enabled_stderr())
    }

    fn of(terminal: &Term, has_colors: bool) -> Self {
        match terminal.size_checked() {
            Some((_, columns)) if columns > 0 => {
                Self::new(columns.into(), terminal.features().colors_supported() && has_colors)
            }
            _ => Self::PLAIN,
        }
    }

    /// The text in the colors of its meaning.
    pub fn style(&self, style: Style, text: &str) -> String {
        if !self.has_colors || text.is_empty() {
            return text.to_owned();
        }
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Heading => "1",
            Style::Faint => "2",
            Style::Good => "32",
            Style::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// A line in bold, such as the title of a table.
    pub fn heading(&self, text: &str) -> String {
        self.style(Style::Heading, text) + "\n"
    }

    /// A paragraph of words in a style, with lines that fit the screen.
    pub fn paragraph(&self, style: Style, text: &str) -> String {
        let limit = self.columns.unwrap_or(PROSE);
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if width(line) + 1 + width(word) <= limit => *line += &format!(" {word}"),
                _ => lines.push(word.to_owned()),
            }
        }
        lines.iter().map(|line| self.style(style, line) + "\n").collect()
    }
}

/// Number of columns of a text on a terminal.
pub(crate) fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

/// Makes text from an untrusted file safe to print: escapes control characters, and omits the
/// middle of long texts.
pub fn printable(text: &str) -> String {
    if text.len() > MAX_PRINTED {
        let start = text.floor_char_boundary(MAX_PRINTED / 2);
        let end = text.ceil_char_boundary(text.len() - MAX_PRINTED / 2);
        return format!("{} ... {}", printable(&text[..start]), printable(&text[end..]));
    }
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_fit() {
        let screen = Screen::new(12, false);
        let text = screen.paragraph(Style::Faint, "p50: median;\n best half: mean of it");
        assert_eq!(text, "p50: median;\nbest half:\nmean of it\n");
    }

    #[test]
    fn colors_are_only_for_terminals() {
        assert_eq!(Screen::PLAIN.style(Style::Bad, "WRONG"), "WRONG");
        assert_eq!(Screen::new(80, false).style(Style::Bad, "WRONG"), "WRONG");
        assert_eq!(Screen::new(80, true).style(Style::Bad, "WRONG"), "\x1b[31mWRONG\x1b[0m");
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        assert_eq!(printable("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(printable(&"x".repeat(2000)).len(), 505);
    }
}
