//! Tables whose entries are the lines of a text file.

use super::assets::Assets;
use super::trace::Trace;
use crate::DataType;
use crate::proto::{NodeDef, attr_value::Value};
use bytes::Bytes;
use shape::PrimitiveType;
use support::{Error, Result};

/// Column index that selects the whole line.
const WHOLE_LINE: i64 = -2;

/// Column index that selects the line's number, counted from 0.
const LINE_NUMBER: i64 = -1;

/// Data types of a table's keys and values.
#[derive(Clone, Copy)]
pub(super) struct EntryTypes {
    pub(super) key: DataType,
    pub(super) value: DataType,
}

/// Reads the keys and values of `InitializeTableFromTextFile`.
pub(super) fn read<'a>(
    trace: &Trace<'a>,
    frame: usize,
    node: &'a NodeDef,
    types: EntryTypes,
    assets: &Assets<'_>,
) -> Result<(Bytes, Bytes)> {
    let file = node.input.get(1).and_then(|input| trace.origin(frame, input));
    let ((_, file), _) = file.ok_or_else(|| {
        Error::invalid(format!("node '{}' (op {}) does not say which file it reads", node.name, node.op))
    })?;
    let (name, bytes) = assets.read(&file.name)?;
    let int = |attribute: &str, default: i64| match node.attr.get(attribute).and_then(|v| v.value.as_ref()) {
        Some(Value::I(value)) => *value,
        _ => default,
    };
    let delimiter = match node.attr.get("delimiter").and_then(|v| v.value.as_ref()) {
        Some(Value::S(text)) if text.len() == 1 => text[0],
        _ => b'\t',
    };
    let columns = Columns {
        key: int("key_index", WHOLE_LINE),
        value: int("value_index", LINE_NUMBER),
        limit: int("vocab_size", -1),
        skip: int("offset", 0),
        delimiter,
    };
    entries(&bytes, &columns, types).map_err(|e| e.context(format!("asset '{name}'")))
}

/// Columns to read, and format of the lines.
struct Columns {
    key: i64,
    value: i64,
    /// Number of lines to read, or -1 for all.
    limit: i64,
    /// Added to line numbers.
    skip: i64,
    delimiter: u8,
}

fn entries(file: &[u8], columns: &Columns, types: EntryTypes) -> Result<(Bytes, Bytes)> {
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    let file = file.strip_suffix(b"\n").unwrap_or(file);
    let lines = file.split(|&c| c == b'\n').enumerate().take_while(|_| !file.is_empty());
    for (number, line) in lines {
        if columns.limit >= 0 && number as i64 >= columns.limit {
            break;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let cell = |column: i64, data_type: DataType, out: &mut Vec<u8>| -> Result<()> {
            let text = match column {
                LINE_NUMBER => return write(data_type, &(number as i64 + columns.skip).to_string(), out),
                WHOLE_LINE => Some(line),
                column => usize::try_from(column)
                    .ok()
                    .and_then(|column| line.split(|&c| c == columns.delimiter).nth(column)),
            };
            let text = text.ok_or_else(|| Error::invalid(format!("the line has no column {column}")))?;
            write(data_type, String::from_utf8_lossy(text).trim(), out)
        };
        let at_line = |e: Error| e.context(format!("line {}", number + 1));
        cell(columns.key, types.key, &mut keys).map_err(at_line)?;
        cell(columns.value, types.value, &mut values).map_err(at_line)?;
    }
    Ok((keys.into(), values.into()))
}

/// Parses a number and appends its little-endian bytes.
fn write(data_type: DataType, text: &str, out: &mut Vec<u8>) -> Result<()> {
    let invalid = || Error::invalid(format!("'{text}' is not a valid {data_type}"));
    match data_type.primitive_type() {
        Some(PrimitiveType::S32) => {
            out.extend_from_slice(&text.parse::<i32>().map_err(|_| invalid())?.to_le_bytes());
        }
        Some(PrimitiveType::S64) => {
            out.extend_from_slice(&text.parse::<i64>().map_err(|_| invalid())?.to_le_bytes());
        }
        Some(PrimitiveType::F32) => {
            out.extend_from_slice(&text.parse::<f32>().map_err(|_| invalid())?.to_le_bytes());
        }
        Some(PrimitiveType::F64) => {
            out.extend_from_slice(&text.parse::<f64>().map_err(|_| invalid())?.to_le_bytes());
        }
        _ => {
            return Err(Error::unsupported(format!(
                "text files with columns of type {data_type} are not supported"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(key: i64, value: i64) -> Columns {
        Columns { key, value, limit: -1, skip: 0, delimiter: b',' }
    }

    #[test]
    fn lines_become_entries() {
        let types = EntryTypes { key: DataType::Int64, value: DataType::Float };
        let (keys, values) = entries(b"5,0.5\r\n-7,2\n", &columns(0, 1), types).expect("valid lines");
        assert_eq!(keys, [5i64.to_le_bytes(), (-7i64).to_le_bytes()].concat());
        assert_eq!(values, [0.5f32.to_le_bytes(), 2f32.to_le_bytes()].concat());
        let types = EntryTypes { key: DataType::Int64, value: DataType::Int64 };
        let (keys, values) = entries(b"9\n8", &columns(WHOLE_LINE, LINE_NUMBER), types).expect("valid lines");
        assert_eq!(keys, [9i64.to_le_bytes(), 8i64.to_le_bytes()].concat());
        assert_eq!(values, [0i64.to_le_bytes(), 1i64.to_le_bytes()].concat());
        assert_eq!(entries(b"", &columns(0, 1), types).expect("an empty file").0.len(), 0);
        let limited = Columns { limit: 1, ..columns(LINE_NUMBER, 0) };
        assert_eq!(entries(b"4\n5\n", &limited, types).expect("valid lines").1, 4i64.to_le_bytes().to_vec());
    }

    #[test]
    fn malformed_lines_are_reported() {
        let types = EntryTypes { key: DataType::Int64, value: DataType::Int64 };
        let message =
            |file: &[u8]| entries(file, &columns(0, 1), types).expect_err("malformed line").to_string();
        assert!(message(b"1,2\n3").contains("line 2") && message(b"1,2\n3").contains("no column 1"));
        assert!(message(b"x,2").contains("'x' is not a valid int64"));
    }
}
