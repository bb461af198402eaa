//! Fourier transforms of lengths with large prime factors, expressed by other transforms.

use super::expand::expand;
use crate::pass::{Changed, Pass};
use composite::fft::{MAX_LENGTH, fft};
use hlo::{FftType, Module, Op};
use support::Result;

/// `fft(x) =>` products with matrices of roots of unity, or arithmetic around transforms of lengths
/// that have kernels (see [`composite::fft`]).
///
/// Exact except for rounding. Transforms that have kernels, and those longer than 2^24, are left
/// unchanged.
pub struct FftExpander {
    /// Returns true if transforms of these lengths have a kernel.
    pub has_kernel: fn(FftType, &[i64]) -> bool,
}

impl Default for FftExpander {
    /// No transform has a kernel, so every transform is expanded.
    fn default() -> Self {
        Self { has_kernel: |_, _| false }
    }
}

impl Pass for FftExpander {
    fn name(&self) -> &'static str {
        "fft-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        expand(
            module,
            "fft",
            |op, shapes| match op {
                Op::Fft { fft_type, fft_length } => {
                    let has_kernel = !shapes.iter().any(|shape| shape.element_count() == 0)
                        && (self.has_kernel)(*fft_type, fft_length);
                    !has_kernel && fft_length.iter().all(|&n| n <= MAX_LENGTH)
                }
                _ => false,
            },
            |op, result, operands| match op {
                // Empty arrays stay empty, regardless of the lengths.
                Op::Fft { fft_type: FftType::Irfft, .. } if result.sizes().contains(&0) => {
                    operands[0].function().splat(result.element_type, &result.sizes(), 0.0)
                }
                Op::Fft { fft_type: FftType::Fft | FftType::Ifft, .. }
                    if operands[0].sizes().contains(&0) =>
                {
                    operands[0]
                }
                Op::Fft { fft_type, fft_length } => fft(operands[0], *fft_type, fft_length, self.has_kernel),
                _ => operands[0],
            },
        )
    }
}
