//! Checks a node's attributes against its op's signature, and computes the types of its inputs and
//! outputs.

use crate::DataType;
use crate::proto::{ArgDef, AttrDef, AttrValue, OpDef, attr_value::Value};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Limit for the inputs or outputs of a node.
const MAX_ARITY: i64 = 1 << 20;

/// Sets absent attributes to their defaults. Returns an error for an absent attribute without a
/// default.
pub(crate) fn fill_defaults(op: &OpDef, values: &mut BTreeMap<String, AttrValue>) -> Result<()> {
    for attr in &op.attr {
        if values.get(&attr.name).is_some_and(|v| v.value.is_some()) {
            continue;
        }
        match &attr.default_value {
            Some(default) => values.insert(attr.name.clone(), default.clone()),
            None => {
                return Err(Error::invalid(format!(
                    "NodeDef missing attr '{}' from Op<name={}>",
                    attr.name, op.name
                )));
            }
        };
    }
    Ok(())
}

/// Checks the kinds, minimum values, and allowed values of the attributes that the signature names.
pub(crate) fn check_attributes(op: &OpDef, values: &BTreeMap<String, AttrValue>) -> Result<()> {
    for attr in &op.attr {
        if let Some(value) = values.get(&attr.name).and_then(|v| v.value.as_ref()) {
            check_attribute(attr, value).map_err(|e| e.context(format!("attr '{}'", attr.name)))?;
        }
    }
    Ok(())
}

fn check_attribute(attr: &AttrDef, value: &Value) -> Result<()> {
    let has_kind = match (attr.r#type.as_str(), value) {
        ("string", Value::S(_))
        | ("int", Value::I(_))
        | ("float", Value::F(_))
        | ("bool", Value::B(_))
        | ("type", Value::Type(_))
        | ("shape", Value::Shape(_))
        | ("tensor", Value::Tensor(_))
        | ("func", Value::Func(_)) => true,
        (kind, Value::List(_)) => kind.starts_with("list("),
        _ => false,
    };
    if !has_kind {
        return Err(Error::invalid(format!("expected a value of kind '{}'", attr.r#type)));
    }
    if attr.has_minimum {
        let (what, actual) = match value {
            Value::I(value) => ("Value", *value),
            Value::List(list) => {
                let lengths = [
                    list.s.len(),
                    list.i.len(),
                    list.f.len(),
                    list.b.len(),
                    list.r#type.len(),
                    list.shape.len(),
                    list.tensor.len(),
                    list.func.len(),
                ];
                ("Length", lengths.iter().sum::<usize>() as i64)
            }
            _ => ("Value", attr.minimum),
        };
        if actual < attr.minimum {
            let minimum = attr.minimum;
            return Err(Error::invalid(format!("{what} {actual} is below the minimum {minimum}")));
        }
    }
    check_allowed(attr, value)
}

fn check_allowed(attr: &AttrDef, value: &Value) -> Result<()> {
    let Some(Value::List(allowed)) = attr.allowed_values.as_ref().and_then(|v| v.value.as_ref()) else {
        return Ok(());
    };
    let (types, strings) = match value {
        Value::Type(number) => (std::slice::from_ref(number), [].as_slice()),
        Value::S(string) => ([].as_slice(), std::slice::from_ref(string)),
        Value::List(list) => (list.r#type.as_slice(), list.s.as_slice()),
        _ => return Ok(()),
    };
    if let Some(&number) = types.iter().find(|&t| !allowed.r#type.contains(t)) {
        let names: Vec<String> = allowed.r#type.iter().map(|&t| type_name(t)).collect();
        return Err(Error::invalid(format!(
            "Value {} is not in the list of allowed values: {}",
            type_name(number),
            names.join(", ")
        )));
    }
    if let Some(string) = strings.iter().find(|s| !allowed.s.contains(s)) {
        let names: Vec<String> =
            allowed.s.iter().map(|s| format!("\"{}\"", String::from_utf8_lossy(s))).collect();
        return Err(Error::invalid(format!(
            "Value \"{}\" is not in the list of allowed values: {}",
            String::from_utf8_lossy(string),
            names.join(", ")
        )));
    }
    Ok(())
}

fn type_name(number: i32) -> String {
    DataType::from_number(number).map_or_else(|| number.to_string(), |t| t.to_string())
}

/// Returns the types of all inputs or outputs in order, and the index of the first type of each
/// argument, followed by the number of types.
pub(crate) fn flat_types(
    args: &[ArgDef],
    values: &BTreeMap<String, AttrValue>,
) -> Result<(Vec<DataType>, Vec<usize>)> {
    let value = |name: &str| values.get(name).and_then(|v| v.value.as_ref());
    let mut types = Vec::new();
    let mut starts = vec![0];
    for arg in args {
        let invalid = |attr: &str| {
            Error::invalid(format!(
                "attr '{attr}', which defines the type of argument '{}', is missing or invalid",
                arg.name
            ))
        };
        let first = types.len();
        if !arg.type_list_attr.is_empty() {
            let Some(Value::List(list)) = value(&arg.type_list_attr) else {
                return Err(invalid(&arg.type_list_attr));
            };
            for &number in &list.r#type {
                types.push(DataType::from_number(number).ok_or_else(|| invalid(&arg.type_list_attr))?);
            }
        } else {
            let number = match value(&arg.type_attr) {
                _ if arg.type_attr.is_empty() => arg.r#type,
                Some(Value::Type(number)) => *number,
                _ => return Err(invalid(&arg.type_attr)),
            };
            let data_type = DataType::from_number(number).ok_or_else(|| invalid(&arg.type_attr))?;
            let count = match value(&arg.number_attr) {
                _ if arg.number_attr.is_empty() => 1,
                Some(&Value::I(count)) if (0..=MAX_ARITY).contains(&count) => count,
                _ => return Err(invalid(&arg.number_attr)),
            };
            types.resize(types.len() + count as usize, data_type);
        }
        if arg.is_ref {
            types[first..].iter_mut().for_each(|t| *t = t.reference());
        }
        if types.len() > MAX_ARITY as usize {
            return Err(Error::invalid(format!("the node has more than {MAX_ARITY} inputs or outputs")));
        }
        starts.push(types.len());
    }
    Ok((types, starts))
}
