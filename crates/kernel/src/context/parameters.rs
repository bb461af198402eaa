//! The parameters of a kernel's function: the memory of its operands, results, and scratch.

use crate::index::Index;
use nest::ValueId;
use shape::{ArrayShape, Literal, ShapeIndex};
use std::collections::{BTreeMap, BTreeSet};

/// An array in memory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Address of its first byte.
    pub pointer: ValueId,
    /// Element type and dimensions, row-major.
    pub shape: ArrayShape,
    /// Alignment in bytes: a power of two that divides the address.
    pub alignment: u32,
    /// Number of the element at `pointer`. Only elements from this one on are in memory.
    pub(crate) first: Index,
}

/// The last parameters of a kernel with several tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskRange {
    /// The first task.
    pub(crate) begin: ValueId,
    /// One past the last task.
    pub(crate) end: ValueId,
    /// Number of the worker that runs the tasks.
    pub(crate) worker: ValueId,
    /// Distance of the tasks that a call runs: 1, or the number of threads of a device's grid.
    pub(crate) step: i64,
}

/// An operand of the kernel.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// An array in memory.
    Memory(Memory),
    /// A constant whose elements are all equal: an immediate.
    Splat(Literal),
}

/// The parameters of a kernel's function.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    /// Operands, by number and leaf.
    pub(crate) operands: BTreeMap<(usize, ShapeIndex), Operand>,
    /// Leaves of the result.
    pub(crate) results: Vec<Memory>,
    /// Addresses of the packed constants, in the plan's order. They are 64-byte aligned.
    pub(crate) packed: Vec<ValueId>,
    /// Address of the scratch, 64-byte aligned, if the plan asks for some.
    pub(crate) scratch: Option<ValueId>,
    /// Address of worker 0's scratch, 64-byte aligned, if the plan asks for some. See
    /// `KernelContext::worker_scratch`.
    pub(crate) workers_scratch: Option<ValueId>,
    /// The range of tasks that a call of the kernel runs, if the kernel has several tasks.
    pub(crate) tasks: Option<TaskRange>,
    /// True if a result shares memory with an operand.
    pub(crate) is_in_place: bool,
    /// Pairs of an operand and a result that are called with the same address.
    pub(crate) same_memory: BTreeSet<(ValueId, ValueId)>,
}
