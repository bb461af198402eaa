//! The kernels of a module and what they are called with.

use buffers::Slice;
use hlo::{ComputationId, InstructionId};
use nest::FunctionId;
use std::collections::BTreeMap;

/// The calls of kernels; instructions with nothing to do have none.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    pub(crate) calls: BTreeMap<(ComputationId, InstructionId), Vec<Call>>,
}

/// A kernel and what it is called with.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: FunctionId,
    pub(crate) arguments: Vec<Slice>,
    /// The first of the arguments that it writes; all behind it are written.
    pub(crate) written: usize,
    /// Whether the scratch of the workers is an argument, behind the slices.
    pub(crate) takes_workers_scratch: bool,
    /// How many tasks there are; more than 1 is a parallel call.
    pub(crate) tasks: i64,
    /// What it does, as the plan has it, in nanoseconds of one core.
    pub(crate) nanoseconds: u64,
}
