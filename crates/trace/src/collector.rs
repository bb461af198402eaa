//! Converts executions of nodes to `StepStats`.

use crate::gpu::{GpuEvent, GpuLanes};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tf::DataType;
use tf::proto::{
    AllocationDescription, DeviceStepStats, Dim, MemoryStats, NodeExecStats, NodeOutput, RunMetadata,
    StepStats, TensorDescription, TensorShapeProto,
};

/// One execution of a node. Times are nanoseconds since the epoch, from a monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// Full name of the device, `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub device: String,
    /// Name of the node.
    pub name: String,
    /// Op of the node.
    pub op: String,
    /// Data inputs as named in the graph: `a`, or `a:1` for an output other than the first.
    pub inputs: Vec<String>,
    /// Time when all inputs were available.
    pub scheduled: u64,
    /// Time when a thread dequeued the node.
    pub start: u64,
    /// Start time of the kernel.
    pub kernel_start: u64,
    /// End time of the kernel.
    pub kernel_end: u64,
    /// Time when the outputs had been propagated.
    pub end: u64,
    /// Number of the thread, counted from 0.
    pub thread: u32,
    /// Outputs, except dead ones.
    pub outputs: Vec<Output>,
    /// Bytes of temporary memory that the kernel used.
    pub temporary_bytes: u64,
    /// Bytes that persist in the session: variables and constants.
    pub persistent_bytes: u64,
    /// Number of simple arithmetic operations of the kernel, or 0 if unknown.
    pub flops: u64,
    /// Bytes that the kernel read and wrote, or 0 if unknown.
    pub moved_bytes: u64,
    /// What GPUs did for the node: kernels and copies.
    pub gpu_events: Vec<GpuEvent>,
    /// Instructions of the kernel, if they were counted. Their times lie within the kernel's.
    pub instructions: Vec<Instruction>,
}

/// An instruction of a compiled kernel while it ran.
#[derive(Clone, Debug, Default)]
pub struct Instruction {
    /// Name in HLO.
    pub name: String,
    /// Opcode, or the dominant opcode of a fusion.
    pub kind: String,
    /// The text of the instruction.
    pub text: String,
    /// Number of enclosing loops and conditionals.
    pub depth: usize,
    /// Start time in nanoseconds since the epoch.
    pub start: f64,
    /// End time in nanoseconds since the epoch.
    pub end: f64,
    /// Number of simple arithmetic operations over all iterations.
    pub flops: u64,
    /// Bytes read and written over all iterations.
    pub bytes: u64,
}

/// Device name suffix for the instructions of compiled kernels in `StepStats`. TensorFlow's
/// timeline shows them as an additional device, like the streams of a GPU.
pub(crate) const INSTRUCTIONS: &str = "/instructions";

/// Output tensor of a node.
#[derive(Clone, Debug)]
pub struct Output {
    /// Index of the output.
    pub slot: usize,
    /// Type of the tensor. TensorFlow 1 reference variables have a reference type.
    pub data_type: DataType,
    /// Dimension sizes.
    pub sizes: Vec<i64>,
    /// Size in memory in bytes, or 0 for values that are not arrays.
    pub bytes: u64,
    /// Memory address, which identifies shared memory.
    pub address: u64,
    /// Name of the allocator, such as `cpu`.
    pub allocator: &'static str,
}

/// Collects the executions of a step. Threads may record concurrently.
#[derive(Debug, Default)]
pub struct Collector {
    executions: Mutex<Vec<Execution>>,
}

impl Collector {
    /// Records an execution.
    pub fn record(&self, execution: Execution) {
        // A poisoned lock is safe to use: a panic cannot leave a push half done.
        self.executions.lock().unwrap_or_else(PoisonError::into_inner).push(execution);
    }

    /// Returns the step's statistics: devices by name, and their nodes by start time.
    pub fn finish(self) -> StepStats {
        let mut executions = self.executions.into_inner().unwrap_or_else(PoisonError::into_inner);
        executions.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
        let mut devices: BTreeMap<String, DeviceStepStats> = BTreeMap::new();
        let mut instructions: BTreeMap<String, DeviceStepStats> = BTreeMap::new();
        let mut gpus = GpuLanes::default();
        for execution in executions {
            execution.gpu_events.iter().for_each(|event| gpus.add(&execution, event));
            let device = devices.entry(execution.device.clone()).or_default();
            device
                .thread_names
                .entry(execution.thread)
                .or_insert_with(|| format!("worker {}", execution.thread));
            if !execution.instructions.is_empty() {
                let inside = instructions.entry(format!("{}{INSTRUCTIONS}", execution.device)).or_default();
                inside.node_stats.extend(execution.instructions.iter().map(|i| instruction(&execution, i)));
            }
            device.node_stats.push(node_stats(execution));
        }
        devices.extend(instructions);
        devices.extend(gpus.finish());
        let named = devices.into_iter().map(|(device, stats)| DeviceStepStats { device, ..stats });
        StepStats { dev_stats: named.collect() }
    }

    /// Returns the step's statistics as the metadata of a run.
    pub fn into_run_metadata(self) -> RunMetadata {
        RunMetadata { step_stats: Some(self.finish()), partition_graphs: Vec::new() }
    }
}

/// Represents an instruction of a kernel as a node.
fn instruction(execution: &Execution, instruction: &Instruction) -> NodeExecStats {
    let (start, duration) = (instruction.start as i64, (instruction.end - instruction.start) as i64);
    NodeExecStats {
        node_name: format!("{}/{}", execution.name, instruction.name),
        timeline_label: format!("{} = {}()", instruction.name, instruction.kind),
        all_start_micros: start / 1000,
        op_end_rel_micros: duration / 1000,
        all_end_rel_micros: duration / 1000,
        scheduled_micros: start / 1000,
        thread_id: execution.thread,
        all_start_nanos: start,
        op_end_rel_nanos: duration,
        all_end_rel_nanos: duration,
        scheduled_nanos: start,
        ..NodeExecStats::default()
    }
}

fn node_stats(execution: Execution) -> NodeExecStats {
    let since_start = |time: u64| time.saturating_sub(execution.start) as i64;
    let micros = |nanos: i64| nanos / 1000;
    NodeExecStats {
        timeline_label: format!("{} = {}({})", execution.name, execution.op, execution.inputs.join(", ")),
        node_name: execution.name,
        all_start_micros: micros(execution.start as i64),
        op_start_rel_micros: micros(since_start(execution.kernel_start)),
        op_end_rel_micros: micros(since_start(execution.kernel_end)),
        all_end_rel_micros: micros(since_start(execution.end)),
        scheduled_micros: micros(execution.scheduled as i64),
        all_start_nanos: execution.start as i64,
        op_start_rel_nanos: since_start(execution.kernel_start),
        op_end_rel_nanos: since_start(execution.kernel_end),
        all_end_rel_nanos: since_start(execution.end),
        scheduled_nanos: execution.scheduled as i64,
        thread_id: execution.thread,
        output: execution.outputs.into_iter().map(node_output).collect(),
        memory_stats: Some(MemoryStats {
            temp_memory_size: execution.temporary_bytes as i64,
            persistent_memory_size: execution.persistent_bytes as i64,
        }),
        ..NodeExecStats::default()
    }
}

fn node_output(output: Output) -> NodeOutput {
    let dim = output.sizes.iter().map(|&size| Dim { size, ..Dim::default() }).collect();
    NodeOutput {
        slot: output.slot as i32,
        tensor_description: Some(TensorDescription {
            dtype: output.data_type.number(),
            shape: Some(TensorShapeProto { dim, ..TensorShapeProto::default() }),
            allocation_description: Some(AllocationDescription {
                requested_bytes: output.bytes as i64,
                allocated_bytes: output.bytes as i64,
                allocator_name: output.allocator.to_owned(),
                ptr: output.address,
                ..AllocationDescription::default()
            }),
        }),
    }
}
