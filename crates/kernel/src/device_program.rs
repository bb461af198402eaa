//! Programs of devices: one kernel for each planned fusion, and the steps of the host.

use crate::device::{Calls, DeviceCall, Grid, host};
use crate::lower::{Kernel, Names, check_count, kernel_name, parts};
use buffers::{BufferAssignment, Schedule};
use hlo::Module;
use nest::launch::{DeviceProgram, KernelFacts};
use nest::{FunctionId, Linkage};
use plan::{ModulePlan, Strategy};
use support::{Id as _, Result};
use target::Target;

/// Work of a kernel in nanoseconds of a processor from which running as one thread is worth a
/// remark.
const MUCH_WORK: u64 = 20_000;

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
                    needed: None,
                };
                let lowered =
                    kernel.lower(names.unique(&name), id).map_err(|error| error.context(described()))?;
                let Some((mut function, call)) = lowered else { continue };
                check_count(program.kernels.functions.len()).map_err(|error| error.context(described()))?;
                function.linkage = Linkage::Kernel { threads: grid.threads };
                program.kernels.functions.push(function);
                let nanoseconds = plan.work.nanoseconds();
                // The first step of a plan with several does its work; the others read the scratch.
                let is_later = matches!(plan.strategy, Strategy::Device(_)) && part.start > 0;
                program.facts.push(KernelFacts {
                    label: name.clone(),
                    operations: if is_later { 0 } else { plan.work.operations },
                    bytes: if is_later { plan.scratch_bytes } else { plan.work.bytes },
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
