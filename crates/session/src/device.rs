//! Devices: where nodes run. Memory, copies, compilation and launches stand behind one trait, so that another kind of machine
//! is another implementation of it.

use crate::buffer::Buffer;
use crate::value::{Tensor, Value};
use compiler::{BackOptions, Compiled, Loadable, NoObserver};
use hlo::Module;
use std::fmt;
use std::sync::Arc;
use support::{Error, IdVec, Result};

/// A device of this process.
pub trait Device: Send + Sync + fmt::Debug {
    /// Its full name, such as `/job:localhost/replica:0/task:0/device:CPU:0`.
    fn name(&self) -> &str;

    /// Its kind, such as `CPU`.
    fn kind(&self) -> &str;

    /// Whether only what can be compiled runs there.
    fn must_compile(&self) -> bool;

    /// Memory for so many bytes, of any content.
    fn allocate(&self, bytes: usize) -> Result<Buffer>;

    /// A tensor of the host, for use there.
    fn copy_in(&self, tensor: &Tensor) -> Result<Tensor>;

    /// A tensor of the device, for use on the host.
    fn copy_out(&self, tensor: &Tensor) -> Result<Tensor>;

    /// Code for a module, compiled or taken from where it is kept.
    fn compile(&self, module: Module, options: &BackOptions) -> Result<Loadable>;

    /// Code for a module that counts how long its instructions take, with all that is known of them.
    fn compile_counting(&self, module: Module, options: &BackOptions) -> Result<Compiled>;

    /// Runs code on memory of the device.
    fn launch(&self, code: &jit::Executable, call: &mut jit::Call<'_, '_>) -> Result<()>;
}

support::id_type!(
    /// Device of a session.
    DeviceId,
    "d"
);

/// The first device, where nodes run that ask for none.
pub(crate) const HOST: DeviceId = DeviceId(0);

/// What full names begin with.
const PREFIX: &str = "/job:localhost/replica:0/task:0/device:";

/// The host itself, or its processor as a device of its own: where all is compiled, and data is copied on and off.
#[derive(Debug)]
pub(crate) struct Cpu {
    name: String,
    is_xla: bool,
}

impl Cpu {
    /// `CPU:number`, or `XLA_CPU:number`.
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
        Buffer::of_any_content(bytes)
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

/// A value of one device for use on another.
pub(crate) fn moved(value: &Value, from: &dyn Device, to: &dyn Device) -> Result<Value> {
    match value {
        Value::Tensor(tensor) => Ok(to.copy_in(&from.copy_out(tensor)?)?.into()),
        // Handles stay what they are: who uses one is placed where it leads.
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

/// The devices of a session: so many of the host, and its processor as a device of its own.
pub(crate) fn all(cpus: usize) -> IdVec<DeviceId, Arc<dyn Device>> {
    let cpus = (0..cpus.max(1)).map(|number| Arc::new(Cpu::new(number, false)) as Arc<dyn Device>);
    cpus.chain([Arc::new(Cpu::new(0, true)) as Arc<dyn Device>]).collect()
}
