//! Executions of nodes, and the operations of GPUs in them.

use tf::DataType;

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
    /// Number of times that the node was compiled so far, if it is a cluster.
    pub compilations: u64,
    /// Operations of GPUs for the node: kernels and copies.
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
