//! Contents of static tables, read from their initializers in the graph and from asset files.

use super::assets::Assets;
use super::text_file::EntryTypes;
use super::trace::{Step, Trace};
use crate::DataType;
use crate::proto::{NodeDef, attr_value::Value};
use bytes::Bytes;
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Entries of a table, with unique keys in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) key_type: DataType,
    pub(crate) value_type: DataType,
    /// Keys, little-endian.
    pub(crate) keys: Bytes,
    /// Values, little-endian.
    pub(crate) values: Bytes,
}

/// Ops that create tables, without the suffix `V2`.
const TABLES: [&str; 6] = [
    "AnonymousHashTable",
    "AnonymousMutableHashTable",
    "HashTable",
    "MutableDenseHashTable",
    "MutableHashTable",
    "MutableHashTableOfTensors",
];

/// True if a node creates a table.
pub(crate) fn is_table(node: &NodeDef) -> bool {
    TABLES.contains(&base_op(node))
}

fn base_op(node: &NodeDef) -> &str {
    node.op.strip_suffix("V2").unwrap_or(&node.op)
}

impl Table {
    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.keys.len() / self.key_bytes()
    }

    /// Size of a key in bytes.
    pub(crate) fn key_bytes(&self) -> usize {
        self.key_type.primitive_type().map_or(1, PrimitiveType::byte_size)
    }

    /// Returns the last key if the keys are consecutive integers.
    pub(crate) fn consecutive(&self) -> Option<Bytes> {
        let width = self.key_bytes();
        let key = |bytes: &[u8]| integer(self.key_type, bytes);
        let last = self.keys.slice(self.keys.len().checked_sub(width)?..);
        let span = key(&last)? - key(&self.keys[..width])?;
        (span == self.len() as i128 - 1).then_some(last)
    }

    /// Creates a table from entries in any order.
    fn new(key_type: DataType, value_type: DataType, keys: &[u8], values: &[u8]) -> Result<Self> {
        let (Some(key), Some(value)) = (key_type.primitive_type(), value_type.primitive_type()) else {
            return Err(Error::internal("expected a table of numbers"));
        };
        let (key_bytes, value_bytes) = (key.byte_size(), value.byte_size());
        let count = keys.len() / key_bytes;
        if values.len() / value_bytes != count {
            return Err(Error::invalid(format!(
                "the table has {count} keys but {} values",
                values.len() / value_bytes
            )));
        }
        if i32::try_from(count).is_err() {
            return Err(Error::unsupported(format!(
                "the table has {count} keys, but at most {} are supported",
                i32::MAX
            )));
        }
        let mut entries = Vec::with_capacity(count);
        for (key, value) in keys.chunks_exact(key_bytes).zip(values.chunks_exact(value_bytes)) {
            let number = integer(key_type, key)
                .ok_or_else(|| Error::unsupported(format!("keys of type {key_type} are not supported")))?;
            entries.push((number, key, value));
        }
        entries.sort_by_key(|(number, ..)| *number);
        for pair in entries.windows(2) {
            if pair[0].0 == pair[1].0 && pair[0].2 != pair[1].2 {
                return Err(Error::invalid(format!("the table has two values for the key {}", pair[0].0)));
            }
        }
        entries.dedup_by_key(|(number, ..)| *number);
        let keys: Vec<u8> = entries.iter().flat_map(|(_, key, _)| key.iter().copied()).collect();
        let values: Vec<u8> = entries.iter().flat_map(|(.., value)| value.iter().copied()).collect();
        Ok(Self { key_type, value_type, keys: keys.into(), values: values.into() })
    }
}

/// Converts a key to a number. `None` unless it is an integer.
fn integer(data_type: DataType, bytes: &[u8]) -> Option<i128> {
    use PrimitiveType::{S8, S16, S32, S64, U8, U16, U32, U64};
    Some(match data_type.primitive_type()? {
        S8 => i8::from_le_bytes(bytes.try_into().ok()?).into(),
        S16 => i16::from_le_bytes(bytes.try_into().ok()?).into(),
        S32 => i32::from_le_bytes(bytes.try_into().ok()?).into(),
        S64 => i64::from_le_bytes(bytes.try_into().ok()?).into(),
        U8 => u8::from_le_bytes(bytes.try_into().ok()?).into(),
        U16 => u16::from_le_bytes(bytes.try_into().ok()?).into(),
        U32 => u32::from_le_bytes(bytes.try_into().ok()?).into(),
        U64 => u64::from_le_bytes(bytes.try_into().ok()?).into(),
        _ => return None,
    })
}

/// Reads the contents of the given tables. Keys of both maps are the names of the tables' nodes.
pub(crate) fn tables<'a>(
    trace: &Trace<'a>,
    steps: &[Step<'a>],
    needed: &BTreeMap<&str, &NodeDef>,
    assets: &Assets<'_>,
) -> Result<BTreeMap<String, Table>> {
    let mut tables = BTreeMap::new();
    for &(frame, step) in steps {
        let (Some(handle), Some(from)) = (step.input.first(), step.input.get(1)) else { continue };
        let is_initializer =
            matches!(base_op(step), "LookupTableImport" | "InitializeTable" | "InitializeTableFromTextFile");
        let Some(((_, table), _)) = is_initializer.then(|| trace.origin(frame, handle)).flatten() else {
            continue;
        };
        let Some(node) = needed.get(table.name.as_str()) else { continue };
        let at_table = |e: Error| e.context(format!("table '{}' (op {})", node.name, node.op));
        let (key_type, value_type) = types(node).map_err(at_table)?;
        let entries = if base_op(step) == "InitializeTableFromTextFile" {
            let types = EntryTypes { key: key_type, value: value_type };
            super::text_file::read(trace, frame, step, types, assets)
        } else {
            let keys = super::constants::elements(trace, frame, from);
            let values = step.input.get(2).and_then(|from| super::constants::elements(trace, frame, from));
            match (keys, values) {
                (Some((k, keys)), Some((v, values))) if (k, v) == (key_type, value_type) => {
                    Ok((keys, values))
                }
                _ => Err(Error::unsupported(format!(
                    "node '{}' does not initialize it with constants of its types: export the model with a table of constants",
                    step.name
                ))),
            }
        };
        let table = entries.and_then(|(keys, values)| Table::new(key_type, value_type, &keys, &values));
        tables.insert(node.name.clone(), table.map_err(at_table)?);
    }
    if let Some((name, node)) = needed.iter().find(|(name, _)| !tables.contains_key(**name)) {
        types(node).map_err(|e| e.context(format!("table '{name}' (op {})", node.op)))?;
        return Err(Error::unsupported(format!(
            "table '{name}' (op {}) is needed, but no initializer of the model defines its contents: only static tables \
             can be compiled",
            node.op
        )));
    }
    Ok(tables)
}

/// Returns the types of keys and values, or an error if the table cannot be compiled.
fn types(node: &NodeDef) -> Result<(DataType, DataType)> {
    if !matches!(base_op(node), "HashTable" | "AnonymousHashTable") {
        return Err(Error::unsupported(
            "mutable tables cannot be compiled: export the model with a static table",
        ));
    }
    let data_type = |attribute: &str| match node.attr.get(attribute).and_then(|v| v.value.as_ref()) {
        Some(Value::Type(number)) => DataType::from_number(*number),
        _ => None,
    };
    let (Some(key), Some(value)) = (data_type("key_dtype"), data_type("value_dtype")) else {
        return Err(Error::invalid("the table has no valid key_dtype and value_dtype"));
    };
    if key.primitive_type().is_none() || value.primitive_type().is_none() {
        return Err(Error::unsupported(format!(
            "the table maps {key} to {value}, but only numbers can be compiled: do the lookup before (or after) calling the \
             program, and export a signature that takes (or returns) the numbers"
        )));
    }
    Ok((key, value))
}
