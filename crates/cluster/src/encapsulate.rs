//! Makes a function of each cluster, and one node of the cluster's nodes, which runs it.

use crate::body::argument;
use crate::constants;
use crate::graph::{Edge, Graph, Node, SINK, SOURCE};
use crate::library::string_attribute;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value;
use tf::proto::{ArgDef, AttrValue, FunctionDef, ListValue, NameAttrList, NodeDef, OpDef};

/// The op of a node that runs a cluster.
pub(crate) const LAUNCH: &str = "_XlaLaunch";

/// A cluster on its way to a function.
#[derive(Default)]
struct Part {
    members: Vec<usize>,
    /// Outputs of other nodes that come in, in the order in which they are met.
    arguments: Vec<(usize, usize)>,
    argument_of: BTreeMap<(usize, usize), usize>,
    /// Outputs of its nodes that others need.
    results: Vec<(usize, usize)>,
    result_of: BTreeMap<(usize, usize), usize>,
    /// Nodes that others wait for.
    control_results: BTreeSet<usize>,
}

/// Replaces the nodes of each cluster, which an attribute names, by one node of op `_XlaLaunch` and returns the functions that
/// those run. `used` are names that functions must not have. The second answer says where each node went.
pub(crate) fn encapsulate(
    graph: &mut Graph,
    group_attribute: &str,
    analysis: &constants::Analysis<'_>,
    used: &mut BTreeSet<String>,
) -> Result<(Vec<FunctionDef>, Moved)> {
    let mut parts = parts(graph, group_attribute)?;
    let mut functions = Vec::new();
    let mut moved = Moved::default();
    let mut names = graph.names();
    for (group, part) in &mut parts {
        let mut name = group.clone();
        let mut number = 0;
        let members: BTreeSet<&str> = part.members.iter().map(|&id| graph[id].name()).collect();
        while used.contains(&name) || (names.contains(&name) && !members.contains(name.as_str())) {
            number += 1;
            name = format!("{group}_{number}");
        }
        used.insert(name.clone());
        names.insert(name.clone());
        let counts = order_arguments(graph, part, group_attribute, analysis)?;
        functions.push(function(graph, part, &name, group_attribute)?);
        let launch = launch(graph, part, &name, counts);
        let id = graph.add(launch);
        for &member in &part.members {
            moved.nodes.insert(member, id);
        }
        for (index, &output) in part.results.iter().enumerate() {
            moved.outputs.insert(output, (id, index));
        }
    }
    rewire(graph, &parts, &moved)?;
    Ok((functions, moved))
}

/// Where nodes of clusters went.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// The launch of each node.
    pub(crate) nodes: BTreeMap<usize, usize>,
    /// The result of a launch that each output became, for outputs that anyone outside needs.
    pub(crate) outputs: BTreeMap<(usize, usize), (usize, usize)>,
}

fn parts(graph: &Graph, group_attribute: &str) -> Result<BTreeMap<String, Part>> {
    let group = |id: usize| string_attribute(&graph[id].def.attr, group_attribute);
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    for id in graph.ids().filter(|&id| !group(id).is_empty()) {
        parts.entry(group(id).to_owned()).or_default().members.push(id);
    }
    for edge in graph.edges.iter().flatten() {
        let (from, to) = (group(edge.src), group(edge.dst));
        if from == to {
            continue;
        }
        let output = edge.src_output.map(|output| (edge.src, output));
        if let (Some((node, output)), true) = (output, !(from.is_empty() && to.is_empty()))
            && graph[node].output_types[output].is_ref()
            && (!from.is_empty() || graph[edge.dst].input_types[edge.dst_input].is_ref())
        {
            return Err(Error::invalid(format!(
                "Ref Tensors (e.g., Variables) are not supported as arguments or results of clusters: tensor {}:{output}",
                graph[node].name()
            )));
        }
        if let Some(part) = parts.get_mut(from) {
            match output {
                None if edge.dst != SINK => {
                    part.control_results.insert(edge.src);
                }
                None => {}
                Some(output) => {
                    let next = part.results.len();
                    if *part.result_of.entry(output).or_insert(next) == next {
                        part.results.push(output);
                    }
                }
            }
        }
        if let (Some(part), Some(output)) = (parts.get_mut(to), output) {
            let next = part.arguments.len();
            if *part.argument_of.entry(output).or_insert(next) == next {
                part.arguments.push(output);
            }
        }
    }
    Ok(parts)
}

/// The types that the arguments have inside: a reference is read when it comes in.
fn argument_type(graph: &Graph, (node, output): (usize, usize)) -> DataType {
    graph[node].output_types[output].base()
}

/// How many arguments must be constant, and how many are resources.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) constants: usize,
    pub(crate) resources: usize,
}

/// Puts the arguments in the order of `_XlaLaunch`: those that must be constant, then the others, then resources.
fn order_arguments(
    graph: &Graph,
    part: &mut Part,
    group_attribute: &str,
    analysis: &constants::Analysis<'_>,
) -> Result<Counts> {
    let body = body_graph(graph, part, group_attribute)?;
    let constants = analysis.of_graph(&body, &|_| true)?.arguments;
    let rank = |index: usize| {
        let is_resource = argument_type(graph, part.arguments[index]) == DataType::Resource;
        match (is_resource, constants.contains(&index)) {
            (true, _) => 2,
            (false, true) => 0,
            (false, false) => 1,
        }
    };
    let mut order: Vec<usize> = (0..part.arguments.len()).collect();
    order.sort_by_key(|&index| rank(index));
    let count = |wanted: u8| order.iter().filter(|&&index| rank(index) == wanted).count();
    let counts = Counts { constants: count(0), resources: count(2) };
    part.arguments = order.iter().map(|&index| part.arguments[index]).collect();
    part.argument_of = part.arguments.iter().enumerate().map(|(index, &output)| (output, index)).collect();
    Ok(counts)
}

/// The cluster's nodes as a graph of their own, with nodes for its arguments, in which constants are looked for.
fn body_graph(graph: &Graph, part: &Part, group_attribute: &str) -> Result<Graph> {
    let mut body = Graph::new();
    let mut images: BTreeMap<usize, usize> = BTreeMap::new();
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
            match (images.get(&edge.src), edge.src_output) {
                (Some(&src), None) => body.connect_control(src, images[&id]),
                (Some(&src), Some(_)) => body.connect(Edge { src, dst: images[&id], ..edge })?,
                (None, Some(output)) => {
                    let src = arguments[part.argument_of[&(edge.src, output)]];
                    body.connect(Edge {
                        src,
                        src_output: Some(0),
                        dst: images[&id],
                        dst_input: edge.dst_input,
                    })?;
                }
                (None, None) => {}
            }
        }
    }
    body.fix_source_and_sink();
    Ok(body)
}

fn typed_arg(name: String, data_type: DataType) -> ArgDef {
    ArgDef { name, r#type: data_type.number(), ..ArgDef::default() }
}

/// A node of the body as a function writes it: its inputs are `node:argument:index`.
fn body_node(
    graph: &Graph,
    part: &Part,
    id: usize,
    argument_names: &[String],
    inside: &BTreeSet<usize>,
) -> NodeDef {
    let write = |src: usize, output: usize| match part.argument_of.get(&(src, output)) {
        Some(&index) if !inside.contains(&src) => argument_names[index].clone(),
        _ => output_text(&graph[src], output),
    };
    let mut def = graph.node_def(id, write);
    // Control edges from outside are the launch's.
    let names: BTreeSet<&str> = graph
        .in_edges(id)
        .filter(|e| e.is_control() && inside.contains(&e.src))
        .map(|e| graph[e.src].name())
        .collect();
    def.input.retain(|input| input.strip_prefix('^').is_none_or(|name| names.contains(name)));
    def
}

/// `node:argument:index`.
pub(crate) fn output_text(node: &Node, output: usize) -> String {
    let place = node.output_arguments.partition_point(|(_, start)| *start <= output).saturating_sub(1);
    let (name, start) = &node.output_arguments[place];
    format!("{}:{name}:{}", node.name(), output - start)
}

/// Letters, digits and underscores, lower case, beginning with a letter, not yet taken: what arguments may be called.
fn argument_name(text: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert_str(0, "arg_");
    }
    let base = name.clone();
    let mut number = 0;
    while !taken.insert(name.clone()) {
        number += 1;
        name = format!("{base}_{number}");
    }
    name
}

fn function(graph: &Graph, part: &Part, name: &str, group_attribute: &str) -> Result<FunctionDef> {
    let inside: BTreeSet<usize> = part.members.iter().copied().collect();
    let mut taken: BTreeSet<String> = part.members.iter().map(|&id| graph[id].name().to_owned()).collect();
    let mut signature = OpDef { name: name.to_owned(), is_stateful: true, ..OpDef::default() };
    let mut argument_names = Vec::new();
    for &(node, output) in &part.arguments {
        let text = format!("{}_{output}_arg", graph[node].name());
        let argument = argument_name(&text, &mut taken);
        signature.input_arg.push(typed_arg(argument.clone(), argument_type(graph, (node, output))));
        argument_names.push(argument);
    }
    let mut ret = BTreeMap::new();
    let mut taken_results = BTreeSet::new();
    for &(node, output) in &part.results {
        let text = format!("{}_{output}_retval", graph[node].name());
        let result = argument_name(&text, &mut taken_results);
        signature.output_arg.push(typed_arg(result.clone(), argument_type(graph, (node, output))));
        ret.insert(result, output_text(&graph[node], output));
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

/// The attributes of a launch.
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
        output_arguments: vec![("results".to_owned(), 0)],
        is_stateful: true,
        ..Node::default()
    }
}

/// Connects the launches in place of their nodes, which go.
fn rewire(graph: &mut Graph, parts: &BTreeMap<String, Part>, moved: &Moved) -> Result<()> {
    let is_end = |id: usize| id == SOURCE || id == SINK;
    let crossing: Vec<Edge> = graph
        .edges
        .iter()
        .flatten()
        .filter(|edge| {
            let (from, to) = (moved.nodes.get(&edge.src), moved.nodes.get(&edge.dst));
            (from.is_some() || to.is_some()) && from != to
        })
        .copied()
        .collect();
    let members: BTreeSet<usize> = moved.nodes.keys().copied().collect();
    for id in 0..graph.edges.len() {
        if graph.edges[id].is_some_and(|edge| members.contains(&edge.src) || members.contains(&edge.dst)) {
            graph.edges[id] = None;
        }
    }
    let edges = &graph.edges;
    for node in graph.nodes.iter_mut().flatten() {
        node.in_edges.retain(|&edge| edges[edge].is_some());
        node.out_edges.retain(|&edge| edges[edge].is_some());
    }
    for &id in &members {
        graph.nodes[id] = None;
    }
    for edge in crossing {
        let dst = moved.nodes.get(&edge.dst).copied().unwrap_or(edge.dst);
        let Some(output) = edge.src_output else {
            let src = moved.nodes.get(&edge.src).copied().unwrap_or(edge.src);
            if !is_end(src) && !is_end(dst) {
                graph.connect_control(src, dst);
            }
            continue;
        };
        let (src, src_output) = moved.outputs.get(&(edge.src, output)).copied().unwrap_or((edge.src, output));
        // The inputs of launches come below, each argument once.
        if dst == edge.dst {
            graph.connect(Edge { src, src_output: Some(src_output), dst, dst_input: edge.dst_input })?;
        }
    }
    for part in parts.values() {
        let launch = moved.nodes[&part.members[0]];
        for (index, &output) in part.arguments.iter().enumerate() {
            let (src, src_output) = moved.outputs.get(&output).copied().unwrap_or(output);
            graph.connect(Edge { src, src_output: Some(src_output), dst: launch, dst_input: index })?;
        }
    }
    graph.fix_source_and_sink();
    Ok(())
}

/// A graph as the body of a function that has the same arguments and results as before, under another name.
pub(crate) fn to_function(
    graph: &Graph,
    original: &FunctionDef,
    name: &str,
    control_ret: BTreeMap<String, String>,
) -> Result<FunctionDef> {
    let index = |id: usize| match crate::library::attribute(&graph[id].def.attr, "index") {
        Some(&Value::I(index)) => usize::try_from(index).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let mut taken: BTreeSet<String> = graph.names().into_iter().collect();
    let mut signature = OpDef {
        name: name.to_owned(),
        is_stateful: original.signature.as_ref().is_some_and(|s| s.is_stateful),
        ..OpDef::default()
    };
    let mut arguments: Vec<usize> = graph.ids().filter(|&id| graph[id].op() == "_Arg").collect();
    arguments.sort_by_key(|&id| index(id));
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for &id in &arguments {
        taken.remove(graph[id].name());
        let argument = argument_name(graph[id].name(), &mut taken);
        signature.input_arg.push(typed_arg(argument.clone(), graph[id].output_types[0]));
        names.insert(id, argument);
    }
    let write = |src: usize, output: usize| match names.get(&src) {
        Some(argument) => argument.clone(),
        None => output_text(&graph[src], output),
    };
    let mut results: Vec<usize> = graph.ids().filter(|&id| graph[id].op() == "_Retval").collect();
    results.sort_by_key(|&id| index(id));
    let mut ret = BTreeMap::new();
    let mut taken_results = BTreeSet::new();
    for &id in &results {
        let result = argument_name(graph[id].name(), &mut taken_results);
        signature.output_arg.push(typed_arg(result.clone(), graph[id].input_types[0]));
        let edge = graph.input(id, 0).ok_or_else(|| Error::internal("a result without a value"))?;
        ret.insert(result, write(edge.src, edge.src_output.unwrap_or(0)));
    }
    let by_name: BTreeMap<&str, &String> =
        names.iter().map(|(&id, argument)| (graph[id].name(), argument)).collect();
    let is_node = |id: &usize| !matches!(graph[*id].op(), "_Arg" | "_Retval");
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
