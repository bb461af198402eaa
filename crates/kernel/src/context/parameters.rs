//! The parameters of a kernel's function: where its operands, results, and scratch are.

use crate::index::Index;
use nest::ValueId;
use shape::{ArrayShape, Literal, ShapeIndex};
use std::collections::{BTreeMap, BTreeSet};

/// An array in memory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Its first byte.
    pub pointer: ValueId,
    /// Element type and dimensions, row-major.
    pub shape: ArrayShape,
    /// Bytes; a power of two that divides the address.
    pub alignment: u32,
    /// The number of the element at the first byte: only what lies behind is there.
    pub(crate) first: Index,
}

/// The parameters that stand last in a kernel of several tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskRange {
    /// The first task to do.
    pub(crate) begin: ValueId,
    /// One past the last.
    pub(crate) end: ValueId,
    /// The number of the worker that does them.
    pub(crate) worker: ValueId,
}

/// What an operand of the kernel is.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// An array in memory.
    Memory(Memory),
    /// A constant with the same element everywhere: an immediate.
    Splat(Literal),
}

/// The parameters of a kernel's function.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    /// Operands, by number and leaf.
    pub(crate) operands: BTreeMap<(usize, ShapeIndex), Operand>,
    /// The leaves of the result.
    pub(crate) results: Vec<Memory>,
    /// Packed constants: their first bytes, 64-byte aligned, in the plan's order.
    pub(crate) packed: Vec<ValueId>,
    /// The scratch's first byte, 64-byte aligned, if the plan asks for some.
    pub(crate) scratch: Option<ValueId>,
    /// The scratch of worker 0, 64-byte aligned, if the plan asks for some; see `KernelContext::worker_scratch`.
    pub(crate) workers_scratch: Option<ValueId>,
    /// The part of the tasks that a call of the kernel does, if it has several.
    pub(crate) tasks: Option<TaskRange>,
    /// True if a result shares memory with an operand.
    pub(crate) is_in_place: bool,
    /// Parameters that are called with one and the same address.
    pub(crate) same_memory: BTreeSet<(ValueId, ValueId)>,
}
