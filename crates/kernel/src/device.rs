//! Programs of devices: one kernel for each planned fusion, run by a grid of threads, and the steps
//! of the host that launch them.
//!
//! A kernel of several tasks has a thread for each task, or a grid that strides over them. A plan
//! with a grid of its own uses the threads of a workgroup together. A kernel with one task runs as
//! one thread: right, but slow. Nothing falls back to the processor.

mod contraction;
mod control;
mod grid;
mod host;
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
use crate::lower::{Kernel, Names, check_count, kernel_name, parts};
use crate::reduction::reduce_window;
use buffers::{BufferAssignment, Schedule, Slice};
use hlo::{ComputationId, InstructionId, Module};
use nest::launch::{DeviceProgram, KernelFacts};
use nest::{FunctionId, Linkage};
use plan::{DevicePlan, ModulePlan, WindowsPlan};
use std::collections::BTreeMap;
use support::{Id as _, Result};
use target::Target;

/// Alignment of the caller's device memory in bytes, which the runtime checks.
pub(crate) const CALLER_ALIGNMENT: u64 = 16;

/// Work of a kernel in nanoseconds of a processor from which running as one thread is worth a
/// remark.
const MUCH_WORK: u64 = 20_000;

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
    }
}

/// Calls of kernels, by instruction.
type Calls = BTreeMap<(ComputationId, InstructionId), Vec<DeviceCall>>;

/// Lowers a module to a program of a device.
///
/// Errors: `unsupported` for functions that users link, which run on the host, and for kernels that
/// the lowering cannot express.
pub fn lower_device(
    module: &Module,
    plan: &ModulePlan,
    schedule: &Schedule,
    assignment: &BufferAssignment,
    target: &Target,
) -> Result<DeviceProgram> {
    let mut program = DeviceProgram::default();
    let mut calls = Calls::new();
    let mut names = Names::default();
    for (&computation, sequence) in &schedule.sequences {
        for &instruction in sequence {
            let plan = &plan.computations[&computation].instructions[&instruction];
            if plan.strategy.has_no_kernel() {
                continue;
            }
            let name = kernel_name(module, computation, instruction);
            let described = || module[computation][instruction].described();
            for part in parts(module, plan, computation, instruction) {
                let grid = Grid::of(plan, &part, target);
                let id = FunctionId::from_index(program.kernels.functions.len());
                let kernel = Kernel {
                    module,
                    assignment,
                    target,
                    plan,
                    computation,
                    instruction,
                    part: part.clone(),
                    grid: Some(grid),
                };
                let lowered =
                    kernel.lower(names.unique(&name), id).map_err(|error| error.context(described()))?;
                let Some((mut function, call)) = lowered else { continue };
                check_count(program.kernels.functions.len()).map_err(|error| error.context(described()))?;
                function.linkage = Linkage::Kernel { threads: grid.threads };
                program.kernels.functions.push(function);
                let nanoseconds = plan.work.nanoseconds();
                program.facts.push(KernelFacts {
                    label: name.clone(),
                    operations: plan.work.operations,
                    bytes: plan.work.bytes,
                    is_serial: grid.groups * u64::from(grid.threads) == 1 && nanoseconds > MUCH_WORK,
                });
                if call.takes_workers_scratch {
                    let threads = grid.groups * u64::from(grid.threads);
                    let bytes = plan.worker_scratch_bytes.next_multiple_of(buffers::ALIGNMENT);
                    program.scratch_size = program.scratch_size.max(bytes * threads);
                }
                calls.entry((computation, instruction)).or_default().push(DeviceCall {
                    function: id,
                    arguments: call.arguments,
                    takes_workers_scratch: call.takes_workers_scratch,
                    groups: grid.groups,
                });
            }
        }
    }
    host::emit(module, schedule, assignment, &calls, &mut program)?;
    Ok(program)
}
