//! A pruned graph as flat tables that the executor walks.

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

/// The nodes to run. Their edges alone determine the execution order.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: IdVec<NodeId, PlanNode>,
    /// Data edges of all nodes, grouped by node and sorted by output within a group.
    data_edges: Vec<DataEdge>,
    /// Nodes that wait for another node, grouped by that node.
    control_edges: Vec<NodeId>,
    pub(crate) frames: IdVec<FrameId, Frame>,
    /// Nodes without inputs.
    pub(crate) roots: Vec<NodeId>,
    /// Number of returned values.
    pub(crate) fetches: usize,
}

support::id_type!(
    /// Index of a value's slot in an iteration of a frame.
    SlotId,
    "s"
);
support::id_type!(
    /// Index of a node's counters in an iteration of its frame.
    CounterId,
    "c"
);

/// An input that comes from another device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) input: usize,
    pub(crate) from: DeviceId,
}

/// A node of the plan.
#[derive(Debug)]
pub(crate) struct PlanNode {
    pub(crate) node: tf::Node,
    pub(crate) kind: Kind,
    /// Device that the node is placed on.
    pub(crate) device: DeviceId,
    /// Inputs that receive a reference to a variable but expect its value.
    pub(crate) reads: Vec<usize>,
    /// Inputs that come from other devices.
    pub(crate) copies: Vec<Copied>,
    pub(crate) counter: CounterId,
    /// Slot of the first input.
    pub(crate) slot: SlotId,
    pub(crate) frame: FrameId,
    data_edges: Range<u32>,
    control_edges: Range<u32>,
}

/// Edge from an output to a slot in its consumer's frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataEdge {
    pub(crate) output: u32,
    pub(crate) node: NodeId,
    pub(crate) slot: SlotId,
}

/// A frame and the initial state of its iterations.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) info: StaticFrame,
    pub(crate) slots: usize,
    /// Number of inputs and control inputs that each node waits for. A `Merge` starts with 1 plus 2
    /// for each control input; the first value that arrives clears the 1.
    pub(crate) pending: IdVec<CounterId, u32>,
}

impl Plan {
    /// Builds the plan of a graph for these results and effects. `place` returns the device of each
    /// node.
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

    /// Builds the plan of a function's body. The run's arguments are the function's.
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
    /// Edges from the outputs of a node to the inputs of others, sorted by output.
    pub(crate) fn data_edges(&self, node: NodeId) -> &[DataEdge] {
        let Range { start, end } = self.nodes[node].data_edges;
        &self.data_edges[start as usize..end as usize]
    }

    /// Nodes that wait for a node.
    pub(crate) fn control_edges(&self, node: NodeId) -> &[NodeId] {
        let Range { start, end } = self.nodes[node].control_edges;
        &self.control_edges[start as usize..end as usize]
    }

    /// Names of the outputs that a node reads.
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

    /// Name of a returned value in messages.
    pub(crate) fn fetched(&self, k: usize) -> String {
        let fetch = self.nodes.values().find(|node| matches!(node.kind, Kind::Fetch(at) if at == k));
        match fetch.and_then(|node| node.node.inputs.first()) {
            Some(output) => format!("'{}:{}'", self.nodes[output.node].node.name, output.index),
            None => "the fetched tensor".to_owned(),
        }
    }
}

/// Inputs that receive a reference where a value is expected.
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

/// Kind and device of a node.
struct Placed {
    kind: Kind,
    device: DeviceId,
}

/// Location of a node in each iteration of its frame.
struct Place {
    frame: FrameId,
    counter: CounterId,
    slot: SlotId,
}

impl Frame {
    /// Reserves space for a node of the frame.
    fn reserve(&mut self, frame: FrameId, node: &tf::Node) -> Place {
        let (inputs, waits) = (node.inputs.len() as u32, node.control_inputs.len() as u32);
        let pending = if is_merge(node) { 1 + 2 * waits } else { inputs + waits };
        let slot = SlotId::from_index(self.slots);
        self.slots += node.inputs.len();
        Place { frame, counter: self.pending.push(pending), slot }
    }
}

/// Lays out the tables of a graph.
fn lay_out(
    graph: &Graph,
    graph_frames: frames::Frames,
    placed: IdVec<NodeId, Placed>,
    fetches: usize,
) -> Plan {
    let frame = |info| Frame { info, slots: 0, pending: IdVec::new() };
    let mut frames: IdVec<FrameId, Frame> = graph_frames.frames.into_values().map(frame).collect();
    let mut roots = Vec::new();
    let mut data: IdVec<NodeId, Vec<DataEdge>> = IdVec::filled(Vec::new(), graph.nodes.len());
    let mut control: IdVec<NodeId, Vec<NodeId>> = IdVec::filled(Vec::new(), graph.nodes.len());
    let mut places = Vec::with_capacity(graph.nodes.len());
    for (id, node) in graph.nodes.iter() {
        let frame = graph_frames.of_node[id];
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

/// Appends edges and returns their range.
fn append<T>(edges: &mut Vec<T>, more: Vec<T>) -> Range<u32> {
    let start = edges.len() as u32;
    edges.extend(more);
    start..edges.len() as u32
}

/// Adds the node to an error unless the message already names it.
pub(crate) fn at_node(error: Error, node: &tf::Node) -> Error {
    if error.message().contains(&format!("'{}'", node.name)) {
        return error;
    }
    error.context(format!("node '{}' (op {})", node.name, node.op))
}
