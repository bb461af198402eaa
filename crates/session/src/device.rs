//! Devices: where nodes run. A trait covers memory, copies, compilation, and launches, so that
//! supporting another kind of machine means implementing that trait.

use crate::buffer::Buffer;
use crate::value::{Tensor, Value};
use compiler::{BackOptions, Compiled, Loadable, NoObserver};
use hlo::Module;
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

    /// Allocates uninitialized memory.
    fn allocate(&self, bytes: usize) -> Result<Buffer>;

    /// Copies a host tensor to the device.
    fn copy_in(&self, tensor: &Tensor) -> Result<Tensor>;

    /// Copies a tensor of the device to the host.
    fn copy_out(&self, tensor: &Tensor) -> Result<Tensor>;

    /// Compiles a module, or loads its code from the cache.
    fn compile(&self, module: Module, options: &BackOptions) -> Result<Loadable>;

    /// Compiles a module with counters that measure the time of each instruction. The result
    /// includes the compiled module and the counters.
    fn compile_counting(&self, module: Module, options: &BackOptions) -> Result<Compiled>;

    /// Runs code on the device's memory.
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

    fn allocate(&self, bytes: usize) -> Result<Buffer> {
        Buffer::uninitialized(bytes)
    }

    fn copy_in(&self, tensor: &Tensor) -> Result<Tensor> {
        self.copy(tensor)
    }

    fn copy_out(&self, tensor: &Tensor) -> Result<Tensor> {
        self.copy(tensor)
    }

    fn compile(&self, module: Module, options: &BackOptions) -> Result<Loadable> {
        compiler::compile_loadable(module, options)
    }

    fn compile_counting(&self, module: Module, options: &BackOptions) -> Result<Compiled> {
        compiler::compile_module(module, options, &mut NoObserver)
    }

    fn launch(&self, code: &jit::Executable, call: &mut jit::Call<'_, '_>) -> Result<()> {
        code.run(call)
    }
}

/// Transfers a value from one device to another.
pub(crate) fn transfer(value: &Value, from: &dyn Device, to: &dyn Device) -> Result<Value> {
    match value {
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

/// Creates the devices of a session: `cpus` host devices and one `XLA_CPU`.
pub(crate) fn all(cpus: usize) -> IdVec<DeviceId, Arc<dyn Device>> {
    let cpus = (0..cpus.max(1)).map(|number| Arc::new(Cpu::new(number, false)) as Arc<dyn Device>);
    cpus.chain([Arc::new(Cpu::new(0, true)) as Arc<dyn Device>]).collect()
}
