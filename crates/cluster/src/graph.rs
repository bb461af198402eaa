//! A mutable graph: nodes with numbered edges, a source before all nodes, and a sink after all of
//! them, as in TensorFlow's passes.

pub(crate) mod assembly;
pub(crate) mod attributes;
pub(crate) mod body;
pub(crate) mod definitions;
pub(crate) mod frames;
pub(crate) mod library;
pub(crate) mod scalars;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use support::{Error, IdVec, Result};
use tf::DataType;
use tf::proto::NodeDef;

support::id_type!(
    /// Node of a graph.
    NodeId,
    "n"
);
support::id_type!(
    /// Edge of a graph.
    EdgeId,
    "e"
);

/// Node before all others.
pub(crate) const SOURCE: NodeId = NodeId(0);
/// Node after all others.
pub(crate) const SINK: NodeId = NodeId(1);

/// Output `output` of node `node`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OutputTensor {
    pub(crate) node: NodeId,
    pub(crate) output: usize,
}

/// Kind of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EdgeKind {
    /// An output of the source node is an input of the destination.
    Data { output: usize, input: usize },
    /// The destination waits for the source.
    Control,
}

/// Edge from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) kind: EdgeKind,
}

impl Edge {
    pub(crate) fn data(src: OutputTensor, dst: NodeId, input: usize) -> Self {
        Self { src: src.node, dst, kind: EdgeKind::Data { output: src.output, input } }
    }

    pub(crate) fn control(src: NodeId, dst: NodeId) -> Self {
        Self { src, dst, kind: EdgeKind::Control }
    }

    pub(crate) fn is_control(&self) -> bool {
        self.kind == EdgeKind::Control
    }

    /// Tensor that a data edge carries.
    pub(crate) fn tensor(&self) -> Option<OutputTensor> {
        match self.kind {
            EdgeKind::Data { output, .. } => Some(OutputTensor { node: self.src, output }),
            EdgeKind::Control => None,
        }
    }

    /// Index of the input that a data edge leads to.
    pub(crate) fn input(&self) -> Option<usize> {
        match self.kind {
            EdgeKind::Data { input, .. } => Some(input),
            EdgeKind::Control => None,
        }
    }
}

/// Output argument of a node's signature.
#[derive(Clone, Debug)]
pub(crate) struct OutputArgument {
    pub(crate) name: String,
    /// Index of the argument's first output.
    pub(crate) start: usize,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Definition of the node. Its inputs are stored as edges instead.
    pub(crate) def: NodeDef,
    pub(crate) input_types: Vec<DataType>,
    pub(crate) output_types: Vec<DataType>,
    pub(crate) output_arguments: Vec<OutputArgument>,
    pub(crate) is_stateful: bool,
    pub(crate) in_edges: Vec<EdgeId>,
    pub(crate) out_edges: Vec<EdgeId>,
}

/// Queries about a single node.
impl Node {
    pub(crate) fn op(&self) -> &str {
        &self.def.op
    }

    pub(crate) fn name(&self) -> &str {
        &self.def.name
    }

    /// A copy of the node without edges.
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

/// Nodes and edges. Removed ones leave gaps, so that IDs stay valid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: IdVec<NodeId, Option<Node>>,
    pub(crate) edges: IdVec<EdgeId, Option<Edge>>,
}

impl std::ops::Index<NodeId> for Graph {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        self.nodes[id].as_ref().expect("the node was removed")
    }
}

impl std::ops::IndexMut<NodeId> for Graph {
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id].as_mut().expect("the node was removed")
    }
}

impl Graph {
    /// A graph with only the source and the sink.
    pub(crate) fn new() -> Self {
        let named = |name: &str| {
            Some(Node { def: NodeDef { name: name.to_owned(), ..NodeDef::default() }, ..Node::default() })
        };
        Self { nodes: [named("_SOURCE"), named("_SINK")].into_iter().collect(), edges: IdVec::new() }
    }

    /// Adds a node without edges.
    pub(crate) fn add(&mut self, mut node: Node) -> NodeId {
        node.in_edges = Vec::new();
        node.out_edges = Vec::new();
        self.nodes.push(Some(node))
    }

    /// Adds a data edge. Fails if the source does not have the output.
    pub(crate) fn connect(&mut self, edge: Edge) -> Result<()> {
        let source = &self[edge.src];
        let outputs = source.output_types.len();
        if let EdgeKind::Data { output, input } = edge.kind
            && output >= outputs
        {
            return Err(Error::invalid(format!(
                "node '{}' input {input} is '{}:{output}', but op {} of that node has only {outputs} outputs",
                self[edge.dst].name(),
                source.name(),
                source.op()
            )));
        }
        self.push_edge(edge);
        Ok(())
    }

    /// Adds a control edge unless it already exists.
    pub(crate) fn connect_control(&mut self, src: NodeId, dst: NodeId) {
        // Searching the shorter list keeps this cheap for a star-shaped graph, which is long on one
        // side only.
        let exists = if self[src].out_edges.len() < self[dst].in_edges.len() {
            self.out_edges(src).any(|e| e.is_control() && e.dst == dst)
        } else {
            self.in_edges(dst).any(|e| e.is_control() && e.src == src)
        };
        if !exists {
            self.push_edge(Edge::control(src, dst));
        }
    }

    fn push_edge(&mut self, edge: Edge) {
        let id = self.edges.push(Some(edge));
        self[edge.src].out_edges.push(id);
        self[edge.dst].in_edges.push(id);
    }

    /// Removes an edge.
    pub(crate) fn disconnect(&mut self, id: EdgeId) {
        let Some(edge) = self.edges[id].take() else { return };
        let remove = |ids: &mut Vec<EdgeId>| {
            if let Some(place) = ids.iter().position(|&e| e == id) {
                ids.remove(place);
            }
        };
        remove(&mut self[edge.src].out_edges);
        remove(&mut self[edge.dst].in_edges);
    }

    /// Connects nodes without inputs to the source, and nodes without users to the sink.
    pub(crate) fn fix_source_and_sink(&mut self) {
        for id in self.nodes.ids() {
            let Some(node) = &self.nodes[id] else { continue };
            let (first, last) = (node.in_edges.is_empty(), node.out_edges.is_empty());
            if id != SOURCE && first {
                self.push_edge(Edge::control(SOURCE, id));
            }
            if id != SINK && last {
                self.push_edge(Edge::control(id, SINK));
            }
        }
    }

    /// All nodes except source and sink.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        self.nodes.ids().skip(2).filter(|&id| self.nodes[id].is_some())
    }

    pub(crate) fn edge(&self, id: EdgeId) -> Edge {
        self.edges[id].expect("the edge was removed")
    }

    pub(crate) fn in_edges(&self, id: NodeId) -> impl Iterator<Item = Edge> + '_ {
        self[id].in_edges.iter().map(|&edge| self.edge(edge))
    }

    pub(crate) fn out_edges(&self, id: NodeId) -> impl Iterator<Item = Edge> + '_ {
        self[id].out_edges.iter().map(|&edge| self.edge(edge))
    }

    /// The edge to a data input.
    pub(crate) fn input_edge(&self, id: NodeId, input: usize) -> Option<Edge> {
        self.in_edges(id).find(|e| e.input() == Some(input))
    }

    /// The tensor at a data input.
    pub(crate) fn input(&self, id: NodeId, input: usize) -> Option<OutputTensor> {
        self.input_edge(id, input)?.tensor()
    }

    /// Creates a table with a value for each node.
    pub(crate) fn node_table<T: Clone>(&self, value: T) -> IdVec<NodeId, T> {
        IdVec::filled(value, self.nodes.len())
    }

    /// All nodes in topological order, starting with the source. Edges that leave `NextIteration`
    /// are ignored.
    pub(crate) fn forward_order(&self) -> Vec<NodeId> {
        let mut waits = self.node_table(0usize);
        for edge in self.edges.values().flatten().filter(|e| !self[e.src].is_next_iteration()) {
            waits[edge.dst] += 1;
        }
        let ready = |id: &NodeId| self.nodes[*id].is_some() && waits[*id] == 0;
        let mut queue: BinaryHeap<Reverse<NodeId>> = self.nodes.ids().filter(ready).map(Reverse).collect();
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

    /// Names of all nodes.
    pub(crate) fn names(&self) -> HashSet<String> {
        self.ids().map(|id| self[id].name().to_owned()).collect()
    }

    /// The nodes as a `GraphDef` stores them. The caller adds the library.
    pub(crate) fn to_nodes(&self) -> Vec<NodeDef> {
        self.ids().map(|id| self.node_def(id, |tensor| self.tensor_name(tensor))).collect()
    }

    /// Name of a tensor in a `GraphDef`.
    pub(crate) fn tensor_name(&self, tensor: OutputTensor) -> String {
        let name = self[tensor.node].name();
        if tensor.output == 0 { name.to_owned() } else { format!("{name}:{}", tensor.output) }
    }

    /// Definition of a node with its inputs. `write` converts each data input to text.
    pub(crate) fn node_def(&self, id: NodeId, write: impl Fn(OutputTensor) -> String) -> NodeDef {
        let node = &self[id];
        let mut data: BTreeMap<usize, String> = BTreeMap::new();
        let mut control = Vec::new();
        for edge in self.in_edges(id).filter(|e| e.src != SOURCE) {
            match edge.kind {
                EdgeKind::Data { output, input } => {
                    data.insert(input, write(OutputTensor { node: edge.src, output }));
                }
                EdgeKind::Control => control.push(format!("^{}", self[edge.src].name())),
            }
        }
        control.sort();
        let mut def = node.def.clone();
        def.input = data.into_values().chain(control).collect();
        def
    }
}
