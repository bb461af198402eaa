//! A pruned graph as flat tables, which the executor walks.

mod frames;
mod inline;
mod kind;
pub(crate) mod program;

pub(crate) use frames::{FrameId, ROOT, StaticFrame};
pub(crate) use kind::Kind;

use crate::device::DeviceId;
use crate::op_kind::is_merge;
use crate::resources::Resources;
use std::collections::BTreeSet;
use std::ops::Range;
use support::{Error, Id, IdVec, Result};
use tf::{FunctionLibrary, Graph, NodeId, OutputId};

/// What to run, in execution order by edges alone.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: IdVec<NodeId, PlanNode>,
    /// The data edges of all nodes, those of one node together and sorted by its outputs.
    data_edges: Vec<DataEdge>,
    /// The nodes that wait for a node, those of one node together.
    control_edges: Vec<NodeId>,
    pub(crate) frames: IdVec<FrameId, Frame>,
    /// The nodes without inputs.
    pub(crate) roots: Vec<NodeId>,
    /// How many values are returned.
    pub(crate) fetches: usize,
}

support::id_type!(
    /// Place of a value in an iteration of a frame.
    SlotId,
    "s"
);
support::id_type!(
    /// Place of a node's counters in an iteration of its frame.
    CounterId,
    "c"
);

/// An input that comes from another device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) input: usize,
    pub(crate) from: DeviceId,
}

/// A node.
#[derive(Debug)]
pub(crate) struct PlanNode {
    pub(crate) node: tf::Node,
    pub(crate) kind: Kind,
    /// The device that it is placed on.
    pub(crate) device: DeviceId,
    /// Inputs that get a reference to a variable and want its value.
    pub(crate) reads: Vec<usize>,
    /// Inputs that come from other devices.
    pub(crate) copies: Vec<Copied>,
    pub(crate) counter: CounterId,
    /// The slot of its first input.
    pub(crate) slot: SlotId,
    pub(crate) frame: FrameId,
    data_edges: Range<u32>,
    control_edges: Range<u32>,
}

/// From an output to a slot of the frame of who reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataEdge {
    pub(crate) output: u32,
    pub(crate) node: NodeId,
    pub(crate) slot: SlotId,
}

/// A frame with what each of its iterations begins with.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) info: StaticFrame,
    pub(crate) slots: usize,
    /// What each node waits for: inputs and control inputs. Of a `Merge` 1, and 2 for each control input: the 1 is taken away
    /// by the first value that arrives.
    pub(crate) pending: IdVec<CounterId, u32>,
}

impl Plan {
    /// The plan of a graph for these results and effects. `place` says on which device each node runs.
    pub(crate) fn new(
        graph: &Graph,
        library: &FunctionLibrary,
        fetches: &[OutputId],
        targets: &[NodeId],
        resources: &Resources,
        place: &dyn Fn(&tf::Node) -> Result<DeviceId>,
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
            let kind = kind::of(node, &graph, resources)?;
            builder.add(id, node, kind, place(node)?);
        }
        Ok(builder.finish(fetches.len()))
    }

    /// The plan of a function's body, whose arguments are the run's.
    pub(crate) fn of_function(
        function: &tf::Function,
        library: &FunctionLibrary,
        resources: &Resources,
        place: &dyn Fn(&tf::Node) -> Result<DeviceId>,
    ) -> Result<Self> {
        let targets = inline::effects(function);
        Self::new(&function.graph, library, &function.results, &targets, resources, place)
            .map_err(|error| error.context(format!("function '{}'", function.name)))
    }
}

impl Plan {
    /// The edges from the outputs of a node to the inputs of others, sorted by output.
    pub(crate) fn data_edges(&self, node: NodeId) -> &[DataEdge] {
        let Range { start, end } = self.nodes[node].data_edges;
        &self.data_edges[start as usize..end as usize]
    }

    /// The nodes that wait for a node.
    pub(crate) fn control_edges(&self, node: NodeId) -> &[NodeId] {
        let Range { start, end } = self.nodes[node].control_edges;
        &self.control_edges[start as usize..end as usize]
    }

    /// The names of the outputs that a node reads.
    pub(crate) fn input_names(&self, node: &PlanNode) -> Vec<String> {
        let name = |input: &OutputId| {
            let producer = &self.nodes[input.node].node;
            match input.index {
                0 => producer.name.clone(),
                index => format!("{}:{index}", producer.name),
            }
        };
        node.node.inputs.iter().map(name).collect()
    }

    /// The name of a returned value in messages.
    pub(crate) fn fetched(&self, k: usize) -> String {
        let taker = self.nodes.values().find(|node| matches!(node.kind, Kind::Fetch(at) if at == k));
        match taker.and_then(|node| node.node.inputs.first()) {
            Some(output) => format!("'{}:{}'", self.nodes[output.node].node.name, output.index),
            None => "the fetched tensor".to_owned(),
        }
    }
}

/// The op of the nodes that take what is returned.
const FETCH: &str = "_Retval";

/// The nodes that are needed, and one behind each fetched output.
fn compact(graph: &Graph, fetches: &[OutputId], wanted: &[NodeId]) -> Graph {
    let mut needed: IdVec<NodeId, bool> = IdVec::filled(false, graph.nodes.len());
    let mut work: Vec<NodeId> = wanted.to_vec();
    work.extend(fetches.iter().map(|fetch| fetch.node));
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut needed[id], true) {
            let node = &graph.nodes[id];
            work.extend(node.inputs.iter().map(|input| input.node));
            work.extend(&node.control_inputs);
        }
    }
    let kept: Vec<NodeId> = graph.nodes.ids().filter(|id| needed[*id]).collect();
    let mut new: IdVec<NodeId, NodeId> = IdVec::filled(NodeId::from_index(0), graph.nodes.len());
    for (at, &id) in kept.iter().enumerate() {
        new[id] = NodeId::from_index(at);
    }
    let moved = |output: &OutputId| OutputId { node: new[output.node], index: output.index };
    let mut made = Graph::default();
    for id in kept {
        let mut node = graph.nodes[id].clone();
        node.inputs = node.inputs.iter().map(moved).collect();
        let waits: BTreeSet<NodeId> = node.control_inputs.iter().map(|&id| new[id]).collect();
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
    frames: IdVec<FrameId, Frame>,
    of_node: IdVec<NodeId, FrameId>,
    nodes: IdVec<NodeId, PlanNode>,
    roots: Vec<NodeId>,
}

impl<'g> Builder<'g> {
    fn new(graph: &'g Graph, found: frames::Frames) -> Self {
        let frame = |info| Frame { info, slots: 0, pending: IdVec::new() };
        Self {
            graph,
            frames: found.frames.into_values().map(frame).collect(),
            of_node: found.of_node,
            nodes: IdVec::new(),
            roots: Vec::new(),
        }
    }

    fn add(&mut self, id: NodeId, node: &tf::Node, kind: Kind, device: DeviceId) {
        let frame_id = self.of_node[id];
        let frame = &mut self.frames[frame_id];
        let (inputs, waits) = (node.inputs.len() as u32, node.control_inputs.len() as u32);
        if inputs + waits == 0 {
            self.roots.push(id);
        }
        let pending = if is_merge(node) { 1 + 2 * waits } else { inputs + waits };
        self.nodes.push(PlanNode {
            reads: reads(self.graph, node),
            node: node.clone(),
            kind,
            device,
            copies: Vec::new(),
            counter: frame.pending.push(pending),
            slot: SlotId::from_index(frame.slots),
            frame: frame_id,
            data_edges: 0..0,
            control_edges: 0..0,
        });
        frame.slots += node.inputs.len();
    }

    fn finish(mut self, fetches: usize) -> Plan {
        for (id, node) in self.graph.nodes.iter() {
            let device = self.nodes[id].device;
            let inputs = node.inputs.iter().enumerate();
            let inputs = inputs.map(|(input, i)| Copied { input, from: self.nodes[i.node].device });
            self.nodes[id].copies = inputs.filter(|copied| copied.from != device).collect();
        }
        let mut data: IdVec<NodeId, Vec<DataEdge>> = IdVec::filled(Vec::new(), self.nodes.len());
        let mut control: IdVec<NodeId, Vec<NodeId>> = IdVec::filled(Vec::new(), self.nodes.len());
        for (id, node) in self.graph.nodes.iter() {
            for (k, input) in node.inputs.iter().enumerate() {
                let slot = SlotId::from_index(self.nodes[id].slot.index() + k);
                data[input.node].push(DataEdge { output: input.index as u32, node: id, slot });
            }
            for wait in &node.control_inputs {
                control[*wait].push(id);
            }
        }
        let (mut data_edges, mut control_edges) = (Vec::new(), Vec::new());
        for ((node, mut edges), users) in
            self.nodes.values_mut().zip(data.into_values()).zip(control.into_values())
        {
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

/// An error at a node: names it if the message does not.
pub(crate) fn at_node(error: Error, node: &tf::Node) -> Error {
    if error.message().contains(&format!("'{}'", node.name)) {
        return error;
    }
    error.context(format!("node '{}' (op {})", node.name, node.op))
}
