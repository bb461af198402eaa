//! GPUs of a session: which exist, and copies between their memory and the host's.
//!
//! A GPU is opened when the first node runs on it. Copies are counted, and recorded in traced runs.

use crate::lock::lock;
use jit::{DeviceKind, DeviceMemory, DeviceOptions};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use support::Result;
use tf::proto::GraphDef;

/// Options of the GPUs of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuOptions {
    /// Driver of the GPUs; CUDA by default.
    pub driver: Option<DeviceKind>,
    /// True to take memory as needed. Otherwise all memory that the session may use is taken when
    /// the GPU is opened.
    pub allow_growth: bool,
    /// Part of the memory that the session may use; 0 for the default.
    pub memory_fraction: f64,
    /// Numbers of the driver's devices that the session sees, in this order; all by default.
    pub visible: Option<Vec<usize>>,
    /// Maximum number of GPUs.
    pub limit: Option<usize>,
}

/// A GPU of a session.
pub(crate) struct Gpu {
    /// Number in the session.
    number: usize,
    options: DeviceOptions,
    device: OnceLock<Result<jit::Device>>,
    opening: Mutex<()>,
    copies: Counters,
}

/// Number of copies and of copied bytes.
#[derive(Debug, Default)]
struct Counters {
    ins: AtomicU64,
    in_bytes: AtomicU64,
    outs: AtomicU64,
    out_bytes: AtomicU64,
}

/// Copies between the host and the GPUs of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// Number of copies from the host to a GPU.
    pub to_gpu: u64,
    /// Bytes of these copies.
    pub to_gpu_bytes: u64,
    /// Number of copies from a GPU to the host.
    pub to_host: u64,
    /// Bytes of these copies.
    pub to_host_bytes: u64,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Gpu {
    /// Number of the GPU in the session.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The open device.
    pub(crate) fn device(&self) -> Result<&jit::Device> {
        let _opening = lock(&self.opening);
        self.device.get_or_init(|| jit::Device::open(&self.options)).as_ref().map_err(Clone::clone)
    }

    /// Allocates uninitialized memory.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        DeviceMemory::uninitialized(self.device()?, bytes)
    }

    /// Copies bytes of the host to new memory.
    pub(crate) fn copy_in(&self, bytes: &[u8]) -> Result<DeviceMemory> {
        let device = self.device()?;
        let memory =
            recorded(self.number, Direction::ToGpu, bytes.len(), || DeviceMemory::from_bytes(device, bytes))?;
        self.copies.ins.fetch_add(1, Ordering::Relaxed);
        self.copies.in_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(memory)
    }

    /// Copies memory to the host.
    pub(crate) fn copy_out(&self, memory: &DeviceMemory, bytes: &mut [u8]) -> Result<()> {
        let len = bytes.len();
        recorded(self.number, Direction::ToHost, len, || memory.copy_out(bytes))?;
        self.copies.outs.fetch_add(1, Ordering::Relaxed);
        self.copies.out_bytes.fetch_add(len as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Copies memory to new memory of the same GPU.
    pub(crate) fn duplicate(&self, memory: &DeviceMemory) -> Result<DeviceMemory> {
        recorded(self.number, Direction::OnGpu, memory.len(), || memory.duplicate())
    }

    /// The copies so far.
    pub(crate) fn copies(&self) -> Copies {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Copies {
            to_gpu: of(&self.copies.ins),
            to_gpu_bytes: of(&self.copies.in_bytes),
            to_host: of(&self.copies.outs),
            to_host_bytes: of(&self.copies.out_bytes),
        }
    }
}

/// The GPUs of a session, or the reason why there are none.
#[derive(Debug, Default)]
pub(crate) struct Gpus {
    pub(crate) all: Vec<Arc<Gpu>>,
    /// Reason and cure, if a node requested a GPU and there is none.
    pub(crate) missing: Option<String>,
}

impl Gpus {
    /// Finds the GPUs for a graph. Drivers are not touched unless a node or `default_device`
    /// requests a GPU.
    pub(crate) fn find(graph: &GraphDef, default_device: Option<&str>, options: &GpuOptions) -> Self {
        let names_gpu = |device: &str| device.to_ascii_uppercase().contains("GPU");
        let library = graph.library.iter().flat_map(|library| &library.function);
        let mut nodes = graph.node.iter().chain(library.flat_map(|function| &function.node_def));
        if !default_device.is_some_and(names_gpu) && !nodes.any(|node| names_gpu(&node.device)) {
            return Self::default();
        }
        let kind = options.driver.unwrap_or(DeviceKind::Cuda);
        let count = match jit::device_count(kind) {
            Ok(count) => count,
            Err(error) => {
                let other = match options.driver {
                    None => {
                        "; for an OpenCL driver, set --device-driver opencl or TFCOMPILE_DEVICE_DRIVER=opencl"
                    }
                    Some(_) => "",
                };
                return Self::missing(format!("{}{other}", error.message()));
            }
        };
        let ordinals = options.visible.clone().unwrap_or_else(|| (0..count).collect());
        if let Some(wrong) = ordinals.iter().find(|&&ordinal| ordinal >= count) {
            return Self::missing(format!(
                "visible_device_list names device {wrong}, but the {} driver has {count}",
                kind.name()
            ));
        }
        let limit = options.limit.unwrap_or(usize::MAX);
        if limit == 0 {
            return Self::missing("device_count hides the GPUs: set it to 1 or more for GPU".to_owned());
        }
        let gpu = |(number, ordinal): (usize, usize)| {
            let options = DeviceOptions {
                preallocates: !options.allow_growth && kind == DeviceKind::Cuda,
                memory_fraction: options.memory_fraction,
                ..DeviceOptions::new(kind, ordinal)
            };
            let (device, opening) = (OnceLock::new(), Mutex::default());
            Arc::new(Gpu { number, options, device, opening, copies: Counters::default() })
        };
        let all: Vec<Arc<Gpu>> = ordinals.into_iter().take(limit).enumerate().map(gpu).collect();
        if all.is_empty() {
            return Self::missing(format!("the {} driver has no device", kind.name()));
        }
        Self { all, missing: None }
    }

    fn missing(reason: String) -> Self {
        Self { all: Vec::new(), missing: Some(reason) }
    }
}

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the host to a GPU.
    ToGpu,
    /// From a GPU to the host.
    ToHost,
    /// Within a GPU.
    OnGpu,
}

/// A copy of a traced run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    /// Number of the GPU.
    pub(crate) gpu: usize,
    pub(crate) direction: Direction,
    pub(crate) bytes: u64,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

thread_local! {
    /// Copies of the calling thread since [`start_recording`], if it records.
    static RECORDED: RefCell<Option<Vec<Copy>>> = const { RefCell::new(None) };
}

/// Records the copies of this thread until [`recorded_copies`].
pub(crate) fn start_recording() {
    let _ = RECORDED.try_with(|list| *list.borrow_mut() = Some(Vec::new()));
}

/// Returns the copies of this thread, and stops recording.
pub(crate) fn recorded_copies() -> Vec<Copy> {
    RECORDED.try_with(|list| list.borrow_mut().take()).ok().flatten().unwrap_or_default()
}

/// Copies, and records the copy if this thread records.
fn recorded<T>(gpu: usize, direction: Direction, len: usize, copy: impl FnOnce() -> Result<T>) -> Result<T> {
    let begin = Instant::now();
    let result = copy()?;
    let end = Instant::now();
    let _ = RECORDED.try_with(|list| {
        if let Some(list) = &mut *list.borrow_mut() {
            list.push(Copy { gpu, direction, bytes: len as u64, begin, end });
        }
    });
    Ok(result)
}
