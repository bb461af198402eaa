//! Elementwise special functions, accurate to a few units of `f64`.
//!
//! Most accept both `f32` and `f64`. Callers pass `f32` as `f64`, and narrower types as `f32`, so
//! that a result is rounded once. The functions computed in pairs, and `betainc`, accept `f64`
//! only.

mod bessel;
mod bessel_order;
mod bessel_order_tables;
mod bessel_tables;
mod complementary_error;
mod error_tables;
mod fresnel_tables;
mod gamma;
mod gamma_roots;
mod incomplete_beta;
mod incomplete_gamma;
mod incomplete_gamma_pairs;
mod incomplete_gamma_slopes;
mod integral_tables;
mod integrals;
mod inverse_error;
mod pair;
mod raised_gamma;
mod zeta;

pub use bessel::{
    bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e,
};
pub use bessel_order::{bessel_j0, bessel_j1, bessel_y0, bessel_y1};
pub use complementary_error::{erfc_in_pairs, erfc_of_single};
use gamma::gamma_below_8;
pub use gamma::{digamma, digamma_near_roots, lgamma, lgamma_near_roots};
pub use incomplete_beta::betainc;
pub use incomplete_gamma::{igamma, igamma_grad_a, igammac, random_gamma_grad};
pub use incomplete_gamma_pairs::{igamma_in_pairs, igammac_in_pairs};
pub use incomplete_gamma_slopes::{igamma_grad_a_in_pairs, random_gamma_grad_in_pairs};
pub use integrals::{dawsn, expint, fresnel_cos, fresnel_sin, spence};
pub use inverse_error::{erf_inv, ndtri, ndtri_by_erf_inv};
pub use zeta::{polygamma, zeta};

use crate::expression::Expression;
use shape::PrimitiveType;

/// Half of the distance from 1 to the next number of a type: the point where series end.
fn epsilon(x: Expression<'_>) -> f64 {
    if x.element_type() == PrimitiveType::F64 { f64::EPSILON / 2.0 } else { f64::from(f32::EPSILON) / 2.0 }
}

/// The logarithm of the largest number of a type.
fn log_of_largest(x: Expression<'_>) -> f64 {
    if x.element_type() == PrimitiveType::F64 { f64::MAX.ln() } else { f64::from(f32::MAX).ln() }
}

/// Returns the number of loop steps that suffices for all enabled elements, or 0 if there are none.
fn steps<'f>(enabled: Expression<'f>, count: Expression<'f>) -> Expression<'f> {
    const MAX_STEPS: f64 = 20_000.0;
    let count = enabled.select(count.min(MAX_STEPS), 0.0);
    let dimensions: Vec<usize> = (0..count.rank()).collect();
    count.maximum(&dimensions).convert(PrimitiveType::S32)
}

/// Quotient of two polynomials, highest power first.
fn rational<'f>(x: Expression<'f>, numerator: &[f64], denominator: &[f64]) -> Expression<'f> {
    x.polynomial(numerator) / x.polynomial(denominator)
}

/// Chebyshev series by Clenshaw's recurrence, highest order first. Half the coefficient of order 0
/// is used.
fn chebyshev<'f>(x: Expression<'f>, coefficients: &[f64]) -> Expression<'f> {
    let zero = x.splat(0.0);
    let (mut b0, mut b1, mut b2) = (zero, zero, zero);
    for &coefficient in coefficients {
        (b2, b1) = (b1, b0);
        b0 = x * b1 - b2 + coefficient;
    }
    (b0 - b2) * 0.5
}
