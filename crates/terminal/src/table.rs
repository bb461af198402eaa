//! Tables that fit the screen.

use crate::screen::{Screen, Style, printable, width};

/// Columns between two cells.
const GAP: usize = 2;

/// Width below which no cell is shortened.
const MIN_WIDTH: usize = 12;

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    is_right: bool,
    shrinks: bool,
    is_optional: bool,
}

impl Column {
    fn new(title: &str, is_right: bool) -> Self {
        Self { title: title.to_owned(), is_right, shrinks: false, is_optional: false }
    }

    /// A column of words.
    pub fn words(title: &str) -> Self {
        Self::new(title, false)
    }

    /// A column of names. On a narrow screen, it omits the middle of long ones.
    pub fn names(title: &str) -> Self {
        Self { shrinks: true, ..Self::new(title, false) }
    }

    /// A column of numbers.
    pub fn numbers(title: &str) -> Self {
        Self::new(title, true)
    }

    /// The same column, which a screen omits that is still too narrow with short names.
    pub fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }
}

/// A table. Cells may contain untrusted text.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<(Option<Style>, Vec<String>)>,
    indent: usize,
}

impl Table {
    /// An empty table.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), indent: 0 }
    }

    /// The same table, with spaces before each row.
    pub fn indented(self) -> Self {
        Self { indent: GAP, ..self }
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.push(None, cells);
    }

    /// Adds a row in a style.
    pub fn styled_row(&mut self, style: Style, cells: impl IntoIterator<Item = String>) {
        self.push(Some(style), cells);
    }

    fn push(&mut self, style: Option<Style>, cells: impl IntoIterator<Item = String>) {
        self.rows.push((style, cells.into_iter().map(|cell| printable(&cell)).collect()));
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines: the titles, unless all are empty, and the rows. Lines are no longer than
    /// the screen unless the required columns do not fit.
    pub fn render(&self, screen: &Screen) -> String {
        let widths = self.widths(screen.columns);
        let mut text = String::new();
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            let titles: Vec<&str> = self.columns.iter().map(|column| column.title.as_str()).collect();
            text += &screen.heading(&self.line(&titles, &widths));
        }
        for (style, cells) in &self.rows {
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            let line = self.line(&cells, &widths);
            text += &style.map_or_else(|| line.clone(), |style| screen.style(style, &line));
            text.push('\n');
        }
        text
    }

    /// Width of each column, `None` for those that are omitted.
    fn widths(&self, limit: Option<usize>) -> Vec<Option<usize>> {
        let natural = |k: usize| {
            let cells = self.rows.iter().filter_map(|(_, cells)| cells.get(k)).map(|cell| width(cell));
            cells.chain([width(&self.columns[k].title)]).max()
        };
        let natural: Vec<Option<usize>> = (0..self.columns.len()).map(natural).collect();
        let Some(limit) = limit else { return natural };
        let mut shown = natural;
        loop {
            let mut widths = shown.clone();
            self.shrink(&mut widths, limit);
            let last = (0..shown.len()).rfind(|&k| self.columns[k].is_optional && shown[k].is_some());
            match last {
                Some(last) if self.total(&widths) > limit => shown[last] = None,
                _ => return widths,
            }
        }
    }

    /// Shortens the widest columns of names until the lines fit.
    fn shrink(&self, widths: &mut [Option<usize>], limit: usize) {
        loop {
            let excess = self.total(widths).saturating_sub(limit);
            let names = widths.iter_mut().zip(&self.columns).filter(|(_, column)| column.shrinks);
            let widest = names.filter_map(|(width, _)| width.as_mut()).max();
            match widest {
                Some(width) if excess > 0 && *width > MIN_WIDTH => {
                    *width = width.saturating_sub(excess).max(MIN_WIDTH);
                }
                _ => return,
            }
        }
    }

    fn total(&self, widths: &[Option<usize>]) -> usize {
        let shown = widths.iter().flatten();
        self.indent + shown.clone().sum::<usize>() + GAP * shown.count().saturating_sub(1)
    }

    fn line(&self, cells: &[&str], widths: &[Option<usize>]) -> String {
        let mut line = " ".repeat(self.indent);
        let mut is_first = true;
        for ((cell, column), &limit) in cells.iter().zip(&self.columns).zip(widths) {
            let Some(limit) = limit else { continue };
            if !is_first {
                line += &" ".repeat(GAP);
            }
            is_first = false;
            let cell = fitted(cell, limit);
            let space = " ".repeat(limit.saturating_sub(width(&cell)));
            line += &if column.is_right { space + &cell } else { cell + &space };
        }
        line.trim_end().to_owned()
    }
}

/// A text without its middle, if it is wider than the limit. Names differ most at the end.
fn fitted(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let kept = limit.saturating_sub(3);
    let head: String = prefix(text.chars(), kept / 3);
    let tail: String = prefix(text.chars().rev(), kept - width(&head));
    format!("{head}...{}", tail.chars().rev().collect::<String>())
}

/// The first characters that fit.
fn prefix(chars: impl Iterator<Item = char>, limit: usize) -> String {
    let mut text = String::new();
    for c in chars {
        text.push(c);
        if width(&text) > limit {
            text.pop();
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels() -> Table {
        let mut table = Table::new([
            Column::numbers("share"),
            Column::numbers("each").optional(),
            Column::names("node"),
            Column::words("note").optional(),
        ]);
        table.row(["50.0%", "3.1 us", "model/stage_1/block_2/conv/Conv2D", "slow"].map(str::to_owned));
        table.row(["2.5%", "99 ns", "model/stem/Relu", ""].map(str::to_owned));
        table
    }

    #[test]
    fn without_a_limit_columns_are_as_wide_as_their_cells() {
        let text = "share    each  node                               note\n\
                    50.0%  3.1 us  model/stage_1/block_2/conv/Conv2D  slow\n 2.5%   99 ns  model/stem/Relu\n";
        assert_eq!(kernels().render(&Screen::PLAIN), text);
    }

    #[test]
    fn names_lose_their_middle_before_columns_go() {
        let text = "share    each  node               note\n\
                    50.0%  3.1 us  mode...onv/Conv2D  slow\n 2.5%   99 ns  model/stem/Relu\n";
        assert_eq!(kernels().render(&Screen::new(38, false)), text);
        let text = "share    each  node\n50.0%  3.1 us  mod...v/Conv2D\n 2.5%   99 ns  mod...tem/Relu\n";
        assert_eq!(kernels().render(&Screen::new(29, false)), text);
        let text = "share  node\n50.0%  mod.../Conv2D\n 2.5%  mod...em/Relu\n";
        assert_eq!(kernels().render(&Screen::new(20, false)), text);
    }

    #[test]
    fn titles_are_bold_and_names_harmless() {
        let mut table = Table::new([Column::names("node")]).indented();
        table.styled_row(Style::Bad, ["a\x1b[2Jb".to_owned()]);
        let text = table.render(&Screen::new(80, true));
        assert_eq!(text, "\x1b[1m  node\x1b[0m\n\x1b[31m  a\\u{1b}[2Jb\x1b[0m\n");
    }
}
