//! A pruned graph as flat tables: what the executor walks over.

mod frames;
mod inline;
mod kind;

pub(crate) use frames::{FrameId, ROOT, StaticFrame};
pub(crate) use kind::Kind;

use crate::shared::Shared;
use std::collections::BTreeSet;
use support::{Error, Id, Result};
use tf::{DataType, FunctionLibrary, Graph, NodeId, OutputId};

/// What to run, in execution order by edges alone.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: Vec<PlanNode>,
    /// The data edges of all nodes, those of one node together and sorted by its outputs.
    pub(crate) data_edges: Vec<DataEdge>,
    /// The nodes that wait for a node, those of one node together.
    pub(crate) control_edges: Vec<u32>,
    pub(crate) frames: Vec<Frame>,
    /// The nodes without inputs.
    pub(crate) roots: Vec<u32>,
    /// How many values are returned.
    pub(crate) fetches: usize,
}

/// A node.
#[derive(Debug)]
pub(crate) struct PlanNode {
    pub(crate) node: tf::Node,
    pub(crate) kind: Kind,
    /// The device that it is placed on.
    pub(crate) device: usize,
    /// Inputs that get a reference to a variable and want its value.
    pub(crate) reads: Vec<usize>,
    /// Inputs that come from other devices, and which.
    pub(crate) copies: Vec<(usize, usize)>,
    /// Its place in the counters of its frame.
    pub(crate) local: u32,
    /// Its first slot in its frame.
    pub(crate) slot: u32,
    pub(crate) frame: FrameId,
    pub(crate) data_edges: std::ops::Range<u32>,
    pub(crate) control_edges: std::ops::Range<u32>,
}

/// From an output to a slot of the frame of who reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataEdge {
    pub(crate) output: u32,
    pub(crate) node: u32,
    pub(crate) slot: u32,
}

/// A frame with what each of its iterations begins with.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) info: StaticFrame,
    pub(crate) slots: usize,
    /// What each node waits for: inputs and control inputs. Of a `Merge` 1, and 2 for each control input: the 1 is taken away
    /// by the first value that arrives.
    pub(crate) pending: Vec<u32>,
}

/// Whether a node's function is compiled as one.
pub(crate) fn must_compile(node: &tf::Node) -> bool {
    node.op == "_XlaLaunch"
        || node.op == "XlaLaunch"
        || node.attributes.bool_or("_XlaMustCompile", false).unwrap_or(false)
}

impl Plan {
    /// The plan of a graph for these results and effects. `place` says on which device each node runs.
    pub(crate) fn new(
        graph: &Graph,
        library: &FunctionLibrary,
        fetches: &[OutputId],
        targets: &[NodeId],
        shared: &Shared,
        place: &dyn Fn(&tf::Node) -> Result<usize>,
    ) -> Result<Self> {
        let inlined = inline::inline(graph, library)?;
        let fetches: Vec<OutputId> = fetches.iter().map(|&fetch| inlined.output(fetch)).collect();
        let mut wanted: Vec<NodeId> = targets.iter().map(|&target| inlined.control(target)).collect();
        wanted.extend(&inlined.effects);
        let graph = compact(&inlined.graph, &fetches, &wanted);
        let frames = frames::find(&graph)?;
        kind::check(&graph, library)?;
        let mut builder = Builder::new(&graph, frames);
        for (id, node) in graph.nodes.iter() {
            let kind = kind::of(node, &graph, shared)?;
            builder.add(id, node, kind, place(node)?);
        }
        Ok(builder.finish(fetches.len()))
    }

    /// The plan of a function's body, whose arguments are the run's.
    pub(crate) fn of_function(
        function: &tf::Function,
        library: &FunctionLibrary,
        shared: &Shared,
        place: &dyn Fn(&tf::Node) -> Result<usize>,
    ) -> Result<Self> {
        let targets = inline::effects(function);
        Self::new(&function.graph, library, &function.results, &targets, shared, place)
            .map_err(|error| error.context(format!("function '{}'", function.name)))
    }
}

impl Plan {
    /// What a message calls a returned value.
    pub(crate) fn fetched(&self, k: usize) -> String {
        let taker = self.nodes.iter().find(|node| matches!(node.kind, Kind::Fetch(at) if at == k));
        match taker.and_then(|node| node.node.inputs.first()) {
            Some(output) => format!("'{}:{}'", self.nodes[output.node.index()].node.name, output.index),
            None => "the fetched tensor".to_owned(),
        }
    }
}

/// The op of the nodes that take what is returned.
const FETCH: &str = "_Retval";

/// The nodes that are needed, and one behind each fetched output.
fn compact(graph: &Graph, fetches: &[OutputId], wanted: &[NodeId]) -> Graph {
    let mut needed = vec![false; graph.nodes.len()];
    let mut work: Vec<NodeId> = wanted.to_vec();
    work.extend(fetches.iter().map(|fetch| fetch.node));
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut needed[id.index()], true) {
            let node = &graph.nodes[id];
            work.extend(node.inputs.iter().map(|input| input.node));
            work.extend(&node.control_inputs);
        }
    }
    let kept: Vec<NodeId> = graph.nodes.ids().filter(|id| needed[id.index()]).collect();
    let mut new = vec![NodeId::from_index(0); graph.nodes.len()];
    for (at, id) in kept.iter().enumerate() {
        new[id.index()] = NodeId::from_index(at);
    }
    let moved = |output: &OutputId| OutputId { node: new[output.node.index()], index: output.index };
    let mut made = Graph::default();
    for id in kept {
        let mut node = graph.nodes[id].clone();
        node.inputs = node.inputs.iter().map(moved).collect();
        let waits: BTreeSet<NodeId> = node.control_inputs.iter().map(|id| new[id.index()]).collect();
        node.control_inputs = waits.into_iter().collect();
        made.nodes.push(node);
    }
    for (k, fetch) in fetches.iter().enumerate() {
        let name = format!("{FETCH}_{k}");
        made.nodes.push(tf::Node {
            attributes: tf::Attributes::new(&name, FETCH, std::collections::BTreeMap::new()),
            name,
            op: FETCH.to_owned(),
            inputs: vec![moved(fetch)],
            control_inputs: Vec::new(),
            output_types: Vec::new(),
        });
    }
    made
}

/// Inputs that are given a reference where a value is wanted.
fn reads(graph: &Graph, node: &tf::Node) -> Vec<usize> {
    let is_ref = |input: &OutputId| graph.nodes[input.node].output_types[input.index].is_ref();
    if !node.inputs.iter().any(is_ref) {
        return Vec::new();
    }
    let wants_ref = crate::signature::input_references(node);
    let reads = node
        .inputs
        .iter()
        .enumerate()
        .filter(|&(k, input)| is_ref(input) && !wants_ref.get(k).copied().unwrap_or(false));
    reads.map(|(k, _)| k).collect()
}

struct Builder<'g> {
    graph: &'g Graph,
    frames: Vec<Frame>,
    of_node: Vec<FrameId>,
    nodes: Vec<PlanNode>,
    roots: Vec<u32>,
}

impl<'g> Builder<'g> {
    fn new(graph: &'g Graph, found: frames::Frames) -> Self {
        let frame = |info| Frame { info, slots: 0, pending: Vec::new() };
        Self {
            graph,
            frames: found.frames.into_iter().map(frame).collect(),
            of_node: found.of_node,
            nodes: Vec::new(),
            roots: Vec::new(),
        }
    }

    fn add(&mut self, id: NodeId, node: &tf::Node, kind: Kind, device: usize) {
        let frame_id = self.of_node[id.index()];
        let frame = &mut self.frames[frame_id];
        let (inputs, waits) = (node.inputs.len() as u32, node.control_inputs.len() as u32);
        if inputs + waits == 0 {
            self.roots.push(id.index() as u32);
        }
        let pending = if frames::is_merge(node) { 1 + 2 * waits } else { inputs + waits };
        self.nodes.push(PlanNode {
            reads: reads(self.graph, node),
            node: node.clone(),
            kind,
            device,
            copies: Vec::new(),
            local: frame.pending.len() as u32,
            slot: frame.slots as u32,
            frame: frame_id,
            data_edges: 0..0,
            control_edges: 0..0,
        });
        frame.pending.push(pending);
        frame.slots += node.inputs.len();
    }

    fn finish(mut self, fetches: usize) -> Plan {
        for (id, node) in self.graph.nodes.iter() {
            let device = self.nodes[id.index()].device;
            let from = node.inputs.iter().enumerate().map(|(k, i)| (k, self.nodes[i.node.index()].device));
            self.nodes[id.index()].copies = from.filter(|(_, from)| *from != device).collect();
        }
        let mut data: Vec<Vec<DataEdge>> = vec![Vec::new(); self.nodes.len()];
        let mut control: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (id, node) in self.graph.nodes.iter() {
            let user = id.index() as u32;
            for (k, input) in node.inputs.iter().enumerate() {
                let slot = self.nodes[id.index()].slot + k as u32;
                let edge = DataEdge { output: input.index as u32, node: user, slot };
                data[input.node.index()].push(edge);
            }
            for wait in &node.control_inputs {
                control[wait.index()].push(user);
            }
        }
        let (mut data_edges, mut control_edges) = (Vec::new(), Vec::new());
        for ((node, mut edges), users) in self.nodes.iter_mut().zip(data).zip(control) {
            edges.sort_by_key(|edge| (edge.output, edge.node, edge.slot));
            let start = data_edges.len() as u32;
            data_edges.extend(edges);
            node.data_edges = start..data_edges.len() as u32;
            let start = control_edges.len() as u32;
            control_edges.extend(users);
            node.control_edges = start..control_edges.len() as u32;
        }
        Plan { nodes: self.nodes, data_edges, control_edges, frames: self.frames, roots: self.roots, fetches }
    }
}

/// Whether an output is an array, as kernels make them.
pub(crate) fn is_array(data_type: DataType) -> bool {
    !data_type.is_ref() && data_type.primitive_type().is_some()
}

/// An error at a node: names it if the message does not.
pub(crate) fn at_node(error: Error, node: &tf::Node) -> Error {
    if error.message().contains(&format!("'{}'", node.name)) {
        return error;
    }
    error.context(format!("node '{}' (op {})", node.name, node.op))
}
