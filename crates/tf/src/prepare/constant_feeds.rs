//! Feeds with a value that the user chooses when the program is compiled, so that sizes may follow
//! from it.

use super::config;
use crate::attributes::Attributes;
use crate::checkpoint::Value;
use crate::freeze::constant_node;
use crate::proto::{Config, Feed, GraphDef, NodeDef, TensorId};
use crate::{DataType, PartialShape};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, index};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Ops that have no value of their own.
const PLACEHOLDERS: [&str; 3] = ["Placeholder", "PlaceholderV2", "PlaceholderWithDefault"];

/// Removes the feeds with a constant from a config, and makes constants of their nodes.
pub(crate) fn take(graph: &mut GraphDef, config: &mut Config) -> Result<()> {
    let (constants, feeds) =
        std::mem::take(&mut config.feed).into_iter().partition(|feed| !feed.constant.is_empty());
    config.feed = feeds;
    replace(graph, &constants)
}

/// Returns a config without the feeds with a constant.
pub fn without(config: &Config) -> Config {
    let feed = config.feed.iter().filter(|feed| feed.constant.is_empty()).cloned().collect();
    Config { feed, ..config.clone() }
}

/// Returns feeds with the constants that the user gives by name: that of a feed of the config, or
/// of a node. They are removed from the config.
pub(crate) fn of_flags(constants: &BTreeMap<String, String>, config: Option<&mut Config>) -> Vec<Feed> {
    let mut empty = Config::default();
    let config = config.unwrap_or(&mut empty);
    let mut feeds = Vec::new();
    for (name, constant) in constants {
        let is_named = |feed: &Feed| feed.name == *name || config::id(&feed.id).0 == *name;
        let known = config.feed.iter().position(is_named).map(|at| config.feed.remove(at));
        let node_name = name.strip_suffix(":0").unwrap_or(name).to_owned();
        let feed = known
            .unwrap_or_else(|| Feed { id: Some(TensorId { node_name, output_index: 0 }), ..Feed::default() });
        feeds.push(Feed { constant: constant.clone(), ..feed });
    }
    feeds
}

/// Replaces the placeholders of feeds by constants.
pub(crate) fn replace(graph: &mut GraphDef, feeds: &[Feed]) -> Result<()> {
    let nodes = graph.node.iter().enumerate().filter(|_| !feeds.is_empty());
    let places: BTreeMap<String, usize> = nodes.map(|(at, node)| (node.name.clone(), at)).collect();
    for feed in feeds {
        let (name, output) = config::id(&feed.id);
        let Some(&at) = places.get(&name).filter(|_| output == 0) else {
            return Err(Error::invalid(format!(
                "the constant feed '{name}:{output}' is not a node of the graph"
            )));
        };
        let node = &graph.node[at];
        if PLACEHOLDERS.contains(&node.op.as_str()) {
            let value = value(node, feed).map_err(|e| e.context(format!("constant feed '{name}'")))?;
            graph.node[at] = constant_node(&name, &value)?;
        } else if node.op != "Const" {
            return Err(Error::invalid(format!(
                "the constant feed '{name}' is a {}, but only placeholders can be constants: feed it instead",
                node.op
            )));
        }
    }
    Ok(())
}

/// Reads the numbers of a feed, which commas separate, in the type of its placeholder. The shape is
/// that of the feed or the placeholder if it is known, or else that of a scalar or a vector.
fn value(node: &NodeDef, feed: &Feed) -> Result<Value> {
    let attributes = Attributes::new(&node.name, &node.op, node.attr.clone());
    let data_type: DataType = attributes.ty("dtype")?;
    let element_type = data_type.primitive_type().ok_or_else(|| {
        Error::unsupported(format!(
            "constants of the type {data_type} are not supported; only numbers and bool are"
        ))
    })?;
    let words: Vec<&str> = feed.constant.split(',').map(str::trim).collect();
    let stated = match &feed.shape {
        Some(shape) => PartialShape::from_proto(shape)?,
        None => attributes.shape_or("shape", PartialShape::UNKNOWN)?,
    };
    let count = words.len() as i64;
    let sizes = match stated.sizes() {
        Some(sizes) if index::element_count(&sizes) == Some(count) => sizes,
        // Old graphs give every placeholder the shape of a scalar.
        Some(sizes) if !sizes.is_empty() => {
            return Err(Error::invalid(format!(
                "expected {stated}, got {count} numbers: '{}'",
                feed.constant
            )));
        }
        _ if count == 1 && stated.rank().unwrap_or(0) == 0 => Vec::new(),
        _ => vec![count],
    };
    let scalars = words.iter().map(|word| {
        scalar(word, element_type).ok_or_else(|| {
            Error::invalid(format!(
                "'{word}' is not a number of the type {data_type}: expected NUMBER,NUMBER,..."
            ))
        })
    });
    let scalars = scalars.collect::<Result<Vec<_>>>()?;
    Ok(Value::Array(data_type, Literal::from_scalars(ArrayShape::new(element_type, &sizes), scalars)))
}

/// Reads a number of a type, if it is one.
fn scalar(word: &str, element_type: PrimitiveType) -> Option<Scalar> {
    if element_type == PrimitiveType::Pred {
        return match word {
            "true" | "1" => Some(Scalar::Pred(true)),
            "false" | "0" => Some(Scalar::Pred(false)),
            _ => None,
        };
    }
    if element_type.is_floating_point() {
        return word.parse().ok().map(Scalar::Float);
    }
    let bits = element_type.bit_width();
    if element_type.is_signed_integer() {
        let number: i64 = word.parse().ok()?;
        return (number << (64 - bits) >> (64 - bits) == number).then_some(Scalar::Signed(number));
    }
    if element_type.is_integer() {
        let number: u64 = word.parse().ok()?;
        return (number << (64 - bits) >> (64 - bits) == number).then_some(Scalar::Unsigned(number));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parse_graph_def;
    use bytes::Bytes;

    fn graph(op: &str, data_type: &str, shape: &str) -> GraphDef {
        let shape = if shape.is_empty() {
            String::new()
        } else {
            format!("attr {{ key: \"shape\" value {{ shape {{ {shape} }} }} }}")
        };
        let text = format!(
            "node {{ name: \"x\" op: \"{op}\" attr {{ key: \"dtype\" value {{ type: {data_type} }} }} {shape} }}"
        );
        parse_graph_def(Bytes::from(text), "g.pbtxt").expect("a graph")
    }

    fn feed(constant: &str) -> Feed {
        of_flags(&BTreeMap::from([("x".to_owned(), constant.to_owned())]), None).remove(0)
    }

    fn constant(mut graph: GraphDef, text: &str) -> Result<(Vec<i64>, Vec<Scalar>)> {
        replace(&mut graph, &[feed(text)])?;
        assert_eq!(graph.node[0].op, "Const");
        let attributes = Attributes::new("x", "Const", graph.node[0].attr.clone());
        let literal = attributes.tensor("value").expect("a value");
        Ok((literal.array_shape().sizes(), literal.scalars().collect()))
    }

    #[test]
    fn a_placeholder_becomes_a_constant_of_its_type_and_shape() {
        let float = |number| Scalar::Float(number);
        let placeholder = |data_type, shape| graph("Placeholder", data_type, shape);
        for (graph, text, sizes, scalars) in [
            (placeholder("DT_FLOAT", ""), "0.25", vec![], vec![float(0.25)]),
            (placeholder("DT_FLOAT", "unknown_rank: true"), "1, -2", vec![2], vec![float(1.0), float(-2.0)]),
            (placeholder("DT_FLOAT", "dim { size: 1 }"), "3", vec![1], vec![float(3.0)]),
            (placeholder("DT_FLOAT", "dim { size: -1 }"), "3", vec![1], vec![float(3.0)]),
            (placeholder("DT_INT32", ""), "-7", vec![], vec![Scalar::Signed(-7)]),
            (placeholder("DT_UINT8", ""), "255", vec![], vec![Scalar::Unsigned(255)]),
            (placeholder("DT_BOOL", ""), "true", vec![], vec![Scalar::Pred(true)]),
        ] {
            assert_eq!(constant(graph, text).expect(text), (sizes, scalars), "{text}");
        }
    }

    #[test]
    fn other_values_and_nodes_are_refused() {
        for (graph, text, words) in [
            (graph("Placeholder", "DT_INT32", ""), "1.5", "'1.5' is not a number of the type int32"),
            (graph("Placeholder", "DT_UINT8", ""), "256", "'256' is not a number of the type uint8"),
            (graph("Placeholder", "DT_FLOAT", "dim { size: 3 }"), "1,2", "expected [3], got 2 numbers"),
            (graph("Placeholder", "DT_STRING", ""), "a", "constants of the type string"),
            (graph("Relu", "DT_FLOAT", ""), "1", "only placeholders can be constants"),
        ] {
            let error = constant(graph, text).expect_err(text);
            assert!(error.message().contains(words), "{error}");
        }
        let missing = replace(&mut GraphDef::default(), &[feed("1")]).expect_err("no node");
        assert!(missing.message().contains("'x:0' is not a node of the graph"), "{missing}");
    }

    #[test]
    fn a_constant_is_not_fed() {
        let mut config = Config {
            feed: vec![
                Feed { name: "size".to_owned(), ..feed("") },
                Feed { name: "y".to_owned(), ..feed("") },
            ],
            ..Config::default()
        };
        let constants = BTreeMap::from([("size".to_owned(), "4".to_owned())]);
        let feeds = of_flags(&constants, Some(&mut config));
        assert_eq!((feeds[0].name.as_str(), feeds[0].constant.as_str(), config.feed.len()), ("size", "4", 1));
        config.feed.extend(feeds);
        let mut graph = graph("Placeholder", "DT_INT32", "");
        take(&mut graph, &mut config).expect("a placeholder");
        assert_eq!((graph.node[0].op.as_str(), config.feed.len()), ("Const", 1));
    }
}
