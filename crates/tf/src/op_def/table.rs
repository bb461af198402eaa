//! The table of op signatures, made by `tools/op_table.py` from TensorFlow 2.15.1. Each entry is
//! parsed on first use.

use crate::DataType;
use crate::proto::{ArgDef, AttrDef, AttrValue, ListValue, OpDef, attr_value::Value};
use crate::text;
use prost::Message;
use std::collections::BTreeMap;
use std::sync::OnceLock;

static TABLE: &str = include_str!("ops.txt");

/// Ops of this compiler, which stand for nodes of other ops that the user has something done with.
static OWN: &str = "\
_CheckedAssert*
 < condition:bool
 < data:list(T)
 T list(type) >=1
 summarize int = i: 3
 aborts bool = b: false
_CustomCall
 < inputs:list(_input_types)
 > outputs:list(_output_types)
 _input_types list(type)
 _output_types list(type)
 _op string
 _symbol string
 _outputs string
";

/// The lines of an op, and its signature once someone asked for it.
struct Entry {
    lines: &'static str,
    is_stateful: bool,
    op_def: OnceLock<OpDef>,
}

/// The signature of a registered op.
pub(crate) fn lookup(op: &str) -> Option<&'static OpDef> {
    static INDEX: OnceLock<BTreeMap<&str, Entry>> = OnceLock::new();
    // The name that launches of clusters have in graphs and timelines.
    let op = if op == "_XlaLaunch" { "XlaLaunch" } else { op };
    let (name, entry) = INDEX.get_or_init(index).get_key_value(op)?;
    Some(
        entry
            .op_def
            .get_or_init(|| parse_op(name, entry).expect("the table is well formed, as a test checks")),
    )
}

fn index() -> BTreeMap<&'static str, Entry> {
    let mut entries = BTreeMap::new();
    for table in [TABLE, OWN] {
        add_entries(table, &mut entries);
    }
    entries
}

fn add_entries(mut rest: &'static str, entries: &mut BTreeMap<&'static str, Entry>) {
    while let Some((head, tail)) = rest.split_once('\n') {
        let mut length = 0;
        while tail[length..].starts_with(' ') {
            length += tail[length..].find('\n').map_or(tail.len() - length, |end| end + 1);
        }
        let (lines, next) = tail.split_at(length);
        let (name, is_stateful) = head.strip_suffix('*').map_or((head, false), |name| (name, true));
        entries.insert(name, Entry { lines, is_stateful, op_def: OnceLock::new() });
        rest = next;
    }
}

fn parse_op(name: &str, entry: &Entry) -> Option<OpDef> {
    let mut op = OpDef { name: name.to_owned(), is_stateful: entry.is_stateful, ..OpDef::default() };
    for line in entry.lines.lines() {
        if let Some(arg) = line.strip_prefix(" < ") {
            op.input_arg.push(parse_arg(arg)?);
        } else if let Some(arg) = line.strip_prefix(" > ") {
            op.output_arg.push(parse_arg(arg)?);
        } else {
            op.attr.push(parse_attr(line.trim_start())?);
        }
    }
    Some(op)
}

fn parse_arg(text: &str) -> Option<ArgDef> {
    let (name, kind) = text.split_once(':')?;
    let mut arg = ArgDef { name: name.to_owned(), ..ArgDef::default() };
    let kind = kind.strip_prefix('&').inspect(|_| arg.is_ref = true).unwrap_or(kind);
    if let Some(list) = kind.strip_prefix("list(") {
        arg.type_list_attr = list.strip_suffix(')')?.to_owned();
        return Some(arg);
    }
    let element = match kind.strip_prefix("repeat(") {
        Some(repeat) => {
            let (number, element) = repeat.strip_suffix(')')?.split_once(',')?;
            arg.number_attr = number.to_owned();
            element
        }
        None => kind,
    };
    match element.strip_prefix('@') {
        Some(attr) => arg.type_attr = attr.to_owned(),
        None => arg.r#type = DataType::from_name(element)?.number(),
    }
    Some(arg)
}

fn parse_attr(line: &str) -> Option<AttrDef> {
    let (line, default) = match line.split_once(" = ") {
        Some((line, default)) => (line, Some(parse_default(default)?)),
        None => (line.strip_suffix(" =").unwrap_or(line), None),
    };
    let (line, allowed) = match line.split_once(" in(") {
        Some((line, allowed)) => (line, Some(allowed.strip_suffix(')')?)),
        None => (line, None),
    };
    let mut words = line.split(' ');
    let mut attr = AttrDef {
        name: words.next()?.to_owned(),
        r#type: words.next()?.to_owned(),
        default_value: default,
        ..AttrDef::default()
    };
    if let Some(minimum) = words.next() {
        attr.has_minimum = true;
        attr.minimum = minimum.strip_prefix(">=")?.parse().ok()?;
    }
    if let Some(allowed) = allowed {
        let mut list = ListValue::default();
        for value in allowed.split(' ') {
            if attr.r#type.ends_with("string") || attr.r#type.ends_with("string)") {
                list.s.push(value.to_owned().into());
            } else {
                list.r#type.push(DataType::from_name(value)?.number());
            }
        }
        attr.allowed_values = Some(Value::List(Box::new(list)).into());
    }
    Some(attr)
}

fn parse_default(text: &str) -> Option<AttrValue> {
    let wire = text::to_wire(text.as_bytes(), &text::ATTR_VALUE).ok()?;
    AttrValue::decode(wire.as_slice()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_table_parses() {
        let entries = index();
        assert!(entries.len() > 1400, "{} ops", entries.len());
        for (name, entry) in &entries {
            let op = parse_op(name, entry).unwrap_or_else(|| panic!("the entry of {name}"));
            for arg in op.input_arg.iter().chain(&op.output_arg) {
                for attr in [&arg.type_attr, &arg.number_attr, &arg.type_list_attr] {
                    assert!(attr.is_empty() || op.attr.iter().any(|a| a.name == *attr), "{name}: {attr}");
                }
            }
        }
    }

    #[test]
    fn signatures_are_tensorflows() {
        let conv = lookup("Conv2D").expect("registered");
        assert_eq!(conv.input_arg.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["input", "filter"]);
        let dilations = conv.attr.iter().find(|a| a.name == "dilations").expect("an attribute");
        let Some(Value::List(list)) = dilations.default_value.as_ref().and_then(|v| v.value.as_ref()) else {
            panic!("a list by default")
        };
        assert_eq!(list.i, [1, 1, 1, 1]);
        assert!(!conv.is_stateful);
        let assign = lookup("Assign").expect("registered");
        assert!(assign.input_arg[0].is_ref && assign.output_arg[0].is_ref && !assign.input_arg[1].is_ref);
        assert!(lookup("VarHandleOp").expect("registered").is_stateful);
        assert_eq!(lookup("NoSuchOp"), None);
    }
}
