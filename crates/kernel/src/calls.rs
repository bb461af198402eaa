//! Kernel calls of a module and their arguments.

use buffers::Slice;
use hlo::{ComputationId, InstructionId};
use nest::FunctionId;
use std::collections::BTreeMap;

/// Calls of kernels, by instruction. Instructions without work have none.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    pub(crate) calls: BTreeMap<(ComputationId, InstructionId), Vec<Call>>,
}

/// A kernel and its arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: FunctionId,
    pub(crate) arguments: Vec<Slice>,
    /// Number of the first written argument; all later arguments are written too.
    pub(crate) written: usize,
    /// True if the kernel takes the workers' scratch as another argument, after the slices.
    pub(crate) takes_workers_scratch: bool,
    /// Number of tasks. A call with more than one task can run in parallel.
    pub(crate) tasks: i64,
    /// Planned duration on one core, in nanoseconds.
    pub(crate) nanoseconds: u64,
}
