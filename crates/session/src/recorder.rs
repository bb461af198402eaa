//! Records which nodes ran, and when.

pub(crate) mod profile;

use crate::gpu::{Copy, Direction};
use crate::lock::lock;
use crate::recorder::profile::{KernelCounts, Span};
use crate::value::Value;
use jit::{DeviceOperation, DeviceTrace};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};
use support::Result;
use tf::DataType;
use trace::{Collector, Execution, GpuEvent, GpuEventKind, GpuKernel, Output};

/// Records the nodes of a traced run, which run on several threads.
#[derive(Debug)]
pub(crate) struct Recorder {
    executions: Mutex<Vec<(Execution, Option<Launch>)>>,
    /// By thread, the kernel launch of the node that is currently running there.
    launches: Mutex<BTreeMap<u32, Launch>>,
    /// Start of the recording on the monotonic clock; `epoch_nanos` is the same moment since the
    /// epoch.
    start: Instant,
    epoch_nanos: u64,
}

/// A kernel launch. Its counters are evaluated after the run, because that takes time.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) counts: Arc<KernelCounts>,
    pub(crate) span: Span,
    pub(crate) ticks: Vec<i64>,
    pub(crate) gpu: Option<GpuTrace>,
    /// Number of times that the node was compiled so far, if it is a cluster.
    pub(crate) compilations: u64,
}

/// Operations of a GPU in a launch.
#[derive(Debug)]
pub(crate) struct GpuTrace {
    /// Number of the GPU.
    pub(crate) gpu: usize,
    pub(crate) trace: DeviceTrace,
}

/// Number of the calling thread in traces.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.try_with(|number| *number).unwrap_or(u32::MAX)
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let epoch_nanos = u64::try_from(since_epoch.as_nanos()).unwrap_or(0);
        Self { executions: Mutex::default(), launches: Mutex::default(), start: Instant::now(), epoch_nanos }
    }

    /// Nanoseconds since the epoch.
    pub(crate) fn now(&self) -> u64 {
        self.epoch_nanos + u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(0)
    }

    /// Records that a kernel ran on the calling thread. The next call of
    /// [`Self::ran`] on this thread names the node.
    pub(crate) fn launched(&self, launch: Launch) {
        lock(&self.launches).insert(thread_number(), launch);
    }

    /// Records that a node ran on the calling thread during `span`. `inputs` are the names of the
    /// outputs that it read.
    pub(crate) fn ran(
        &self,
        node: &tf::Node,
        inputs: Vec<String>,
        device: &str,
        span: Span,
        outputs: &[Option<Value>],
        copies: Vec<Copy>,
    ) {
        let outputs = outputs.iter().enumerate().filter_map(|(slot, value)| {
            let data_type = node.output_types.get(slot).copied().unwrap_or(DataType::Float);
            Some(output(slot, data_type, value.as_ref()?))
        });
        let launch = lock(&self.launches).remove(&thread_number());
        let kernel_time = launch.as_ref().map_or(span, |launch| launch.span);
        let execution = Execution {
            device: device.to_owned(),
            name: node.name.clone(),
            op: node.op.clone(),
            inputs,
            scheduled: span.begin,
            start: span.begin,
            kernel_start: kernel_time.begin,
            kernel_end: kernel_time.end,
            end: self.now(),
            thread: thread_number(),
            outputs: outputs.collect(),
            gpu_events: copies.iter().map(|copy| self.copied(copy)).collect(),
            ..Execution::default()
        };
        lock(&self.executions).push((execution, launch));
    }

    /// Converts a copy between the host and a GPU.
    fn copied(&self, copy: &Copy) -> GpuEvent {
        let nanos = |time: Instant| {
            let since = time.saturating_duration_since(self.start).as_nanos();
            self.epoch_nanos + u64::try_from(since).unwrap_or(0)
        };
        let kind = match copy.direction {
            Direction::ToGpu => GpuEventKind::HostToDevice,
            Direction::ToHost => GpuEventKind::DeviceToHost,
            Direction::OnGpu => GpuEventKind::DeviceToDevice,
        };
        GpuEvent {
            gpu: copy.gpu,
            stream: 0,
            kind,
            bytes: copy.bytes,
            start: nanos(copy.begin),
            end: nanos(copy.end),
            ..GpuEvent::default()
        }
    }

    /// Returns and removes the recorded executions.
    pub(crate) fn executions(&self) -> Result<Vec<Execution>> {
        let recorded = std::mem::take(&mut *lock(&self.executions)).into_iter();
        let executions = recorded.map(|(execution, launch)| {
            let Some(Launch { counts, span, ticks, gpu, compilations }) = launch else {
                return Ok(execution);
            };
            let instructions = match &counts.profile {
                Some(profile) => profile.instructions(&ticks, span)?,
                None => Vec::new(),
            };
            let (flops, moved_bytes) = (counts.flops, counts.moved_bytes);
            let mut gpu_events = execution.gpu_events;
            gpu_events.extend(gpu.iter().flat_map(|trace| trace.events(span)));
            Ok(Execution { flops, moved_bytes, compilations, instructions, gpu_events, ..execution })
        });
        executions.collect()
    }

    /// Returns the recorded executions as TensorFlow's run metadata.
    pub(crate) fn metadata(&self) -> Result<tf::proto::RunMetadata> {
        let collector = Collector::default();
        self.executions()?.into_iter().for_each(|execution| collector.record(execution));
        Ok(collector.into_run_metadata())
    }
}

impl GpuTrace {
    /// Events of a launch during `span`. The GPU's times are relative to its first operation, which
    /// began after the launch did: the last operation ends with the launch, which waits for it.
    fn events(&self, span: Span) -> Vec<GpuEvent> {
        let first = self.trace.records.first().map_or(0, |record| record.stream);
        let length = self.trace.records.iter().map(|record| record.end).max().unwrap_or(0);
        let begin = span.end.saturating_sub(length).max(span.begin);
        let event = |record: &jit::DeviceRecord| GpuEvent {
            gpu: self.gpu,
            // Addresses of streams are not reproducible. The stream of the first operation is 1.
            stream: if record.stream == first { 1 } else { 2 },
            kind: match record.operation {
                DeviceOperation::Launch => GpuEventKind::Kernel,
                DeviceOperation::CopyIn => GpuEventKind::HostToDevice,
                DeviceOperation::CopyOut => GpuEventKind::DeviceToHost,
                DeviceOperation::Copy => GpuEventKind::DeviceToDevice,
                DeviceOperation::Fill => GpuEventKind::Fill,
            },
            name: record.name.clone(),
            label: record.label.clone(),
            bytes: record.bytes,
            flops: record.operations,
            start: begin + record.start,
            end: begin + record.end,
            kernel: self.trace.kernels.get(&record.kernel).map(|facts| GpuKernel {
                threads: facts.threads,
                registers: facts.registers,
                workgroup_bytes: facts.workgroup_bytes,
                local_bytes: facts.local_bytes,
                occupancy: facts.occupancy(),
            }),
        };
        self.trace.records.iter().map(event).collect()
    }
}

/// Describes an output of a node for traces.
fn output(slot: usize, data_type: DataType, value: &Value) -> Output {
    let (sizes, bytes, address) = match value {
        Value::Tensor(tensor) => {
            (tensor.shape().sizes(), tensor.storage().len() as u64, tensor.storage().address())
        }
        Value::Strings(strings) => {
            let bytes: usize = strings.strings.iter().map(|text| text.len()).sum();
            (strings.sizes.clone(), bytes as u64, strings.strings.as_ptr().addr() as u64)
        }
        _ => (Vec::new(), 0, 0),
    };
    let is_on_gpu = matches!(value, Value::Tensor(tensor) if tensor.storage().gpu().is_some());
    let allocator = if is_on_gpu { "gpu" } else { "cpu" };
    Output { slot, data_type, sizes, bytes, address, allocator }
}
