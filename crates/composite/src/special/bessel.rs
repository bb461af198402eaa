//! Modified Bessel functions by the Chebyshev series of the Cephes library. Below 1, those of the
//! first kind use their power series.

use super::bessel_tables::*;
use super::chebyshev;
use crate::expression::Expression;

/// Coefficients of `I0(x)` and `2 I1(x) / x` as series in `x^2 / 4`, highest power first.
const I0_SERIES: &[f64] = &[
    1.0 / 131_681_894_400.0,
    1.0 / 1_625_702_400.0,
    1.0 / 25_401_600.0,
    1.0 / 518_400.0,
    1.0 / 14_400.0,
    1.0 / 576.0,
    1.0 / 36.0,
    0.25,
    1.0,
    1.0,
];
const I1_SERIES: &[f64] = &[
    1.0 / 1_316_818_944_000.0,
    1.0 / 14_631_321_600.0,
    1.0 / 203_212_800.0,
    1.0 / 3_628_800.0,
    1.0 / 86_400.0,
    1.0 / 2880.0,
    1.0 / 144.0,
    1.0 / 12.0,
    0.5,
    1.0,
];

/// `e^-|x| I0(x)`.
pub fn bessel_i0e(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let near = chebyshev(y * 0.5 - 2.0, I0E_NEAR);
    let far = chebyshev(32.0 / y - 2.0, I0E_FAR) / y.sqrt();
    let tiny = (y * y * 0.25).polynomial(I0_SERIES) * (-y).exp();
    let near = y.le(1.0).select(tiny, near);
    y.le(8.0).select(near, far)
}

/// `e^-|x| I1(x)`.
pub fn bessel_i1e(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let near = y * chebyshev(y * 0.5 - 2.0, I1E_NEAR);
    let far = chebyshev(32.0 / y - 2.0, I1E_FAR) / y.sqrt();
    let tiny = y * 0.5 * (y * y * 0.25).polynomial(I1_SERIES) * (-y).exp();
    let near = y.le(1.0).select(tiny, near);
    let result = y.le(8.0).select(near, far);
    x.lt(0.0).select(-result, result)
}

/// `I0(x)`.
pub fn bessel_i0(x: Expression<'_>) -> Expression<'_> {
    let tiny = (x * x * 0.25).polynomial(I0_SERIES);
    x.abs().le(1.0).select(tiny, x.abs().exp() * bessel_i0e(x))
}

/// `I1(x)`.
pub fn bessel_i1(x: Expression<'_>) -> Expression<'_> {
    let tiny = x * 0.5 * (x * x * 0.25).polynomial(I1_SERIES);
    x.abs().le(1.0).select(tiny, x.abs().exp() * bessel_i1e(x))
}

/// `K` of either order: unscaled coefficients up to 2, coefficients scaled by `e^x` beyond.
fn second_kind<'f>(x: Expression<'f>, near: Expression<'f>, far: &[f64], is_scaled: bool) -> Expression<'f> {
    let (near, far) = {
        let far = chebyshev(8.0 / x - 2.0, far) / x.sqrt();
        if is_scaled { (near * x.exp(), far) } else { (near, far * (-x).exp()) }
    };
    let result = x.le(2.0).select(near, far);
    let result = x.equal(f64::INFINITY).select(x.splat(0.0), result);
    let result = x.equal(0.0).select(x.splat(f64::INFINITY), result);
    x.lt(0.0).select(x.splat(f64::INFINITY), result)
}

fn k0<'f>(x: Expression<'f>, is_scaled: bool) -> Expression<'f> {
    let near = chebyshev(x * x - 2.0, K0E_NEAR) - (x * 0.5).log() * bessel_i0(x);
    second_kind(x, near, K0E_FAR, is_scaled)
}

fn k1<'f>(x: Expression<'f>, is_scaled: bool) -> Expression<'f> {
    let near = chebyshev(x * x - 2.0, K1E_NEAR) / x + (x * 0.5).log() * bessel_i1(x);
    second_kind(x, near, K1E_FAR, is_scaled)
}

/// `K0(x)`: infinite for `x <= 0`, as in TensorFlow.
pub fn bessel_k0(x: Expression<'_>) -> Expression<'_> {
    k0(x, false)
}

/// `e^x K0(x)`.
pub fn bessel_k0e(x: Expression<'_>) -> Expression<'_> {
    k0(x, true)
}

/// `K1(x)`: infinite for `x <= 0`, as in TensorFlow.
pub fn bessel_k1(x: Expression<'_>) -> Expression<'_> {
    k1(x, false)
}

/// `e^x K1(x)`.
pub fn bessel_k1e(x: Expression<'_>) -> Expression<'_> {
    k1(x, true)
}
