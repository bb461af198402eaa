//! What a program's kernels can be computed by, for whoever measures it; see [`plan::tuning`].

pub use plan::candidates;
pub use plan::tuning::{Choices, MAX_BYTES, machine};

use hlo::{Computation, InstructionId, Module};

/// What the plan knows of an instruction's kernel, as text, if it is a contraction's.
pub fn kernel_of(module: &Module, computation: &Computation, id: InstructionId) -> Option<String> {
    plan::tuning::kernel(&plan::Fusion::of(module, computation, id).ok()?)
}
