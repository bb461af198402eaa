//! Functions that replace tables by lookups in constant arrays.

use super::tables::Table;
use crate::DataType;
use crate::bind::constant;
use crate::proto::{ArgDef, AttrValue, FunctionDef, NodeDef, OpDef, attr_value::Value};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Builder of a function body.
struct Body {
    nodes: Vec<NodeDef>,
}

impl Body {
    fn constant(
        &mut self,
        name: &str,
        data_type: DataType,
        sizes: &[i64],
        bytes: impl Into<Bytes>,
    ) -> String {
        self.nodes.push(constant(name, data_type, sizes, bytes.into()));
        format!("{name}:output:0")
    }

    /// Adds a node with one output, called `output`, and type attributes. Returns the reference to
    /// the output.
    fn node(
        &mut self,
        name: &str,
        op: &str,
        output: &str,
        inputs: &[&str],
        types: &[(&str, DataType)],
    ) -> String {
        let attr: BTreeMap<String, AttrValue> =
            types.iter().map(|(name, t)| ((*name).to_owned(), Value::Type(t.number()).into())).collect();
        let input = inputs.iter().map(|input| (*input).to_owned()).collect();
        let node = NodeDef { name: name.to_owned(), op: op.to_owned(), input, attr, ..NodeDef::default() };
        self.nodes.push(node);
        format!("{name}:{output}:0")
    }
}

/// Creates the function `find(keys, default_value) -> values`. `values` has the shape of `keys`.
pub(super) fn find(name: &str, table: &Table) -> FunctionDef {
    let (key, value) = (table.key_type, table.value_type);
    let mut body = Body { nodes: Vec::new() };
    let count = table.len();
    let (position, is_present) = if count == 0 {
        let zero = body.constant("position", DataType::Int32, &[], 0i32.to_le_bytes().to_vec());
        // `keys != keys` is false everywhere, because an empty table contains no key.
        (zero, body.node("found", "NotEqual", "z", &["keys", "keys"], &[("T", key)]))
    } else if let Some(last) = table.consecutive() {
        consecutive(&mut body, table, last)
    } else {
        search(&mut body, table)
    };
    // A gather from an empty array would be invalid.
    let values = match count {
        0 => "default_value".to_owned(),
        _ => {
            let all = body.constant("values", value, &[count as i64], table.values.clone());
            gather(&mut body, "value", value, &all, &position)
        }
    };
    let result =
        body.node("result", "SelectV2", "output", &[&is_present, &values, "default_value"], &[("T", value)]);
    let signature = OpDef {
        name: name.to_owned(),
        input_arg: vec![argument("keys", key), argument("default_value", value)],
        output_arg: vec![argument("values", value)],
        ..OpDef::default()
    };
    let ret = BTreeMap::from([("values".to_owned(), result)]);
    FunctionDef { signature: Some(signature), node_def: body.nodes, ret, ..FunctionDef::default() }
}

/// Creates the function `size() -> int64`.
pub(super) fn size(name: &str, table: &Table) -> FunctionDef {
    let mut body = Body { nodes: Vec::new() };
    let count = body.constant("count", DataType::Int64, &[], (table.len() as i64).to_le_bytes().to_vec());
    let signature = OpDef {
        name: name.to_owned(),
        output_arg: vec![argument("size", DataType::Int64)],
        ..OpDef::default()
    };
    let ret = BTreeMap::from([("size".to_owned(), count)]);
    FunctionDef { signature: Some(signature), node_def: body.nodes, ret, ..FunctionDef::default() }
}

fn argument(name: &str, data_type: DataType) -> ArgDef {
    ArgDef { name: name.to_owned(), r#type: data_type.number(), ..ArgDef::default() }
}

fn gather(body: &mut Body, name: &str, data_type: DataType, from: &str, position: &str) -> String {
    let axis = body.constant(&format!("{name}_axis"), DataType::Int32, &[], 0i32.to_le_bytes().to_vec());
    let index_type = if position.starts_with("offset") { DataType::Int64 } else { DataType::Int32 };
    let types = [("Tparams", data_type), ("Tindices", index_type), ("Taxis", DataType::Int32)];
    body.node(name, "GatherV2", "output", &[from, position, &axis], &types)
}

/// Finds keys in a table of consecutive integers by their difference from the first one. Returns
/// the position and whether the table contains the key.
fn consecutive(body: &mut Body, table: &Table, last: Bytes) -> (String, String) {
    let key = table.key_type;
    let t = [("T", key)];
    let width = table.key_bytes();
    let first = body.constant("first", key, &[], table.keys.slice(..width));
    let last = body.constant("last", key, &[], last);
    let above = body.node("above", "GreaterEqual", "z", &["keys", &first], &t);
    let below = body.node("below", "LessEqual", "z", &["keys", &last], &t);
    let is_present = body.node("found", "LogicalAnd", "z", &[&above, &below], &[]);
    // The difference may overflow for keys that the table does not contain.
    let safe = body.node("safe", "SelectV2", "output", &[&is_present, "keys", &first], &t);
    let difference = body.node("difference", "Sub", "z", &[&safe, &first], &t);
    let types = [("SrcT", key), ("DstT", DataType::Int64)];
    (body.node("offset", "Cast", "y", &[&difference], &types), is_present)
}

/// Finds keys in any table by a binary search with one step for each bit of the position. Returns
/// the same as [`consecutive`].
fn search(body: &mut Body, table: &Table) -> (String, String) {
    let key = table.key_type;
    let int = [("T", DataType::Int32)];
    let count = table.len();
    let number = |value: usize| (value as i32).to_le_bytes().to_vec();
    let keys = body.constant("table", key, &[count as i64], table.keys.clone());
    let end = body.constant("count", DataType::Int32, &[], number(count));
    let last = body.constant("last", DataType::Int32, &[], number(count - 1));
    let mut position = body.constant("start", DataType::Int32, &[], number(0));
    let mut step = count.next_power_of_two();
    while step > 1 {
        step /= 2;
        let by = body.constant(&format!("step_{step}"), DataType::Int32, &[], number(step));
        let next = body.node(&format!("next_{step}"), "AddV2", "z", &[&position, &by], &int);
        let inside = body.node(&format!("inside_{step}"), "Less", "z", &[&next, &end], &int);
        let clamped = body.node(&format!("clamped_{step}"), "Minimum", "z", &[&next, &last], &int);
        let probe = gather(body, &format!("probe_{step}"), key, &keys, &clamped);
        let not_above =
            body.node(&format!("not_above_{step}"), "LessEqual", "z", &[&probe, "keys"], &[("T", key)]);
        let advance = body.node(&format!("go_{step}"), "LogicalAnd", "z", &[&inside, &not_above], &[]);
        position =
            body.node(&format!("position_{step}"), "SelectV2", "output", &[&advance, &next, &position], &int);
    }
    let nearest = gather(body, "nearest", key, &keys, &position);
    let is_present = body.node("found", "Equal", "z", &[&nearest, "keys"], &[("T", key)]);
    (position, is_present)
}
