//! A pruned graph as flat tables, which the executor walks.

mod frames;
mod kind;
pub(crate) mod program;

pub(crate) use frames::{FrameId, ROOT, StaticFrame};
pub(crate) use kind::Kind;

use crate::device::DeviceId;
use crate::op_kind::{is_merge, must_compile};
use crate::resources::Resources;
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
        let graph = tf::inline(graph, library, fetches, targets, must_compile)?;
        let frames = frames::find(&graph)?;
        kind::check(&graph, library)?;
        let placed = graph.nodes.values().map(|node| {
            let kind = kind::of(node, &graph, resources)?;
            Ok(Placed { kind, device: place(node)? })
        });
        let placed = placed.collect::<Result<_>>()?;
        Ok(lay_out(&graph, frames, placed, fetches.len()))
    }

    /// The plan of a function's body, whose arguments are the run's.
    pub(crate) fn of_function(
        function: &tf::Function,
        library: &FunctionLibrary,
        resources: &Resources,
        place: &dyn Fn(&tf::Node) -> Result<DeviceId>,
    ) -> Result<Self> {
        Self::new(&function.graph, library, &function.results, &function.effects(), resources, place)
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

/// How and where a node runs.
struct Placed {
    kind: Kind,
    device: DeviceId,
}

/// Where a node stands in each iteration of its frame.
struct Place {
    frame: FrameId,
    counter: CounterId,
    slot: SlotId,
}

impl Frame {
    /// Makes room for a node of the frame.
    fn reserve(&mut self, frame: FrameId, node: &tf::Node) -> Place {
        let (inputs, waits) = (node.inputs.len() as u32, node.control_inputs.len() as u32);
        let pending = if is_merge(node) { 1 + 2 * waits } else { inputs + waits };
        let slot = SlotId::from_index(self.slots);
        self.slots += node.inputs.len();
        Place { frame, counter: self.pending.push(pending), slot }
    }
}

/// Lays out the tables of a graph.
fn lay_out(graph: &Graph, found: frames::Frames, placed: IdVec<NodeId, Placed>, fetches: usize) -> Plan {
    let frame = |info| Frame { info, slots: 0, pending: IdVec::new() };
    let mut frames: IdVec<FrameId, Frame> = found.frames.into_values().map(frame).collect();
    let mut roots = Vec::new();
    let mut data: IdVec<NodeId, Vec<DataEdge>> = IdVec::filled(Vec::new(), graph.nodes.len());
    let mut control: IdVec<NodeId, Vec<NodeId>> = IdVec::filled(Vec::new(), graph.nodes.len());
    let mut places = Vec::with_capacity(graph.nodes.len());
    for (id, node) in graph.nodes.iter() {
        let frame = found.of_node[id];
        let place = frames[frame].reserve(frame, node);
        for (k, input) in node.inputs.iter().enumerate() {
            let slot = SlotId::from_index(place.slot.index() + k);
            data[input.node].push(DataEdge { output: input.index as u32, node: id, slot });
        }
        node.control_inputs.iter().for_each(|&input| control[input].push(id));
        if node.inputs.is_empty() && node.control_inputs.is_empty() {
            roots.push(id);
        }
        places.push(place);
    }
    let devices: IdVec<NodeId, DeviceId> = placed.values().map(|placed| placed.device).collect();
    let (mut data_edges, mut control_edges) = (Vec::new(), Vec::new());
    let nodes = graph.nodes.iter().zip(placed.into_values()).zip(places);
    let nodes = nodes.map(|(((id, node), Placed { kind, device }), Place { frame, counter, slot })| {
        let mut outgoing = std::mem::take(&mut data[id]);
        outgoing.sort_by_key(|edge| (edge.output, edge.node, edge.slot));
        let inputs = node.inputs.iter().enumerate();
        let inputs = inputs.map(|(input, producer)| Copied { input, from: devices[producer.node] });
        PlanNode {
            reads: reads(graph, node),
            node: node.clone(),
            kind,
            device,
            copies: inputs.filter(|copied| copied.from != device).collect(),
            counter,
            slot,
            frame,
            data_edges: append(&mut data_edges, outgoing),
            control_edges: append(&mut control_edges, std::mem::take(&mut control[id])),
        }
    });
    let nodes = nodes.collect();
    Plan { nodes, data_edges, control_edges, frames, roots, fetches }
}

/// Adds edges and returns where they are.
fn append<T>(edges: &mut Vec<T>, more: Vec<T>) -> Range<u32> {
    let start = edges.len() as u32;
    edges.extend(more);
    start..edges.len() as u32
}

/// An error at a node: names it if the message does not.
pub(crate) fn at_node(error: Error, node: &tf::Node) -> Error {
    if error.message().contains(&format!("'{}'", node.name)) {
        return error;
    }
    error.context(format!("node '{}' (op {})", node.name, node.op))
}
