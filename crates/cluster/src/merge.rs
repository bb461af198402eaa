//! Clusters grow: edges between candidates are contracted, one after the other.

use crate::candidates::{Candidates, Context};
use crate::cycle_graph::cycle_graph;
use crate::cycles::{Cycles, Refused};
use crate::deadness::{Deadness, PredicateId};
use crate::devices::{DeviceId, DeviceSet, Devices};
use crate::graph::{Graph, SINK};
use crate::library::{attribute, string_attribute};
use crate::report::{MAX_REFUSALS, RefusedEdge, Report};
use crate::resources::Safety;
use crate::scalars;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value;

/// The number of a cluster while it grows.
pub(crate) type ClusterId = usize;

/// Nodes that will be one.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The node of the cycle graph that stands for it.
    place: usize,
    pub(crate) size: usize,
    pub(crate) effective_size: usize,
    pub(crate) has_functional_control_flow: bool,
    pub(crate) devices: DeviceSet,
    /// The device of its nodes that work on resources.
    resource_device: Option<DeviceId>,
    /// Unless deadness is ignored.
    deadness: Option<PredicateId>,
    pub(crate) is_asked_for: bool,
    scope: Option<String>,
    writers: Vec<u32>,
    readers: Vec<usize>,
}

/// All clusters of a graph.
pub(crate) struct Clusters<'g> {
    graph: &'g Graph,
    pub(crate) devices: Devices,
    cycles: Cycles,
    deadness: Option<Deadness>,
    safety: Safety,
    /// By number; clusters that were merged into others are empty.
    all: Vec<Cluster>,
    /// The cluster of each node when it began, and which cluster each was merged into.
    of_node: Vec<Option<ClusterId>>,
    merged_into: Vec<ClusterId>,
    max_size: i64,
    ignores_resources: bool,
    /// Whether all candidates are on one device.
    has_one_device: bool,
    reports: bool,
}

/// What edges a phase contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Those to nodes that only look at shapes: they give little and would take much.
    ShapeConsumers,
    /// All but those that spoil what may follow: into the end of a group of updates, and out of a step counter.
    Most,
    /// The rest.
    Rest,
    /// Once more, to see that nothing is left.
    Check,
}

impl<'g> Clusters<'g> {
    /// Each candidate by itself. `None` if the graph's loops cannot be told apart.
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
        let is_ignored = |id: usize| {
            let kind = candidates.devices.kind(candidates.device_of[id]);
            context.registration(kind).is_none_or(|r| r.cluster_resource_variable_ops_unsafely)
        };
        let safety = Safety::new(graph, context.library, &candidates.is_candidate, &is_ignored);
        let mut clusters = Self {
            graph,
            devices: std::mem::take(&mut candidates.devices),
            cycles,
            deadness,
            safety,
            all: Vec::new(),
            of_node: vec![None; graph.nodes.len()],
            merged_into: Vec::new(),
            max_size: i64::from(flags.max_cluster_size),
            ignores_resources: flags.disable_resource_variable_safety_checks_for_debugging,
            has_one_device: true,
            reports,
        };
        for &id in &candidates.nodes {
            let device = candidates.device_of[id];
            clusters.has_one_device &= device == candidates.device_of[candidates.nodes[0]];
            let cluster = clusters.single(id, context, device);
            clusters.of_node[id] = Some(clusters.all.len());
            clusters.merged_into.push(clusters.all.len());
            clusters.all.push(cluster);
        }
        Ok(Some(clusters))
    }

    fn single(&mut self, id: usize, context: &Context<'_>, device: DeviceId) -> Cluster {
        let node = &self.graph[id];
        // The user's scopes hold if the user asks for clusters; those of our own passes if we do.
        let scope = if context.is_on { "_XlaInternalScope" } else { "_XlaScope" };
        let scope = string_attribute(&node.def.attr, scope);
        Cluster {
            place: id,
            size: 1,
            effective_size: usize::from(!(node.is_identity() || node.is_constant())),
            has_functional_control_flow: node.is_while() || node.is_if(),
            devices: self.devices.set(device),
            resource_device: node.has_resource().then_some(device),
            deadness: self.deadness.as_ref().map(|deadness| deadness.node(id)),
            is_asked_for: context.is_asked_for(node),
            scope: (!scope.is_empty()).then(|| scope.to_owned()),
            writers: self.safety.writer(id).into_iter().collect(),
            readers: if self.safety.reads(id) { vec![id] } else { Vec::new() },
        }
    }

    /// The cluster that a node is in.
    pub(crate) fn of_node(&self, id: usize) -> Option<ClusterId> {
        let mut at = (*self.of_node.get(id)?)?;
        while self.merged_into[at] != at {
            at = self.merged_into[at];
        }
        Some(at)
    }

    pub(crate) fn get(&self, id: ClusterId) -> &Cluster {
        &self.all[id]
    }

    /// The cluster that a node of the cycle graph stands for.
    fn at(&mut self, place: usize) -> Option<ClusterId> {
        let found = self.of_node(place)?;
        // Later searches are short.
        self.of_node[place] = Some(found);
        Some(found)
    }

    /// Contracts all edges that can be, in TensorFlow's order, which decides what clusters come out where there is a choice.
    pub(crate) fn grow(&mut self, report: &mut Report) -> Result<()> {
        for phase in [Phase::ShapeConsumers, Phase::Most, Phase::Rest] {
            self.pass(phase, report);
        }
        // A larger cluster makes no edge that leaves it more contractible, so one pass over the users of everything before it
        // leaves nothing. What a search could not decide may be left, though.
        if self.pass(Phase::Check, report) && !report.gave_up {
            return Err(Error::internal(
                "clustering: a second pass found edges that the first should have contracted",
            ));
        }
        Ok(())
    }

    /// Goes over all edges, users first. Whether any was contracted.
    fn pass(&mut self, phase: Phase, report: &mut Report) -> bool {
        let mut has_changed = false;
        for place in self.cycles.post_order() {
            let Some(from) = self.at(place) else { continue };
            let from_place = self.all[from].place;
            let successors = self.cycles.successors(from_place).to_vec();
            for successor in successors {
                let (Some(from), Some(to)) = (self.at(place), self.at(successor as usize)) else { continue };
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

    /// The node of a cluster that has only one.
    fn only_node(&self, id: ClusterId) -> Option<usize> {
        let cluster = &self.all[id];
        (cluster.size == 1).then_some(cluster.place)
    }

    /// Whether a cluster is a `NoOp` that nothing waits for.
    fn is_sink_like(&self, id: ClusterId) -> bool {
        self.only_node(id).is_some_and(|node| {
            let mut edges = self.graph.out_edges(node);
            self.graph[node].op() == "NoOp"
                && self.graph[node].out_edges.len() == 1
                && edges.next().is_some_and(|edge| edge.dst == SINK)
        })
    }

    /// Whether a cluster is `i += constant` on an integer scalar variable.
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
            None => match self.cycles.contract_edge(self.all[from].place, self.all[to].place) {
                Ok(place) => {
                    self.merge(from, to, place);
                    return true;
                }
                Err(refused) => Reason::Search(refused),
            },
        };
        if reason == Reason::Search(Refused::TooMuchWork) {
            report.gave_up = true;
        }
        // The last pass meets every edge that is left.
        if phase == Phase::Check && self.reports && report.refused_edges.len() < MAX_REFUSALS {
            let text = self.text(&reason, from, to);
            let (from, to) = (self.describe(from), self.describe(to));
            report.refused_edges.push(RefusedEdge { from, to, reason: text });
        }
        false
    }

    /// Why two clusters must not become one, but for cycles.
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

    /// Whether there is a device for both, and it is the one of their variables.
    fn are_devices_compatible(&mut self, one: ClusterId, other: ClusterId) -> bool {
        let set = self.devices.union(self.all[one].devices, self.all[other].devices);
        let Some(chosen) = self.devices.chosen(set) else { return false };
        [one, other].into_iter().all(|id| self.all[id].resource_device.is_none_or(|device| device == chosen))
    }

    /// Whether something that leads to `to` is on a device that does not go with one of the two: together they would wait for
    /// it where `from` alone does not.
    fn would_wait_for_other_device(&mut self, from: ClusterId, to: ClusterId) -> bool {
        let predecessors = self.cycles.predecessors(self.all[to].place).to_vec();
        if !self.cycles.work(predecessors.len() as u64) {
            return true;
        }
        predecessors.into_iter().any(|place| {
            self.at(place as usize).is_some_and(|other| {
                !self.are_devices_compatible(to, other) || !self.are_devices_compatible(from, other)
            })
        })
    }

    fn merge(&mut self, from: ClusterId, to: ClusterId, place: usize) {
        let devices = self.devices.union(self.all[from].devices, self.all[to].devices);
        // The larger list takes the smaller, whichever cluster is named first.
        let (stays, goes) = if self.all[from].size >= self.all[to].size { (from, to) } else { (to, from) };
        let other = &mut self.all[goes];
        let (writers, readers) = (std::mem::take(&mut other.writers), std::mem::take(&mut other.readers));
        let scope = other.scope.take();
        let (size, effective_size) = (other.size, other.effective_size);
        let (flow, asked, device) =
            (other.has_functional_control_flow, other.is_asked_for, other.resource_device);
        let cluster = &mut self.all[stays];
        cluster.place = place;
        cluster.size += size;
        cluster.effective_size += effective_size;
        cluster.has_functional_control_flow |= flow;
        cluster.is_asked_for |= asked;
        cluster.devices = devices;
        cluster.resource_device = cluster.resource_device.or(device);
        cluster.scope = cluster.scope.take().or(scope);
        cluster.writers.extend(writers);
        cluster.readers.extend(readers);
        self.merged_into[goes] = stays;
    }

    fn describe(&self, id: ClusterId) -> String {
        let cluster = &self.all[id];
        match cluster.size {
            1 => self.graph[cluster.place].name().to_owned(),
            size => format!("{} and {} others", self.graph[cluster.place].name(), size - 1),
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
            Reason::Search(Refused::Cycle) => {
                let path = self.cycles.other_path(self.all[from].place, self.all[to].place);
                let names: Vec<&str> = path.iter().take(8).map(|&place| self.name_of_place(place)).collect();
                return format!("contracting the edge would create a cycle via [{}]", names.join(", "));
            }
            Reason::Search(Refused::TooMuchWork) => "the search for cycles was given up",
            Reason::Devices => "the two have incompatible devices",
            Reason::Scopes => "the two have mismatching XLA scopes",
            Reason::Size => "the new cluster would be larger than the max cluster size",
            Reason::CrossDevice => "the new cluster would introduce a cross device dependency",
            Reason::Resources => "the new cluster would break resource variable semantics",
        };
        text.to_owned()
    }

    fn name_of_place(&self, place: usize) -> &str {
        match self.graph.nodes.get(place) {
            Some(Some(node)) => node.name(),
            _ => "a loop",
        }
    }

    /// The device that a cluster runs on.
    pub(crate) fn device(&self, id: ClusterId) -> Result<DeviceId> {
        self.devices
            .chosen(self.all[id].devices)
            .ok_or_else(|| Error::internal(format!("cluster of '{}' has no device", self.describe(id))))
    }

    /// The clusters with their nodes, in the order of their first nodes.
    pub(crate) fn members(&self, candidates: &[usize]) -> Vec<(ClusterId, Vec<usize>)> {
        let mut order: Vec<(ClusterId, Vec<usize>)> = Vec::new();
        let mut places: BTreeMap<ClusterId, usize> = BTreeMap::new();
        for &id in candidates {
            let Some(cluster) = self.of_node(id) else { continue };
            let place = *places.entry(cluster).or_insert_with(|| {
                order.push((cluster, Vec::new()));
                order.len() - 1
            });
            order[place].1.push(id);
        }
        order
    }
}

/// Why an edge stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Deadness,
    Devices,
    Scopes,
    Size,
    CrossDevice,
    Resources,
    Search(Refused),
}

fn is_integer(data_type: DataType) -> bool {
    use DataType::{Int4, Int8, Int16, Int32, Int64, Uint4, Uint8, Uint16, Uint32, Uint64};
    matches!(data_type, Int4 | Int8 | Int16 | Int32 | Int64 | Uint4 | Uint8 | Uint16 | Uint32 | Uint64)
}
