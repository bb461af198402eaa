//! The grid of a kernel: how many workgroups and threads run it.

use plan::{GroupGrid, InstructionPlan, Strategy};
use std::ops::Range;
use target::Target;

/// Threads of a workgroup for kernels with many tasks.
const THREADS: u32 = 128;

/// Below this number of tasks, workgroups have the size of a warp, so that more multiprocessors
/// take part.
const FEW_TASKS: i64 = 8192;

/// Number of threads per multiprocessor from which on threads stride over the tasks instead.
const THREADS_PER_PROCESSOR: i64 = 2048 * 8;

/// Upper bound of the scratch of all threads in bytes.
const MAX_SCRATCH: u64 = 256 << 20;

/// Workgroups and threads of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) groups: u64,
    pub(crate) threads: u32,
}

impl Grid {
    /// Returns the grid of a part of a kernel: the plan's own, or enough threads for the tasks.
    pub(crate) fn of(plan: &InstructionPlan, part: &Range<usize>, target: &Target) -> Self {
        if let Strategy::Device(device) = &plan.strategy {
            let GroupGrid { groups, threads } = device.grid(part.start);
            return Self { groups, threads };
        }
        if plan.tasks <= 1 {
            return Self { groups: 1, threads: 1 };
        }
        let processors = target.gpu.map_or(1, |gpu| i64::from(gpu.processors));
        let mut most = processors * THREADS_PER_PROCESSOR;
        if let Some(threads) = MAX_SCRATCH.checked_div(plan.worker_scratch_bytes) {
            most = most.min(threads.max(1) as i64);
        }
        let tasks = plan.tasks.min(most);
        let threads = if tasks < FEW_TASKS { tasks.min(32) as u32 } else { THREADS };
        let groups = (tasks as u64).div_ceil(threads.into());
        let groups = if tasks == most { (most as u64 / u64::from(threads)).max(1) } else { groups };
        Self { groups, threads }
    }

    /// Number of threads of all workgroups.
    pub(crate) fn all_threads(self) -> i64 {
        self.groups as i64 * i64::from(self.threads)
    }
}
