//! Builds a graph from a list of nodes whose inputs name other nodes of the list.

use super::definitions::Definitions;
use crate::graph::{Edge, Graph, Node, OutputArgument, OutputTensor, SOURCE};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use support::{Error, Id, IdVec, Result};
use tf::node_types;
use tf::proto::{GraphDef, NodeDef, OpDef};

support::id_type!(
    /// Position of a node in the list that a graph is built from.
    Position,
    "p"
);

/// Parsed input of a `NodeDef`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// Output `output` of node `node`.
    Data {
        node: Position,
        output: usize,
    },
    Control(Position),
}

impl Input {
    fn node(self) -> Position {
        match self {
            Self::Data { node, .. } | Self::Control(node) => node,
        }
    }
}

impl Graph {
    /// Builds the graph of a `GraphDef`. Nodes without a device are placed on `device`.
    pub(crate) fn from_def(def: &GraphDef, definitions: &Definitions<'_>, device: &str) -> Result<Self> {
        let mut names: HashMap<&str, Position> = HashMap::with_capacity(def.node.len());
        for (i, node) in def.node.iter().enumerate() {
            if node.name.is_empty() || names.insert(&node.name, Position::from_index(i)).is_some() {
                return Err(Error::invalid(format!(
                    "the name '{}' of a node (op {}) is empty or not unique",
                    node.name, node.op
                )));
            }
        }
        let mut inputs = IdVec::new();
        let mut nodes = IdVec::new();
        for node in &def.node {
            let parse = |text: &String| parse_input(text, &node.name, &names);
            inputs.push(node.input.iter().map(parse).collect::<Result<Vec<_>>>()?);
            let mut copy = NodeDef {
                name: node.name.clone(),
                op: node.op.clone(),
                device: node.device.clone(),
                input: Vec::new(),
                attr: node.attr.clone(),
            };
            if copy.device.is_empty() {
                device.clone_into(&mut copy.device);
            }
            nodes.push(typed_node(copy, definitions)?);
        }
        Self::assemble(nodes, &inputs)
    }

    /// Numbers nodes so that inputs come first, as TensorFlow does when it reads a graph, and
    /// connects them.
    pub(crate) fn assemble(
        nodes: IdVec<Position, Node>,
        inputs: &IdVec<Position, Vec<Input>>,
    ) -> Result<Self> {
        let order = read_order(&nodes, inputs)?;
        let mut ids = IdVec::filled(SOURCE, nodes.len());
        let mut graph = Self::new();
        let mut nodes: IdVec<Position, Option<Node>> = nodes.into_values().map(Some).collect();
        for &at in &order {
            ids[at] = graph.add(nodes[at].take().expect("a node occurs twice in the order"));
        }
        let mut back = Vec::new();
        for &at in &order {
            let mut data = 0;
            for &input in &inputs[at] {
                match input {
                    Input::Control(src) => graph.connect_control(ids[src], ids[at]),
                    Input::Data { node, output } => {
                        let edge = Edge::data(OutputTensor { node: ids[node], output }, ids[at], data);
                        data += 1;
                        // Edges that close loops are added last.
                        if ids[node] > ids[at] { back.push(edge) } else { graph.connect(edge)? }
                    }
                }
            }
            let node = &graph[ids[at]];
            if data != node.input_types.len() {
                return Err(Error::invalid(format!(
                    "node '{}' (op {}) has {data} inputs, but its signature and attributes require {}",
                    node.name(),
                    node.op(),
                    node.input_types.len()
                )));
            }
        }
        for edge in back {
            graph.connect(edge)?;
        }
        graph.fix_source_and_sink();
        Ok(graph)
    }
}

/// Creates a node with the types from its signature.
pub(crate) fn typed_node(def: NodeDef, definitions: &Definitions<'_>) -> Result<Node> {
    let at_node = |e: Error| e.context(format!("node '{}' (op {})", def.name, def.op));
    let signature: &OpDef = definitions.signature(&def.op).ok_or_else(|| {
        Error::invalid(format!(
            "op '{}' (node '{}') is not registered: no such op exists in TensorFlow 2.15, and the graph's library has no \
             function of this name",
            def.op, def.name
        ))
    })?;
    let inputs = node_types(signature, &signature.input_arg, &def.attr).map_err(at_node)?;
    let outputs = node_types(signature, &signature.output_arg, &def.attr).map_err(at_node)?;
    let arguments = signature.output_arg.iter().map(|arg| arg.name.clone());
    Ok(Node {
        input_types: inputs.types,
        output_types: outputs.types,
        output_arguments: arguments
            .zip(outputs.starts)
            .map(|(name, start)| OutputArgument { name, start })
            .collect(),
        is_stateful: signature.is_stateful,
        def,
        ..Node::default()
    })
}

fn parse_input(text: &str, node: &str, names: &HashMap<&str, Position>) -> Result<Input> {
    let find = |name: &str| {
        names.get(name).copied().ok_or_else(|| {
            Error::invalid(format!(
                "node '{node}' has the input '{text}', but the graph has no node '{name}'"
            ))
        })
    };
    if let Some(name) = text.strip_prefix('^') {
        return Ok(Input::Control(find(name)?));
    }
    match text.rsplit_once(':') {
        Some((name, output)) => match output.parse() {
            Ok(output) => Ok(Input::Data { node: find(name)?, output }),
            Err(_) => Err(Error::invalid(format!(
                "node '{node}' has the input '{text}', whose output number is invalid"
            ))),
        },
        None => Ok(Input::Data { node: find(text)?, output: 0 }),
    }
}

/// Order in which nodes get their numbers: always the ready node that comes first in the file. Back
/// edges of loops are ignored. A cycle is an error that names some of its nodes.
fn read_order(nodes: &IdVec<Position, Node>, inputs: &IdVec<Position, Vec<Input>>) -> Result<Vec<Position>> {
    let source = |input: &Input| input.node();
    let counts = |at: Position, src: Position| !(nodes[at].is_merge() && nodes[src].is_next_iteration());
    let mut waits: IdVec<Position, usize> = IdVec::filled(0, nodes.len());
    let mut users: IdVec<Position, Vec<Position>> = IdVec::filled(Vec::new(), nodes.len());
    for (at, list) in inputs.iter() {
        for src in list.iter().map(source).filter(|&src| counts(at, src)) {
            waits[at] += 1;
            users[src].push(at);
        }
    }
    let mut ready: BinaryHeap<Reverse<Position>> =
        nodes.ids().filter(|&at| waits[at] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(at);
        for &user in &users[at] {
            waits[user] -= 1;
            if waits[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    if order.len() == nodes.len() {
        return Ok(order);
    }
    // Every waiting node has a waiting input, so the walk must revisit a node.
    let mut seen = IdVec::filled(false, nodes.len());
    let mut path = Vec::new();
    let mut at = nodes.ids().find(|&at| waits[at] > 0);
    while let Some(id) = at.filter(|&id| !seen[id]) {
        seen[id] = true;
        path.push(id);
        at = inputs[id].iter().map(source).find(|&src| waits[src] > 0 && counts(id, src));
    }
    let start = path.iter().position(|&id| Some(id) == at).unwrap_or(0);
    let cycle = &path[start..];
    let names: Vec<String> =
        cycle.iter().rev().take(8).map(|&id| format!("'{}'", nodes[id].name())).collect();
    let more = if cycle.len() > 8 { " -> ..." } else { "" };
    Err(Error::invalid(format!(
        "{} nodes form a cycle: {}{more}; only loops of Enter, Merge, Switch, NextIteration, and Exit are supported",
        cycle.len(),
        names.join(" -> ")
    )))
}
