//! The matrices of Winograd's transforms, and the transform of a constant kernel.
//!
//! Of one dimension, with input `d`, window `g` and output `y`: `y = A [(G g) * (B d)]`, the product taken element by
//! element (A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, 2015, with B and A written transposed). In
//! two dimensions each matrix is applied to the columns and then to the rows.

use super::WinogradPlan;
use super::dims::ConvolutionDims;
use crate::parallel::for_each_piece;
use bytes::Bytes;
use shape::{Literal, PrimitiveType, Scalar};

/// A transform F(m x m, 3 x 3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    /// Outputs of a patch along each dimension: m.
    pub outputs: i64,
    /// Rows of B: from the inputs of a patch to frequencies.
    pub input: &'static [&'static [f64]],
    /// Rows of G: from the window to frequencies.
    pub kernel: &'static [[f64; 3]],
    /// Rows of A: from frequencies to outputs.
    pub output: &'static [&'static [f64]],
}

impl Transform {
    /// F(2x2,3x3), of the points 0, 1, -1 and infinity.
    pub const SMALL: Self = Self {
        outputs: 2,
        input: &[
            &[1.0, 0.0, -1.0, 0.0],
            &[0.0, 1.0, 1.0, 0.0],
            &[0.0, -1.0, 1.0, 0.0],
            &[0.0, 1.0, 0.0, -1.0],
        ],
        kernel: &[[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]],
        output: &[&[1.0, 1.0, 1.0, 0.0], &[0.0, 1.0, -1.0, -1.0]],
    };

    /// F(4x4,3x3), of the points 0, 1, -1, 2, -2 and infinity.
    pub const LARGE: Self = Self {
        outputs: 4,
        input: &[
            &[4.0, 0.0, -5.0, 0.0, 1.0, 0.0],
            &[0.0, -4.0, -4.0, 1.0, 1.0, 0.0],
            &[0.0, 4.0, -4.0, -1.0, 1.0, 0.0],
            &[0.0, -2.0, -1.0, 2.0, 1.0, 0.0],
            &[0.0, 2.0, -1.0, -2.0, 1.0, 0.0],
            &[0.0, 4.0, 0.0, -5.0, 0.0, 1.0],
        ],
        kernel: &[
            [1.0 / 4.0, 0.0, 0.0],
            [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
            [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
            [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
            [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
            [0.0, 0.0, 1.0],
        ],
        output: &[
            &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
            &[0.0, 1.0, -1.0, 2.0, -2.0, 0.0],
            &[0.0, 1.0, 1.0, 4.0, 4.0, 0.0],
            &[0.0, 1.0, -1.0, 8.0, -8.0, 1.0],
        ],
    };

    /// The transform of so many outputs, if there is one.
    pub const fn of_outputs(outputs: i64) -> Option<Self> {
        match outputs {
            2 => Some(Self::SMALL),
            4 => Some(Self::LARGE),
            _ => None,
        }
    }

    /// Inputs of a patch along each dimension: n = m + 2.
    pub const fn size(&self) -> i64 {
        self.outputs + 2
    }

    /// Frequencies of a patch.
    pub const fn frequencies(&self) -> i64 {
        self.size() * self.size()
    }

    /// What a vector of channels of a patch costs: the input's, the output's (with the products' way through the cache), and
    /// the kernel's, in multiply-adds.
    pub(super) const fn costs(&self) -> (f64, f64, f64) {
        // Arithmetic, loads, and stores, which take twice as long.
        match self.outputs {
            2 => (32.0 + 16.0 + 32.0, 24.0 + 48.0 + 8.0, 28.0 + 9.0 + 32.0),
            _ => (144.0 + 36.0 + 72.0, 100.0 + 108.0 + 32.0, 90.0 + 9.0 + 72.0),
        }
    }
}

/// The transform F(3x3, 2x2) of a kernel's gradient: the gradient's pixels are the window, and the taps what it makes. The
/// halves of its window's matrix are the output's, so that transforming the gradient takes additions only; both are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientTransform;

impl GradientTransform {
    /// Pixels of the gradient in a patch, along each dimension.
    pub const PIXELS: i64 = 2;

    /// Input pixels that these meet, along each dimension: taps and pixels, less one.
    pub const SIZE: i64 = 4;

    /// Frequencies of a patch.
    pub const FREQUENCIES: i64 = Self::SIZE * Self::SIZE;

    /// Rows of B: from the input's pixels to frequencies.
    pub const INPUT: &'static [&'static [f64]] = Transform::SMALL.input;

    /// Rows of G: from the gradient's pixels to frequencies.
    pub const GRADIENT: &'static [&'static [f64]] = &[&[1.0, 0.0], &[1.0, 1.0], &[1.0, -1.0], &[0.0, 1.0]];

    /// Rows of A: from frequencies to taps.
    pub const OUTPUT: &'static [&'static [f64]] =
        &[&[1.0, 0.5, 0.5, 0.0], &[0.0, 0.5, -0.5, 0.0], &[0.0, 0.5, 0.5, -1.0]];

    /// What a vector of features costs: a patch of the input, one of the gradient, and the sums; in multiply-adds.
    pub(super) const fn costs() -> (f64, f64, f64) {
        // Arithmetic, loads, and stores, which take twice as long.
        (32.0 + 16.0 + 32.0, 12.0 + 4.0 + 32.0, 35.0 + 16.0 + 18.0)
    }
}

/// The panels `[outputs / panel][frequency][inputs][panel]` of a kernel `[3][3][inputs][outputs]`, computed in `f64` and
/// rounded once; the last panel is padded with zeros.
pub(super) fn panels(
    literal: &Literal,
    dims: &ConvolutionDims,
    plan: &WinogradPlan,
    accumulator: PrimitiveType,
) -> Bytes {
    // Floats of every kind are exact in `f64`; those of 32 bits are read where they are.
    let is_f32 = literal.array_shape().element_type == PrimitiveType::F32;
    let (bytes, numbers) = (literal.bytes(), if is_f32 { Vec::new() } else { numbers(literal) });
    let weight_at = |k: usize| match bytes.get(4 * k..4 * k + 4) {
        Some(&[a, b, c, d]) if is_f32 => f64::from(f32::from_ne_bytes([a, b, c, d])),
        _ => numbers[k],
    };
    let (inputs, outputs) = (dims.inputs as usize, dims.outputs as usize);
    let (width, frequencies) = (plan.panel as usize, plan.transform.frequencies() as usize);
    let element = accumulator.byte_size();
    let mut packed = vec![0u8; plan.kernel_bytes(dims, element as i64) as usize];
    let frequency_bytes = inputs * width * element;
    for_each_piece(&mut packed, frequencies * frequency_bytes, |number, packed| {
        let first = number * width;
        let mut window = [0.0; 9];
        let mut transformed = vec![0.0; frequencies];
        for input in 0..inputs {
            for column in 0..width.min(outputs - first) {
                for (tap, weight) in window.iter_mut().enumerate() {
                    *weight = weight_at((tap * inputs + input) * outputs + first + column);
                }
                transform_window(plan.transform, &window, &mut transformed);
                for (frequency, &value) in transformed.iter().enumerate() {
                    let to = frequency * frequency_bytes + (input * width + column) * element;
                    match accumulator {
                        PrimitiveType::F32 => {
                            packed[to..to + 4].copy_from_slice(&(value as f32).to_ne_bytes());
                        }
                        _ => packed[to..to + 8].copy_from_slice(&value.to_ne_bytes()),
                    }
                }
            }
        }
    });
    packed.into()
}

/// All elements.
fn numbers(literal: &Literal) -> Vec<f64> {
    let number = |scalar| match scalar {
        Scalar::Float(x) => x,
        Scalar::Signed(i) => i as f64,
        Scalar::Unsigned(i) => i as f64,
        Scalar::Pred(p) => f64::from(u8::from(p)),
        Scalar::Complex(re, _) => re,
    };
    literal.scalars().map(number).collect()
}

/// `G g G'` of a window of 3x3.
fn transform_window(transform: Transform, window: &[f64; 9], frequencies: &mut [f64]) {
    let n = transform.kernel.len();
    for (i, row) in transform.kernel.iter().enumerate() {
        let sums: [f64; 3] = std::array::from_fn(|c| (0..3).map(|r| row[r] * window[r * 3 + c]).sum());
        for (j, column) in transform.kernel.iter().enumerate() {
            frequencies[i * n + j] = (0..3).map(|c| column[c] * sums[c]).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In exact arithmetic the three matrices are a correlation: true if they are for each pair of unit vectors.
    #[test]
    fn the_matrices_are_a_correlation() {
        for transform in [Transform::SMALL, Transform::LARGE] {
            let n = transform.size() as usize;
            assert_eq!((transform.input.len(), transform.kernel.len()), (n, n));
            assert_eq!(transform.output.len(), transform.outputs as usize);
            for tap in 0..3 {
                for pixel in 0..n {
                    for (output, row) in transform.output.iter().enumerate() {
                        let product = |f: usize| transform.kernel[f][tap] * transform.input[f][pixel];
                        let y: f64 = (0..n).map(|f| row[f] * product(f)).sum();
                        let wanted = if output + tap == pixel { 1.0 } else { 0.0 };
                        assert!(
                            (y - wanted).abs() < 1e-15,
                            "F({}): {output}, {tap}, {pixel}",
                            transform.outputs
                        );
                    }
                }
            }
        }
    }

    /// Tap `t` is what pixel `t + k` of the input times pixel `k` of the gradient is.
    #[test]
    fn the_matrices_of_a_gradient_are_a_correlation() {
        for (tap, row) in GradientTransform::OUTPUT.iter().enumerate() {
            for (pixel, other) in (0..4).flat_map(|p| (0..2).map(move |k| (p, k))) {
                let product =
                    |f: usize| GradientTransform::GRADIENT[f][other] * GradientTransform::INPUT[f][pixel];
                let y: f64 = (0..4).map(|f| row[f] * product(f)).sum();
                assert_eq!(y, if tap + other == pixel { 1.0 } else { 0.0 }, "{tap}, {pixel}, {other}");
            }
        }
    }

    #[test]
    fn a_window_is_transformed_in_both_dimensions() {
        let window = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let mut found = [0.0; 16];
        transform_window(Transform::SMALL, &window, &mut found);
        // By hand: G g = [[1,2,3], [6,7.5,9], [2,2.5,3], [7,8,9]], and the same along the rows.
        let wanted =
            [[1.0, 3.0, 1.0, 3.0], [6.0, 11.25, 3.75, 9.0], [2.0, 3.75, 1.25, 3.0], [7.0, 12.0, 4.0, 9.0]];
        assert_eq!(found, wanted.concat()[..]);
    }
}
