//! From node protos to a graph with resolved inputs and checked types.

use super::FedOutput;
use super::feeds::Argument;
use super::names::Input;
use super::prune;
use crate::op_def;
use crate::proto::{AttrValue, FunctionDef, NodeDef, OpDef, attr_value::Value};
use crate::tensor::{MAX_FILL_BYTES, Tensor};
use crate::{
    Attributes, DataType, Feed, FunctionLibrary, Graph, Node, NodeId, OutputId, PartialShape, Program,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use support::{Code, Error, Id, IdVec, Result};

/// The most inputs and outputs that all nodes together may have.
const MAX_TENSORS: usize = 100_000_000;

/// The op of a cluster that is compiled as one: `XlaLaunch` as TensorFlow's first releases with clusters called it.
const CLUSTER: &str = "_XlaLaunch";

/// The signatures that nodes can refer to: library functions first, then registered ops.
pub(super) struct Signatures<'a> {
    functions: BTreeMap<&'a str, (&'a FunctionDef, &'a OpDef)>,
    /// How many inputs and outputs more may be made.
    tensors_left: Cell<usize>,
}

/// A node whose signature is applied.
pub(super) struct Typed {
    pub(super) values: BTreeMap<String, AttrValue>,
    pub(super) input_types: Vec<DataType>,
    pub(super) output_types: Vec<DataType>,
    /// Where the outputs of each output argument begin, and the end.
    pub(super) output_starts: Vec<usize>,
}

impl<'a> Signatures<'a> {
    pub(super) fn new(library: &'a [FunctionDef]) -> Result<Self> {
        let mut functions = BTreeMap::new();
        for function in library {
            let signature = function.signature.as_ref().filter(|s| !s.name.is_empty());
            let signature =
                signature.ok_or_else(|| Error::invalid("a function of the graph's library has no name"))?;
            if functions.insert(signature.name.as_str(), (function, signature)).is_some() {
                return Err(Error::invalid(format!(
                    "two library functions have the name '{}'",
                    signature.name
                )));
            }
        }
        Ok(Self { functions, tensors_left: Cell::new(MAX_TENSORS) })
    }

    /// The signature of an op or function.
    pub(super) fn get(&self, op: &str) -> Option<&'a OpDef> {
        let registered = if op == CLUSTER { "XlaLaunch" } else { op };
        self.functions.get(op).map(|&(_, signature)| signature).or_else(|| op_def::lookup(registered))
    }

    /// A function of the library with its signature.
    pub(super) fn function(&self, name: &str) -> Option<(&'a FunctionDef, &'a OpDef)> {
        self.functions.get(name).copied()
    }

    /// Fills defaults in, checks attributes and finds the types of inputs and outputs.
    pub(super) fn apply(&self, node: &NodeDef, mut values: BTreeMap<String, AttrValue>) -> Result<Typed> {
        let at_node = |e: Error| e.context(format!("node '{}' (op {})", node.name, node.op));
        let signature =
            self.get(&node.op).ok_or_else(|| unregistered(&[(node.op.as_str(), node.name.as_str())]))?;
        op_def::fill_defaults(signature, &mut values).map_err(at_node)?;
        op_def::check_attributes(signature, &values).map_err(at_node)?;
        let (input_types, _) = op_def::flat_types(&signature.input_arg, &values).map_err(at_node)?;
        let (output_types, output_starts) =
            op_def::flat_types(&signature.output_arg, &values).map_err(at_node)?;
        let made = input_types.len() + output_types.len();
        let left = self.tensors_left.get().checked_sub(made).ok_or_else(|| {
            at_node(Error::invalid(format!(
                "the graph has more than {MAX_TENSORS} inputs and outputs in all"
            )))
            .coded(Code::TooLarge)
        })?;
        self.tensors_left.set(left);
        Ok(Typed { values, input_types, output_types, output_starts })
    }

    /// The signature of a node with the types of its outputs.
    pub(super) fn output_types(
        &self,
        node: &NodeDef,
    ) -> Result<(BTreeMap<String, AttrValue>, Vec<DataType>)> {
        let typed = self.apply(node, node.attr.clone())?;
        Ok((typed.values, typed.output_types))
    }
}

/// The error about all nodes whose op nobody registered.
pub(super) fn unregistered(culprits: &[(&str, &str)]) -> Error {
    let culprits: Vec<String> =
        culprits.iter().map(|(op, node)| format!("op '{op}' (node '{node}') is not registered")).collect();
    Error::invalid(format!(
        "{}: no such op exists in TensorFlow 2.15, and the graph's library has no function of this name; feed the \
         node's outputs (with their type), or fetch something that does not need it",
        culprits.join("; ")
    ))
    .coded(Code::UnknownOp)
}

/// Which output of the finished graph an output of the original is.
pub(super) struct Outputs<'a> {
    fed: &'a BTreeMap<FedOutput, usize>,
    kept: BTreeMap<&'a str, NodeId>,
}

impl Outputs<'_> {
    /// The node of a name, if it was kept.
    pub(super) fn kept(&self, name: &str) -> Option<NodeId> {
        self.kept.get(name).copied()
    }

    /// The node of a fetch that has no outputs, and so is run for its effects.
    pub(super) fn target(&self, id: &FedOutput, graph: &Graph) -> Option<NodeId> {
        let node = *self.kept.get(id.0.as_str()).filter(|_| id.1 == 0)?;
        graph.nodes[node].output_types.is_empty().then_some(node)
    }

    /// The output that a fetch names.
    pub(super) fn fetch(&self, id: &FedOutput, graph: &Graph) -> Result<OutputId> {
        if let Some(&feed) = self.fed.get(id) {
            return Ok(OutputId { node: NodeId::from_index(feed), index: 0 });
        }
        let node = *self
            .kept
            .get(id.0.as_str())
            .ok_or_else(|| Error::internal(format!("fetched node '{}' was pruned", id.0)))?;
        let outputs = graph.nodes[node].output_types.len();
        match usize::try_from(id.1) {
            Ok(index) if index < outputs => Ok(OutputId { node, index }),
            _ => Err(Error::invalid(format!(
                "Invalid fetch id: {}:{}, output index should be < {outputs}: op {} has {outputs} outputs here",
                id.0, id.1, graph.nodes[node].op
            ))),
        }
    }
}

/// The graph of the nodes that are needed, arguments first. The program has no fetches, variables and functions yet.
pub(super) fn main_graph<'a>(
    nodes: &'a [NodeDef],
    needed: &[bool],
    arguments: Vec<Argument>,
    fed: &'a BTreeMap<FedOutput, usize>,
    signatures: &Signatures<'_>,
) -> Result<(Program, Outputs<'a>)> {
    let kept: Vec<&NodeDef> =
        nodes.iter().zip(needed).filter(|(_, needed)| **needed).map(|(n, _)| n).collect();
    let unknown: Vec<(&str, &str)> = kept
        .iter()
        .filter(|n| signatures.get(&n.op).is_none())
        .map(|n| (n.op.as_str(), n.name.as_str()))
        .collect();
    if !unknown.is_empty() {
        return Err(unregistered(&unknown));
    }
    check_placeholders(&kept)?;

    let mut graph = Graph::default();
    let feeds = add_arguments(&mut graph, arguments, &kept);
    let names = super::names::Names::new(nodes)?;
    let ids: BTreeMap<&str, NodeId> = kept
        .iter()
        .enumerate()
        .map(|(i, node)| (node.name.as_str(), NodeId::from_index(feeds.len() + i)))
        .collect();
    let mut wanted = Vec::with_capacity(kept.len());
    for node in &kept {
        let mut node = std::borrow::Cow::Borrowed(*node);
        if node.op == "PlaceholderWithDefault" {
            node.to_mut().op = "Identity".to_owned();
            let dtype = node.attr.get("dtype").cloned().unwrap_or_default();
            node.to_mut().attr.insert("T".to_owned(), dtype);
        }
        let typed = signatures.apply(&node, node.attr.clone())?;
        let mut inputs = Vec::new();
        let mut control_inputs = Vec::new();
        for text in &node.input {
            let input = Input::parse(text, &node.name)?;
            let feed = prune::replaced_by(input, nodes, &names, fed).map(NodeId::from_index);
            let at = feed.or_else(|| ids.get(input.node()).copied()).ok_or_else(|| {
                Error::internal(format!("input '{text}' of node '{}' was pruned", node.name))
            })?;
            match (input, feed) {
                (Input::Control(_), Some(_)) => {}
                (Input::Control(_), None) => control_inputs.push(at),
                (Input::Data(..), Some(_)) => inputs.push(OutputId { node: at, index: 0 }),
                (Input::Data(_, index), None) => inputs.push(OutputId { node: at, index: index as usize }),
            }
        }
        push_node(&mut graph, &node, typed.values, inputs, control_inputs, typed.output_types);
        wanted.push(typed.input_types);
    }
    for (i, types) in wanted.iter().enumerate() {
        check_inputs(&graph, NodeId::from_index(feeds.len() + i), types)?;
    }
    let program = Program {
        graph,
        library: FunctionLibrary::default(),
        feeds,
        fetches: Vec::new(),
        variables: Vec::new(),
        loop_bounds: BTreeMap::new(),
    };
    Ok((program, Outputs { fed, kept: ids }))
}

/// Refuses placeholders that are needed and not fed: all in one message, each with a node that needs it.
fn check_placeholders(kept: &[&NodeDef]) -> Result<()> {
    let is_placeholder = |node: &&&NodeDef| matches!(node.op.as_str(), "Placeholder" | "PlaceholderV2");
    let mut users: BTreeMap<&str, Option<&str>> =
        kept.iter().filter(is_placeholder).map(|node| (node.name.as_str(), None)).collect();
    if users.is_empty() {
        return Ok(());
    }
    for node in kept {
        for input in &node.input {
            if let Some(user) = users.get_mut(Input::parse(input, &node.name)?.node()) {
                user.get_or_insert(&node.name);
            }
        }
    }
    let unfed: Vec<String> = kept
        .iter()
        .filter(is_placeholder)
        .map(|placeholder| match users[placeholder.name.as_str()] {
            Some(user) => format!("'{}' (needed by '{user}')", placeholder.name),
            None => format!("'{}' (fetched)", placeholder.name),
        })
        .collect();
    Err(Error::invalid(format!(
        "placeholders that are needed but not fed: {}; give each a feed in the config: feed {{ id {{ node_name: \
         \"...\" }} shape {{ ... }} }}",
        unfed.join(", ")
    ))
    .coded(Code::Feed))
}

/// Adds a node `_Arg` for each feed. It takes the name of the node it replaces, unless that stays in the graph too.
fn add_arguments(graph: &mut Graph, arguments: Vec<Argument>, kept: &[&NodeDef]) -> Vec<Feed> {
    let mut taken: std::collections::BTreeSet<String> = kept.iter().map(|n| n.name.clone()).collect();
    let mut feeds = Vec::new();
    for (index, argument) in arguments.into_iter().enumerate() {
        let mut name = match argument.id.1 {
            0 => argument.id.0.clone(),
            output => format!("aot_feed_{output}/{}", argument.id.0),
        };
        while !taken.insert(name.clone()) {
            name = format!("aot_feed_{}/{name}", argument.id.1);
        }
        let node = push_argument(graph, &name, index, argument.data_type);
        feeds.push(Feed {
            tensor: OutputId { node, index: 0 },
            id: argument.id,
            name: argument.name,
            shape: argument.shape,
            data_type: argument.data_type,
        });
    }
    feeds
}

/// Adds a node `_Arg`.
pub(crate) fn push_argument(graph: &mut Graph, name: &str, index: usize, data_type: DataType) -> NodeId {
    let values = BTreeMap::from([
        ("T".to_owned(), Value::Type(data_type.number()).into()),
        ("index".to_owned(), Value::I(index as i64).into()),
    ]);
    graph.nodes.push(Node {
        name: name.to_owned(),
        op: "_Arg".to_owned(),
        inputs: Vec::new(),
        control_inputs: Vec::new(),
        attributes: Attributes::new(name, "_Arg", values),
        output_types: vec![data_type],
    })
}

/// Adds a node of the file.
pub(super) fn push_node(
    graph: &mut Graph,
    node: &NodeDef,
    values: BTreeMap<String, AttrValue>,
    inputs: Vec<OutputId>,
    mut control_inputs: Vec<NodeId>,
    output_types: Vec<DataType>,
) -> NodeId {
    control_inputs.sort_unstable();
    control_inputs.dedup();
    graph.nodes.push(Node {
        name: node.name.clone(),
        op: node.op.clone(),
        inputs,
        control_inputs,
        attributes: Attributes::new(&node.name, &node.op, values),
        output_types,
    })
}

/// Checks that a node's inputs exist, and are as many and of the types that its signature wants. A reference serves where
/// a value is wanted.
pub(super) fn check_inputs(graph: &Graph, id: NodeId, wanted: &[DataType]) -> Result<()> {
    let node = &graph.nodes[id];
    if node.inputs.len() != wanted.len() {
        let names: Vec<&str> = wanted.iter().map(|t| t.name()).collect();
        return Err(Error::invalid(format!(
            "node '{}' (op {}) has {} inputs, but its signature and attributes want {}: ({})",
            node.name,
            node.op,
            node.inputs.len(),
            wanted.len(),
            names.join(", ")
        )));
    }
    for (i, (input, &wanted)) in node.inputs.iter().zip(wanted).enumerate() {
        // A function of the user's takes what is there.
        let takes_any = node.op == crate::substitutions::CUSTOM_CALL;
        let producer = &graph.nodes[input.node];
        let Some(&given) = producer.output_types.get(input.index) else {
            return Err(Error::invalid(format!(
                "node '{}' input {i} is '{}:{}', but op {} of that node has only {} outputs",
                node.name,
                producer.name,
                input.index,
                producer.op,
                producer.output_types.len()
            )));
        };
        if !takes_any && given != wanted && (wanted.is_ref() || given.base() != wanted) {
            return Err(Error::invalid(format!(
                "Input {i} of node {} was passed {given} from {}:{} incompatible with expected {wanted}. \
                 (op {}; correct its type attribute, or what feeds it)",
                node.name, producer.name, input.index, node.op
            )));
        }
    }
    Ok(())
}

/// Refuses constants that together fill too much memory from a few stored elements. Those of one element alone are not
/// counted: they are imported as a broadcast.
pub(super) fn check_fills(program: &Program) -> Result<()> {
    let graphs = std::iter::once(&program.graph).chain(program.library.functions().map(|f| &f.graph));
    let mut total = 0u64;
    for node in graphs.flat_map(|graph: &Graph| graph.nodes.values()).filter(|n| n.op == "Const") {
        let at_node = |e: Error| e.context(format!("node '{}' (op Const)", node.name));
        let tensor = Tensor::new(node.attributes.tensor_proto("value")?).map_err(at_node)?;
        let stated = node.attributes.ty("dtype")?;
        if tensor.data_type() != stated {
            return Err(Error::invalid(format!(
                "node '{}' (op Const) has dtype {stated}, but its value is {}",
                node.name,
                tensor.data_type()
            )));
        }
        if tensor.data_type().primitive_type().is_some() && tensor.splat().map_err(at_node)?.is_none() {
            total = total.saturating_add(tensor.fill_bytes());
        }
        if total > MAX_FILL_BYTES {
            return Err(Error::invalid(format!(
                "node '{}' (op Const) of shape {}: constants that store only a part of their elements fill more than \
                 {} MiB together",
                node.name,
                PartialShape::known(tensor.sizes()),
                MAX_FILL_BYTES >> 20
            )));
        }
    }
    Ok(())
}

/// The ids of a graph's nodes by name.
pub(super) fn ids_by_name(nodes: &IdVec<NodeId, Node>) -> BTreeMap<&str, NodeId> {
    nodes.iter().map(|(id, node)| (node.name.as_str(), id)).collect()
}
