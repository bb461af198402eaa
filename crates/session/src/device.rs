//! Devices: where nodes run. A trait covers memory, copies, compilation, and launches, so that
//! supporting another kind of machine means implementing that trait.

use crate::buffer::Buffer;
use crate::gpu::Gpu;
use crate::value::{Tensor, Value};
use compiler::{BackOptions, Compiled, Executable, Loadable, NoObserver};
use hlo::{Module, Program};
use std::fmt;
use std::sync::Arc;
use support::{Error, IdVec, Result};

/// A device of this process.
pub trait Device: Send + Sync + fmt::Debug {
    /// Full name of the device, such as `/job:localhost/replica:0/task:0/device:CPU:0`.
    fn name(&self) -> &str;

    /// Device type, such as `CPU`.
    fn kind(&self) -> &str;

    /// True if the device runs only nodes that can be compiled.
    fn must_compile(&self) -> bool;

    /// True if clusters on the device are compiled for every shape, never run node by node.
    fn always_compiles(&self) -> bool;

    /// Allocates uninitialized memory.
    fn allocate(&self, bytes: usize) -> Result<Buffer>;

    /// Copies a host tensor to the device.
    fn copy_in(&self, tensor: &Tensor) -> Result<Tensor>;

    /// Copies a tensor of the device to the host.
    fn copy_out(&self, tensor: &Tensor) -> Result<Tensor>;

    /// Compiles a program, or loads its code from the cache.
    fn compile(&self, program: Program, options: &BackOptions) -> Result<Loadable>;

    /// Compiles a module with counters that measure the time of each instruction. The result
    /// includes the compiled module and the counters.
    fn compile_counting(&self, module: Module, options: &BackOptions) -> Result<Compiled>;

    /// Loads compiled code.
    fn load(&self, code: Loadable) -> Result<Executable>;

    /// Runs code on the host's memory.
    fn launch(&self, code: &jit::Executable, call: &mut jit::Call<'_, '_>) -> Result<()>;
}

support::id_type!(
    /// Device of a session.
    DeviceId,
    "d"
);

/// The first device. Nodes that request no device run here.
pub(crate) const HOST: DeviceId = DeviceId(0);

/// Prefix of full device names.
const PREFIX: &str = "/job:localhost/replica:0/task:0/device:";

/// The host, or its processor as a separate device that compiles every node and copies data in and
/// out.
#[derive(Debug)]
pub(crate) struct Cpu {
    name: String,
    is_xla: bool,
}

impl Cpu {
    /// Creates `CPU:number` or `XLA_CPU:number`.
    pub(crate) fn new(number: usize, is_xla: bool) -> Self {
        let kind = if is_xla { "XLA_CPU" } else { "CPU" };
        Self { name: format!("{PREFIX}{kind}:{number}"), is_xla }
    }

    fn copy(&self, tensor: &Tensor) -> Result<Tensor> {
        if self.is_xla {
            Ok(Tensor::new(tensor.shared_shape().clone(), Buffer::from_bytes(tensor.bytes())?))
        } else {
            Ok(tensor.clone())
        }
    }
}

impl Device for Cpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &str {
        if self.is_xla { "XLA_CPU" } else { "CPU" }
    }

    fn must_compile(&self) -> bool {
        self.is_xla
    }

    fn always_compiles(&self) -> bool {
        self.is_xla
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer> {
        Buffer::uninitialized(bytes)
    }

    fn copy_in(&self, tensor: &Tensor) -> Result<Tensor> {
        self.copy(tensor)
    }

    fn copy_out(&self, tensor: &Tensor) -> Result<Tensor> {
        self.copy(tensor)
    }

    fn compile(&self, program: Program, options: &BackOptions) -> Result<Loadable> {
        compiler::compile_loadable(program, options)
    }

    fn compile_counting(&self, module: Module, options: &BackOptions) -> Result<Compiled> {
        compiler::compile_module(module, options, &mut NoObserver)
    }

    fn load(&self, code: Loadable) -> Result<Executable> {
        code.load()
    }

    fn launch(&self, code: &jit::Executable, call: &mut jit::Call<'_, '_>) -> Result<()> {
        code.run(call)
    }
}

/// A GPU under one of its two names: `GPU`, or `XLA_GPU`, where every node is clustered.
#[derive(Debug)]
pub(crate) struct GpuDevice {
    name: String,
    is_xla: bool,
    gpu: Arc<Gpu>,
}

impl GpuDevice {
    fn new(gpu: &Arc<Gpu>, is_xla: bool) -> Self {
        let kind = if is_xla { "XLA_GPU" } else { "GPU" };
        Self { name: format!("{PREFIX}{kind}:{}", gpu.number()), is_xla, gpu: gpu.clone() }
    }
}

impl Device for GpuDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &str {
        if self.is_xla { "XLA_GPU" } else { "GPU" }
    }

    fn must_compile(&self) -> bool {
        true
    }

    fn always_compiles(&self) -> bool {
        self.is_xla
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer> {
        Buffer::uninitialized(bytes)
    }

    /// Returns the tensor itself: kernels copy their operands when they need them, and host ops
    /// placed on the GPU never do.
    fn copy_in(&self, tensor: &Tensor) -> Result<Tensor> {
        Ok(tensor.clone())
    }

    fn copy_out(&self, tensor: &Tensor) -> Result<Tensor> {
        tensor.on_host()?;
        Ok(tensor.clone())
    }

    fn compile(&self, program: Program, options: &BackOptions) -> Result<Loadable> {
        let target = compiler::device_target(self.gpu.device()?)?;
        compiler::compile_loadable(program, &BackOptions { devices: vec![target], ..options.clone() })
    }

    fn compile_counting(&self, _: Module, _: &BackOptions) -> Result<Compiled> {
        Err(Error::internal("a GPU's code has no counters"))
    }

    fn load(&self, code: Loadable) -> Result<Executable> {
        code.load_on(self.gpu.device()?.clone())
    }

    fn launch(&self, _: &jit::Executable, _: &mut jit::Call<'_, '_>) -> Result<()> {
        Err(Error::internal("a GPU's code runs on the GPU's memory"))
    }
}

/// A device and, if it is one, its GPU.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) gpu: Option<Arc<Gpu>>,
}

impl std::ops::Deref for Place {
    type Target = dyn Device;

    fn deref(&self) -> &Self::Target {
        &*self.device
    }
}

impl Place {
    /// True if both have the same memory and run the same code.
    fn is_same_memory(&self, other: &Self) -> bool {
        match (&self.gpu, &other.gpu) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Identifies the code of kernels: kernels for one cannot run on another.
    pub(crate) fn code_key(&self) -> String {
        match &self.gpu {
            Some(gpu) => format!("GPU {}", gpu.number()),
            None => self.device.kind().to_owned(),
        }
    }

    /// True if [`Self::code_key`] is this one. Cheaper than creating it.
    pub(crate) fn has_code_key(&self, key: &str) -> bool {
        match &self.gpu {
            Some(gpu) => key.strip_prefix("GPU ").is_some_and(|number| number.parse() == Ok(gpu.number())),
            None => self.device.kind() == key,
        }
    }
}

/// Transfers a value from one device to another.
pub(crate) fn transfer(value: &Value, from: &Place, to: &Place) -> Result<Value> {
    match value {
        _ if from.is_same_memory(to) => Ok(value.clone()),
        Value::Tensor(tensor) => Ok(to.copy_in(&from.copy_out(tensor)?)?.into()),
        // Handles stay unchanged: placement puts the user of a handle on the device of its target.
        Value::Resource(_) | Value::Reference(_) => Ok(value.clone()),
        Value::Strings(_) | Value::List(_) if !from.must_compile() && !to.must_compile() => Ok(value.clone()),
        other => Err(Error::invalid(format!(
            "{} cannot be copied from {} to {}: place both nodes on one device",
            other.kind(),
            from.name(),
            to.name()
        ))),
    }
}

/// Creates the devices of a session: `cpus` host devices, one `XLA_CPU`, and two for each GPU.
pub(crate) fn all(cpus: usize, gpus: &[Arc<Gpu>]) -> IdVec<DeviceId, Place> {
    let on_host = |device| Place { device: Arc::new(device), gpu: None };
    let cpus = (0..cpus.max(1)).map(|number| on_host(Cpu::new(number, false)));
    let gpus = gpus.iter().flat_map(|gpu| {
        [false, true]
            .map(|is_xla| Place { device: Arc::new(GpuDevice::new(gpu, is_xla)), gpu: Some(gpu.clone()) })
    });
    cpus.chain([on_host(Cpu::new(0, true))]).chain(gpus).collect()
}
