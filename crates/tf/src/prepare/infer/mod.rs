//! The config of a graph that comes without one: what it computes, what that needs, and which variables it uses.
//!
//! Everything follows from the graph alone: fetches are what nothing else reads, feeds the placeholders that they need,
//! variables those that they reach. All that cannot be inferred is collected, so that one run says all of it.

mod fetches;
mod names;
mod writes;

use super::build::Signatures;
use super::names::Names;
use super::{FedOutput, prune, variables};
use crate::proto::{
    Config, Dim, Feed, Fetch, GraphDef, NodeDef, TensorId, TensorShapeProto, Variable, attr_value::Value,
};
use crate::{DataType, PartialShape};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// The first version of graphs in which a placeholder's shape without sizes is that of a scalar.
const SCALAR_PLACEHOLDERS: i32 = 24;

/// What the user says to help.
#[derive(Clone, Debug, Default)]
pub struct InferOptions {
    /// What to fetch; empty: whatever the graph computes and does not use itself.
    pub fetches: Vec<(String, i64)>,
    /// Shapes of feeds, which must allow what the graph states.
    pub shapes: BTreeMap<(String, i64), Vec<i64>>,
    /// The size of leading dimensions that the graph leaves open.
    pub batch: Option<i64>,
}

/// A config, and what there is to say about it.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// The config, complete if there are no problems.
    pub config: Config,
    /// Choices that the user may want to know of.
    pub notes: Vec<String>,
    /// What could not be inferred, and what to do about it.
    pub problems: Vec<String>,
}

/// Infers a config. An error is about the graph itself; what is missing for a config is in the problems.
pub fn infer(graph: &GraphDef, options: &InferOptions) -> Result<Inferred> {
    let names = Names::new(&graph.node)?;
    let empty = Vec::new();
    let functions = graph.library.as_ref().map_or(&empty, |l| &l.function);
    let signatures = Signatures::new(functions)?;
    let mut inferred = Inferred::default();
    let ids = fetches::fetches(graph, &names, &signatures, options, &mut inferred);
    if ids.is_empty() {
        return Ok(inferred);
    }
    let tensor_id = |id: &FedOutput| Some(TensorId { node_name: id.0.clone(), output_index: id.1 });
    let mut taken = names::Taken::default();
    for id in &ids {
        let fetch = Fetch { id: tensor_id(id), name: taken.claim(id), ..Fetch::default() };
        inferred.config.fetch.push(fetch);
    }
    let needed = prune::needed(&inferred.config, &graph.node, &names, &BTreeMap::new())?;
    let producer = graph.versions.as_ref().map_or(0, |v| v.producer);
    let mut taken = names::Taken::default();
    let mut unused: BTreeSet<&FedOutput> = options.shapes.keys().collect();
    for node in needed_nodes(graph, &needed) {
        if !matches!(node.op.as_str(), "Placeholder" | "PlaceholderV2") {
            continue;
        }
        let id = (node.name.clone(), 0);
        unused.remove(&id);
        match feed(node, &id, producer, options) {
            Ok((shape, data_type)) => inferred.config.feed.push(Feed {
                id: tensor_id(&id),
                shape: Some(proto(&shape)),
                name: taken.claim(&id),
                r#type: data_type.number(),
            }),
            Err(problem) => inferred.problems.push(problem.message().to_owned()),
        }
    }
    for id in unused {
        inferred.problems.push(format!(
            "a shape is given for '{}:{}', which is no placeholder that the fetches need: correct --shape",
            id.0, id.1
        ));
    }
    variables_of(graph, &needed, &signatures, &mut inferred);
    Ok(inferred)
}

fn needed_nodes<'a>(graph: &'a GraphDef, needed: &'a [bool]) -> impl Iterator<Item = &'a NodeDef> {
    graph.node.iter().zip(needed).filter(|(_, needed)| **needed).map(|(node, _)| node)
}

/// The shape and type of a feed.
fn feed(
    node: &NodeDef,
    id: &FedOutput,
    producer: i32,
    options: &InferOptions,
) -> Result<(Vec<i64>, DataType)> {
    let name = &node.name;
    let data_type = match node.attr.get("dtype").and_then(|v| v.value.as_ref()) {
        Some(Value::Type(number)) => DataType::from_number(*number).map(DataType::base),
        _ => None,
    };
    let data_type =
        data_type.ok_or_else(|| Error::invalid(format!("placeholder '{name}' has no attribute dtype")))?;
    if data_type.primitive_type().is_none() {
        return Err(Error::unsupported(format!(
            "placeholder '{name}' has type {data_type}, which cannot be an argument: fetch something that does not \
             need it, or give a config that feeds tensors of numbers or bools behind it"
        )));
    }
    let mut stated = super::feeds::stated_shape(node, id.1);
    if stated.rank() == Some(0) && producer < SCALAR_PLACEHOLDERS {
        stated = PartialShape::UNKNOWN;
    }
    if let Some(shape) = options.shapes.get(id) {
        return match stated.allows(shape) {
            true => Ok((shape.clone(), data_type)),
            false => Err(Error::invalid(format!(
                "feed '{name}' has shape {stated} in the graph, which {} does not fit: correct --shape",
                PartialShape::known(shape)
            ))),
        };
    }
    let mut sizes = stated.dimensions.clone();
    if let (Some([leading @ None, ..]), Some(batch)) = (sizes.as_deref_mut(), options.batch) {
        *leading = Some(batch);
    }
    let known = sizes.as_ref().and_then(|sizes| sizes.iter().copied().collect::<Option<Vec<i64>>>());
    known.map(|shape| (shape, data_type)).ok_or_else(|| unknown_shape(name, &stated, sizes.as_deref()))
}

/// The error of a shape that is not known, with the flag that would make it known.
fn unknown_shape(name: &str, stated: &PartialShape, sizes: Option<&[Option<i64>]>) -> Error {
    let flag = match sizes {
        Some([None, rest @ ..]) if rest.iter().all(Option::is_some) => {
            let rest: String = rest.iter().flatten().map(|size| format!(",{size}")).collect();
            format!("give --batch N, or --shape {name}=1{rest}")
        }
        Some(sizes) => {
            let sizes: Vec<String> = sizes.iter().map(|s| s.unwrap_or(1).to_string()).collect();
            format!("give its shape, for instance --shape {name}={}", sizes.join(","))
        }
        None => format!("give its shape, for instance --shape {name}=1,224,224,3"),
    };
    Error::invalid(format!("the shape {stated} of feed '{name}' is not fully defined: {flag}"))
}

fn proto(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}

/// The variables that the fetches reach.
fn variables_of(graph: &GraphDef, needed: &[bool], signatures: &Signatures<'_>, inferred: &mut Inferred) {
    let mut writes = writes::Writes::new(graph, needed, signatures);
    let mut taken = names::Taken::default();
    for (at, node) in graph.node.iter().enumerate() {
        if !needed[at] || !variables::is_variable(&node.op) {
            continue;
        }
        let mut variable = Variable {
            node_name: node.name.clone(),
            name: taken.claim(&(node.name.clone(), 0)),
            readonly: !writes.writes(node),
            ..Variable::default()
        };
        let stated = match node.attr.get("shape").and_then(|v| v.value.as_ref()) {
            Some(Value::Shape(shape)) => PartialShape::from_proto(shape).unwrap_or(PartialShape::UNKNOWN),
            _ => PartialShape::UNKNOWN,
        };
        match stated.sizes() {
            Some(sizes) => variable.shape = Some(proto(&sizes)),
            None => inferred.problems.push(format!(
                "the shape {stated} of variable '{}' is not fully defined: freeze the graph, or give a config",
                node.name
            )),
        }
        if let Some(Value::Type(number)) = node.attr.get("dtype").and_then(|v| v.value.as_ref()) {
            variable.r#type = DataType::from_number(*number).map_or(0, |t| t.base().number());
        }
        inferred.config.variable.push(variable);
    }
    let count = inferred.config.variable.len();
    if count > 0 {
        let written = inferred.config.variable.iter().filter(|v| !v.readonly).count();
        inferred.notes.push(format!(
            "the program has {count} variable{}, {written} of them written; the caller holds their values. \
             `tfcompile freeze` makes constants of them",
            if count == 1 { "" } else { "s" }
        ));
    }
}
