//! A graph that can be changed: nodes with numbered edges, a source before and a sink behind all of them, as in
//! TensorFlow's own passes.

use crate::library::Library;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use support::{Error, Result};
use tf::proto::{GraphDef, NodeDef, OpDef};
use tf::{DataType, node_types};

/// The node before all others.
pub(crate) const SOURCE: usize = 0;
/// The node behind all others.
pub(crate) const SINK: usize = 1;

/// An edge: an output of a node goes to an input of another, or a node waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) src: usize,
    /// Which output; `None` for a control edge.
    pub(crate) src_output: Option<usize>,
    pub(crate) dst: usize,
    /// Which input; meaningless for a control edge.
    pub(crate) dst_input: usize,
}

impl Edge {
    pub(crate) fn is_control(&self) -> bool {
        self.src_output.is_none()
    }
}

/// A node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// The node without its inputs, which are edges.
    pub(crate) def: NodeDef,
    pub(crate) input_types: Vec<DataType>,
    pub(crate) output_types: Vec<DataType>,
    /// The outputs of each output argument: its name and where it begins.
    pub(crate) output_arguments: Vec<(String, usize)>,
    pub(crate) is_stateful: bool,
    pub(crate) in_edges: Vec<usize>,
    pub(crate) out_edges: Vec<usize>,
}

/// The kinds of nodes that are looked at in themselves.
impl Node {
    pub(crate) fn op(&self) -> &str {
        &self.def.op
    }

    pub(crate) fn name(&self) -> &str {
        &self.def.name
    }

    /// A copy that nothing leads to or comes from.
    pub(crate) fn without_edges(&self) -> Self {
        Self {
            def: self.def.clone(),
            input_types: self.input_types.clone(),
            output_types: self.output_types.clone(),
            output_arguments: self.output_arguments.clone(),
            is_stateful: self.is_stateful,
            in_edges: Vec::new(),
            out_edges: Vec::new(),
        }
    }

    pub(crate) fn is_switch(&self) -> bool {
        matches!(self.op(), "Switch" | "RefSwitch" | "_SwitchN")
    }

    pub(crate) fn is_merge(&self) -> bool {
        matches!(self.op(), "Merge" | "RefMerge" | "_XlaMerge")
    }

    pub(crate) fn is_enter(&self) -> bool {
        matches!(self.op(), "Enter" | "RefEnter")
    }

    pub(crate) fn is_exit(&self) -> bool {
        matches!(self.op(), "Exit" | "RefExit")
    }

    pub(crate) fn is_next_iteration(&self) -> bool {
        matches!(self.op(), "NextIteration" | "RefNextIteration")
    }

    pub(crate) fn is_identity(&self) -> bool {
        matches!(self.op(), "Identity" | "RefIdentity")
    }

    pub(crate) fn is_constant(&self) -> bool {
        matches!(self.op(), "Const" | "HostConst")
    }

    pub(crate) fn is_if(&self) -> bool {
        matches!(self.op(), "If" | "StatelessIf")
    }

    pub(crate) fn is_while(&self) -> bool {
        matches!(self.op(), "While" | "StatelessWhile")
    }

    pub(crate) fn is_shape_consumer(&self) -> bool {
        matches!(self.op(), "Shape" | "Rank" | "Size")
    }

    pub(crate) fn has_resource(&self) -> bool {
        self.input_types.iter().chain(&self.output_types).any(|t| t.base() == DataType::Resource)
    }
}

/// Nodes and edges; what was removed leaves a gap, so that numbers stay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Option<Node>>,
    pub(crate) edges: Vec<Option<Edge>>,
}

impl std::ops::Index<usize> for Graph {
    type Output = Node;

    fn index(&self, id: usize) -> &Node {
        self.nodes[id].as_ref().expect("nodes that edges and lists name exist")
    }
}

impl std::ops::IndexMut<usize> for Graph {
    fn index_mut(&mut self, id: usize) -> &mut Node {
        self.nodes[id].as_mut().expect("nodes that edges and lists name exist")
    }
}

/// An input as a `NodeDef` writes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Data(usize, usize),
    Control(usize),
}

impl Graph {
    /// The source and the sink alone.
    pub(crate) fn new() -> Self {
        let named = |name: &str| {
            Some(Node { def: NodeDef { name: name.to_owned(), ..NodeDef::default() }, ..Node::default() })
        };
        Self { nodes: vec![named("_SOURCE"), named("_SINK")], edges: Vec::new() }
    }

    /// The graph of a file. Nodes without a device are on `device`.
    pub(crate) fn from_def(def: &GraphDef, library: &Library<'_>, device: &str) -> Result<Self> {
        let mut names: HashMap<&str, usize> = HashMap::with_capacity(def.node.len());
        for (i, node) in def.node.iter().enumerate() {
            if node.name.is_empty() || names.insert(&node.name, i).is_some() {
                return Err(Error::invalid(format!(
                    "the name '{}' of a node (op {}) is empty or not unique",
                    node.name, node.op
                )));
            }
        }
        let mut inputs = Vec::with_capacity(def.node.len());
        let mut nodes = Vec::with_capacity(def.node.len());
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
            nodes.push(typed(copy, library)?);
        }
        Self::assemble(nodes, &inputs)
    }

    /// Numbers nodes so that inputs come first, as TensorFlow does when it reads a graph, and connects them.
    pub(crate) fn assemble(nodes: Vec<Node>, inputs: &[Vec<Input>]) -> Result<Self> {
        let order = read_order(&nodes, inputs)?;
        let mut ids = vec![0; nodes.len()];
        let mut graph = Self::new();
        let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
        for &at in &order {
            ids[at] = graph.add(nodes[at].take().expect("each node stands in the order once"));
        }
        let mut back = Vec::new();
        for &at in &order {
            let mut data = 0;
            for &input in &inputs[at] {
                match input {
                    Input::Control(src) => graph.connect_control(ids[src], ids[at]),
                    Input::Data(src, output) => {
                        let edge =
                            Edge { src: ids[src], src_output: Some(output), dst: ids[at], dst_input: data };
                        data += 1;
                        // Edges that close loops come last.
                        if ids[src] > ids[at] { back.push(edge) } else { graph.connect(edge)? }
                    }
                }
            }
            let node = &graph[ids[at]];
            if data != node.input_types.len() {
                return Err(Error::invalid(format!(
                    "node '{}' (op {}) has {data} inputs, but its signature and attributes want {}",
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

    /// Adds a node without edges.
    pub(crate) fn add(&mut self, mut node: Node) -> usize {
        node.in_edges = Vec::new();
        node.out_edges = Vec::new();
        self.nodes.push(Some(node));
        self.nodes.len() - 1
    }

    /// Adds a data edge. An error if the source has no such output.
    pub(crate) fn connect(&mut self, edge: Edge) -> Result<()> {
        let source = &self[edge.src];
        let outputs = source.output_types.len();
        if edge.src_output.is_some_and(|output| output >= outputs) {
            return Err(Error::invalid(format!(
                "node '{}' input {} is '{}:{}', but op {} of that node has only {outputs} outputs",
                self[edge.dst].name(),
                edge.dst_input,
                source.name(),
                edge.src_output.unwrap_or(0),
                source.op()
            )));
        }
        self.push_edge(edge);
        Ok(())
    }

    /// Makes a node wait for another, if it does not yet.
    pub(crate) fn connect_control(&mut self, src: usize, dst: usize) {
        // The shorter list is searched; a hostile star is long on one side only.
        let waits = if self[src].out_edges.len() < self[dst].in_edges.len() {
            self.out_edges(src).any(|e| e.is_control() && e.dst == dst)
        } else {
            self.in_edges(dst).any(|e| e.is_control() && e.src == src)
        };
        if !waits {
            self.push_edge(Edge { src, src_output: None, dst, dst_input: 0 });
        }
    }

    fn push_edge(&mut self, edge: Edge) {
        let id = self.edges.len();
        self.edges.push(Some(edge));
        self[edge.src].out_edges.push(id);
        self[edge.dst].in_edges.push(id);
    }

    /// Removes an edge.
    pub(crate) fn disconnect(&mut self, id: usize) {
        let Some(edge) = self.edges[id].take() else { return };
        let remove = |ids: &mut Vec<usize>| {
            if let Some(place) = ids.iter().position(|&e| e == id) {
                ids.remove(place);
            }
        };
        remove(&mut self[edge.src].out_edges);
        remove(&mut self[edge.dst].in_edges);
    }

    /// Connects what has no input to the source, and what nothing follows to the sink.
    pub(crate) fn fix_source_and_sink(&mut self) {
        for id in 0..self.nodes.len() {
            let Some(node) = &self.nodes[id] else { continue };
            let (first, last) = (node.in_edges.is_empty(), node.out_edges.is_empty());
            if id != SOURCE && first {
                self.push_edge(Edge { src: SOURCE, src_output: None, dst: id, dst_input: 0 });
            }
            if id != SINK && last {
                self.push_edge(Edge { src: id, src_output: None, dst: SINK, dst_input: 0 });
            }
        }
    }

    /// The nodes but source and sink.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (2..self.nodes.len()).filter(|&id| self.nodes[id].is_some())
    }

    pub(crate) fn edge(&self, id: usize) -> Edge {
        self.edges[id].expect("lists of edges name edges that exist")
    }

    pub(crate) fn in_edges(&self, id: usize) -> impl Iterator<Item = Edge> + '_ {
        self[id].in_edges.iter().map(|&edge| self.edge(edge))
    }

    pub(crate) fn out_edges(&self, id: usize) -> impl Iterator<Item = Edge> + '_ {
        self[id].out_edges.iter().map(|&edge| self.edge(edge))
    }

    /// The edge to a data input.
    pub(crate) fn input(&self, id: usize, input: usize) -> Option<Edge> {
        self.in_edges(id).find(|e| !e.is_control() && e.dst_input == input)
    }

    /// All nodes, source first; inputs before users, but for the edges that leave `NextIteration`.
    pub(crate) fn forward_order(&self) -> Vec<usize> {
        let mut waits = vec![0usize; self.nodes.len()];
        for edge in self.edges.iter().flatten().filter(|e| !self[e.src].is_next_iteration()) {
            waits[edge.dst] += 1;
        }
        let ready = |id: &usize| self.nodes[*id].is_some() && waits[*id] == 0;
        let mut queue: BinaryHeap<Reverse<usize>> =
            (0..self.nodes.len()).filter(ready).map(Reverse).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse(id)) = queue.pop() {
            order.push(id);
            if self[id].is_next_iteration() {
                continue;
            }
            for edge in self.out_edges(id) {
                waits[edge.dst] -= 1;
                if waits[edge.dst] == 0 {
                    queue.push(Reverse(edge.dst));
                }
            }
        }
        order
    }

    /// The names of all nodes.
    pub(crate) fn names(&self) -> HashSet<String> {
        self.ids().map(|id| self[id].name().to_owned()).collect()
    }

    /// The graph as a file holds it, with the library left to the caller.
    pub(crate) fn to_nodes(&self) -> Vec<NodeDef> {
        self.ids().map(|id| self.node_def(id, |src, output| data_input(self[src].name(), output))).collect()
    }

    /// A node with its inputs, each data input as `write` puts it.
    pub(crate) fn node_def(&self, id: usize, write: impl Fn(usize, usize) -> String) -> NodeDef {
        let node = &self[id];
        let mut data: BTreeMap<usize, String> = BTreeMap::new();
        let mut control = Vec::new();
        for edge in self.in_edges(id).filter(|e| e.src != SOURCE) {
            match edge.src_output {
                Some(output) => {
                    data.insert(edge.dst_input, write(edge.src, output));
                }
                None => control.push(format!("^{}", self[edge.src].name())),
            }
        }
        control.sort();
        let mut def = node.def.clone();
        def.input = data.into_values().chain(control).collect();
        def
    }
}

/// A data input as a graph's file writes it.
pub(crate) fn data_input(name: &str, output: usize) -> String {
    if output == 0 { name.to_owned() } else { format!("{name}:{output}") }
}

/// A node with the types that its signature gives it.
pub(crate) fn typed(def: NodeDef, library: &Library<'_>) -> Result<Node> {
    let at_node = |e: Error| e.context(format!("node '{}' (op {})", def.name, def.op));
    let signature: &OpDef = library.signature(&def.op).ok_or_else(|| {
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
        output_arguments: arguments.zip(outputs.starts).collect(),
        is_stateful: signature.is_stateful,
        def,
        ..Node::default()
    })
}

fn parse_input(text: &str, node: &str, names: &HashMap<&str, usize>) -> Result<Input> {
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
            Ok(output) => Ok(Input::Data(find(name)?, output)),
            Err(_) => {
                Err(Error::invalid(format!("node '{node}' has the input '{text}', which names no output")))
            }
        },
        None => Ok(Input::Data(find(text)?, 0)),
    }
}

/// The order in which nodes get their numbers: what is ready first, the first of the file. The back edges of loops are
/// not waited for. A cycle is an error that names some of its nodes.
fn read_order(nodes: &[Node], inputs: &[Vec<Input>]) -> Result<Vec<usize>> {
    let source = |input: &Input| match *input {
        Input::Data(src, _) | Input::Control(src) => src,
    };
    let counts = |at: usize, src: usize| !(nodes[at].is_merge() && nodes[src].is_next_iteration());
    let mut waits = vec![0usize; nodes.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, list) in inputs.iter().enumerate() {
        for src in list.iter().map(source).filter(|&src| counts(at, src)) {
            waits[at] += 1;
            users[src].push(at);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..nodes.len()).filter(|&at| waits[at] == 0).map(Reverse).collect();
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
    // Whatever still waits has an input that still waits, so the walk must come back.
    let mut seen = vec![false; nodes.len()];
    let mut path = Vec::new();
    let mut at = (0..nodes.len()).find(|&at| waits[at] > 0);
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
        "{} nodes in a cycle: {}{more}; only loops made of Enter, Merge, Switch, NextIteration and Exit may lead back",
        cycle.len(),
        names.join(" -> ")
    )))
}
