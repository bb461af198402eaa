//! Converts each cluster to a function and replaces its nodes by one node that runs the function.

use crate::analysis::constants;
use crate::graph::attributes::{attribute, string_attribute};
use crate::graph::body::argument;
use crate::graph::{Edge, EdgeKind, Graph, Node, NodeId, OutputArgument, OutputTensor, SINK, SOURCE};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value;
use tf::proto::{ArgDef, AttrValue, FunctionDef, ListValue, NameAttrList, NodeDef, OpDef};

/// Op of a node that runs a cluster.
pub(crate) const LAUNCH: &str = "_XlaLaunch";

/// A cluster that is being converted to a function.
#[derive(Default)]
struct Part {
    members: Vec<NodeId>,
    /// Outputs of outside nodes that the cluster uses, in order of first use.
    arguments: Vec<OutputTensor>,
    argument_of: BTreeMap<OutputTensor, usize>,
    /// Outputs of the cluster's nodes that outside nodes use.
    results: Vec<OutputTensor>,
    result_of: BTreeMap<OutputTensor, usize>,
    /// Nodes with outgoing control edges.
    control_results: BTreeSet<NodeId>,
}

/// Replaces the nodes of each cluster, identified by an attribute, by one node of op `_XlaLaunch`,
/// and returns the functions that these nodes run. `used_names` are names that functions must not
/// have. The second result maps nodes to their replacements.
pub(crate) fn encapsulate(
    graph: &mut Graph,
    group_attribute: &str,
    analysis: &constants::Analysis<'_>,
    used_names: &mut BTreeSet<String>,
) -> Result<(Vec<FunctionDef>, Replacements)> {
    let mut parts = parts(graph, group_attribute)?;
    let mut functions = Vec::new();
    let mut replacements = Replacements::default();
    let mut names = graph.names();
    for (group, part) in &mut parts {
        let mut name = group.clone();
        let mut number = 0;
        let members: BTreeSet<&str> = part.members.iter().map(|&id| graph[id].name()).collect();
        while used_names.contains(&name) || (names.contains(&name) && !members.contains(name.as_str())) {
            number += 1;
            name = format!("{group}_{number}");
        }
        used_names.insert(name.clone());
        names.insert(name.clone());
        let counts = order_arguments(graph, part, group_attribute, analysis)?;
        functions.push(function(graph, part, &name, group_attribute)?);
        let launch = launch(graph, part, &name, counts);
        let id = graph.add(launch);
        for &member in &part.members {
            replacements.nodes.insert(member, id);
        }
        for (output, &result) in part.results.iter().enumerate() {
            replacements.outputs.insert(result, OutputTensor { node: id, output });
        }
    }
    rewire(graph, &parts, &replacements)?;
    Ok((functions, replacements))
}

/// Replacements of clustered nodes and their outputs.
#[derive(Debug, Default)]
pub(crate) struct Replacements {
    /// Launch that replaces each node.
    pub(crate) nodes: BTreeMap<NodeId, NodeId>,
    /// Launch result that replaces each output used_names outside.
    pub(crate) outputs: BTreeMap<OutputTensor, OutputTensor>,
}

impl Replacements {
    /// The replacement of a node, or the node itself.
    pub(crate) fn node(&self, id: NodeId) -> NodeId {
        self.nodes.get(&id).copied().unwrap_or(id)
    }

    /// The replacement of a tensor, or the tensor itself.
    fn output(&self, tensor: OutputTensor) -> OutputTensor {
        self.outputs.get(&tensor).copied().unwrap_or(tensor)
    }
}

fn parts(graph: &Graph, group_attribute: &str) -> Result<BTreeMap<String, Part>> {
    let group = |id: NodeId| string_attribute(&graph[id].def.attr, group_attribute);
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    for id in graph.ids().filter(|&id| !group(id).is_empty()) {
        parts.entry(group(id).to_owned()).or_default().members.push(id);
    }
    for edge in graph.edges.values().flatten() {
        let (from, to) = (group(edge.src), group(edge.dst));
        if from == to {
            continue;
        }
        if let EdgeKind::Data { output, input } = edge.kind
            && graph[edge.src].output_types[output].is_ref()
            && (!from.is_empty() || !to.is_empty() && graph[edge.dst].input_types[input].is_ref())
        {
            return Err(Error::invalid(format!(
                "Ref Tensors (e.g., Variables) are not supported as arguments or results of clusters: tensor {}:{output}",
                graph[edge.src].name()
            )));
        }
        let tensor = edge.tensor();
        if let Some(part) = parts.get_mut(from) {
            match tensor {
                None if edge.dst != SINK => {
                    part.control_results.insert(edge.src);
                }
                None => {}
                Some(tensor) => {
                    let next = part.results.len();
                    if *part.result_of.entry(tensor).or_insert(next) == next {
                        part.results.push(tensor);
                    }
                }
            }
        }
        if let (Some(part), Some(tensor)) = (parts.get_mut(to), tensor) {
            let next = part.arguments.len();
            if *part.argument_of.entry(tensor).or_insert(next) == next {
                part.arguments.push(tensor);
            }
        }
    }
    Ok(parts)
}

/// Type of an argument inside the cluster. A reference is read on entry.
fn argument_type(graph: &Graph, tensor: OutputTensor) -> DataType {
    graph[tensor.node].output_types[tensor.output].base()
}

/// Number of arguments that must be constant, and number of resources.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) constants: usize,
    pub(crate) resources: usize,
}

/// Order of a launch's arguments: constants, then other values, then resources.
pub(crate) struct LaunchOrder {
    pub(crate) order: Vec<usize>,
    pub(crate) counts: Counts,
}

impl LaunchOrder {
    /// Order of arguments of these types. `constants` are the indices of those that must be
    /// constant.
    pub(crate) fn new(types: &[DataType], constants: &BTreeSet<usize>) -> Self {
        let rank = |index: usize| match (types[index] == DataType::Resource, constants.contains(&index)) {
            (true, _) => 2,
            (false, true) => 0,
            (false, false) => 1,
        };
        let mut order: Vec<usize> = (0..types.len()).collect();
        order.sort_by_key(|&index| rank(index));
        let count = |kind: u8| order.iter().filter(|&&index| rank(index) == kind).count();
        let counts = Counts { constants: count(0), resources: count(2) };
        Self { order, counts }
    }
}

/// Reorders the arguments of a cluster for its launch.
fn order_arguments(
    graph: &Graph,
    part: &mut Part,
    group_attribute: &str,
    analysis: &constants::Analysis<'_>,
) -> Result<Counts> {
    let body = body_graph(graph, part, group_attribute)?;
    let constants = analysis.of_graph(&body, &|_| true)?.arguments;
    let types: Vec<DataType> = part.arguments.iter().map(|&tensor| argument_type(graph, tensor)).collect();
    let LaunchOrder { order, counts } = LaunchOrder::new(&types, &constants);
    part.arguments = order.iter().map(|&index| part.arguments[index]).collect();
    part.argument_of = part.arguments.iter().enumerate().map(|(index, &output)| (output, index)).collect();
    Ok(counts)
}

/// The cluster's nodes as a separate graph with argument nodes, for the analysis of constants.
fn body_graph(graph: &Graph, part: &Part, group_attribute: &str) -> Result<Graph> {
    let mut body = Graph::new();
    let mut images: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    let mut arguments = Vec::new();
    for (index, &output) in part.arguments.iter().enumerate() {
        arguments.push(body.add(argument(&format!("arg_{index}"), index, argument_type(graph, output), "")));
    }
    for &id in &part.members {
        let mut copy = graph[id].without_edges();
        copy.def.attr.remove(group_attribute);
        images.insert(id, body.add(copy));
    }
    for &id in &part.members {
        for edge in graph.in_edges(id) {
            let dst = images[&id];
            match (images.get(&edge.src), edge.kind) {
                (Some(&src), EdgeKind::Control) => body.connect_control(src, dst),
                (Some(&src), EdgeKind::Data { .. }) => body.connect(Edge { src, dst, ..edge })?,
                (None, EdgeKind::Data { output, input }) => {
                    let argument = part.argument_of[&OutputTensor { node: edge.src, output }];
                    let src = OutputTensor { node: arguments[argument], output: 0 };
                    body.connect(Edge::data(src, dst, input))?;
                }
                (None, EdgeKind::Control) => {}
            }
        }
    }
    body.fix_source_and_sink();
    Ok(body)
}

fn typed_arg(name: String, data_type: DataType) -> ArgDef {
    ArgDef { name, r#type: data_type.number(), ..ArgDef::default() }
}

/// A node in the form of a function body: its inputs are `node:argument:index`.
fn body_node(
    graph: &Graph,
    part: &Part,
    id: NodeId,
    argument_names: &[String],
    inside: &BTreeSet<NodeId>,
) -> NodeDef {
    let write = |tensor: OutputTensor| match part.argument_of.get(&tensor) {
        Some(&index) if !inside.contains(&tensor.node) => argument_names[index].clone(),
        _ => output_text(&graph[tensor.node], tensor.output),
    };
    let mut def = graph.node_def(id, write);
    // Control edges from outside lead to the launch instead.
    let names: BTreeSet<&str> = graph
        .in_edges(id)
        .filter(|e| e.is_control() && inside.contains(&e.src))
        .map(|e| graph[e.src].name())
        .collect();
    def.input.retain(|input| input.strip_prefix('^').is_none_or(|name| names.contains(name)));
    def
}

/// Text `node:argument:index` of an output.
pub(crate) fn output_text(node: &Node, output: usize) -> String {
    let place = node.output_arguments.partition_point(|a| a.start <= output).saturating_sub(1);
    let OutputArgument { name, start } = &node.output_arguments[place];
    format!("{}:{name}:{}", node.name(), output - start)
}

/// An unused argument name made from a text: lowercase letters, digits, and underscores, starting
/// with a letter.
fn argument_name(text: &str, reserved: &mut BTreeSet<String>) -> String {
    let mut name: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert_str(0, "arg_");
    }
    let base = name.clone();
    let mut number = 0;
    while !reserved.insert(name.clone()) {
        number += 1;
        name = format!("{base}_{number}");
    }
    name
}

fn function(graph: &Graph, part: &Part, name: &str, group_attribute: &str) -> Result<FunctionDef> {
    let inside: BTreeSet<NodeId> = part.members.iter().copied().collect();
    let mut reserved: BTreeSet<String> = part.members.iter().map(|&id| graph[id].name().to_owned()).collect();
    let mut signature = OpDef { name: name.to_owned(), is_stateful: true, ..OpDef::default() };
    let mut argument_names = Vec::new();
    for &tensor in &part.arguments {
        let text = format!("{}_{}_arg", graph[tensor.node].name(), tensor.output);
        let argument = argument_name(&text, &mut reserved);
        signature.input_arg.push(typed_arg(argument.clone(), argument_type(graph, tensor)));
        argument_names.push(argument);
    }
    let mut ret = BTreeMap::new();
    let mut reserved_results = BTreeSet::new();
    for &tensor in &part.results {
        let text = format!("{}_{}_retval", graph[tensor.node].name(), tensor.output);
        let result = argument_name(&text, &mut reserved_results);
        signature.output_arg.push(typed_arg(result.clone(), argument_type(graph, tensor)));
        ret.insert(result, output_text(&graph[tensor.node], tensor.output));
    }
    let mut control_ret = BTreeMap::new();
    for &id in &part.control_results {
        let name = graph[id].name().to_owned();
        signature.control_output.push(name.clone());
        control_ret.insert(name.clone(), name);
    }
    let mut node_def = Vec::with_capacity(part.members.len());
    for &id in &part.members {
        let mut def = body_node(graph, part, id, &argument_names, &inside);
        def.attr.remove(group_attribute);
        node_def.push(def);
    }
    Ok(FunctionDef { signature: Some(signature), node_def, ret, control_ret, ..FunctionDef::default() })
}

fn types(types: impl Iterator<Item = DataType>) -> AttrValue {
    let list = ListValue { r#type: types.map(DataType::number).collect(), ..ListValue::default() };
    Value::List(Box::new(list)).into()
}

/// Attributes of a launch.
pub(crate) fn launch_attributes(
    function: &str,
    arguments: &[DataType],
    results: &[DataType],
    counts: Counts,
) -> BTreeMap<String, AttrValue> {
    let end = arguments.len() - counts.resources;
    let callee = NameAttrList { name: function.to_owned(), attr: BTreeMap::new() };
    BTreeMap::from([
        ("Tconstants".to_owned(), types(arguments[..counts.constants].iter().copied())),
        ("Targs".to_owned(), types(arguments[counts.constants..end].iter().copied())),
        ("Nresources".to_owned(), Value::I(counts.resources as i64).into()),
        ("Tresults".to_owned(), types(results.iter().copied())),
        ("function".to_owned(), Value::Func(callee).into()),
    ])
}

fn launch(graph: &Graph, part: &Part, name: &str, counts: Counts) -> Node {
    let arguments: Vec<DataType> =
        part.arguments.iter().map(|&output| argument_type(graph, output)).collect();
    let results: Vec<DataType> = part.results.iter().map(|&output| argument_type(graph, output)).collect();
    let device = graph[part.members[0]].def.device.clone();
    let attr = launch_attributes(name, &arguments, &results, counts);
    Node {
        def: NodeDef { name: name.to_owned(), op: LAUNCH.to_owned(), input: Vec::new(), device, attr },
        input_types: arguments,
        output_types: results,
        output_arguments: vec![OutputArgument { name: "results".to_owned(), start: 0 }],
        is_stateful: true,
        ..Node::default()
    }
}

/// Connects the launches in place of their nodes, which are removed.
fn rewire(graph: &mut Graph, parts: &BTreeMap<String, Part>, replacements: &Replacements) -> Result<()> {
    let is_end = |id: NodeId| id == SOURCE || id == SINK;
    let crossing: Vec<Edge> = graph
        .edges
        .values()
        .flatten()
        .filter(|edge| {
            let (from, to) = (replacements.nodes.get(&edge.src), replacements.nodes.get(&edge.dst));
            (from.is_some() || to.is_some()) && from != to
        })
        .copied()
        .collect();
    let members: BTreeSet<NodeId> = replacements.nodes.keys().copied().collect();
    for id in graph.edges.ids() {
        if graph.edges[id].is_some_and(|edge| members.contains(&edge.src) || members.contains(&edge.dst)) {
            graph.edges[id] = None;
        }
    }
    let edges = &graph.edges;
    for node in graph.nodes.values_mut().flatten() {
        node.in_edges.retain(|&edge| edges[edge].is_some());
        node.out_edges.retain(|&edge| edges[edge].is_some());
    }
    for &id in &members {
        graph.nodes[id] = None;
    }
    for edge in crossing {
        let dst = replacements.node(edge.dst);
        match edge.kind {
            EdgeKind::Control => {
                let src = replacements.node(edge.src);
                if !is_end(src) && !is_end(dst) {
                    graph.connect_control(src, dst);
                }
            }
            // Launch inputs are connected below, once per argument.
            EdgeKind::Data { output, input } if dst == edge.dst => {
                let src = replacements.output(OutputTensor { node: edge.src, output });
                graph.connect(Edge::data(src, dst, input))?;
            }
            EdgeKind::Data { .. } => {}
        }
    }
    for part in parts.values() {
        let launch = replacements.nodes[&part.members[0]];
        for (index, &argument) in part.arguments.iter().enumerate() {
            graph.connect(Edge::data(replacements.output(argument), launch, index))?;
        }
    }
    graph.fix_source_and_sink();
    Ok(())
}

/// Converts a graph to a function with the arguments and results of `original`, but another name.
pub(crate) fn to_function(
    graph: &Graph,
    original: &FunctionDef,
    name: &str,
    control_ret: BTreeMap<String, String>,
) -> Result<FunctionDef> {
    let index = |id: NodeId| match attribute(&graph[id].def.attr, "index") {
        Some(&Value::I(index)) => usize::try_from(index).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let mut reserved: BTreeSet<String> = graph.names().into_iter().collect();
    let mut signature = OpDef {
        name: name.to_owned(),
        is_stateful: original.signature.as_ref().is_some_and(|s| s.is_stateful),
        ..OpDef::default()
    };
    let mut arguments: Vec<NodeId> = graph.ids().filter(|&id| graph[id].op() == "_Arg").collect();
    arguments.sort_by_key(|&id| index(id));
    let mut names: BTreeMap<NodeId, String> = BTreeMap::new();
    for &id in &arguments {
        reserved.remove(graph[id].name());
        let argument = argument_name(graph[id].name(), &mut reserved);
        signature.input_arg.push(typed_arg(argument.clone(), graph[id].output_types[0]));
        names.insert(id, argument);
    }
    let write = |tensor: OutputTensor| match names.get(&tensor.node) {
        Some(argument) => argument.clone(),
        None => output_text(&graph[tensor.node], tensor.output),
    };
    let mut results: Vec<NodeId> = graph.ids().filter(|&id| graph[id].op() == "_Retval").collect();
    results.sort_by_key(|&id| index(id));
    let mut ret = BTreeMap::new();
    let mut reserved_results = BTreeSet::new();
    for &id in &results {
        let result = argument_name(graph[id].name(), &mut reserved_results);
        signature.output_arg.push(typed_arg(result.clone(), graph[id].input_types[0]));
        let tensor = graph.input(id, 0).ok_or_else(|| Error::internal("a result has no value"))?;
        ret.insert(result, write(tensor));
    }
    let by_name: BTreeMap<&str, &String> =
        names.iter().map(|(&id, argument)| (graph[id].name(), argument)).collect();
    let is_node = |id: &NodeId| !matches!(graph[*id].op(), "_Arg" | "_Retval");
    let node_def = graph
        .ids()
        .filter(is_node)
        .map(|id| {
            let mut def = graph.node_def(id, write);
            for input in &mut def.input {
                if let Some(argument) = input.strip_prefix('^').and_then(|source| by_name.get(source)) {
                    *input = format!("^{argument}");
                }
            }
            def
        })
        .collect();
    signature.control_output = control_ret.keys().cloned().collect();
    Ok(FunctionDef {
        signature: Some(signature),
        attr: original.attr.clone(),
        node_def,
        ret,
        control_ret,
        ..FunctionDef::default()
    })
}
