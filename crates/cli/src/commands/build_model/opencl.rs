//! `tfcompile build --emit opencl`: the kernels of a device program in OpenCL C.

use super::Build;
use crate::artifacts::kind::Kind;
use support::{Error, Result};

/// The target of kernels in OpenCL C.
const TARGET: &str = "opencl:c";

/// Selects a target with OpenCL C if a build writes it and the flags name no target.
///
/// Errors: `invalid` for another target, and for flags that select a processor.
pub(super) fn select(arguments: &mut Build) -> Result<()> {
    if !arguments.emit.contains(&Kind::OpenCl) {
        return Ok(());
    }
    if arguments.emit.contains(&Kind::C) {
        return Err(Error::invalid(
            "--emit: c is a program for processors, and opencl has kernels of OpenCL devices: build each alone",
        ));
    }
    let Some(name) = arguments.model.target.clone() else {
        let processor = [
            ("--target-triple", &arguments.model.target_triple),
            ("--target-cpu", &arguments.model.target_cpu),
            ("--target-features", &arguments.model.target_features),
        ];
        if let Some((flag, _)) = processor.iter().find(|(_, value)| value.is_some()) {
            return Err(refused(&format!("{flag} selects a processor")));
        }
        arguments.model.target = Some(TARGET.to_owned());
        return Ok(());
    };
    let devices = arguments.model.devices()?;
    if devices.iter().any(target::Target::is_opencl_c) {
        return Ok(());
    }
    Err(refused(&match devices.first().and_then(|device| device.gpu) {
        None => format!("--target={name} selects a processor"),
        Some(gpu) if gpu.capability > 0 => format!("--target={name} selects GPUs of CUDA"),
        Some(_) => format!("--target={name} selects SPIR-V"),
    }))
}

fn refused(why: &str) -> Error {
    Error::invalid(format!(
        "--emit=opencl writes kernels of OpenCL devices, but {why}: use --target={TARGET}, or remove opencl from --emit"
    ))
}
