//! Layout of what commands print: tables, sizes, JSON, and text of unknown origin.

use crate::files::outputs;
use serde_json::Value;
use std::fmt::Write as _;
use support::Result;

/// Prints JSON for programs to read: indented, keys sorted.
pub(crate) fn print_json(value: &Value) -> Result<()> {
    outputs::print(&format!("{value:#}\n"))
}

/// Rows with columns as wide as their widest cell.
pub(crate) fn table(out: &mut String, title: &str, rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| rows.iter().filter_map(|r| r.get(k)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let _ = writeln!(out, "{title}");
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "  {}", cells.join("  ").trim_end());
    }
}

/// The most characters of a text that are printed.
const MAX_PRINTED: usize = 500;

/// Text of a file of somebody's without what a terminal obeys, and without the middle if it is endless.
pub(crate) fn printable(text: &str) -> String {
    if text.len() > MAX_PRINTED {
        let start = text.floor_char_boundary(MAX_PRINTED / 2);
        let end = text.ceil_char_boundary(text.len() - MAX_PRINTED / 2);
        return format!("{} ... {}", printable(&text[..start]), printable(&text[end..]));
    }
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// A size for the reader.
pub(crate) fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(human_bytes(999), "999 B");
        assert_eq!(human_bytes(14_161_000), "14.2 MB");
    }
}
