//! Flags that bound how far rounding may deviate from a plain sum of products.

use clap::Args;
use compiler::{PlanOptions, Precision, Winograd};

/// Flags that select the algorithms for dots and convolutions.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct NumericsArgs {
    /// Allow Winograd's F(4x4,3x3) for 3x3 convolutions, which is faster than F(2x2,3x3) but has 5
    /// to 10 times the rounding error of a plain sum
    #[arg(long, alias = "allow_winograd")]
    allow_winograd: bool,
    /// Compute convolutions as plain sums of products, without Winograd's transforms
    #[arg(long, conflicts_with = "allow_winograd")]
    precise: bool,
    /// Allow NVIDIA's matrix instructions for f32 dots and convolutions. They round the operands to
    /// TF32, which has a mantissa of 10 bits
    #[arg(long, alias = "allow_tf32", conflicts_with = "precise")]
    allow_tf32: bool,
    /// Round the operands of dots and convolutions with constant weights to this type. Sums and all
    /// other operations stay in f32, and so do arguments and results
    #[arg(long, value_enum, value_name = "TYPE", default_value_t = PrecisionArg::F32)]
    precision: PrecisionArg,
}

/// Types of `--precision`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PrecisionArg {
    #[default]
    F32,
    Bf16,
    F16,
}

impl NumericsArgs {
    /// Returns the first flag that is given.
    pub(crate) fn given(self) -> Option<&'static str> {
        let given = [
            ("--allow-winograd", self.allow_winograd),
            ("--precise", self.precise),
            ("--allow-tf32", self.allow_tf32),
            ("--precision", self.precision != PrecisionArg::F32),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// Returns the plan's options with the algorithms that these flags allow.
    pub(crate) fn options(self) -> PlanOptions {
        let winograd = match (self.allow_winograd, self.precise) {
            (true, _) => Winograd::Large,
            (_, true) => Winograd::Never,
            _ => Winograd::Small,
        };
        let precision = match self.precision {
            PrecisionArg::F32 => Precision::F32,
            PrecisionArg::Bf16 => Precision::Bf16,
            PrecisionArg::F16 => Precision::F16,
        };
        PlanOptions { winograd, allow_tf32: self.allow_tf32, precision, ..PlanOptions::default() }
    }
}
