//! Whether compiled code computes what its HLO says: against the evaluator, on random and on edge inputs.
//!
//! Two questions, each with its own judge:
//! - *Kernel by kernel*: is the code of each kernel right? Each is compiled alone and gets the very operands that the
//!   evaluator has at that place, so that no error of an earlier one hides or excuses it; the first that fails is where the
//!   program diverges. Then it gets edge inputs: zeros, ones, negative, large, subnormal numbers, NaN and infinities.
//! - *The whole program*: do the fetches agree with the evaluator on the module as imported? That judges the passes, the
//!   buffers and the order of the kernels. Where it fails and no kernel does, the passes are run one by one to find the one
//!   that changes what the module computes.
//!
//! How far correct code may be from the evaluator is estimated for each element ([`analysis`](self)); what cannot be decided
//! (an overflow that depends on the order of a sum) is counted, not judged.

mod analysis;
mod batch_norm;
mod compare;
mod estimate;
mod kernel_check;
mod map;
mod order;
mod own;
mod program_check;
mod report;
mod rules;
mod sums;
mod transforms;

pub use compare::{Comparison, Mismatch};
pub use kernel_check::KernelCheck;
pub use program_check::{ProgramCheck, compare_run};

use crate::kernels::program_cost;
use compiler::Executable;
use hlo::Module;
use support::Result;

/// Makes code of a module that needs no passes.
pub type Compile<'a> = &'a (dyn Fn(Module) -> Result<Executable> + Sync);

/// What is judged.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The module as imported: what the program means. Sizes of bounded results are results.
    pub imported: &'a Module,
    /// The module after the passes: what the code was made from.
    pub optimized: &'a Module,
    /// The names of the entry's results.
    pub results: &'a [String],
    /// How many of the entry's parameters are feeds; variables follow.
    pub feeds: usize,
    /// The code of the whole.
    pub program: &'a Executable,
    /// Makes code of a kernel.
    pub compile: Compile<'a>,
}

/// How much to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyOptions {
    /// The seed of random inputs.
    pub seed: u64,
    /// Programs of no more flops are compared as a whole on every kind of input, with an estimate for each element.
    pub small_program: u64,
    /// Programs of no more flops are compared as a whole with an estimate for each element, on random inputs.
    pub estimated_program: u64,
    /// Kernels of no more flops get every kind of input; others random and special ones.
    pub small_kernel: u64,
    /// How many of the kernels that differ in names and constants only are checked in large programs.
    pub alike: usize,
}

impl Default for VerifyOptions {
    /// Minutes for the largest models.
    fn default() -> Self {
        Self {
            seed: 0,
            small_program: 200_000_000,
            estimated_program: 1_500_000_000,
            small_kernel: 50_000_000,
            alike: 2,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyReport {
    /// The whole program, for each kind of input.
    pub programs: Vec<ProgramCheck>,
    /// The kernels, in order of execution.
    pub kernels: Vec<KernelCheck>,
    /// The pass that changes what the module computes, if one does.
    pub guilty_pass: Option<String>,
}

/// Compares a program with the evaluator. `progress` hears what is about to be checked, how many kernels are done and how
/// many there are.
pub fn verify(
    subject: &Subject<'_>,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(&str, usize, usize),
) -> Result<VerifyReport> {
    let kernels = kernel_check::check(subject, options, progress)?;
    let programs = program_check::check(subject, options, program_cost(subject.optimized).flops, progress)?;
    let mut report = VerifyReport { programs, kernels, guilty_pass: None };
    if report.first_failed_kernel().is_none()
        && let Some(failed) = report.programs.iter().find(|program| !program.passed())
    {
        progress("the passes, one by one", report.kernels.len(), report.kernels.len());
        report.guilty_pass = program_check::guilty_pass(subject, failed.fill, options)?;
    }
    Ok(report)
}

impl VerifyReport {
    /// Whether everything is right.
    pub fn passed(&self) -> bool {
        self.programs.iter().all(ProgramCheck::passed) && self.first_failed_kernel().is_none()
    }

    /// Where the program diverges first.
    pub fn first_failed_kernel(&self) -> Option<&KernelCheck> {
        self.kernels.iter().find(|kernel| !kernel.passed())
    }
}
