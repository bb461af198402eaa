//! Fourier transforms as products with constant matrices.

use crate::{Changed, Pass, expander};
use composite::fft::{MAX_LENGTH, fft};
use hlo::{FftType, Module, Op};
use support::Result;

/// `fft(x) =>` dots with matrices of roots of unity, one for each small factor of a length (see [`composite::fft`]).
///
/// Exact but for rounding. Transforms longer than 2^24 stay.
pub struct FftExpander;

impl Pass for FftExpander {
    fn name(&self) -> &'static str {
        "fft-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        expander::expand(
            module,
            "fft",
            |op, _| matches!(op, Op::Fft { fft_length, .. } if fft_length.iter().all(|&n| n <= MAX_LENGTH)),
            |op, result, operands| match op {
                // Whatever the lengths: nothing becomes nothing.
                Op::Fft { fft_type: FftType::Irfft, .. } if result.sizes().contains(&0) => {
                    operands[0].function().splat(result.element_type, &result.sizes(), 0.0)
                }
                Op::Fft { fft_type: FftType::Fft | FftType::Ifft, .. }
                    if operands[0].sizes().contains(&0) =>
                {
                    operands[0]
                }
                Op::Fft { fft_type, fft_length } => fft(operands[0], *fft_type, fft_length),
                _ => operands[0],
            },
        )
    }
}
