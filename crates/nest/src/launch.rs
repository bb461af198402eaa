//! The host's part of a device program: which kernels run, in which order, and on which memory.
//!
//! The host runs the [`Step`]s in order. Kernels run one after another in the order of their
//! launches. Branches are predicated: every kernel has a guard, the address of an `I32` in the
//! control block that the program's own kernels set, and returns at once if that is 0. A loop whose
//! number of iterations is known is a [`Step::Repeat`]. The host launches other loops blindly in
//! batches and reads their guard after each batch, so nothing waits for the host inside of a batch.

use crate::language::{FunctionId, Program};

support::id_type!(
    /// An address that steps refer to.
    SlotId,
    "s"
);

/// A block of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// An argument.
    Argument(u32),
    /// A result.
    Result(u32),
    /// Temporaries, whose first part persists from run to run.
    Temps,
    /// Constants.
    Constants,
    /// The sizes of bounded dimensions, one list of `I64`.
    Sizes,
    /// The control block, which is zero at the start of each run. The status word is at its start:
    /// 0, or 1 plus the number of the message of the first failed check.
    Control,
    /// Scratch of one kernel at a time.
    Scratch,
    /// No memory: the null address.
    Null,
}

/// An address: a block and an offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The block.
    pub space: Space,
    /// Offset from its start in bytes.
    pub offset: u64,
}

/// One step of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs a kernel on a grid of workgroups.
    Launch {
        /// The kernel.
        kernel: FunctionId,
        /// Number of workgroups.
        groups: u64,
        /// One address for each parameter, the guard first.
        arguments: Vec<SlotId>,
    },
    /// Copies bytes, whatever the guards are.
    Copy {
        /// Destination.
        to: SlotId,
        /// Source.
        from: SlotId,
        /// Number of bytes.
        bytes: u64,
    },
    /// Repeats steps.
    Repeat {
        /// Number of repetitions.
        trips: u64,
        /// The steps.
        body: Vec<Self>,
    },
    /// Repeats steps while the guard is not 0.
    While {
        /// An `I32` that `before` sets: 0 after the last iteration.
        guard: SlotId,
        /// An `I32` after the guard that counts the iterations.
        count: SlotId,
        /// Computes the condition and updates the guard and the count.
        before: Vec<Self>,
        /// The guarded body.
        body: Vec<Self>,
    },
    /// Exchanges addresses: each slot takes the address of the next one, the last that of the
    /// first.
    Rotate(Vec<SlotId>),
    /// Ends a loop with rotations: gives the slots their own addresses again, after copying the
    /// contents of the first `states` of them there if they are elsewhere.
    Home {
        /// All slots of a rotation; those whose contents are needed come first.
        slots: Vec<SlotId>,
        /// Number of slots whose contents are needed.
        states: usize,
        /// Memory through which the contents move; empty if there is only one such slot.
        stages: Vec<SlotId>,
        /// Size of each content in bytes.
        bytes: u64,
    },
    /// Skips steps if the guard is 0, which the host waits for.
    Skip {
        /// An `I32`.
        guard: SlotId,
        /// The steps.
        body: Vec<Self>,
    },
}

/// A message of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The text for the user.
    pub text: String,
    /// The status that the entry returns.
    pub code: i32,
}

/// Facts about a kernel, for profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelFacts {
    /// The HLO instruction and its source node.
    pub label: String,
    /// Estimated multiply-adds and other operations.
    pub operations: u64,
    /// Estimated bytes that it reads and writes.
    pub bytes: u64,
    /// True if one thread or one workgroup does all the work, although the work is large.
    pub is_serial: bool,
}

/// The program of a device: kernels, and the steps of the host.
#[derive(Clone, Debug, Default)]
pub struct DeviceProgram {
    /// The kernels, and functions that they call.
    pub kernels: Program,
    /// Facts about each function of `kernels`.
    pub facts: Vec<KernelFacts>,
    /// All addresses.
    pub slots: Vec<Slot>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Messages of checks.
    pub messages: Vec<Message>,
    /// Size of the control block in bytes.
    pub control_size: u64,
    /// Size of the scratch in bytes.
    pub scratch_size: u64,
}

impl DeviceProgram {
    /// True if the host never waits in the middle of a run.
    pub fn is_static(&self) -> bool {
        fn all(steps: &[Step]) -> bool {
            steps.iter().all(|step| match step {
                Step::While { .. } | Step::Skip { .. } => false,
                Step::Repeat { body, .. } => all(body),
                _ => true,
            })
        }
        all(&self.steps)
    }
}
