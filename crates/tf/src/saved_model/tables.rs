//! Static tables: what their initialisers put into them, read from the graph and the files that
//! come with it.

use super::assets::Assets;
use super::text_file::EntryTypes;
use super::trace::{Step, Trace};
use crate::DataType;
use crate::proto::{NodeDef, attr_value::Value};
use bytes::Bytes;
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::{Error, Result};

/// The entries of a table, keys in ascending order, each once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) key_type: DataType,
    pub(crate) value_type: DataType,
    /// Little-endian.
    pub(crate) keys: Bytes,
    pub(crate) values: Bytes,
}

/// The ops that make tables, without their `V2`.
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

    /// Bytes of one key.
    pub(crate) fn key_bytes(&self) -> usize {
        self.key_type.primitive_type().map_or(1, PrimitiveType::byte_size)
    }

    /// The last key, if each is the one before it plus 1.
    pub(crate) fn consecutive(&self) -> Option<Bytes> {
        let width = self.key_bytes();
        let key = |bytes: &[u8]| integer(self.key_type, bytes);
        let last = self.keys.slice(self.keys.len().checked_sub(width)?..);
        let span = key(&last)? - key(&self.keys[..width])?;
        (span == self.len() as i128 - 1).then_some(last)
    }

    /// A table of entries in any order.
    fn new(key_type: DataType, value_type: DataType, keys: &[u8], values: &[u8]) -> Result<Self> {
        let (Some(key), Some(value)) = (key_type.primitive_type(), value_type.primitive_type()) else {
            return Err(Error::internal("a table of numbers has other keys or values"));
        };
        let (key_bytes, value_bytes) = (key.byte_size(), value.byte_size());
        let count = keys.len() / key_bytes;
        if values.len() / value_bytes != count {
            return Err(Error::invalid(format!(
                "it has {count} keys, {} values",
                values.len() / value_bytes
            )));
        }
        if i32::try_from(count).is_err() {
            return Err(Error::unsupported(format!(
                "it has {count} keys, at most {} are possible",
                i32::MAX
            )));
        }
        let mut entries = Vec::with_capacity(count);
        for (key, value) in keys.chunks_exact(key_bytes).zip(values.chunks_exact(value_bytes)) {
            let number = integer(key_type, key)
                .ok_or_else(|| Error::unsupported(format!("keys of type {key_type} cannot be searched")))?;
            entries.push((number, key, value));
        }
        entries.sort_by_key(|(number, ..)| *number);
        for pair in entries.windows(2) {
            if pair[0].0 == pair[1].0 && pair[0].2 != pair[1].2 {
                return Err(Error::invalid(format!("it has two values for the key {}", pair[0].0)));
            }
        }
        entries.dedup_by_key(|(number, ..)| *number);
        let keys: Vec<u8> = entries.iter().flat_map(|(_, key, _)| key.iter().copied()).collect();
        let values: Vec<u8> = entries.iter().flat_map(|(.., value)| value.iter().copied()).collect();
        Ok(Self { key_type, value_type, keys: keys.into(), values: values.into() })
    }
}

/// A key as a number.
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

/// The contents of tables, by the name of the table's node.
pub(crate) fn tables<'a>(
    trace: &Trace<'a>,
    steps: &[Step<'a>],
    wanted: &BTreeMap<&str, &NodeDef>,
    assets: &Assets<'_>,
) -> Result<BTreeMap<String, Table>> {
    let mut tables = BTreeMap::new();
    for &(frame, step) in steps {
        let (Some(handle), Some(from)) = (step.input.first(), step.input.get(1)) else { continue };
        let initialises =
            matches!(base_op(step), "LookupTableImport" | "InitializeTable" | "InitializeTableFromTextFile");
        let Some(((_, table), _)) = initialises.then(|| trace.origin(frame, handle)).flatten() else {
            continue;
        };
        let Some(node) = wanted.get(table.name.as_str()) else { continue };
        let at_table = |e: Error| e.context(format!("table '{}' (op {})", node.name, node.op));
        let (key_type, value_type) = types(node).map_err(at_table)?;
        let made = if base_op(step) == "InitializeTableFromTextFile" {
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
                    "node '{}' fills it with what is no constant of its types: export the model with a table of \
                     constants",
                    step.name
                ))),
            }
        };
        let table = made.and_then(|(keys, values)| Table::new(key_type, value_type, &keys, &values));
        tables.insert(node.name.clone(), table.map_err(at_table)?);
    }
    if let Some((name, node)) = wanted.iter().find(|(name, _)| !tables.contains_key(**name)) {
        types(node).map_err(|e| e.context(format!("table '{name}' (op {})", node.op)))?;
        return Err(Error::unsupported(format!(
            "table '{name}' (op {}) is needed, and no initialiser of the model says what it holds: only static tables \
             can be compiled",
            node.op
        )));
    }
    Ok(tables)
}

/// The types of keys and values of a table that can be compiled.
fn types(node: &NodeDef) -> Result<(DataType, DataType)> {
    if !matches!(base_op(node), "HashTable" | "AnonymousHashTable") {
        return Err(Error::unsupported(
            "tables that change while a program runs cannot be compiled: export the model with a static table",
        ));
    }
    let data_type = |attribute: &str| match node.attr.get(attribute).and_then(|v| v.value.as_ref()) {
        Some(Value::Type(number)) => DataType::from_number(*number),
        _ => None,
    };
    let (Some(key), Some(value)) = (data_type("key_dtype"), data_type("value_dtype")) else {
        return Err(Error::invalid("it has no types of keys and values"));
    };
    if key.primitive_type().is_none() || value.primitive_type().is_none() {
        return Err(Error::unsupported(format!(
            "it maps {key} to {value}, and only numbers can be compiled: look up before the program is called (or after \
             it), and export a signature that takes (or returns) the numbers"
        )));
    }
    Ok((key, value))
}
