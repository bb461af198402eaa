//! Kernels of devices, each run by a grid of threads, and the steps of the host that launch them.
//!
//! A kernel of several tasks has a thread for each task, or a grid that strides over them. A plan
//! with a grid of its own uses the threads of a workgroup together. A kernel with one task runs as
//! one thread: right, but slow. Nothing falls back to the processor.

mod contraction;
mod control;
mod grid;
pub(crate) mod host;
mod movement;
mod outputs;
mod reduce;
mod rows;
mod scan;
mod scatter;
mod sort;
mod team;
mod transpose;

pub(crate) use control::thread;
pub(crate) use grid::Grid;

use crate::context::KernelContext;
use crate::reduction::reduce_window;
use buffers::Slice;
use hlo::{ComputationId, InstructionId};
use nest::FunctionId;
use plan::{DevicePlan, WindowsPlan};
use std::collections::BTreeMap;
use support::Result;

/// Alignment of the caller's device memory in bytes, which the runtime checks.
pub(crate) const CALLER_ALIGNMENT: u64 = 16;

/// A kernel of the device and its arguments.
#[derive(Debug)]
pub(crate) struct DeviceCall {
    pub(crate) function: FunctionId,
    pub(crate) arguments: Vec<Slice>,
    pub(crate) takes_workers_scratch: bool,
    pub(crate) groups: u64,
}

/// Emits a step of a device plan.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &DevicePlan, step: usize) -> Result<()> {
    match plan {
        DevicePlan::Reduce(plan) => reduce::emit(cx, plan, step),
        DevicePlan::Rows(plan) => rows::emit(cx, plan),
        DevicePlan::Outputs(outputs) => outputs::emit(cx, outputs, step, plan.grid(step)),
        DevicePlan::Windows(WindowsPlan::Each(plan, _)) => reduce_window::emit_each(cx, plan),
        DevicePlan::Windows(WindowsPlan::Scan(plan)) => scan::emit(cx, plan),
        DevicePlan::Transpose(plan) => transpose::emit(cx, plan),
        DevicePlan::Copy(copy) => movement::concatenate(cx, copy, step, plan.grid(step)),
        DevicePlan::Update(update) => movement::update(cx, update, step, plan.grid(step)),
        DevicePlan::Scatter(scatter) => scatter::emit(cx, scatter, step, plan.grid(step)),
        DevicePlan::Sort(sort) => sort::emit(cx, sort, step, plan.grid(step)),
        DevicePlan::Contraction(plan) => contraction::emit(cx, plan, step),
        DevicePlan::Attention(plan) => contraction::attention::emit(cx, plan),
    }
}

/// Calls of kernels, by instruction.
pub(crate) type Calls = BTreeMap<(ComputationId, InstructionId), Vec<DeviceCall>>;
