//! Contractions: dots and convolutions, and what they share.

pub(crate) mod attention;
pub(crate) mod bias;
pub(crate) mod block_float;
pub(crate) mod chain;
pub(crate) mod convolution;
pub(crate) mod dot;
pub(crate) mod epilogue;
pub(crate) mod extents;
pub(crate) mod grouping;
pub(crate) mod operands;
pub(crate) mod panels;
pub(crate) mod tile;
pub(crate) mod weights;

use crate::candidate::Candidate;
use crate::packing::Packings;
use convolution::Winograd;
use target::Target;

/// The target of a contraction's plan, and the caller's decisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planner<'a> {
    pub(crate) target: &'a Target,
    /// Winograd transforms that convolutions may use.
    pub(crate) winograd: Winograd,
    /// True if matrix units of devices may multiply `f32` as TF32.
    pub(crate) allow_tf32: bool,
    /// The candidate to plan instead of the planner's choice.
    pub(crate) candidate: Option<Candidate>,
    /// Constants that were packed before.
    pub(crate) packings: &'a Packings,
}
