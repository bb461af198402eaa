//! Compares compiled code with the evaluator on random and edge inputs.
//!
//! Verification answers two questions:
//! - *Kernel by kernel*: is the code of each kernel correct? Each kernel is compiled alone and gets
//!   exactly the operands that the evaluator has at that point, so that no earlier error hides or
//!   excuses its own. The first kernel that fails is where the program diverges. Each kernel also
//!   gets edge inputs: zeros, ones, negative, large, and subnormal numbers, NaN, and infinities.
//! - *The whole program*: do the fetches agree with the evaluator on the module as imported? This
//!   checks the passes, the buffers, and the order of the kernels. If it fails and no kernel does,
//!   the passes are run one by one to find the one that changes the module's results.
//!
//! The allowed distance between correct code and the evaluator is estimated for each element
//! ([`analysis`](self)). Undecidable elements (an overflow that depends on the order of a sum) are
//! counted, not judged.

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

use crate::Progress;
use crate::kernels::program_cost;
use compiler::Executable;
use hlo::Module;
use support::Result;

/// Compiles a module that needs no passes.
pub type Compile<'a> = &'a (dyn Fn(Module) -> Result<Executable> + Sync);

/// The program under test.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The module as imported, which defines the program's meaning. The sizes of bounded results
    /// are results.
    pub imported: &'a Module,
    /// The module after the passes, from which the code was generated.
    pub optimized: &'a Module,
    /// Names of the entry's results.
    pub results: &'a [String],
    /// Number of the entry's parameters that are feeds; variables follow.
    pub feeds: usize,
    /// Code of the whole program.
    pub program: &'a Executable,
    /// Compiles a kernel.
    pub compile: Compile<'a>,
}

/// Scope of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Seed of random inputs.
    pub seed: u64,
    /// Maximum flops for comparing a whole program on every kind of input, with an estimate for
    /// each element.
    pub small_program: u64,
    /// Maximum flops for comparing a whole program with an estimate for each element, on random
    /// inputs.
    pub estimated_program: u64,
    /// Maximum flops for checking a kernel on every kind of input. Larger ones get random and
    /// special inputs.
    pub small_kernel: u64,
    /// Number of kernels to check among those that differ only in names and constants, in large
    /// programs.
    pub alike: usize,
}

impl Default for VerifyOptions {
    /// Takes minutes for the largest models.
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

/// Results of a verification.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyReport {
    /// The whole program, for each kind of input.
    pub programs: Vec<ProgramCheck>,
    /// The kernels, in execution order.
    pub kernels: Vec<KernelCheck>,
    /// The pass that changes the module's results, if any.
    pub guilty_pass: Option<String>,
}

/// Compares a program with the evaluator. Calls `progress` with the next item to check, the number
/// of completed kernels, and the total.
pub fn verify(
    subject: &Subject<'_>,
    options: &VerifyOptions,
    progress: &mut Progress<'_>,
) -> Result<VerifyReport> {
    let kernels = kernel_check::check(subject, options, progress)?;
    let programs = program_check::check(subject, options, program_cost(subject.optimized).flops, progress)?;
    let mut report = VerifyReport { programs, kernels, guilty_pass: None };
    if report.first_failed_kernel().is_none()
        && let Some(failed) = report.programs.iter().find(|program| !program.passed())
    {
        progress("the passes, one by one", report.kernels.len(), report.kernels.len());
        report.guilty_pass = program_check::guilty_pass(subject, failed, options)?;
    }
    Ok(report)
}

/// Compares each kernel of a program with the evaluator, and not the whole.
pub fn verify_kernels(subject: &Subject<'_>, options: &VerifyOptions) -> Result<Vec<KernelCheck>> {
    kernel_check::check(subject, options, &mut |_, _, _| {})
}

impl VerifyReport {
    /// True if everything is correct.
    pub fn passed(&self) -> bool {
        self.programs.iter().all(ProgramCheck::passed) && self.first_failed_kernel().is_none()
    }

    /// Returns the first kernel that diverges.
    pub fn first_failed_kernel(&self) -> Option<&KernelCheck> {
        self.kernels.iter().find(|kernel| !kernel.passed())
    }
}
