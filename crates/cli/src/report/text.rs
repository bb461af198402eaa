//! Formatting of the commands' output: tables, sizes, JSON, and untrusted text.

use crate::files::outputs;
use serde_json::Value;
use shape::Quantization;
use support::Result;
use terminal::{Column, Screen, Table};

/// Version of the JSON that commands print. A change that makes older readers wrong increases it.
const JSON_VERSION: u32 = 1;

/// Prints the JSON of a command, indented and with sorted keys: what `docs/schema.json` describes
/// under `tfcompile-COMMAND`.
pub(crate) fn print_json(command: &str, name: &str, body: Value) -> Result<()> {
    outputs::print(&json_text(command, name, body))
}

/// The text that [`print_json`] prints.
pub(crate) fn json_text(command: &str, name: &str, mut body: Value) -> String {
    body["schema"] = format!("tfcompile-{command}").into();
    body["version"] = JSON_VERSION.into();
    body["name"] = name.into();
    format!("{body:#}\n")
}

/// A table of words without titles of columns, under its own title. Nothing without rows.
pub(crate) fn table(screen: &Screen, title: &str, rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut table = Table::new((0..columns).map(|_| Column::names(""))).indented();
    rows.iter().for_each(|row| table.row(row.iter().cloned()));
    if rows.is_empty() { String::new() } else { screen.heading(title) + &table.render(screen) }
}

/// Returns a shape with the quantization of its array, such as `s8[2] scale 0.5 zero point -3`.
pub(crate) fn with_quantization(shape: String, quantization: Option<Quantization>) -> String {
    match quantization {
        Some(quantization) => format!("{shape} {quantization}"),
        None => shape,
    }
}
