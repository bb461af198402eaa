//! Kinds of devices by name, and the targets of open devices.

use jit::{Device, DeviceKind};
use support::{Code, Error, Result};
use target::Target;

/// Returns the kind of devices with a name: `cuda` or `opencl`.
pub fn device_kind(name: &str) -> Result<DeviceKind> {
    match name {
        "cuda" => Ok(DeviceKind::Cuda),
        "opencl" => Ok(DeviceKind::OpenCl),
        _ => Err(Error::invalid(format!("unknown kind of device '{name}': expected cuda or opencl"))
            .coded(Code::Target)),
    }
}

/// Returns the target of the code for an open device.
pub fn device_target(device: &Device) -> Result<Target> {
    match device.kind() {
        DeviceKind::OpenCl if device.info()?.takes_spirv => Target::opencl(),
        DeviceKind::OpenCl => Target::opencl_c(),
        DeviceKind::Cuda => Target::cuda(&cuda_architecture(device.info()?.architecture)),
    }
}

/// Returns LLVM's name for a compute capability. Only the `a` architectures have the instructions
/// of the newest matrix units.
fn cuda_architecture(capability: u32) -> String {
    let own = if [90, 100, 120].contains(&capability) { "a" } else { "" };
    format!("sm_{capability}{own}")
}
