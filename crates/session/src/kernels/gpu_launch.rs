//! Kernel calls on a GPU: operands move there, and results stay there.

use super::Site;
use super::cache::{Kernel, Use};
use super::timing::{Results, Timing};
use crate::context::Context;
use crate::gpu::Gpu;
use crate::recorder::{GpuTrace, Recorder};
use crate::value::{Storage, Tensor, Value};
use jit::{DeviceCall, DeviceOperand, DeviceTrace};
use std::sync::Arc;
use support::{Error, Result};

/// Runs a kernel on a GPU. `states` are the variables that it uses.
pub(super) fn call(
    gpu: &Arc<Gpu>,
    site: &Site,
    kernel: &Arc<Kernel>,
    states: &mut [Option<Tensor>],
    cx: &Context<'_>,
    recorder: Option<&Recorder>,
) -> Result<Results> {
    let code = kernel.executable.code();
    let not_there = || Error::internal("an operand is not on the GPU");
    let feeds = kernel.feeds.iter().map(|&k| match &cx.inputs[k] {
        Value::Tensor(tensor) => tensor.moved_to(gpu),
        other => Err(Error::internal(format!("expected an array at input {k}, got {}", other.kind()))),
    });
    let feeds: Vec<Tensor> = feeds.collect::<Result<_>>()?;
    for (state, usage) in states.iter_mut().zip(&kernel.variables) {
        if let Some(state) = state
            && *usage != Use::Updates
        {
            *state = state.moved_to(gpu)?;
        }
    }
    let mut arguments: Vec<DeviceOperand<'_>> = Vec::with_capacity(code.interface().arguments().len());
    for feed in &feeds {
        arguments.push(DeviceOperand::Read(feed.storage().on(gpu)?.ok_or_else(not_there)?));
    }
    for (state, usage) in states.iter_mut().zip(&kernel.variables) {
        let Some(state) = state else { continue };
        arguments.push(match usage {
            Use::Updates => DeviceOperand::Write(state.make_mut_on(gpu)?),
            _ => DeviceOperand::Read(state.storage().on(gpu)?.ok_or_else(not_there)?),
        });
    }
    let results = kernel.results.iter().map(|shape| gpu.allocate(shape.byte_size() as usize));
    let mut results = results.collect::<Result<Vec<_>>>()?;
    let mut dynamic_sizes = vec![0; code.interface().size_count()];
    let mut trace = recorder.map(|_| DeviceTrace::default());
    let mut call = DeviceCall {
        arguments: &arguments,
        results: &mut results,
        dynamic_sizes: &mut dynamic_sizes,
        owner: (kernel.persistent_bytes > 0).then_some(site.node.name.as_str()),
        trace: trace.as_mut(),
    };
    let timing = Timing::of(kernel, recorder, || code.run_on_device(&mut call))?;
    if let Some((recorder, trace)) = recorder.zip(trace) {
        let trace = GpuTrace { gpu: gpu.number(), trace };
        recorder.launched(site.launch(kernel, timing.span, Vec::new(), Some(trace)));
    }
    let buffers = results.into_iter().map(|memory| Storage::of_gpu(memory, gpu.clone()));
    Ok(Results { buffers: buffers.collect(), dynamic_sizes, rows: None })
}
