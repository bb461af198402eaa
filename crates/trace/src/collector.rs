//! From executions of nodes to `StepStats`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tf::DataType;
use tf::proto::{
    AllocationDescription, DeviceStepStats, Dim, MemoryStats, NodeExecStats, NodeOutput, RunMetadata,
    StepStats, TensorDescription, TensorShapeProto,
};

/// One execution of a node. Times are nanoseconds since the epoch, by a clock that never goes back.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// The device's full name, `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub device: String,
    /// The node's name.
    pub name: String,
    /// Its op.
    pub op: String,
    /// Its data inputs as the graph names them: `a`, or `a:1` for another output than the first.
    pub inputs: Vec<String>,
    /// When all inputs were there.
    pub scheduled: u64,
    /// When a thread took it up.
    pub start: u64,
    /// When its kernel began.
    pub kernel_start: u64,
    /// When its kernel ended.
    pub kernel_end: u64,
    /// When its outputs had been handed on.
    pub end: u64,
    /// The number of the thread, counted from 0.
    pub thread: u32,
    /// What it made; dead outputs are left out.
    pub outputs: Vec<Output>,
    /// Bytes that the kernel used while it ran.
    pub temporary_bytes: u64,
    /// Bytes that stay with the session: variables, constants.
    pub persistent_bytes: u64,
    /// Simple arithmetic that its kernel did; 0 where nobody knows.
    pub flops: u64,
    /// Bytes that its kernel read and wrote; 0 where nobody knows.
    pub moved_bytes: u64,
    /// What its kernel did, if that was counted. Times are those of the execution's kernel.
    pub instructions: Vec<Instruction>,
}

/// An instruction of a compiled kernel while it ran.
#[derive(Clone, Debug, Default)]
pub struct Instruction {
    /// Its name in HLO, and the rest of its text.
    pub name: String,
    /// What it does: its opcode, or the one that a fusion is about.
    pub kind: String,
    /// The text of the instruction.
    pub text: String,
    /// How many loops and conditionals it stands in.
    pub depth: usize,
    /// Nanoseconds since the epoch.
    pub start: f64,
    /// Nanoseconds since the epoch.
    pub end: f64,
    /// Simple arithmetic in all its rounds.
    pub flops: u64,
    /// Bytes read and written in all its rounds.
    pub bytes: u64,
}

/// What follows a device's name where `StepStats` tell of the instructions of compiled kernels. TensorFlow's own timeline shows
/// such as a device beside it, as it does a GPU's streams.
pub(crate) const INSTRUCTIONS: &str = "/instructions";

/// A tensor that a node made.
#[derive(Clone, Debug)]
pub struct Output {
    /// The number of the output.
    pub slot: usize,
    /// Its type; a reference's type for handles of TensorFlow 1's variables.
    pub data_type: DataType,
    /// Its sizes.
    pub sizes: Vec<i64>,
    /// Its bytes in memory; 0 for what is no array.
    pub bytes: u64,
    /// Where it lies, to tell who shares memory.
    pub address: u64,
    /// Which allocator made it: `cpu`, say.
    pub allocator: &'static str,
}

/// Gathers the executions of a step. Threads may tell it of theirs at the same time.
#[derive(Debug, Default)]
pub struct Collector {
    executions: Mutex<Vec<Execution>>,
}

impl Collector {
    /// Takes an execution down.
    pub fn record(&self, execution: Execution) {
        // What another thread left, if it panicked, is whole: a push leaves nothing half done.
        self.executions.lock().unwrap_or_else(PoisonError::into_inner).push(execution);
    }

    /// The step: devices by name, their nodes by the time when they began.
    pub fn finish(self) -> StepStats {
        let mut executions = self.executions.into_inner().unwrap_or_else(PoisonError::into_inner);
        executions.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
        let mut devices: BTreeMap<String, DeviceStepStats> = BTreeMap::new();
        let mut instructions: BTreeMap<String, DeviceStepStats> = BTreeMap::new();
        for execution in executions {
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
        let named = devices.into_iter().map(|(device, stats)| DeviceStepStats { device, ..stats });
        StepStats { dev_stats: named.collect() }
    }

    /// The same as the metadata of a run.
    pub fn into_run_metadata(self) -> RunMetadata {
        RunMetadata { step_stats: Some(self.finish()), partition_graphs: Vec::new() }
    }
}

/// An instruction of an execution's kernel, as if it were a node.
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
