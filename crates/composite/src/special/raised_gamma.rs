//! The gamma function by Stirling's formula, in two parts. Arguments below 16 are raised by 16.

use super::pair::Pair;

/// Stirling's series has full accuracy from here on.
const LEAST: f64 = 16.0;

/// `1/12` in two parts.
const TWELFTH: [f64; 2] = [0.08333333333333333, 4.625929269271485e-18];

/// The next coefficients of Stirling's series, highest power of `1 / A^2` first.
const STIRLING: &[f64] =
    &[1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0];

/// The coefficient of `1 / A^2` in `digamma(A + 1) - log(A)`, in two parts.
const DIGAMMA: [f64; 2] = [-0.08333333333333333, -4.625929269271485e-18];

/// The next coefficients of that series, highest power of `1 / A^2` first.
const DIGAMMA_REST: &[f64] =
    &[-1.0 / 12.0, 691.0 / 32_760.0, -1.0 / 132.0, 1.0 / 240.0, -1.0 / 252.0, 1.0 / 120.0];

/// `gamma(a + 1) = sqrt(2 pi A) (A / e)^A e^series / (ratio A^(A - a))`, where
/// `A - a` is either 0 or 16.
#[derive(Clone, Copy)]
pub(super) struct RaisedGamma<'f> {
    /// `A`.
    pub(super) argument: Pair<'f>,
    /// `1 / A`.
    pub(super) inverse: Pair<'f>,
    /// `(a + 1) ... (a + 16) / A^16`, or 1.
    pub(super) ratio: Pair<'f>,
    pub(super) series: Pair<'f>,
    /// `1 / (a + 1) + ... + 1 / (a + 16)`, or 0.
    inverses: Pair<'f>,
}

impl<'f> RaisedGamma<'f> {
    /// Evaluates the formula for a positive number that is not subnormal.
    pub(super) fn new(a: Pair<'f>) -> Self {
        let is_small = a.high.lt(LEAST);
        let [zero, one] = [0.0, 1.0].map(|number| Pair::from(a.high.splat(number)));
        let small = Pair::select(is_small, a, one);
        let raised = small + LEAST;
        // (a + k) (a + 17 - k) = a (a + 17) + k (17 - k)
        let square = small * (small + (LEAST + 1.0));
        let factors = (2..=8).map(|k| square + f64::from(k * (17 - k)));
        // The product, and its derivative with respect to the square.
        let (product, slope) = factors.fold((square + LEAST, one), |(product, slope), factor| {
            (product * factor, slope * factor + product)
        });
        let power = (0..4).fold(raised, |power, _| power * power);
        let argument = Pair::select(is_small, raised, a);
        let inverse = argument.inverse();
        let inverse_square = inverse.high * inverse.high;
        let rest = inverse.high * inverse_square * inverse_square.polynomial(STIRLING);
        RaisedGamma {
            argument,
            inverse,
            ratio: Pair::select(is_small, product / power, one),
            series: inverse * Pair::number(a.high, TWELFTH) + rest,
            inverses: Pair::select(is_small, slope * (small + small + (LEAST + 1.0)) / product, zero),
        }
    }

    /// `digamma(a + 1) - log(A)`.
    pub(super) fn digamma_less_log(&self) -> Pair<'f> {
        let inverse = self.inverse.high;
        let square = self.inverse * self.inverse;
        let rest = square.high * square.high * square.high.polynomial(DIGAMMA_REST);
        self.inverse * 0.5 + square * Pair::number(inverse, DIGAMMA) + rest - self.inverses
    }
}

/// `log(x f)` of a positive `x`, which may be subnormal, and a factor `f` from `2^-330` to `2^330`.
pub(super) fn log_of_product<'f>(x: Pair<'f>, factor: Pair<'f>) -> Pair<'f> {
    const SHIFT: f64 = 400.0;
    /// `SHIFT ln 2` in two parts.
    const LOG: [f64; 2] = [277.25887222397813, -6.7110242992170556e-15];
    let is_tiny = x.high.lt(2f64.powi(-600));
    let scale = is_tiny.select(x.high.splat(2f64.powf(SHIFT)), 1.0);
    let log = (Pair { high: x.high * scale, low: x.low * scale } * factor).log();
    log - Pair::select(is_tiny, Pair::number(x.high, LOG), Pair::from(x.high.splat(0.0)))
}
