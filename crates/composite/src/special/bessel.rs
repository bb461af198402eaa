//! Modified Bessel functions, by the Chebyshev series of the Cephes library.

use super::bessel_tables::*;
use super::chebyshev;
use crate::expression::Expression;

/// `e^-|x| I0(x)`.
pub fn bessel_i0e(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let near = chebyshev(y * 0.5 - 2.0, I0E_NEAR);
    let far = chebyshev(32.0 / y - 2.0, I0E_FAR) / y.sqrt();
    y.le(8.0).select(near, far)
}

/// `e^-|x| I1(x)`.
pub fn bessel_i1e(x: Expression<'_>) -> Expression<'_> {
    let y = x.abs();
    let near = y * chebyshev(y * 0.5 - 2.0, I1E_NEAR);
    let far = chebyshev(32.0 / y - 2.0, I1E_FAR) / y.sqrt();
    let result = y.le(8.0).select(near, far);
    x.lt(0.0).select(-result, result)
}

/// `I0(x)`.
pub fn bessel_i0(x: Expression<'_>) -> Expression<'_> {
    x.abs().exp() * bessel_i0e(x)
}

/// `I1(x)`.
pub fn bessel_i1(x: Expression<'_>) -> Expression<'_> {
    x.abs().exp() * bessel_i1e(x)
}

/// `K` of either order up to 2, and times `e^x` beyond.
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
