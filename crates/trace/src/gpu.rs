//! Kernels and copies of GPUs in `StepStats`, in the form of TensorFlow's device tracer
//! (`tensorflow/core/platform/default/device_tracer.cc`).
//!
//! | device | contents |
//! |---|---|
//! | `/device:GPU:0/stream:all` | all kernels |
//! | `/device:GPU:0/stream:1` | the kernels of a stream |
//! | `/device:GPU:0/memcpy` | all copies |
//! | `/device:GPU:0/stream:0<MEMCPYHtoD>` | the copies of a stream in one direction |

use crate::execution::{Execution, GpuEvent, GpuEventKind};
use std::collections::BTreeMap;
use tf::proto::{DeviceStepStats, NodeExecStats};

/// Collects events into the devices that TensorFlow's tracer writes.
#[derive(Debug, Default)]
pub(crate) struct GpuLanes {
    devices: BTreeMap<String, Vec<NodeExecStats>>,
}

impl GpuLanes {
    /// Adds an event of a node's execution.
    pub(crate) fn add(&mut self, execution: &Execution, event: &GpuEvent) {
        let end = execution.device.find("/device:").unwrap_or(0);
        let device = format!("{}/device:GPU:{}", &execution.device[..end], event.gpu);
        let stats = stats(execution, event);
        let (all, own) = match event.kind.copy() {
            None => (format!("{device}/stream:all"), format!("{device}/stream:{}", event.stream)),
            Some(copy) => (format!("{device}/memcpy"), format!("{device}/stream:{}<{copy}>", event.stream)),
        };
        self.devices.entry(all).or_default().push(stats.clone());
        self.devices.entry(own).or_default().push(stats);
    }

    /// Returns the devices, with their events by start time.
    pub(crate) fn finish(self) -> impl Iterator<Item = (String, DeviceStepStats)> {
        self.devices.into_iter().map(|(name, mut node_stats)| {
            node_stats.sort_by_key(|stats| stats.all_start_nanos);
            (name, DeviceStepStats { node_stats, ..DeviceStepStats::default() })
        })
    }
}

/// Represents an event as a node. The name has the form `node:Op`, which TensorFlow's timeline
/// splits.
fn stats(execution: &Execution, event: &GpuEvent) -> NodeExecStats {
    let (start, duration) = (event.start as i64, event.end.saturating_sub(event.start) as i64);
    let annotation = format!("{}:{}", execution.name, execution.op);
    let (node_name, timeline_label) = match event.kind.copy() {
        Some(copy) => (format!("{}:{copy}", execution.name), format!("{copy} bytes:{}", event.bytes)),
        None => (annotation.clone(), format!("{} {}@@{annotation}", event.name, details(event))),
    };
    NodeExecStats {
        node_name,
        timeline_label,
        all_start_micros: start / 1000,
        op_end_rel_micros: duration / 1000,
        all_end_rel_micros: duration / 1000,
        scheduled_micros: execution.kernel_start as i64 / 1000,
        thread_id: execution.thread,
        all_start_nanos: start,
        op_end_rel_nanos: duration,
        all_end_rel_nanos: duration,
        scheduled_nanos: execution.kernel_start as i64,
        ..NodeExecStats::default()
    }
}

/// Resources of a kernel in TensorFlow's form, and the HLO instruction.
fn details(event: &GpuEvent) -> String {
    let kernel = event.kernel.unwrap_or_default();
    let mut text = format!(
        "regs:{} shm:{} block:{},1,1 bytes:{} flops:{}",
        kernel.registers, kernel.workgroup_bytes, kernel.threads, event.bytes, event.flops
    );
    if let Some(occupancy) = kernel.occupancy {
        text.push_str(&format!(" occupancy:{:.0}%", 100.0 * occupancy));
    }
    if !event.label.is_empty() {
        text.push_str(&format!(" hlo:{}", event.label));
    }
    text
}

/// Name of the lane of an event: that of its stream, or of all copies of the GPU.
pub(crate) fn lane_name(execution: &Execution, event: &GpuEvent) -> String {
    let end = execution.device.find("/device:").unwrap_or(0);
    let device = format!("{}/device:GPU:{}", &execution.device[..end], event.gpu);
    match event.kind {
        GpuEventKind::Kernel | GpuEventKind::Fill => format!("{device}/stream:{}", event.stream),
        _ => format!("{device}/memcpy"),
    }
}

/// Short name of an event: the HLO instruction of a kernel, or the copied node.
pub(crate) fn title(execution: &Execution, event: &GpuEvent) -> String {
    match event.kind.copy() {
        Some(copy) => format!("{copy} {}", execution.name),
        None if event.label.is_empty() => event.name.clone(),
        None => event.label.clone(),
    }
}

/// Details of an event in one line.
pub(crate) fn detail(execution: &Execution, event: &GpuEvent) -> String {
    match event.kind.copy() {
        Some(copy) => format!("{copy} bytes:{} for {} ({})", event.bytes, execution.name, execution.op),
        None => format!("{} {} for {} ({})", event.name, details(event), execution.name, execution.op),
    }
}

/// True if a device in `StepStats` is a lane of a GPU.
pub(crate) fn is_lane(device: &str) -> bool {
    device.contains("/stream:") || device.ends_with("/memcpy")
}

/// Node, op, and details of an event.
pub(crate) fn parts(stats: &NodeExecStats) -> (&str, &str, &str) {
    let (node, op) = stats.node_name.rsplit_once(':').unwrap_or((&stats.node_name, "unknown"));
    (node, op, stats.timeline_label.split("@@").next().unwrap_or_default())
}
