//! Options of the caller.

use crate::choices::Choices;
use crate::contraction::convolution::Winograd;
use crate::packing::Packings;
use shape::PrimitiveType;
use std::sync::Arc;

/// The type to which contractions of `f32` with constant weights round their operands. Sums are
/// `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// `f32`: operands are not rounded.
    #[default]
    F32,
    /// `bf16`.
    Bf16,
    /// `f16`.
    F16,
}

impl Precision {
    /// Returns the name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// Returns the type to which operands are rounded; `None` for `f32`.
    pub const fn narrow_type(self) -> Option<PrimitiveType> {
        match self {
            Self::F32 => None,
            Self::Bf16 => Some(PrimitiveType::Bf16),
            Self::F16 => Some(PrimitiveType::F16),
        }
    }
}

/// Decisions that the caller makes for the planner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Winograd transforms that convolutions may use. They change how results are rounded.
    pub winograd: Winograd,
    /// True if matrix units of devices may multiply `f32` as TF32, with 10 bits of fraction.
    pub allow_tf32: bool,
    /// The type of the products of contractions with constant weights.
    pub precision: Precision,
    /// Measured choices. The planner decides for kernels without one.
    pub choices: Arc<Choices>,
    /// Constants that were packed, for other plans of the same module.
    pub packings: Packings,
}
