//! Kernels and copies of GPUs in `StepStats`, in the form of TensorFlow's device tracer
//! (`tensorflow/core/platform/default/device_tracer.cc`).
//!
//! | device | contents |
//! |---|---|
//! | `/device:GPU:0/stream:all` | all kernels |
//! | `/device:GPU:0/stream:1` | the kernels of a stream |
//! | `/device:GPU:0/memcpy` | all copies |
//! | `/device:GPU:0/stream:0<MEMCPYHtoD>` | the copies of a stream in one direction |

use crate::collector::Execution;
use std::collections::BTreeMap;
use tf::proto::{DeviceStepStats, NodeExecStats};

/// Kind of an operation of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuEventKind {
    /// A kernel.
    #[default]
    Kernel,
    /// A copy from the host.
    HostToDevice,
    /// A copy to the host.
    DeviceToHost,
    /// A copy within the GPU.
    DeviceToDevice,
    /// Memory was filled.
    Fill,
}

impl GpuEventKind {
    /// TensorFlow's name of a copy; `None` for a kernel.
    pub(crate) fn copy(self) -> Option<&'static str> {
        match self {
            Self::Kernel => None,
            Self::HostToDevice => Some("MEMCPYHtoD"),
            Self::DeviceToHost => Some("MEMCPYDtoH"),
            Self::DeviceToDevice => Some("MEMCPYDtoD"),
            Self::Fill => Some("MEMSET"),
        }
    }
}

/// An operation of a GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuEvent {
    /// Number of the GPU.
    pub gpu: usize,
    /// Number of the stream.
    pub stream: u64,
    /// Kind of the operation.
    pub kind: GpuEventKind,
    /// Symbol of the kernel.
    pub name: String,
    /// HLO instruction and node that the kernel computes.
    pub label: String,
    /// Copied bytes, or an estimate of those that the kernel reads and writes.
    pub bytes: u64,
    /// Estimated operations of the kernel.
    pub flops: u64,
    /// Start time in nanoseconds since the epoch.
    pub start: u64,
    /// End time in nanoseconds since the epoch.
    pub end: u64,
    /// Resources of the kernel.
    pub kernel: Option<GpuKernel>,
}

/// Resources of a kernel; zero where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuKernel {
    /// Threads of a workgroup.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Bytes of a thread's own memory.
    pub local_bytes: u32,
    /// Part of a multiprocessor's threads that can be active, from 0 to 1.
    pub occupancy: Option<f64>,
}

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
