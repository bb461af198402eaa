//! Nodes with user-defined handling: custom calls to the user's functions, and asserts that are
//! kept.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_values};
use crate::values::value::Value;
use bounded::list;
use hlo::custom_call::{ASSERT, ASSERT_OR_ABORT};
use hlo::{Op, RawAttributes};
use shape::{Literal, Shape};
use std::fmt::Write as _;
use support::Result;
use tf::proto::attr_value::Value as Attribute;
use tf::proto::{AttrValue, TensorShapeProto};
use tf::substitutions::{CustomOutput, CustomShape, stated_shapes};
use tf::{DataType, PartialShape};

pub(crate) const RULES: &[Rule] =
    &[rule_values("_CustomCall", custom_call), rule_values("_CheckedAssert", checked_assert).effect()];

/// Maximum nesting depth of attribute lists in the JSON.
const MAX_ATTRIBUTE_DEPTH: usize = 4;

/// Maximum number of bytes of a text from the graph in a message.
const MAX_TEXT: usize = 1000;

/// Calls a function of the user, with the node's inputs and attributes.
fn custom_call(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let attributes = &cx.attributes();
    let (op, symbol) = (attributes.text("_op")?, attributes.text("_symbol")?.to_owned());
    cx.set_op_type(op);
    let inputs = cx.inputs_from(0)?;
    let shapes = output_shapes(cx, &inputs)?;
    let backend_config = attributes_as_json(attributes.values());
    let call = Op::CustomCall {
        custom_call_target: symbol,
        backend_config,
        // A call without results is made for its side effects.
        custom_call_has_side_effect: shapes.is_empty(),
        attributes: RawAttributes::default(),
    };
    if let [shape] = &shapes[..] {
        return Ok(vec![Value::Array(cx.op_shaped(shape, call, &inputs)?)]);
    }
    let count = shapes.len();
    let result = cx.op_shaped(&Shape::Tuple(shapes), call, &inputs)?;
    (0..count).map(|index| cx.tuple_element(result, index).map(Value::Array)).collect()
}

/// Returns the shapes of a node's outputs: from the user, or from the node's attributes, or else
/// those of the first input.
fn output_shapes(cx: &NodeContext<'_, '_>, inputs: &[hlo::InstructionId]) -> Result<Vec<Shape>> {
    let from_user = CustomOutput::parse_all(cx.attributes().text("_outputs")?)?;
    let from_graph: Vec<PartialShape> = stated_shapes(cx.attributes())?;
    let of_input = |number: usize| {
        let input = inputs.get(number).map(|&id| cx.sizes(id));
        input.ok_or_else(|| {
            cx.invalid(format!(
                "--custom-call refers to input {number}, but the node has {} inputs",
                inputs.len()
            ))
        })
    };
    let mut shapes = Vec::new();
    for number in 0..cx.node().output_types.len() {
        let sizes = match (from_user.get(number), from_graph.get(number)) {
            (Some(CustomOutput { shape: CustomShape::Sizes(sizes), .. }), _) => sizes.clone(),
            (Some(CustomOutput { shape: CustomShape::OfInput(input), .. }), _) => of_input(*input)?,
            (None, Some(stated)) => stated.sizes().ok_or_else(|| {
                cx.invalid(format!(
                    "the graph gives output {number} the incomplete shape {stated}: state the shape, as in \
                     --custom-call 'OP=symbol:float[2,3]'"
                ))
            })?,
            (None, None) => of_input(0)?,
        };
        let shape = Shape::array(cx.output_type(number)?, &sizes);
        if shape::index::element_count(&sizes).is_none() {
            return Err(cx.invalid(format!("output {number} has an invalid shape: {}", list(&sizes))));
        }
        shapes.push(shape);
    }
    Ok(shapes)
}

/// Formats a node's attributes as a JSON object. Omits tensors and attributes whose names begin
/// with an underscore.
fn attributes_as_json(attributes: &std::collections::BTreeMap<String, AttrValue>) -> String {
    let mut json = "{".to_owned();
    for (name, value) in attributes.iter().filter(|(name, _)| !name.starts_with('_')) {
        let Some(value) = value.value.as_ref().and_then(|value| as_json(value, 0)) else { continue };
        if json.len() > 1 {
            json.push(',');
        }
        push_text(&mut json, name);
        json.push(':');
        json.push_str(&value);
    }
    json.push('}');
    json
}

fn as_json(value: &Attribute, depth: usize) -> Option<String> {
    let text = |bytes: &[u8]| {
        let mut json = String::new();
        push_text(&mut json, &String::from_utf8_lossy(bytes));
        json
    };
    let type_name = |number: i32| text(DataType::from_number(number).map_or("", |t| t.name()).as_bytes());
    Some(match value {
        Attribute::S(bytes) => text(bytes),
        Attribute::I(integer) => integer.to_string(),
        Attribute::F(float) => number(*float),
        Attribute::B(value) => value.to_string(),
        Attribute::Type(number) => type_name(*number),
        Attribute::Shape(shape) => sizes(shape),
        Attribute::Func(func) => text(func.name.as_bytes()),
        Attribute::List(list) if depth < MAX_ATTRIBUTE_DEPTH => {
            let items = list.s.iter().map(|bytes| text(bytes));
            let items = items.chain(list.i.iter().map(i64::to_string));
            let items = items.chain(list.f.iter().map(|float| number(*float)));
            let items = items.chain(list.b.iter().map(bool::to_string));
            let items = items.chain(list.r#type.iter().map(|number| type_name(*number)));
            let items = items.chain(list.shape.iter().map(sizes));
            let items = items.chain(list.func.iter().map(|func| text(func.name.as_bytes())));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        Attribute::List(_) | Attribute::Tensor(_) | Attribute::Placeholder(_) => return None,
    })
}

/// Formats a number. JSON has no infinities and no NaN.
fn number(float: f32) -> String {
    if float.is_finite() { format!("{float:?}") } else { "null".to_owned() }
}

/// Formats a shape as a list of sizes, with -1 for unknown ones, or as null if the rank is unknown.
fn sizes(shape: &TensorShapeProto) -> String {
    if shape.unknown_rank {
        return "null".to_owned();
    }
    let sizes: Vec<String> = shape.dim.iter().map(|dim| dim.size.to_string()).collect();
    format!("[{}]", sizes.join(","))
}

/// Appends a JSON string.
fn push_text(json: &mut String, text: &str) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                json.push('\\');
                json.push(c);
            }
            c if c.is_ascii_control() => {
                // Writing to a string cannot fail.
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
}

/// `Assert(condition, data)`: fails the run if the condition is false, with TensorFlow's message as
/// far as its values are known.
fn checked_assert(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    cx.set_op_type("Assert");
    let condition = cx.input(0)?;
    let sizes = cx.sizes(condition);
    cx.check(sizes.is_empty(), || format!("condition: expected a scalar, got shape {}", list(&sizes)))?;
    let is_known = cx.fold(condition).and_then(|literal| literal.scalar_at(0).as_i64());
    if is_known == Some(1) {
        return Ok(Vec::new());
    }
    let mut data = Vec::with_capacity(cx.inputs().len());
    for k in 1..cx.inputs().len() {
        data.push(format!("[{}]", summary(cx, k)?));
    }
    let target = if cx.attributes().bool_or("aborts", false)? { ASSERT_OR_ABORT } else { ASSERT };
    cx.fail_unless(target, condition, &format!("assertion failed: {}", data.join(" ")))?;
    Ok(Vec::new())
}

/// Summarizes an input of an assert: its elements if they are known, otherwise its type and shape.
fn summary(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<String> {
    let limit = usize::try_from(cx.attributes().int_or("summarize", 3)?).unwrap_or(usize::MAX);
    let producer = cx.node().inputs.get(k).map(|input| &cx.graph().nodes[input.node]);
    if let Some(node) = producer.filter(|node| node.op == "Const")
        && let Ok(strings) = node.attributes.tensor_strings("value")
    {
        let texts = strings.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        return Ok(shortened(texts, strings.len(), limit));
    }
    let id = match cx.value(k)? {
        Value::Array(id) => id,
        Value::Reference(variable) => cx.read_variable(variable),
        other => return Ok(other.kind().to_owned()),
    };
    let array = cx.array(id);
    match cx.fold(id).filter(|literal| literal.array_shape().rank() <= 1) {
        Some(literal) => {
            let count = literal.array_shape().element_count() as usize;
            Ok(shortened((0..count).map(|at| element(&literal, at)), count, limit))
        }
        None => {
            let name = cx.node().inputs.get(k).map(|input| cx.graph().output_type(*input).base());
            let name = name.map_or_else(|| array.element_type.to_string(), |t| t.name().to_owned());
            Ok(format!("{name}{}", list(&array.sizes())))
        }
    }
}

/// Joins the first elements of a list, followed by dots if there are more.
fn shortened(texts: impl Iterator<Item = String>, count: usize, limit: usize) -> String {
    let mut summary = String::new();
    for (at, text) in texts.take(limit).enumerate() {
        if at > 0 {
            summary.push(' ');
        }
        summary.push_str(&text);
    }
    if count > limit {
        summary.push_str("...");
    }
    if summary.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|&at| summary.is_char_boundary(at)).unwrap_or(0);
        summary.truncate(end);
        summary.push_str("...");
    }
    summary
}

fn element(literal: &Literal, at: usize) -> String {
    match literal.scalar_at(at) {
        shape::Scalar::Pred(value) => u8::from(value).to_string(),
        shape::Scalar::Signed(value) => value.to_string(),
        shape::Scalar::Unsigned(value) => value.to_string(),
        shape::Scalar::Float(value) => value.to_string(),
        shape::Scalar::Complex(re, im) => format!("({re},{im})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tf::proto::ListValue;

    #[test]
    fn attributes_are_json() {
        let list = ListValue { i: vec![1, -2], ..ListValue::default() };
        let attributes: BTreeMap<String, AttrValue> = BTreeMap::from([
            ("a".to_owned(), Attribute::F(0.5).into()),
            ("b".to_owned(), Attribute::S("say \"x\\y\"\n".into()).into()),
            ("c".to_owned(), Attribute::List(Box::new(list)).into()),
            ("d".to_owned(), Attribute::F(f32::INFINITY).into()),
            ("T".to_owned(), Attribute::Type(1).into()),
            ("_hidden".to_owned(), Attribute::I(1).into()),
        ]);
        let expected = r#"{"T":"float","a":0.5,"b":"say \"x\\y\"\u000a","c":[1,-2],"d":null}"#;
        assert_eq!(attributes_as_json(&attributes), expected);
    }

    #[test]
    fn long_lists_are_shortened() {
        let texts = |count: usize| (0..count).map(|k| k.to_string());
        assert_eq!(shortened(texts(5), 5, 3), "0 1 2...");
        assert_eq!(shortened(texts(2), 2, 3), "0 1");
        assert_eq!(shortened(texts(4), 4, usize::MAX), "0 1 2 3");
    }
}
