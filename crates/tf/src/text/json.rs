//! Protocol buffers in JSON, as far as graphs in JSON need it.
//!
//! Like the parser of text format, it translates to the wire format by the table of message types.
//! Names of fields may have the form of JSON (`lowerCamelCase`) or of text format. Unknown fields
//! are ignored, as readers of JSON graphs do.
//!
//! Source: the JSON mapping of protocol buffers (protobuf.dev/programming-guides/json).

use super::messages::{Field, Kind, MessageType};
use super::parser::{write_bytes, write_varint};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost::encoding::{WireType, encode_key};
use serde_json::Value;

/// Limit for the nesting of messages. The decoder of the wire format has a limit of 100.
const MAX_DEPTH: usize = 90;

/// Padding of base64 is optional.
const BASE64: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// Translates a JSON object to the wire format of a message. Errors begin with the path of the
/// value, such as `node[3].attr.T.type: `.
pub(crate) fn json_to_wire(value: &Value, message: &'static MessageType) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    write_message(value, message, 0, &mut out).map_err(|Problem { path, reason }| {
        let path = path.trim_start_matches('.');
        if path.is_empty() { reason } else { format!("{path}: {reason}") }
    })?;
    Ok(out)
}

/// A value that is not what its field requires, and its place.
struct Problem {
    path: String,
    reason: String,
}

impl Problem {
    fn new(reason: impl Into<String>) -> Self {
        Self { path: String::new(), reason: reason.into() }
    }

    /// Prefixes the path, for the caller's place in it.
    fn within(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

fn write_message(
    value: &Value,
    message: &'static MessageType,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    if depth > MAX_DEPTH {
        return Err(Problem::new(format!("more than {MAX_DEPTH} levels of messages")));
    }
    let object = value.as_object().ok_or_else(|| Problem::new("expected an object"))?;
    let mut members = 0;
    for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let is_named = |field: &&Field| field.name == key || is_camel_case(key, field.name);
        let Some(field) = message.fields.iter().find(is_named) else { continue };
        members += 1;
        if let Some(oneof) = message.oneof.filter(|_| members > 1) {
            return Err(Problem::new(format!("several members of the oneof '{oneof}'")));
        }
        write_field(value, field, depth, out).map_err(|problem| problem.within(&format!(".{key}")))?;
    }
    Ok(())
}

/// True if a key is the name of a field in `lowerCamelCase`.
fn is_camel_case(key: &str, name: &str) -> bool {
    let mut words = name.split('_');
    let mut rest = key.strip_prefix(words.next().unwrap_or_default());
    for word in words {
        let Some(tail) = rest else { return false };
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        rest = first.and_then(|first| tail.strip_prefix(first)?.strip_prefix(letters.as_str()));
    }
    rest == Some("")
}

fn write_field(value: &Value, field: &'static Field, depth: usize, out: &mut Vec<u8>) -> Result<(), Problem> {
    if let Kind::Skipped = field.kind {
        return Ok(());
    }
    if !field.repeated {
        return write_value(value, field, depth, out);
    }
    if let Kind::Message(entry) = field.kind
        && let [key, of_entry] = entry.fields
        && key.name == "key"
    {
        let object = value.as_object().ok_or_else(|| Problem::new("expected an object"))?;
        for (name, value) in object {
            let mut body = Vec::new();
            write_value(&Value::from(name.as_str()), key, depth + 1, &mut body)
                .and_then(|()| write_value(value, of_entry, depth + 1, &mut body))
                .map_err(|problem| problem.within(&format!(".{name}")))?;
            write_bytes(field.number, &body, out);
        }
        return Ok(());
    }
    let values = value.as_array().ok_or_else(|| Problem::new("expected an array"))?;
    for (k, value) in values.iter().enumerate() {
        write_value(value, field, depth, out).map_err(|problem| problem.within(&format!("[{k}]")))?;
    }
    Ok(())
}

fn write_value(value: &Value, field: &'static Field, depth: usize, out: &mut Vec<u8>) -> Result<(), Problem> {
    let integer = |least: i128, most: i128| {
        let number = integer(value).filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| Problem::new(format!("expected an integer from {least} to {most}")))
    };
    match field.kind {
        Kind::Message(message) => {
            let mut body = Vec::new();
            write_message(value, message, depth + 1, &mut body)?;
            write_bytes(field.number, &body, out);
        }
        Kind::Skipped => {}
        Kind::String => {
            let text = value.as_str().ok_or_else(|| Problem::new("expected a string"))?;
            write_bytes(field.number, text.as_bytes(), out);
        }
        Kind::Bytes => {
            let bytes = bytes(value).ok_or_else(|| Problem::new("expected a string in base64"))?;
            write_bytes(field.number, &bytes, out);
        }
        Kind::Float => {
            let number = float(value)? as f32;
            encode_key(field.number, WireType::ThirtyTwoBit, out);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Kind::Double => {
            let number = float(value)?;
            encode_key(field.number, WireType::SixtyFourBit, out);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Kind::Int32 => {
            write_varint(field.number, integer(i32::MIN.into(), i32::MAX.into())? as i64 as u64, out);
        }
        Kind::Int64 => {
            write_varint(field.number, integer(i64::MIN.into(), i64::MAX.into())? as i64 as u64, out);
        }
        Kind::Uint32 => write_varint(field.number, integer(0, u32::MAX.into())? as u64, out),
        Kind::Uint64 => write_varint(field.number, integer(0, u64::MAX.into())? as u64, out),
        Kind::Bool => {
            let is_true = value.as_bool().ok_or_else(|| Problem::new("expected true or false"))?;
            write_varint(field.number, is_true.into(), out);
        }
        Kind::Enum(values) => {
            let number = match value.as_str() {
                Some(name) => (values.number)(name)
                    .ok_or_else(|| Problem::new(format!("unknown value '{name}'")))?
                    .into(),
                None => integer(i32::MIN.into(), i32::MAX.into())?,
            };
            write_varint(field.number, number as i64 as u64, out);
        }
    }
    Ok(())
}

/// Value of an integer: a number, or a string, as integers of 64 bits have.
fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => {
            let is_whole = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
            let float = || number.as_f64().filter(is_whole).map(|number| number as i128);
            number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)).or_else(float)
        }
        _ => None,
    }
}

fn float(value: &Value) -> Result<f64, Problem> {
    let number = match value {
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            text => text.parse().ok(),
        },
        value => value.as_f64(),
    };
    number.ok_or_else(|| Problem::new("expected a number"))
}

/// Bytes in base64, with either alphabet, or as an array of their numbers, which old converters of
/// TensorFlow.js wrote.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => {
            let alphabet = if text.contains(['-', '_']) { alphabet::URL_SAFE } else { alphabet::STANDARD };
            GeneralPurpose::new(&alphabet, BASE64).decode(text).ok()
        }
        Value::Array(numbers) => {
            numbers.iter().map(|number| number.as_u64().and_then(|n| u8::try_from(n).ok())).collect()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::GraphDef;
    use crate::text::{GRAPH_DEF, to_wire};
    use prost::Message as _;
    use serde_json::json;

    fn graph(value: &Value) -> GraphDef {
        GraphDef::decode(&json_to_wire(value, &GRAPH_DEF).expect("JSON")[..]).expect("a graph")
    }

    #[test]
    fn json_and_text_are_the_same_graph() {
        let json = json!({
            "node": [{
                "name": "x", "op": "Conv2D", "input": ["a", "b:1"], "device": null, "unknown": [1],
                "attr": {
                    "T": {"type": "DT_FLOAT"},
                    "U": {"type": 3},
                    "strides": {"list": {"i": ["1", 2, 9007199254740993u64]}},
                    "padding": {"s": "U0FNRQ=="},
                    "old": {"s": [83, 65]},
                    "epsilon": {"f": 0.5},
                    "limit": {"f": "-Infinity"},
                    "shape": {"shape": {"dim": [{"size": "-1"}, {"size": "3"}]}},
                    "flag": {"b": true},
                    "value": {"tensor": {"dtype": "DT_FLOAT", "tensorShape": {}, "tensorContent": "AACAPw"}},
                }
            }],
            "versions": {"producer": 1087, "minConsumer": 12},
            "library": {},
        });
        let text = r#"
            node { name: "x" op: "Conv2D" input: "a" input: "b:1"
              attr { key: "T" value { type: DT_FLOAT } }
              attr { key: "U" value { type: DT_INT32 } }
              attr { key: "strides" value { list { i: 1 i: 2 i: 9007199254740993 } } }
              attr { key: "padding" value { s: "SAME" } }
              attr { key: "old" value { s: "SA" } }
              attr { key: "epsilon" value { f: 0.5 } }
              attr { key: "limit" value { f: -inf } }
              attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } }
              attr { key: "flag" value { b: true } }
              attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} tensor_content: "\000\000\200?" } } }
            }
            versions { producer: 1087 min_consumer: 12 }
            library {}"#;
        let wire = to_wire(text.as_bytes(), &GRAPH_DEF).expect("text");
        assert_eq!(graph(&json), GraphDef::decode(&wire[..]).expect("a graph"));
    }

    #[test]
    fn an_error_has_the_path_of_the_value() {
        let refused = |value: Value| json_to_wire(&value, &GRAPH_DEF).expect_err("refused");
        let node = |attr: Value| json!({"node": [{}, {"attr": {"a": attr}}]});
        for (attr, expected) in [
            (json!({"i": 1.5}), "node[1].attr.a.i: expected an integer from"),
            (json!({"type": "DT_NOTHING"}), "node[1].attr.a.type: unknown value 'DT_NOTHING'"),
            (json!({"s": "="}), "node[1].attr.a.s: expected a string in base64"),
            (json!({"i": 1, "f": 1}), "node[1].attr.a: several members of the oneof 'value'"),
            (json!({"list": {"i": 1}}), "node[1].attr.a.list.i: expected an array"),
            (json!(3), "node[1].attr.a: expected an object"),
        ] {
            let message = refused(node(attr));
            assert!(message.starts_with(expected), "{message}");
        }
        assert_eq!(refused(json!([])), "expected an object");
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({"func": {"name": "f", "attr": {"a": deep}}});
        }
        assert!(refused(node(deep)).ends_with("more than 90 levels of messages"));
    }

    #[test]
    fn names_of_fields_have_two_forms() {
        for (key, name, is_same) in [
            ("tensorShape", "tensor_shape", true),
            ("minConsumer", "min_consumer", true),
            ("node", "node", true),
            ("tensorShapes", "tensor_shape", false),
            ("tensor", "tensor_shape", false),
            ("tensorshape", "tensor_shape", false),
        ] {
            assert_eq!(is_camel_case(key, name), is_same, "{key} {name}");
        }
    }
}
