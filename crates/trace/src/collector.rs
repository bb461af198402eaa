//! Converts executions of nodes to `StepStats`.

use crate::execution::{Execution, Instruction, Output};
use crate::gpu::GpuLanes;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tf::proto::{
    AllocationDescription, DeviceStepStats, Dim, MemoryStats, NodeExecStats, NodeOutput, RunMetadata,
    StepStats, TensorDescription, TensorShapeProto,
};

/// Device name suffix for the instructions of compiled kernels in `StepStats`. TensorFlow's
/// timeline shows them as an additional device, like the streams of a GPU.
pub(crate) const INSTRUCTIONS: &str = "/instructions";

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

/// Returns TensorFlow's label of a node. A cluster's ends with the number of compilations.
fn label(execution: &Execution) -> String {
    let label = format!("{} = {}({})", execution.name, execution.op, execution.inputs.join(", "));
    match execution.compilations {
        0 => label,
        count => format!("{label} compilations:{count}"),
    }
}

fn node_stats(execution: Execution) -> NodeExecStats {
    let since_start = |time: u64| time.saturating_sub(execution.start) as i64;
    let micros = |nanos: i64| nanos / 1000;
    NodeExecStats {
        timeline_label: label(&execution),
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
