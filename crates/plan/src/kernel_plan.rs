//! The plan of one kernel, independent of its strategy.

use crate::candidate::Candidate;
use crate::packing::PackedConstant;
use crate::tasks::Work;

/// The plan of one kernel: its code, described by an `S`, and the resources that the code needs.
#[derive(Clone, Debug)]
pub struct KernelPlan<S> {
    /// The kind of code and its parameters.
    pub strategy: S,
    /// Constant operands in the kernel's own layout. The kernel does not read the operand itself.
    pub packed: Vec<PackedConstant>,
    /// Bytes of 64-byte aligned scratch memory for one call.
    pub scratch_bytes: u64,
    /// Number of tasks into which the kernel's work is divided; 1 is serial. Tasks write disjoint
    /// memory, and each computes the same bits on any worker. The number therefore depends on the
    /// work alone, never on the number of workers.
    pub tasks: i64,
    /// Estimated work of the kernel; zero if the instruction needs no kernel.
    pub work: Work,
    /// Bytes of 64-byte aligned scratch memory per worker; one task uses it at a time.
    pub worker_scratch_bytes: u64,
    /// Operands whose memory the array result may reuse if they have no later reader. Element `i`
    /// of the result is written after the last read of element `i` of the operand, and the kernel
    /// reads that element of the operand no more.
    pub may_overwrite: Vec<usize>,
    /// The same for each leaf of a tuple result: (index of the leaf, index of the operand).
    pub leaves_may_overwrite: Vec<(usize, usize)>,
    /// The candidate that the caller's [`Options`](crate::Options) selected, if any.
    pub tuned: Option<Candidate>,
}

impl<S> KernelPlan<S> {
    /// A plan with this strategy that needs no further resources.
    pub fn new(strategy: S) -> Self {
        Self {
            strategy,
            packed: Vec::new(),
            scratch_bytes: 0,
            tasks: 1,
            work: Work::default(),
            worker_scratch_bytes: 0,
            may_overwrite: Vec::new(),
            leaves_may_overwrite: Vec::new(),
            tuned: None,
        }
    }

    /// Replaces the strategy.
    pub(crate) fn map<T>(self, map: impl FnOnce(S) -> T) -> KernelPlan<T> {
        KernelPlan {
            strategy: map(self.strategy),
            packed: self.packed,
            scratch_bytes: self.scratch_bytes,
            tasks: self.tasks,
            work: self.work,
            worker_scratch_bytes: self.worker_scratch_bytes,
            may_overwrite: self.may_overwrite,
            leaves_may_overwrite: self.leaves_may_overwrite,
            tuned: self.tuned,
        }
    }
}
