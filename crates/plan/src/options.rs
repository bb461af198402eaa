//! Options of the caller.

use crate::choices::Choices;
use crate::contraction::convolution::Winograd;
use std::sync::Arc;

/// Decisions that the caller makes for the planner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Winograd transforms that convolutions may use. They change how results are rounded.
    pub winograd: Winograd,
    /// True if matrix units of devices may multiply `f32` as TF32, with 10 bits of fraction.
    pub allow_tf32: bool,
    /// Measured choices. The cost models decide for kernels without one.
    pub choices: Arc<Choices>,
}
