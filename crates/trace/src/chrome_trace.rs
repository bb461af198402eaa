//! Timeline of a step in Chrome's trace event format, as `tensorflow.python.client.timeline` writes
//! it.
//!
//! The format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.
//! `chrome://tracing` and Perfetto open it.

use crate::collector::INSTRUCTIONS;
use crate::gpu;
use crate::lanes::{end_micros, lanes};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tf::proto::{DeviceStepStats, NodeExecStats, StepStats};
use tf::source::tensor_description_to_text;

/// Optional content of a timeline.
#[derive(Clone, Copy, Debug)]
pub struct TimelineOptions {
    /// Arrows from the producer of a tensor to its consumers in different lanes.
    pub dataflow: bool,
    /// Lifetime of each tensor, and memory use of each allocator over time.
    pub memory: bool,
}

impl Default for TimelineOptions {
    fn default() -> Self {
        Self { dataflow: true, memory: false }
    }
}

/// Returns the trace as JSON, indented by four spaces. If the step has instructions of compiled
/// kernels, they appear as bars within those of their nodes.
pub fn chrome_trace(stats: &StepStats, options: TimelineOptions) -> String {
    let (inside, nodes): (Vec<_>, Vec<_>) =
        stats.dev_stats.iter().cloned().partition(|device| device.device.ends_with(INSTRUCTIONS));
    let stats = &StepStats { dev_stats: nodes };
    let mut timeline = Timeline::default();
    timeline.processes(stats);
    let lanes: Vec<Vec<usize>> = stats.dev_stats.iter().map(lanes).collect();
    timeline.tensors(stats, &lanes, options);
    timeline.computations(stats, &lanes, options);
    for inside in &inside {
        let owner = inside.device.trim_end_matches(INSTRUCTIONS);
        if let Some(at) = stats.dev_stats.iter().position(|device| device.device == owner) {
            timeline.instructions(inside, &stats.dev_stats[at], at, &lanes[at]);
        }
    }
    if options.memory {
        timeline.memory();
    }
    let events: Vec<Value> = timeline.metadata.into_iter().chain(timeline.events).collect();
    indented(&json!({ "traceEvents": events }))
}

/// Formats JSON with TensorFlow's indentation. JSON strings contain no raw line breaks, so leading
/// spaces are always indentation.
fn indented(value: &Value) -> String {
    let text = format!("{value:#}");
    let lines = text.lines().map(|line| {
        let indentation = line.len() - line.trim_start().len();
        format!("{:indentation$}{line}\n", "")
    });
    lines.collect()
}

/// Process of the allocators. Two processes per device follow, for computations and for tensors.
const ALLOCATORS: usize = 0;

fn compute_process(device: usize) -> usize {
    1 + 2 * device
}

fn tensor_process(device: usize) -> usize {
    2 + 2 * device
}

/// A row of a device's events.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lane {
    device: usize,
    number: usize,
}

/// A row of the timeline.
#[derive(Clone, Copy)]
struct Place {
    process: usize,
    thread: usize,
}

/// Phase and category of an event, as the format writes them.
struct Kind {
    phase: &'static str,
    category: &'static str,
}

/// Lifetime of a tensor, and the start of its arrows.
struct Tensor {
    object: usize,
    at: Lane,
    created: i64,
    /// End time of its producer.
    ready: i64,
    last_use: i64,
    bytes: i64,
    allocator: String,
}

#[derive(Default)]
struct Timeline {
    metadata: Vec<Value>,
    events: Vec<Value>,
    tensors: BTreeMap<String, Tensor>,
    /// Names of tensors, in order of creation.
    order: Vec<String>,
    flows: usize,
}

impl Timeline {
    fn processes(&mut self, stats: &StepStats) {
        let mut process = |pid: usize, name: &str| {
            self.metadata
                .push(json!({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}));
        };
        process(ALLOCATORS, "Allocators");
        for (device, stats) in stats.dev_stats.iter().enumerate() {
            process(compute_process(device), &format!("{} Compute", stats.device));
            process(tensor_process(device), &format!("{} Tensors", stats.device));
        }
    }

    /// Adds an event of a kind. `more` holds the fields other than time and place.
    fn event(&mut self, kind: Kind, name: &str, place: Place, time: i64, more: Value) {
        let mut event = Map::new();
        event.insert("ph".into(), kind.phase.into());
        event.insert("cat".into(), kind.category.into());
        event.insert("name".into(), name.into());
        event.insert("pid".into(), place.process.into());
        event.insert("tid".into(), place.thread.into());
        event.insert("ts".into(), time.into());
        if let Value::Object(more) = more {
            event.extend(more);
        }
        self.events.push(event.into());
    }

    fn tensors(&mut self, stats: &StepStats, lanes: &[Vec<usize>], options: TimelineOptions) {
        for (device, (device_stats, lanes)) in stats.dev_stats.iter().zip(lanes).enumerate() {
            for (node, &lane) in device_stats.node_stats.iter().zip(lanes) {
                for (index, output) in node.output.iter().enumerate() {
                    let name = match index {
                        0 => node.node_name.clone(),
                        _ => format!("{}:{index}", node.node_name),
                    };
                    let object = self.create(
                        &name,
                        node,
                        Lane { device, number: lane },
                        output.tensor_description.as_ref(),
                    );
                    if !options.memory {
                        continue;
                    }
                    let place = Place { process: tensor_process(device), thread: lane };
                    self.event(
                        Kind { phase: "N", category: "Tensor" },
                        &name,
                        place,
                        node.all_start_micros,
                        json!({"id": object}),
                    );
                    let text = output
                        .tensor_description
                        .as_ref()
                        .map(tensor_description_to_text)
                        .unwrap_or_default();
                    let snapshot = json!({"snapshot": {"tensor_description": text.replace('"', "")}});
                    let more = json!({"id": object, "args": snapshot});
                    self.event(
                        Kind { phase: "O", category: "Tensor" },
                        &name,
                        place,
                        end_micros(node).saturating_sub(1),
                        more,
                    );
                }
            }
        }
    }

    /// Records that a node created a tensor. Returns the tensor's object number.
    fn create(
        &mut self,
        name: &str,
        node: &NodeExecStats,
        at: Lane,
        description: Option<&tf::proto::TensorDescription>,
    ) -> usize {
        let allocation = description.and_then(|d| d.allocation_description.as_ref());
        let tensor = Tensor {
            object: self.order.len(),
            at,
            created: node.all_start_micros,
            ready: end_micros(node),
            last_use: end_micros(node),
            bytes: allocation.map_or(0, |a| a.requested_bytes),
            allocator: allocation.map(|a| a.allocator_name.clone()).unwrap_or_default(),
        };
        let object = tensor.object;
        match self.tensors.entry(name.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(tensor);
                self.order.push(name.to_owned());
            }
            Entry::Occupied(mut entry) => {
                entry.insert(tensor);
            }
        }
        object
    }

    fn computations(&mut self, stats: &StepStats, lanes: &[Vec<usize>], options: TimelineOptions) {
        for (device, (device_stats, lanes)) in stats.dev_stats.iter().zip(lanes).enumerate() {
            for (node, &lane) in device_stats.node_stats.iter().zip(lanes) {
                let place = Place { process: compute_process(device), thread: lane };
                if gpu::is_lane(&device_stats.device) {
                    let (name, op, details) = gpu::parts(node);
                    let args = json!({"name": name, "op": op, "details": details});
                    let more = json!({"dur": node.all_end_rel_micros, "args": args});
                    self.event(Kind { phase: "X", category: "Op" }, op, place, node.all_start_micros, more);
                    continue;
                }
                let label = Label::parse(&node.timeline_label);
                let mut args = Map::new();
                args.insert("name".into(), node.node_name.as_str().into());
                args.insert("op".into(), label.op.into());
                args.extend(label.compilations.map(|count| ("compilations".into(), count.into())));
                args.extend(label.inputs.iter().enumerate().map(|(k, &i)| (format!("input{k}"), i.into())));
                let more = json!({"dur": node.all_end_rel_micros, "args": args});
                self.event(Kind { phase: "X", category: "Op" }, label.op, place, node.all_start_micros, more);
                for input in label.inputs {
                    self.flow(input, node, Lane { device, number: lane }, options);
                }
            }
        }
    }

    /// Adds the instructions of compiled kernels, each within the bar of the node that ran on its
    /// thread at that time. Instruction times are finer than those of bars, which are whole
    /// microseconds, so instructions are clamped to their bar.
    fn instructions(
        &mut self,
        inside: &DeviceStepStats,
        nodes: &DeviceStepStats,
        device: usize,
        lanes: &[usize],
    ) {
        for node in &inside.node_stats {
            let is_around = |around: &&NodeExecStats| {
                around.thread_id == node.thread_id
                    && around.all_start_nanos <= node.all_start_nanos
                    && end_nanos(node) <= end_nanos(around)
            };
            let found = nodes.node_stats.iter().zip(lanes).find(|(around, _)| is_around(around));
            let Some((around, &lane)) = found else { continue };
            let (first, last) = (around.all_start_micros as f64, end_micros(around) as f64);
            let within = |nanos: i64| (nanos as f64 / 1e3).clamp(first, last);
            let (start, end) = (within(node.all_start_nanos), within(end_nanos(node)));
            let label = Label::parse(&node.timeline_label);
            let name = node.timeline_label.split(" = ").next().unwrap_or_default();
            let mut event = Map::new();
            event.insert("ph".into(), "X".into());
            event.insert("cat".into(), "HLO".into());
            event.insert("name".into(), name.into());
            event.insert("pid".into(), compute_process(device).into());
            event.insert("tid".into(), lane.into());
            event.insert("ts".into(), start.into());
            event.insert("dur".into(), (end - start).into());
            event.insert("args".into(), json!({"name": node.node_name, "op": label.op}));
            self.events.push(event.into());
        }
    }

    /// Records a use of a tensor. It extends the tensor's lifetime and draws an arrow from another
    /// lane.
    fn flow(&mut self, input: &str, node: &NodeExecStats, to: Lane, options: TimelineOptions) {
        // Tensors sent between devices have a number after their producer's name.
        let maker = |name: &str| name.rfind("/_").filter(|&at| at > 0).map(|at| name[..at].to_owned());
        let name = if self.tensors.contains_key(input) { Some(input.to_owned()) } else { maker(input) };
        let Some((name, tensor)) = name.and_then(|name| Some((name.clone(), self.tensors.get_mut(&name)?)))
        else {
            return;
        };
        tensor.last_use = tensor.last_use.max(end_micros(node).saturating_sub(1));
        let from = tensor.at;
        let ready = tensor.ready;
        if options.dataflow && from != to {
            let id = self.flows;
            self.flows += 1;
            let place = |at: Lane| Place { process: compute_process(at.device), thread: at.number };
            self.event(
                Kind { phase: "s", category: "DataFlow" },
                &name,
                place(from),
                ready,
                json!({"id": id}),
            );
            self.event(
                Kind { phase: "t", category: "DataFlow" },
                &name,
                place(to),
                node.all_start_micros,
                json!({"id": id}),
            );
        }
    }

    /// Adds the ends of tensors, then the memory use of each allocator at every change.
    fn memory(&mut self) {
        let mut allocators: Vec<(String, Vec<Change>)> = Vec::new();
        for name in std::mem::take(&mut self.order) {
            let tensor = &self.tensors[&name];
            let (allocator, last_use) = (tensor.allocator.clone(), tensor.last_use);
            let changes =
                [(tensor.created, tensor.bytes, name.clone()), (last_use, -tensor.bytes, name.clone())];
            match allocators.iter_mut().find(|(known, _)| *known == allocator) {
                Some((_, list)) => list.extend(changes),
                None => allocators.push((allocator, changes.into())),
            }
            let place = Place { process: tensor_process(tensor.at.device), thread: 0 };
            let id = tensor.object;
            self.event(Kind { phase: "D", category: "Tensor" }, &name, place, last_use, json!({"id": id}));
        }
        for (allocator, mut changes) in allocators {
            changes.sort();
            let mut total = 0i64;
            for (time, bytes, _) in changes {
                total = total.saturating_add(bytes);
                let mut args = Map::new();
                args.insert(allocator.clone(), total.into());
                self.event(
                    Kind { phase: "C", category: "Memory" },
                    &allocator,
                    Place { process: ALLOCATORS, thread: 0 },
                    time,
                    json!({ "args": args }),
                );
            }
        }
    }
}

fn end_nanos(stats: &NodeExecStats) -> i64 {
    stats.all_start_nanos.saturating_add(stats.all_end_rel_nanos)
}

/// Time, change in bytes, and the tensor concerned.
type Change = (i64, i64, String);

/// Label of a node, `name = Op(input, input)`, and of a cluster, `name = Op(input) compilations:2`.
struct Label<'l> {
    op: &'l str,
    inputs: Vec<&'l str>,
    compilations: Option<u64>,
}

impl<'l> Label<'l> {
    fn parse(label: &'l str) -> Self {
        let parts = || {
            let end = label.rfind(')')?;
            let head = &label[..end];
            let (head, inputs) = head.rsplit_once('(')?;
            let compilations = label[end + 1..].strip_prefix(" compilations:").and_then(|n| n.parse().ok());
            Some((head.rsplit_once(" = ")?.1, inputs, compilations))
        };
        match parts() {
            Some((op, inputs, compilations)) => {
                let inputs = if inputs.is_empty() { Vec::new() } else { inputs.split(", ").collect() };
                Self { op, inputs, compilations }
            }
            None => Self { op: "unknown", inputs: Vec::new(), compilations: None },
        }
    }
}
