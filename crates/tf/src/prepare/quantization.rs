//! Quantization of a graph's tensors. Front ends state it in two attributes of a node: `_scales`, a
//! list of floats, and `_zero_points`, a list of integers, with an entry for each output. An output
//! without one scale has scale 0.

use super::config;
use crate::DataType;
use crate::proto::{Config, GraphDef, ListValue, NodeDef, attr_value::Value};
use shape::{PrimitiveType, Quantization};
use std::collections::BTreeMap;

/// Returns the quantization of an output that has this type. Only integers are quantized.
pub(super) fn quantization(node: &NodeDef, output: i64, data_type: DataType) -> Option<Quantization> {
    let is_integer = data_type.base().primitive_type().is_some_and(PrimitiveType::is_integer);
    stated(node, output).filter(|_| is_integer)
}

/// Returns the quantization of each feed, fetch, and variable of a config that has one. The first
/// text is `feed`, `fetch`, or `variable`, and the second its name or that of its node.
pub fn config_quantization(graph: &GraphDef, config: &Config) -> Vec<(&'static str, String, Quantization)> {
    let nodes: BTreeMap<&str, &NodeDef> = graph
        .node
        .iter()
        .filter(|node| !node.attr.is_empty())
        .map(|node| (node.name.as_str(), node))
        .collect();
    let feeds = config.feed.iter().map(|feed| ("feed", &feed.name, config::id(&feed.id)));
    let fetches = config.fetch.iter().map(|fetch| ("fetch", &fetch.name, config::id(&fetch.id)));
    let variables = config.variable.iter().map(|v| ("variable", &v.name, (v.node_name.clone(), 0)));
    let entries = feeds.chain(fetches).chain(variables);
    entries
        .filter_map(|(kind, name, (node, output))| {
            let quantization = stated(nodes.get(node.as_str())?, output)?;
            Some((kind, if name.is_empty() { node } else { name.clone() }, quantization))
        })
        .collect()
}

fn stated(node: &NodeDef, output: i64) -> Option<Quantization> {
    let index = usize::try_from(output).ok()?;
    let scale = list(node, "_scales")?.f.get(index)?;
    let zero_point = list(node, "_zero_points")?.i.get(index)?;
    Quantization::new(*scale, *zero_point)
}

fn list<'a>(node: &'a NodeDef, attribute: &str) -> Option<&'a ListValue> {
    match node.attr.get(attribute)?.value.as_ref()? {
        Value::List(list) => Some(list),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::AttrValue;
    use std::collections::BTreeMap;

    #[test]
    fn each_output_has_its_own() {
        let scales = ListValue { f: vec![0.5, 0.0, 2.0], ..ListValue::default() };
        let zero_points = ListValue { i: vec![-3, 0], ..ListValue::default() };
        let attribute = |list| AttrValue::from(Value::List(Box::new(list)));
        let attr = BTreeMap::from([
            ("_scales".to_owned(), attribute(scales)),
            ("_zero_points".to_owned(), attribute(zero_points)),
        ]);
        let node = NodeDef { attr, ..NodeDef::default() };
        let of = |output| quantization(&node, output, DataType::Int8);
        assert_eq!(of(0), Some(Quantization { scale: 0.5, zero_point: -3 }));
        assert_eq!([of(1), of(2), of(3), of(-1)], [None; 4]);
        assert_eq!(quantization(&node, 0, DataType::Float), None);
        assert_eq!(quantization(&NodeDef::default(), 0, DataType::Int8), None);
    }
}
