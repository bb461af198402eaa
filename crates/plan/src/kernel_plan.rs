//! The plan of one kernel, whatever its strategy.

use crate::candidate::Candidate;
use crate::packing::PackedConstant;
use crate::tasks::Work;

/// The plan of one kernel: its code, of the kind that `S` says, and what the code needs.
#[derive(Clone, Debug)]
pub struct KernelPlan<S> {
    /// The code.
    pub strategy: S,
    /// Constant operands in the layout that the kernel wants. The kernel does not read the operand itself.
    pub packed: Vec<PackedConstant>,
    /// Bytes of 64-byte aligned scratch for one call.
    pub scratch_bytes: u64,
    /// Into how many tasks the kernel's work is cut; 1 is serial. Tasks write disjoint memory, and each computes the same
    /// bits whoever runs it, so the number depends on the work alone: never on how many workers there are.
    pub tasks: i64,
    /// What the kernel does, by rule of thumb; nothing for what needs no kernel.
    pub work: Work,
    /// Bytes of 64-byte aligned scratch for each worker; one task at a time uses it.
    pub worker_scratch_bytes: u64,
    /// Operands whose memory the (array) result may take over, if nobody reads them later: element `i` of the result
    /// is written after the last read of element `i` of the operand, and nothing else of it is read after that.
    pub may_overwrite: Vec<usize>,
    /// The same for each leaf of a result that is a tuple: number of the leaf, number of the operand.
    pub leaves_may_overwrite: Vec<(usize, usize)>,
    /// What the caller's [`Options`](crate::Options) said, if they did.
    pub tuned: Option<Candidate>,
}

impl<S> KernelPlan<S> {
    /// A strategy that needs nothing.
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
