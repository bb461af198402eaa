//! Grows clusters by contracting edges between candidates one by one.

use crate::analysis::cycle_graph::{cycle_graph, node_of, vertex};
use crate::analysis::cycles::{Cycles, Refusal, Vertex};
use crate::analysis::deadness::{Deadness, PredicateId};
use crate::analysis::resources::{Safety, WriterId};
use crate::candidates::{Candidates, Context};
use crate::devices::{DeviceId, DeviceSet, Devices};
use crate::graph::attributes::{attribute, string_attribute};
use crate::graph::scalars;
use crate::graph::{Graph, Node, NodeId, SINK};
use crate::report::{MAX_REFUSALS, RefusedEdge, Report};
use std::collections::BTreeMap;
use support::{Error, IdVec, Result};
use tf::DataType;
use tf::proto::attr_value::Value;

support::id_type!(
    /// Cluster under construction.
    ClusterId,
    "c"
);

/// Nodes that will become a single node.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// Vertex of the cycle graph that represents the cluster.
    vertex: Vertex,
    pub(crate) size: usize,
    pub(crate) effective_size: usize,
    pub(crate) has_functional_control_flow: bool,
    pub(crate) devices: DeviceSet,
    /// Device of the nodes that use resources.
    resource_device: Option<DeviceId>,
    /// Condition under which the cluster is live; `None` if deadness is ignored.
    deadness: Option<PredicateId>,
    pub(crate) is_asked_for: bool,
    scope: Option<String>,
    writers: Vec<WriterId>,
    readers: Vec<NodeId>,
}

/// Nodes of a cluster.
pub(crate) struct Members {
    pub(crate) cluster: ClusterId,
    pub(crate) nodes: Vec<NodeId>,
}

/// All clusters of a graph.
pub(crate) struct Clusters<'g> {
    graph: &'g Graph,
    pub(crate) devices: Devices,
    cycles: Cycles,
    deadness: Option<Deadness>,
    safety: Safety,
    /// Clusters by ID. Those that were merged into others are empty.
    all: IdVec<ClusterId, Cluster>,
    /// Initial cluster of each node; `merged_into` leads to the current one.
    of_node: IdVec<NodeId, Option<ClusterId>>,
    merged_into: IdVec<ClusterId, ClusterId>,
    max_size: i64,
    ignores_resources: bool,
    /// True if all candidates are on one device.
    has_one_device: bool,
    reports: bool,
}

/// Selection of edges that a phase contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Edges to nodes that only read shapes: clustering these gains little and could prevent better
    /// merges.
    ShapeConsumers,
    /// All edges except those that could prevent later merges: into the sink of an update group,
    /// and out of a step counter.
    Most,
    /// All other edges.
    Rest,
    /// All edges again, to verify that none is left.
    Check,
}

impl<'g> Clusters<'g> {
    /// Starts with one cluster per candidate. `None` if the graph's loops cannot be distinguished.
    pub(crate) fn new(
        graph: &'g Graph,
        context: &Context<'_>,
        candidates: &mut Candidates,
        reports: bool,
    ) -> Result<Option<Self>> {
        let Some(cycles) = cycle_graph(graph)? else { return Ok(None) };
        let flags = &context.options.flags;
        let ignores_deadness = flags.disable_deadness_safety_checks_for_debugging;
        let deadness = if ignores_deadness { None } else { Some(Deadness::new(graph)?) };
        let is_ignored = |id: NodeId| {
            let kind = candidates.devices.kind(candidates.device_of[id]);
            context.registration(kind).is_none_or(|r| r.cluster_resource_variable_ops_unsafely)
        };
        let safety = Safety::new(graph, &context.library.definitions, &candidates.is_candidate, &is_ignored);
        let mut clusters = Self {
            graph,
            devices: std::mem::take(&mut candidates.devices),
            cycles,
            deadness,
            safety,
            all: IdVec::new(),
            of_node: graph.node_table(None),
            merged_into: IdVec::new(),
            max_size: i64::from(flags.max_cluster_size),
            ignores_resources: flags.disable_resource_variable_safety_checks_for_debugging,
            has_one_device: true,
            reports,
        };
        for &id in &candidates.nodes {
            let device = candidates.device_of[id];
            clusters.has_one_device &= device == candidates.device_of[candidates.nodes[0]];
            let cluster = clusters.single(id, context, device);
            let cluster = clusters.all.push(cluster);
            clusters.of_node[id] = Some(cluster);
            clusters.merged_into.push(cluster);
        }
        Ok(Some(clusters))
    }

    fn single(&mut self, id: NodeId, context: &Context<'_>, device: DeviceId) -> Cluster {
        let node = &self.graph[id];
        // User scopes apply to requested clusters, scopes from our own passes to automatic ones.
        let scope = if context.is_on { "_XlaInternalScope" } else { "_XlaScope" };
        let scope = string_attribute(&node.def.attr, scope);
        Cluster {
            vertex: vertex(id),
            size: 1,
            effective_size: usize::from(!(node.is_identity() || node.is_constant())),
            has_functional_control_flow: node.is_while() || node.is_if(),
            devices: self.devices.set(device),
            resource_device: node.has_resource().then_some(device),
            deadness: self.deadness.as_ref().and_then(|deadness| deadness.node(id)),
            is_asked_for: context.is_asked_for(node),
            scope: (!scope.is_empty()).then(|| scope.to_owned()),
            writers: self.safety.writer(id).into_iter().collect(),
            readers: if self.safety.reads(id) { vec![id] } else { Vec::new() },
        }
    }

    /// The current cluster of a node.
    pub(crate) fn of_node(&self, id: NodeId) -> Option<ClusterId> {
        let mut at = self.of_node[id]?;
        while self.merged_into[at] != at {
            at = self.merged_into[at];
        }
        Some(at)
    }

    pub(crate) fn get(&self, id: ClusterId) -> &Cluster {
        &self.all[id]
    }

    /// The current cluster of a vertex of the cycle graph.
    fn at(&mut self, vertex: Vertex) -> Option<ClusterId> {
        let node = node_of(vertex, self.graph)?;
        let cluster = self.of_node(node)?;
        // Compress the path to shorten later lookups.
        self.of_node[node] = Some(cluster);
        Some(cluster)
    }

    /// Contracts all permitted edges in TensorFlow's order, which determines the result where there
    /// is a choice.
    pub(crate) fn grow(&mut self, report: &mut Report) -> Result<()> {
        for phase in [Phase::ShapeConsumers, Phase::Most, Phase::Rest] {
            self.pass(phase, report);
        }
        // Growing a cluster never permits more contractions of its outgoing edges. One pass that
        // visits users first therefore finds all of them, except those for which a search exceeded
        // its budget.
        if self.pass(Phase::Check, report) && !report.gave_up {
            return Err(Error::internal(
                "clustering: a second pass contracted edges that the first one missed",
            ));
        }
        Ok(())
    }

    /// Visits all edges, users first. Returns true if any was contracted.
    fn pass(&mut self, phase: Phase, report: &mut Report) -> bool {
        let mut has_changed = false;
        for vertex in self.cycles.post_order() {
            let Some(from) = self.at(vertex) else { continue };
            let successors = self.cycles.successors(self.all[from].vertex).to_vec();
            for successor in successors {
                let (Some(from), Some(to)) = (self.at(vertex), self.at(successor)) else { continue };
                if from != to && self.is_of_phase(phase, from, to) {
                    has_changed |= self.contract(from, to, phase, report);
                }
            }
        }
        has_changed
    }

    fn is_of_phase(&self, phase: Phase, from: ClusterId, to: ClusterId) -> bool {
        match phase {
            Phase::ShapeConsumers => self.only_node(to).is_some_and(|id| self.graph[id].is_shape_consumer()),
            Phase::Most => !self.is_sink_like(to) && !self.is_step_counter(from),
            Phase::Rest | Phase::Check => true,
        }
    }

    /// The node of a single-node cluster.
    fn only_node(&self, id: ClusterId) -> Option<NodeId> {
        let cluster = &self.all[id];
        if cluster.size == 1 { node_of(cluster.vertex, self.graph) } else { None }
    }

    /// True if a cluster is a `NoOp` without users.
    fn is_sink_like(&self, id: ClusterId) -> bool {
        self.only_node(id).is_some_and(|node| {
            let mut edges = self.graph.out_edges(node);
            self.graph[node].op() == "NoOp"
                && self.graph[node].out_edges.len() == 1
                && edges.next().is_some_and(|edge| edge.dst == SINK)
        })
    }

    /// True if a cluster is `i += constant` on an integer scalar variable.
    fn is_step_counter(&self, id: ClusterId) -> bool {
        let Some(node) = self.only_node(id) else { return false };
        if !matches!(self.graph[node].op(), "AssignAddVariableOp" | "AssignSubVariableOp") {
            return false;
        }
        let is_integer = match attribute(&self.graph[node].def.attr, "dtype") {
            Some(&Value::Type(number)) => DataType::from_number(number).is_some_and(is_integer),
            _ => false,
        };
        let constant = self.graph.in_edges(node).find(|e| !e.is_control() && self.graph[e.src].is_constant());
        is_integer && constant.is_some_and(|edge| scalars::is_scalar(&self.graph[edge.src].def))
    }

    fn contract(&mut self, from: ClusterId, to: ClusterId, phase: Phase, report: &mut Report) -> bool {
        let reason = match self.why_not(from, to) {
            Some(reason) => reason,
            None => match self.cycles.contract_edge(self.all[from].vertex, self.all[to].vertex) {
                Ok(vertex) => {
                    self.merge(from, to, vertex);
                    return true;
                }
                Err(refusal) => Reason::Search(refusal),
            },
        };
        if reason == Reason::Search(Refusal::TooMuchWork) {
            report.gave_up = true;
        }
        // The last pass visits every remaining edge.
        if phase == Phase::Check && self.reports && report.refused_edges.len() < MAX_REFUSALS {
            let text = self.text(&reason, from, to);
            let (from, to) = (self.describe(from), self.describe(to));
            report.refused_edges.push(RefusedEdge { from, to, reason: text });
        }
        false
    }

    /// Reason not to merge two clusters, apart from cycles.
    fn why_not(&mut self, from: ClusterId, to: ClusterId) -> Option<Reason> {
        let (a, b) = (&self.all[from], &self.all[to]);
        if a.deadness != b.deadness {
            return Some(Reason::Deadness);
        }
        if let (Some(one), Some(other)) = (&a.scope, &b.scope)
            && one != other
        {
            return Some(Reason::Scopes);
        }
        let size = (a.size + b.size) as i64;
        if !self.are_devices_compatible(from, to) {
            return Some(Reason::Devices);
        }
        if size > self.max_size {
            return Some(Reason::Size);
        }
        if !self.has_one_device && self.would_wait_for_other_device(from, to) {
            return Some(Reason::CrossDevice);
        }
        let (a, b) = (&self.all[from], &self.all[to]);
        if !self.ignores_resources && self.safety.is_broken_by(&a.writers, &b.readers, &mut self.cycles) {
            return Some(Reason::Resources);
        }
        None
    }

    /// True if a device supports both clusters and is also the device of their variables.
    fn are_devices_compatible(&mut self, one: ClusterId, other: ClusterId) -> bool {
        let set = self.devices.union(self.all[one].devices, self.all[other].devices);
        let Some(cluster_device) = self.devices.cluster_device(set) else { return false };
        [one, other]
            .into_iter()
            .all(|id| self.all[id].resource_device.is_none_or(|device| device == cluster_device))
    }

    /// True if `to` has a predecessor on a device that is incompatible with one of the two
    /// clusters. A merged cluster would wait for that device, although `from` alone does not.
    fn would_wait_for_other_device(&mut self, from: ClusterId, to: ClusterId) -> bool {
        let predecessors = self.cycles.predecessors(self.all[to].vertex).to_vec();
        if !self.cycles.work(predecessors.len() as u64) {
            return true;
        }
        predecessors.into_iter().any(|vertex| {
            self.at(vertex).is_some_and(|other| {
                !self.are_devices_compatible(to, other) || !self.are_devices_compatible(from, other)
            })
        })
    }

    fn merge(&mut self, from: ClusterId, to: ClusterId, vertex: Vertex) {
        let devices = self.devices.union(self.all[from].devices, self.all[to].devices);
        // Extend the larger list by the smaller one, whichever end it belongs to.
        let (survivor, absorbed) =
            if self.all[from].size >= self.all[to].size { (from, to) } else { (to, from) };
        let other = &mut self.all[absorbed];
        let (writers, readers) = (std::mem::take(&mut other.writers), std::mem::take(&mut other.readers));
        let scope = other.scope.take();
        let (size, effective_size) = (other.size, other.effective_size);
        let (flow, is_requested, device) =
            (other.has_functional_control_flow, other.is_asked_for, other.resource_device);
        let cluster = &mut self.all[survivor];
        cluster.vertex = vertex;
        cluster.size += size;
        cluster.effective_size += effective_size;
        cluster.has_functional_control_flow |= flow;
        cluster.is_asked_for |= is_requested;
        cluster.devices = devices;
        cluster.resource_device = cluster.resource_device.or(device);
        cluster.scope = cluster.scope.take().or(scope);
        cluster.writers.extend(writers);
        cluster.readers.extend(readers);
        self.merged_into[absorbed] = survivor;
    }

    fn describe(&self, id: ClusterId) -> String {
        let cluster = &self.all[id];
        let name = self.name_of_vertex(cluster.vertex);
        match cluster.size {
            1 => name.to_owned(),
            size => format!("{name} and {} others", size - 1),
        }
    }

    fn text(&self, reason: &Reason, from: ClusterId, to: ClusterId) -> String {
        let text = match reason {
            Reason::Deadness => {
                let text = |id: ClusterId| match (&self.deadness, self.all[id].deadness) {
                    (Some(deadness), Some(predicate)) => deadness.text(predicate, self.graph),
                    _ => "unknown".to_owned(),
                };
                return format!("the two have mismatching deadness: {} and {}", text(from), text(to));
            }
            Reason::Search(Refusal::Cycle) => {
                let path = self.cycles.other_path(self.all[from].vertex, self.all[to].vertex);
                let names: Vec<&str> =
                    path.iter().take(8).map(|&vertex| self.name_of_vertex(vertex)).collect();
                return format!("contracting the edge would create a cycle via [{}]", names.join(", "));
            }
            Reason::Search(Refusal::TooMuchWork) => "the search for cycles exceeded its budget",
            Reason::Devices => "the two have incompatible devices",
            Reason::Scopes => "the two have mismatching XLA scopes",
            Reason::Size => "the new cluster would be larger than the max cluster size",
            Reason::CrossDevice => "the new cluster would introduce a cross device dependency",
            Reason::Resources => "the new cluster would break resource variable semantics",
        };
        text.to_owned()
    }

    fn name_of_vertex(&self, vertex: Vertex) -> &str {
        let node = node_of(vertex, self.graph).and_then(|id| self.graph.nodes[id].as_ref());
        node.map_or("a loop", Node::name)
    }

    /// The device that a cluster runs on.
    pub(crate) fn device(&self, id: ClusterId) -> Result<DeviceId> {
        self.devices
            .cluster_device(self.all[id].devices)
            .ok_or_else(|| Error::internal(format!("the cluster of '{}' has no device", self.describe(id))))
    }

    /// The clusters with their nodes, in the order of their first nodes.
    pub(crate) fn members(&self, candidates: &[NodeId]) -> Vec<Members> {
        let mut order: Vec<Members> = Vec::new();
        let mut places: BTreeMap<ClusterId, usize> = BTreeMap::new();
        for &id in candidates {
            let Some(cluster) = self.of_node(id) else { continue };
            let place = *places.entry(cluster).or_insert_with(|| {
                order.push(Members { cluster, nodes: Vec::new() });
                order.len() - 1
            });
            order[place].nodes.push(id);
        }
        order
    }
}

/// Reason why an edge is not contracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Deadness,
    Devices,
    Scopes,
    Size,
    CrossDevice,
    Resources,
    Search(Refusal),
}

fn is_integer(data_type: DataType) -> bool {
    use DataType::{Int4, Int8, Int16, Int32, Int64, Uint4, Uint8, Uint16, Uint32, Uint64};
    matches!(data_type, Int4 | Int8 | Int16 | Int32 | Int64 | Uint4 | Uint8 | Uint16 | Uint32 | Uint64)
}
