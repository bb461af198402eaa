//! Flags that decide how far rounding may differ from that of a plain sum of products.

use clap::Args;
use compiler::{PlanOptions, Winograd};

/// Which fast algorithms convolutions may use.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct NumericsArgs {
    /// Let 3x3 convolutions use Winograd's F(4x4,3x3) too, which is faster than F(2x2,3x3), and whose rounding errors are 5
    /// to 10 times those of a plain sum
    #[arg(long, alias = "allow_winograd")]
    allow_winograd: bool,
    /// Compute every output of a convolution as a plain sum of products, without Winograd's transforms
    #[arg(long, conflicts_with = "allow_winograd")]
    precise: bool,
}

impl NumericsArgs {
    /// What the plan may do.
    pub(crate) fn options(self) -> PlanOptions {
        let winograd = match (self.allow_winograd, self.precise) {
            (true, _) => Winograd::Large,
            (_, true) => Winograd::Never,
            _ => Winograd::Small,
        };
        PlanOptions { winograd, ..PlanOptions::default() }
    }
}
