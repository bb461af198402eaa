//! Buffers: the order in which instructions run, and the memory in which each value lives.
//!
//! The input is an optimized module and its plan; the output is a [`Schedule`] and a
//! [`BufferAssignment`]. Both are pure functions of the input, and the assignment prints with
//! [`BufferAssignment::to_text`]. `kernel` turns the assignment into addresses.
//!
//! # Memory
//!
//! Every array lives in one of four kinds of [`Allocation`]: the caller's memory for a parameter or
//! for a result, one block of temporaries, or one block of constants. A [`Slice`] is a range of
//! bytes in an allocation. Temporaries and constants start at multiples of [`ALIGNMENT`] bytes. All
//! sizes are known at compile time, so compiled code never allocates memory.
//!
//! # Steps
//!
//! 1. [`schedule()`] orders the instructions of each computation. An instruction that overwrites a
//!    value comes after the other readers of that value wherever the data flow allows it, which
//!    makes in-place updates possible.
//! 2. `timeline` computes liveness: for each value, the interval from its definition to its last
//!    use, on one time line for the whole module.
//! 3. `sharing` merges values into classes that share memory. Two values may share memory if they
//!    are never live at the same time. They may also meet in one instruction that the plan allows
//!    to write its result over an operand. Results, variables, and loop state are thus computed
//!    where they belong, without a copy.
//! 4. `pack` assigns offsets in the block of temporaries; `constants` lays out the block of
//!    constants and stores equal constants once. A [`ConstantsPool`] shares that block between the
//!    versions of the code for several processors.
//! 5. Where a value is needed in two places, a copy remains ([`CopyPair`]). A loop whose state
//!    cannot be updated in place exchanges addresses instead ([`Rotation`]).
//!
//! # Checking
//!
//! [`check()`] replays the schedule over symbolic memory and reports the first kernel that would
//! read wrong bytes. It uses neither the intervals nor the classes above, so a mistake in them does
//! not hide itself. It runs on every compilation.

mod assign;
mod check;
mod classes;
mod constants;
mod live;
mod moves;
mod order;
mod pack;
mod print;
mod schedule;
mod sharing;
mod timeline;
mod values;

pub use assign::assign;
pub use check::check;
pub use constants::{ConstantsBlock, ConstantsPool};
pub use live::{Liveness, liveness};
pub use schedule::{Schedule, schedule};

use hlo::{ComputationId, InstructionId};
use shape::ShapeIndex;
use std::collections::{BTreeMap, BTreeSet};

/// Alignment in bytes of temporaries, constants, and packed constants.
pub const ALIGNMENT: u64 = 64;

/// A block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allocation {
    /// The caller's memory for an entry parameter, aligned as its element type.
    Parameter(usize),
    /// The caller's memory for an element of the entry's result. An in-out result uses its
    /// parameter's memory instead.
    Result(usize),
    /// The block of temporaries.
    Temps,
    /// The block of constants, which is never written.
    Constants,
}

/// A range of bytes in an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slice {
    /// The allocation.
    pub allocation: Allocation,
    /// Offset from its start in bytes.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
}

/// A copy from one slice to another of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPair {
    /// Source.
    pub from: Slice,
    /// Destination.
    pub to: Slice,
}

/// Places whose contents a loop exchanges instead of copying them. After an iteration, each place
/// has the content of the next one in the list, and the last place has that of the first. The code
/// that runs the loop keeps their addresses in variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The places, all of the same size.
    pub places: Vec<Slice>,
    /// The places whose content is needed after the loop, where it must be back at its own address.
    pub state: Vec<Slice>,
    /// Temporary memory for each of these places, through which their contents move back; empty if
    /// there is only one such place.
    pub stages: Vec<Slice>,
}

/// An array leaf of an instruction's result.
pub type Leaf = (ComputationId, InstructionId, ShapeIndex);

/// The memory of every value.
#[derive(Clone, Debug, Default)]
pub struct BufferAssignment {
    /// The slice of every array leaf of every instruction that a kernel reads or writes.
    pub slices: BTreeMap<Leaf, Slice>,
    /// The scratch of instructions that need some.
    pub scratch: BTreeMap<(ComputationId, InstructionId), Slice>,
    /// The packed constants, by their position in the instruction's plan.
    pub packed: BTreeMap<(ComputationId, InstructionId, usize), Slice>,
    /// Copies of the initial state at the start of a while loop.
    pub start_copies: BTreeMap<(ComputationId, InstructionId), Vec<CopyPair>>,
    /// Copies at the end of a computation, in order, of root values that are not computed in place.
    pub end_copies: BTreeMap<ComputationId, Vec<CopyPair>>,
    /// Places whose contents a while loop exchanges after each run of its body, before the body's
    /// end copies. A place is in at most one rotation of a loop.
    pub rotations: BTreeMap<(ComputationId, InstructionId), Vec<Rotation>>,
    /// Number of results with memory of their own. The results after them are sizes of bounded
    /// dimensions, which are stored consecutively in one list.
    pub result_count: usize,
    /// Places that may hold the address of an entry parameter, which is aligned only as its element
    /// type.
    pub weakly_aligned: BTreeSet<Slice>,
    /// Size of the block of temporaries.
    pub temps_size: u64,
    /// Maximum of the bytes that are live at one time in this order of execution: no assignment has
    /// a smaller block.
    pub temps_lower_bound: u64,
    /// Size of its first part, which persists from run to run and is zero before the first.
    pub persistent_size: u64,
    /// Bytes of scratch for each worker of a parallel loop, a multiple of 64. Workers share none of
    /// it.
    pub worker_scratch_size: u64,
}

impl BufferAssignment {
    /// The slice of an array leaf. Panics for a leaf that nothing reads or writes.
    pub fn slice(&self, computation: ComputationId, instruction: InstructionId, index: &[usize]) -> Slice {
        let leaf = (computation, instruction, index.to_vec());
        *self
            .slices
            .get(&leaf)
            .unwrap_or_else(|| panic!("{computation} {instruction} {index:?} has no slice"))
    }
}

impl Slice {
    /// True if both slices share a byte.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.allocation == other.allocation
            && self.offset < other.offset + other.size
            && other.offset < self.offset + self.size
    }
}
