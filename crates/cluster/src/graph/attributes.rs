//! Typed access to attributes of nodes and functions.

use std::collections::BTreeMap;
use tf::proto::attr_value::Value;
use tf::proto::{AttrValue, NameAttrList};

/// The value of an attribute, if it is set.
pub(crate) fn attribute<'v>(attributes: &'v BTreeMap<String, AttrValue>, name: &str) -> Option<&'v Value> {
    attributes.get(name)?.value.as_ref()
}

/// A bool attribute; `None` if absent or of another type.
pub(crate) fn bool_attribute(attributes: &BTreeMap<String, AttrValue>, name: &str) -> Option<bool> {
    match attribute(attributes, name)? {
        Value::B(value) => Some(*value),
        _ => None,
    }
}

/// A string attribute; empty if absent, of another type, or not valid UTF-8.
pub(crate) fn string_attribute<'v>(attributes: &'v BTreeMap<String, AttrValue>, name: &str) -> &'v str {
    match attribute(attributes, name) {
        Some(Value::S(bytes)) => std::str::from_utf8(bytes).unwrap_or(""),
        _ => "",
    }
}

/// A function attribute.
pub(crate) fn function_attribute<'v>(
    attributes: &'v BTreeMap<String, AttrValue>,
    name: &str,
) -> Option<&'v NameAttrList> {
    match attribute(attributes, name)? {
        Value::Func(func) => Some(func),
        _ => None,
    }
}

/// A list of functions; empty if absent or of another type.
pub(crate) fn function_list<'v>(
    attributes: &'v BTreeMap<String, AttrValue>,
    name: &str,
) -> &'v [NameAttrList] {
    match attribute(attributes, name) {
        Some(Value::List(list)) => &list.func,
        _ => &[],
    }
}
