//! The matrices of Winograd's transforms.
//!
//! Of one dimension, with input `d`, window `g` and output `y`: `y = A [(G g) * (B d)]`, the product taken element by
//! element (A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, 2015, with B and A written transposed). In
//! two dimensions each matrix is applied to the columns and then to the rows.

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
}
