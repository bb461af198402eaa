//! Selects the device of each node: the one it requests, colocated with the variables that it reads
//! and writes.

use crate::device::{Device, DeviceId, HOST, Place};
use crate::ops;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, IdVec, Result};
use tf::proto::GraphDef;
use tf::{DataType, Graph, Node, NodeId};

type Devices = IdVec<DeviceId, Place>;

/// First node of a group of nodes that must share a device.
type GroupId = NodeId;

/// Rules of placement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules<'r> {
    /// Nodes that cannot run on their device run on the host.
    pub(crate) is_soft: bool,
    /// Device of nodes that request none, if they can run there.
    pub(crate) default: Option<&'r str>,
    /// Reason why there is no GPU.
    pub(crate) no_gpu: Option<&'r str>,
}

/// The devices of a graph's nodes.
pub(crate) struct Placement {
    by_name: BTreeMap<String, DeviceId>,
}

/// Requested device type and number, each optional.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    kind: Option<String>,
    number: Option<usize>,
}

impl Request {
    /// Parses `/job:localhost/replica:0/task:0/device:CPU:0`, a part of such a name, or `/cpu:0`.
    fn parse(text: &str, node: &str) -> Result<Self> {
        let wrong = || Error::invalid(format!("Malformed device specification '{text}' in node: {node}"));
        let mut request = Self { kind: None, number: None };
        for part in text.split('/').filter(|part| !part.is_empty()) {
            let mut words = part.split(':');
            let (kind, number) = match words.next().ok_or_else(wrong)? {
                "job" | "replica" | "task" => continue,
                "device" => (words.next().ok_or_else(wrong)?, words.next()),
                "cpu" | "CPU" => ("CPU", words.next()),
                "gpu" | "GPU" => ("GPU", words.next()),
                _ => return Err(wrong()),
            };
            request.kind = (kind != "*").then(|| kind.to_ascii_uppercase());
            request.number = match number {
                None | Some("*") => None,
                Some(number) => Some(number.parse().map_err(|_| wrong())?),
            };
        }
        Ok(request)
    }

    /// First device that matches the request.
    fn find(&self, devices: &Devices) -> Option<DeviceId> {
        // A device that must compile every node is used only on explicit request.
        let Some(kind) = &self.kind else { return self.number.is_none_or(|n| n == 0).then_some(HOST) };
        let mut of_kind = devices.iter().filter(|(_, device)| device.kind() == kind);
        of_kind.nth(self.number.unwrap_or(0)).map(|(at, _)| at)
    }
}

impl Placement {
    /// Places the nodes of a pruned graph.
    pub(crate) fn new(
        original: &GraphDef,
        graph: &Graph,
        devices: &Devices,
        rules: Rules<'_>,
    ) -> Result<Self> {
        let soft = rules.is_soft;
        let requests: BTreeMap<&str, &str> = original
            .node
            .iter()
            .filter(|node| !node.device.is_empty())
            .map(|node| (node.name.as_str(), node.device.as_str()))
            .collect();
        let groups = groups(graph);
        let mut assignments: BTreeMap<GroupId, (DeviceId, &Node)> = BTreeMap::new();
        for (id, node) in graph.nodes.iter() {
            let Some(text) = requests.get(node.name.as_str()) else { continue };
            let request = Request::parse(text, &node.name)?;
            let device = request.find(devices).filter(|&at| !soft || can_run(node, &*devices[at]).is_none());
            let device = match device {
                Some(device) => device,
                None if soft => HOST,
                None => return Err(no_device(node, text, &request, devices, rules.no_gpu)),
            };
            let group = groups[id];
            match assignments.get(&group) {
                Some((other, _)) if *other == device || request.kind.is_none() => {}
                Some(_) if soft => {}
                Some((other, with)) => {
                    return Err(Error::invalid(format!(
                        "Cannot assign a device for operation {}: it requests {text}, but must be colocated with '{}' on {}; \
                         place both on one device, or allow soft placement",
                        node.name,
                        with.name,
                        devices[*other].name()
                    )));
                }
                None => {
                    assignments.insert(group, (device, node));
                }
            }
        }
        let default = match rules.default {
            Some(text) => Some(default_device(text, devices, rules)?),
            None => None,
        };
        // Groups with a node that cannot run on the group's device.
        let mut stuck: BTreeSet<GroupId> = BTreeSet::new();
        for (id, node) in graph.nodes.iter() {
            let group = groups[id];
            let device = match assignments.get(&group) {
                Some((device, _)) if soft => Some(*device),
                Some(_) => None,
                None => default,
            };
            // A loop of the graph is several clusters. No list or tensor array passes between them.
            let leaves_cluster = |device: DeviceId| {
                let is_default = !assignments.contains_key(&group);
                is_default && devices[device].must_compile() && holds_list(graph, node)
            };
            let cannot_run = |device| can_run(node, &*devices[device]).is_some() || leaves_cluster(device);
            if device.is_some_and(cannot_run) {
                stuck.insert(group);
            }
        }
        let mut by_name = BTreeMap::new();
        for (id, node) in graph.nodes.iter() {
            let group = groups[id];
            let device = match assignments.get(&group) {
                _ if stuck.contains(&group) => HOST,
                Some((device, _)) => *device,
                // The caller's arrays are on the host.
                None if matches!(node.op.as_str(), "_Arg" | tf::RETVAL) => HOST,
                None => default.unwrap_or(HOST),
            };
            if let Some(reason) = can_run(node, &*devices[device]) {
                return Err(Error::invalid(format!(
                    "Cannot assign a device for operation {}: op {} cannot run on {}, which compiles every node: \
                     {reason}. Place the node on /device:CPU:0, or allow soft placement",
                    node.name,
                    node.op,
                    devices[device].name()
                )));
            }
            by_name.insert(node.name.clone(), device);
        }
        Ok(Self { by_name })
    }

    /// Names the device of each node in a graph, for passes that work on the graph.
    pub(crate) fn write(&self, graph: &mut GraphDef, devices: &Devices) {
        for node in &mut graph.node {
            if let Some(&device) = self.by_name.get(&node.name)
                && device != HOST
            {
                devices[device].name().clone_into(&mut node.device);
            }
        }
    }

    /// Lists nodes with their devices as TensorFlow's `log_device_placement` does.
    pub(crate) fn log(&self, graph: &Graph, devices: &Devices) -> String {
        let line = |node: &Node| {
            let device = self.by_name.get(&node.name).copied().unwrap_or(HOST);
            format!("{}: ({}): {}\n", node.name, node.op, devices[device].name())
        };
        graph
            .nodes
            .values()
            .filter(|node| !matches!(node.op.as_str(), "_Arg" | tf::RETVAL))
            .map(line)
            .collect()
    }

    /// Device of a node. A node of an inlined function runs on the device of its call.
    pub(crate) fn of(&self, node: &Node) -> Result<DeviceId> {
        let mut name = node.name.as_str();
        loop {
            if let Some(&device) = self.by_name.get(name) {
                return Ok(device);
            }
            match name.rsplit_once('/') {
                Some((around, _)) => name = around,
                None => return Ok(HOST),
            }
        }
    }
}

/// The device of nodes that request none.
fn default_device(text: &str, devices: &Devices, rules: Rules<'_>) -> Result<DeviceId> {
    let request = Request::parse(text, "--device")?;
    let device = request.find(devices);
    match device {
        Some(device) => Ok(device),
        None if rules.is_soft => Ok(HOST),
        None => Err(Error::invalid(format!(
            "there is no device {text}: available devices are [ {} ]{}. Name one of them, or allow soft placement",
            names(devices),
            hint(&request, rules.no_gpu)
        ))),
    }
}

fn names(devices: &Devices) -> String {
    let names: Vec<&str> = devices.values().map(|device| device.name()).collect();
    names.join(", ")
}

/// The reason why a requested GPU does not exist.
fn hint(request: &Request, no_gpu: Option<&str>) -> String {
    match (request.kind.as_deref(), no_gpu) {
        (Some("XLA_GPU" | "GPU"), Some(reason)) => format!("; no GPU can be used: {reason}"),
        _ => String::new(),
    }
}

fn no_device(node: &Node, text: &str, request: &Request, devices: &Devices, no_gpu: Option<&str>) -> Error {
    let hint = hint(request, no_gpu);
    Error::invalid(format!(
        "Cannot assign a device for operation {}: Operation was explicitly assigned to {text} but available devices \
         are [ {} ]{hint}. Make sure the device specification refers to a valid device, or allow soft placement",
        node.name,
        names(devices)
    ))
}

/// True if a node makes or takes a list or a tensor array.
fn holds_list(graph: &Graph, node: &Node) -> bool {
    let is_list = |data_type: &DataType| data_type.base() == DataType::Variant;
    let mut inputs = node.inputs.iter().map(|input| graph.nodes[input.node].output_types[input.index]);
    node.op.starts_with("TensorArray")
        || node.output_types.iter().any(is_list)
        || inputs.any(|data_type| is_list(&data_type))
}

/// Reason why a node cannot run on a device.
fn can_run(node: &Node, device: &dyn Device) -> Option<String> {
    if !device.must_compile() || node.op == "_Arg" {
        return None;
    }
    let has_strings = node.output_types.iter().any(|t| t.base() == DataType::String);
    if has_strings {
        return Some("it outputs strings".to_owned());
    }
    let own = [
        "_Retval",
        "NoOp",
        "ControlTrigger",
        "Switch",
        "Merge",
        "Enter",
        "Exit",
        "NextIteration",
        "LoopCond",
    ];
    if own.contains(&node.op.as_str()) || crate::op_kind::must_compile(node) {
        return None;
    }
    // Compiled code would drop the output of ops that print.
    if matches!(node.op.as_str(), "Print" | "PrintV2" | "Assert") {
        return Some("it has side effects on the host".to_owned());
    }
    if ops::find(node).is_some() && import::unsupported_node(node).is_none() {
        return None;
    }
    import::unsupported_node(node)
}

/// Group of each node: nodes that must share a device. A node that takes a handle or a reference
/// runs where the variable is, and `loc:@node` in `_class` names a node to be colocated with.
fn groups(graph: &Graph) -> IdVec<NodeId, GroupId> {
    let mut leader: IdVec<NodeId, NodeId> = graph.nodes.ids().collect();
    fn root(leader: &mut IdVec<NodeId, NodeId>, mut at: NodeId) -> NodeId {
        while leader[at] != at {
            leader[at] = leader[leader[at]];
            at = leader[at];
        }
        at
    }
    let mut join = |a: NodeId, b: NodeId| {
        let (a, b) = (root(&mut leader, a), root(&mut leader, b));
        leader[a.max(b)] = a.min(b);
    };
    let names: BTreeMap<&str, NodeId> =
        graph.nodes.iter().map(|(id, node)| (node.name.as_str(), id)).collect();
    for (id, node) in graph.nodes.iter() {
        for input in &node.inputs {
            let data_type = graph.nodes[input.node].output_types[input.index];
            if data_type.is_ref() || data_type == DataType::Resource {
                join(id, input.node);
            }
        }
        for class in node.attributes.strings_or("_class", Vec::new()).unwrap_or_default() {
            let class = String::from_utf8_lossy(&class).into_owned();
            if let Some(with) = class.strip_prefix("loc:@").and_then(|name| names.get(name)) {
                join(id, *with);
            }
        }
    }
    graph.nodes.ids().map(|at| root(&mut leader, at)).collect()
}
