//! The matrices of Winograd's transforms.
//!
//! In one dimension, with input `d`, window `g`, and output `y`: `y = A [(G g) * (B d)]`, where `*`
//! multiplies element by element (A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural
//! Networks, 2015, with B and A written transposed). In two dimensions, each matrix is applied to
//! the columns and then to the rows.

/// A transform F(m x m, r x r), with a window of r = 3 taps along each dimension, or 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    /// Outputs per patch along each dimension: m.
    pub outputs: i64,
    /// Rows of B: from the inputs of a patch to frequencies.
    pub input: &'static [&'static [f64]],
    /// Rows of G: from the window to frequencies.
    pub kernel: &'static [&'static [f64]],
    /// Rows of A: from frequencies to outputs.
    pub output: &'static [&'static [f64]],
    /// The factor of all outputs.
    pub scale: i64,
}

impl Transform {
    /// F(2x2,3x3), from the points 0, 1, -1, and infinity.
    pub const SMALL: Self = Self {
        outputs: 2,
        input: &[
            &[1.0, 0.0, -1.0, 0.0],
            &[0.0, 1.0, 1.0, 0.0],
            &[0.0, -1.0, 1.0, 0.0],
            &[0.0, 1.0, 0.0, -1.0],
        ],
        kernel: &[&[1.0, 0.0, 0.0], &[0.5, 0.5, 0.5], &[0.5, -0.5, 0.5], &[0.0, 0.0, 1.0]],
        output: &[&[1.0, 1.0, 1.0, 0.0], &[0.0, 1.0, -1.0, -1.0]],
        scale: 1,
    };

    /// F(2x2,3x3) with twice the kernel's matrix, which makes all numbers integers. Outputs are
    /// four times as large, and exact.
    pub const INTEGER: Self = Self {
        kernel: &[&[2.0, 0.0, 0.0], &[1.0, 1.0, 1.0], &[1.0, -1.0, 1.0], &[0.0, 0.0, 2.0]],
        scale: 4,
        ..Self::SMALL
    };

    /// F(1x1,1x1): nothing is transformed. Bytes become numbers of 16 bits.
    pub const IDENTITY: Self =
        Self { outputs: 1, input: &[&[1.0]], kernel: &[&[1.0]], output: &[&[1.0]], scale: 1 };

    /// F(4x4,3x3), from the points 0, 1, -1, 2, -2, and infinity.
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
            &[1.0 / 4.0, 0.0, 0.0],
            &[-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
            &[-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
            &[1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
            &[1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
            &[0.0, 0.0, 1.0],
        ],
        output: &[
            &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
            &[0.0, 1.0, -1.0, 2.0, -2.0, 0.0],
            &[0.0, 1.0, 1.0, 4.0, 4.0, 0.0],
            &[0.0, 1.0, -1.0, 8.0, -8.0, 1.0],
        ],
        scale: 1,
    };

    /// The transform with this many outputs, if it exists.
    pub const fn of_outputs(outputs: i64) -> Option<Self> {
        match outputs {
            2 => Some(Self::SMALL),
            4 => Some(Self::LARGE),
            _ => None,
        }
    }

    /// Taps of the window along each dimension.
    pub const fn window(&self) -> i64 {
        self.kernel[0].len() as i64
    }

    /// Inputs per patch along each dimension: n = m + 2 for a window of 3 taps.
    pub const fn size(&self) -> i64 {
        self.outputs + self.window() - 1
    }

    /// Frequencies per patch.
    pub const fn frequencies(&self) -> i64 {
        self.size() * self.size()
    }

    /// Costs of a patch per vector of channels, in multiply-adds: of the input, of the output
    /// (including moving the products through the cache), and of the kernel.
    pub(super) const fn costs(&self) -> (f64, f64, f64) {
        // Arithmetic, loads, and stores, which take twice as long.
        match self.outputs {
            1 => (1.0 + 2.0 + 2.0, 1.0 + 3.0, 1.0 + 2.0 + 2.0),
            2 => (32.0 + 16.0 + 32.0, 24.0 + 48.0 + 8.0, 28.0 + 9.0 + 32.0),
            _ => (144.0 + 36.0 + 72.0, 100.0 + 108.0 + 32.0, 90.0 + 9.0 + 72.0),
        }
    }
}

/// The transform F(3x3, 2x2) of a kernel gradient: the gradient's pixels act as the window, and the
/// taps as the output. The factors 1/2 of the window's matrix are moved to the output's, so that
/// transforming the gradient takes additions only; both are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientTransform;

impl GradientTransform {
    /// Pixels of the gradient per patch along each dimension.
    pub const PIXELS: i64 = 2;

    /// Input pixels that they meet along each dimension: taps plus pixels minus one.
    pub const SIZE: i64 = 4;

    /// Frequencies per patch.
    pub const FREQUENCIES: i64 = Self::SIZE * Self::SIZE;

    /// Rows of B: from the input's pixels to frequencies.
    pub const INPUT: &'static [&'static [f64]] = Transform::SMALL.input;

    /// Rows of G: from the gradient's pixels to frequencies.
    pub const GRADIENT: &'static [&'static [f64]] = &[&[1.0, 0.0], &[1.0, 1.0], &[1.0, -1.0], &[0.0, 1.0]];

    /// Rows of A: from frequencies to taps.
    pub const OUTPUT: &'static [&'static [f64]] =
        &[&[1.0, 0.5, 0.5, 0.0], &[0.0, 0.5, -0.5, 0.0], &[0.0, 0.5, 0.5, -1.0]];

    /// Costs per vector of features, in multiply-adds: a patch of the input, a patch of the
    /// gradient, and the sums.
    pub(super) const fn costs() -> (f64, f64, f64) {
        // Arithmetic, loads, and stores, which take twice as long.
        (32.0 + 16.0 + 32.0, 12.0 + 4.0 + 32.0, 35.0 + 16.0 + 18.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In exact arithmetic, the three matrices compute a correlation if they do so for each pair of
    /// unit vectors.
    #[test]
    fn the_matrices_compute_a_correlation() {
        for transform in [Transform::SMALL, Transform::LARGE, Transform::INTEGER, Transform::IDENTITY] {
            let scale = (transform.scale as f64).sqrt();
            let n = transform.size() as usize;
            assert_eq!((transform.input.len(), transform.kernel.len()), (n, n));
            assert_eq!(transform.output.len(), transform.outputs as usize);
            for tap in 0..transform.window() as usize {
                for pixel in 0..n {
                    for (output, row) in transform.output.iter().enumerate() {
                        let product = |f: usize| transform.kernel[f][tap] * transform.input[f][pixel];
                        let y: f64 = (0..n).map(|f| row[f] * product(f)).sum();
                        let expected = if output + tap == pixel { scale } else { 0.0 };
                        assert!(
                            (y - expected).abs() < 1e-15,
                            "F({}): {output}, {tap}, {pixel}",
                            transform.outputs
                        );
                    }
                }
            }
        }
    }

    /// Tap `t` sums pixel `t + k` of the input times pixel `k` of the gradient.
    #[test]
    fn the_gradient_matrices_compute_a_correlation() {
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
