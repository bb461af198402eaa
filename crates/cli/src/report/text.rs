//! Formatting of the commands' output: tables, sizes, JSON, and untrusted text.

use crate::files::outputs;
use serde_json::Value;
use shape::Quantization;
use std::fmt::Write as _;
use support::Result;

/// Prints JSON, indented and with sorted keys.
pub(crate) fn print_json(value: &Value) -> Result<()> {
    outputs::print(&format!("{value:#}\n"))
}

/// Appends a table whose columns are as wide as their widest cells.
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

/// Returns a shape with the quantization of its array, such as `s8[2] scale 0.5 zero point -3`.
pub(crate) fn with_quantization(shape: String, quantization: Option<Quantization>) -> String {
    match quantization {
        Some(quantization) => format!("{shape} {quantization}"),
        None => shape,
    }
}

/// Maximum number of bytes of a text that are printed.
const MAX_PRINTED: usize = 500;

/// Makes text from an untrusted file safe to print: escapes control characters, and omits the
/// middle of long texts.
pub(crate) fn printable(text: &str) -> String {
    if text.len() > MAX_PRINTED {
        let start = text.floor_char_boundary(MAX_PRINTED / 2);
        let end = text.ceil_char_boundary(text.len() - MAX_PRINTED / 2);
        return format!("{} ... {}", printable(&text[..start]), printable(&text[end..]));
    }
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Formats a size with a unit.
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
