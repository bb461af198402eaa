//! Reads graph models of TensorFlow.js: a `model.json`, and files with its weights.
//!
//! The graph is a `GraphDef` in JSON, in which constants have no values. The weights, which may be
//! quantized, become their values, so that from there on a model is like one of TensorFlow.
//!
//! Source: `tfjs-core/src/io/types.ts` and `tfjs-core/src/io/io_utils.ts` of TensorFlow.js 4.22 for
//! the file, and `tfjs-converter/python/tensorflowjs/converters` for the ops that its converter
//! fuses.

mod graph;
mod weights;

use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use support::{Code, Coded as _, Error, Result};
use tf::proto::attr_value::Value as Attribute;
use tf::proto::{CollectionDef, GraphDef, MetaGraphDef, NodeDef, NodeList, SignatureDef, TensorInfo};
use weights::Weights;

/// Key of the signature of a model.
const SIGNATURE: &str = "serving_default";

/// Key of the collection of the nodes that fill tables.
const TABLES: &str = "table_initializer";

/// True if a file is JSON, and not a model of another format: an object, or a list of weights.
pub fn is_json(bytes: &[u8]) -> bool {
    matches!(bytes.iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'{' | b'['))
}

/// Reads a model. `bytes` are the contents of the file `path`, next to which the weights are.
///
/// Errors: `invalid` for damaged and missing files, `unsupported` for layers models of Keras. They
/// name the node or the weight.
pub fn read(path: &Path, bytes: &Bytes) -> Result<MetaGraphDef> {
    let model: Value = serde_json::from_slice(bytes)
        .map_err(|e| Error::invalid(format!("cannot parse the JSON: {e}")))
        .coded(Code::ParseFile)?;
    if model.as_array().is_some_and(|groups| groups.iter().any(|group| group.get("weights").is_some())) {
        return Err(Error::unsupported(
            "the file lists weights of TensorFlow.js, but no graph: the network is in the program that reads \
             them. Save it as a graph model (`model.json`)",
        )
        .coded(Code::ParseFile));
    }
    let topology = model.get("modelTopology").filter(|topology| topology.is_object());
    let Some(topology) = topology else {
        let reason = "the JSON is not a model of TensorFlow.js: it has no modelTopology";
        return Err(Error::invalid(reason).coded(Code::ParseFile));
    };
    let is_layers = model.get("format").and_then(Value::as_str) == Some("layers-model");
    if is_layers || topology.get("model_config").is_some() {
        return Err(Error::unsupported(
            "the file is a layers model of TensorFlow.js, not a graph model: convert it with \
             `tensorflowjs_converter --input_format=tfjs_layers_model --output_format=tfjs_graph_model`",
        )
        .coded(Code::ParseFile));
    }
    let mut graph = tf::source::graph_from_json(topology, "modelTopology")?;
    let initializers = match model.get("modelInitializer").filter(|value| !value.is_null()) {
        Some(value) => add_initializer(&mut graph, tf::source::graph_from_json(value, "modelInitializer")?),
        None => Vec::new(),
    };
    let weights = Weights::read(path, model.get("weightsManifest"))?;
    graph::complete(&mut graph, &weights).coded(Code::Graph)?;
    Ok(MetaGraphDef {
        signature_def: signature(&model, &graph)?
            .into_iter()
            .map(|signature| (SIGNATURE.to_owned(), signature))
            .collect(),
        graph_def: Some(graph),
        collection_def: [(TABLES.to_owned(), collection(initializers))].into(),
        ..MetaGraphDef::default()
    })
}

/// Adds the graph that fills the tables, and returns its nodes that do so: those that no other one
/// reads. A table is a node of the same name in both graphs.
fn add_initializer(graph: &mut GraphDef, initializer: GraphDef) -> Vec<String> {
    let present: BTreeSet<String> = graph.node.iter().map(|node| node.name.clone()).collect();
    let read: BTreeSet<String> =
        initializer.node.iter().flat_map(|node| &node.input).map(|input| node_of(input)).collect();
    let last = initializer.node.iter().filter(|node| !read.contains(&node.name));
    let last = last.map(|node| node.name.clone()).collect();
    graph.node.extend(initializer.node.into_iter().filter(|node| !present.contains(&node.name)));
    last
}

/// Name of the node that an input names.
fn node_of(input: &str) -> String {
    let input = input.strip_prefix('^').unwrap_or(input);
    input.split_once(':').map_or(input, |(node, _)| node).to_owned()
}

/// A collection of nodes.
fn collection(nodes: Vec<String>) -> CollectionDef {
    CollectionDef { node_list: Some(NodeList { value: nodes }), ..CollectionDef::default() }
}

/// Returns the signature, if the model has one. Older converters wrote it as metadata of the user.
/// Inputs that it does not name are the placeholders.
fn signature(model: &Value, graph: &GraphDef) -> Result<Option<SignatureDef>> {
    let of_user = model.get("userDefinedMetadata").and_then(|metadata| metadata.get("signature"));
    let Some(signature) = model.get("signature").or(of_user).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let mut signature = tf::source::signature_from_json(signature, "signature")?;
    if signature.inputs.is_empty() {
        let placeholders = graph.node.iter().filter(|node| node.op == "Placeholder");
        signature.inputs.extend(placeholders.map(|node| (node.name.clone(), placeholder(node))));
    }
    for (key, info) in signature.inputs.iter_mut().chain(&mut signature.outputs) {
        if info.name.is_empty() {
            info.name.clone_from(key);
        }
        if !info.name.contains(':') {
            info.name.push_str(":0");
        }
    }
    Ok((!signature.outputs.is_empty()).then_some(signature))
}

/// Describes the tensor of a placeholder.
fn placeholder(node: &NodeDef) -> TensorInfo {
    let attribute = |name: &str| node.attr.get(name).and_then(|attr| attr.value.as_ref());
    let mut info = TensorInfo { name: node.name.clone(), ..TensorInfo::default() };
    if let Some(&Attribute::Type(number)) = attribute("dtype") {
        info.dtype = number;
    }
    if let Some(Attribute::Shape(shape)) = attribute("shape") {
        info.tensor_shape = Some(shape.clone());
    }
    info
}
