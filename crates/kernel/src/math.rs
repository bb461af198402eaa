//! Elementary functions of `F32` and `F64` lanes, in arithmetic only. No library is called.
//!
//! Each function takes and returns values of one type, with any number of lanes. Special values are
//! those of C (Annex F). Results are within 2 units in the last place for `F32` and within 2.5 for
//! `F64`; remainders are exact. The arithmetic is valid whether or not multiply-adds are fused.
//! Frequent functions have separate `F32` arithmetic. The other functions of `F32` are computed in
//! `F64` and rounded.

mod error_function;
mod exact;
mod exponential;
mod inverse_trigonometric;
mod lanes;
mod logarithm;
mod power;
mod reduction;
mod remainder;
mod rounding;
mod trigonometric;

pub use rounding::{ceil, floor, round_even, trunc};

use lanes::{Lanes, build};
use nest::{FunctionBuilder, ValueId};
use support::Result;
use target::Target;

macro_rules! direct {
    ($($(#[$doc:meta])* $name:ident = $function:path;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(b: &mut FunctionBuilder, target: &Target, x: ValueId) -> Result<ValueId> {
                build(b, target, &[x], |arguments| $function(arguments[0]))
            }
        )*
    };
}

macro_rules! through_double {
    ($($(#[$doc:meta])* $name:ident = $function:path;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(b: &mut FunctionBuilder, target: &Target, x: ValueId) -> Result<ValueId> {
                build(b, target, &[x], |arguments| in_double(arguments, |x| $function(x[0])))
            }
        )*
    };
}

direct! {
    /// `e^x`.
    exp = exponential::exp;
    /// The natural logarithm.
    log = logarithm::log;
    /// The sine.
    sin = trigonometric::sin;
    /// The cosine.
    cos = trigonometric::cos;
    /// The tangent.
    tan = trigonometric::tan;
    /// The hyperbolic tangent.
    tanh = exponential::tanh;
    /// The error function.
    erf = error_function::erf;
    /// `1 + erf(x)` for `F32`, to 2 units in the last place of 1.
    one_plus_erf = error_function::one_plus_erf;
    /// `e^x - 1`.
    expm1 = exponential::expm1;
    /// `log(1 + x)`.
    log1p = logarithm::log1p;
    /// `1 / (1 + e^-x)`.
    logistic = exponential::logistic;
    /// `1 / sqrt(x)`.
    rsqrt = power::rsqrt;
    /// The hyperbolic sine.
    sinh = exponential::sinh;
    /// The hyperbolic cosine.
    cosh = exponential::cosh;
    /// The arc sine.
    asin = inverse_trigonometric::asin;
    /// The arc cosine.
    acos = inverse_trigonometric::acos;
    /// The arc tangent.
    atan = inverse_trigonometric::atan;
}

through_double! {
    /// The inverse of [`sinh`].
    asinh = logarithm::asinh;
    /// The inverse of [`cosh`].
    acosh = logarithm::acosh;
    /// The inverse of [`tanh`].
    atanh = logarithm::atanh;
    /// The cube root.
    cbrt = power::cbrt;
}

/// The angle of the point `(x, y)`.
pub fn atan2(b: &mut FunctionBuilder, target: &Target, y: ValueId, x: ValueId) -> Result<ValueId> {
    build(b, target, &[y, x], |v| inverse_trigonometric::atan2(v[0], v[1]))
}

/// `x^y`, like C's `pow`.
pub fn pow(b: &mut FunctionBuilder, target: &Target, x: ValueId, y: ValueId) -> Result<ValueId> {
    build(b, target, &[x, y], |v| {
        if v[0].is_single() { power::pow_of_singles(v[0], v[1]) } else { power::pow(v[0], v[1]) }
    })
}

/// The exact remainder of `x / y` truncated toward zero, like C's `fmod`.
pub fn fmod(b: &mut FunctionBuilder, target: &Target, x: ValueId, y: ValueId) -> Result<ValueId> {
    build(b, target, &[x, y], |arguments| in_double(arguments, |v| remainder::fmod(v[0], v[1])))
}

/// Applies a function of `F64` to either type.
fn in_double<'s>(arguments: &[Lanes<'s>], function: impl FnOnce(&[Lanes<'s>]) -> Lanes<'s>) -> Lanes<'s> {
    if !arguments[0].is_single() {
        return function(arguments);
    }
    let wide: Vec<Lanes<'s>> = arguments.iter().map(|x| x.to_double()).collect();
    function(&wide).to_single()
}
