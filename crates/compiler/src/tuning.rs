//! Candidate algorithms for a program's kernels, for measurements; see [`plan::tuning`].

pub use plan::tuning::{Choices, MAX_BYTES, machine};
pub use plan::{candidates, rationale};

use hlo::{Computation, InstructionId, Module};

/// Description of an instruction's kernel for tuning, if it is a contraction.
pub fn kernel_of(module: &Module, computation: &Computation, id: InstructionId) -> Option<String> {
    plan::tuning::kernel(&plan::Fusion::of(module, computation, id).ok()?)
}
