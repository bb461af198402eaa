//! Assertions of a program about its values: the `check` operations of StableHLO's tests.

use shape::{Literal, Scalar};
use support::{Error, Result};

/// The relation that two values must satisfy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CheckKind {
    /// Equality of numbers; NaN is not equal to anything.
    Equal,
    /// Difference within a tolerance; NaN matches NaN, and an infinity matches itself.
    AlmostEqual {
        /// The tolerance.
        tolerance: f64,
    },
    /// Distance in representable numbers (ULPs) within limits; NaN matches NaN.
    Close {
        /// Minimum distance.
        min_ulp: u64,
        /// Maximum distance.
        max_ulp: u64,
    },
}

/// An assertion about two values, which the module returns after the results of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The relation to check.
    pub kind: CheckKind,
    /// The line of the assertion.
    pub line: usize,
}

impl Check {
    /// Checks two values; an error states the first index at which they do not match.
    pub fn verify(&self, actual: &Literal, expected: &Literal) -> Result<()> {
        for (linear, (a, e)) in actual.scalars().zip(expected.scalars()).enumerate() {
            let agrees = match self.kind {
                CheckKind::Equal => a == e,
                CheckKind::AlmostEqual { tolerance } => almost_equal(a, e, tolerance),
                CheckKind::Close { min_ulp, max_ulp } => {
                    let distance = ulp_distance(a, e, actual);
                    (min_ulp..=max_ulp).contains(&distance)
                }
            };
            if !agrees {
                let index = shape::index::multi_index(&actual.array_shape().sizes(), linear as i64);
                return Err(Error::invalid(format!(
                    "{}: the check fails at {index:?}: expected {e:?}, got {a:?}",
                    self.line
                )));
            }
        }
        Ok(())
    }
}

fn almost_equal(actual: Scalar, expected: Scalar, tolerance: f64) -> bool {
    let near = |a: f64, e: f64| a == e || (a.is_nan() && e.is_nan()) || (a - e).abs() <= tolerance;
    match (actual, expected) {
        (Scalar::Float(a), Scalar::Float(e)) => near(a, e),
        (Scalar::Complex(a_re, a_im), Scalar::Complex(e_re, e_im)) => near(a_re, e_re) && near(a_im, e_im),
        _ => actual == expected,
    }
}

/// Distance between two numbers in ULPs; for complex numbers, that of the more distant parts.
fn ulp_distance(actual: Scalar, expected: Scalar, like: &Literal) -> u64 {
    let part_type = like.array_shape().element_type.real_part();
    let part = |a: f64, e: f64| {
        if a.is_nan() && e.is_nan() {
            return 0;
        }
        let bits = |value: f64| {
            let literal =
                Literal::from_scalars(shape::ArrayShape::new(part_type, &[]), [Scalar::Float(value.abs())]);
            let mut wide = [0; 8];
            wide[..literal.bytes().len()].copy_from_slice(literal.bytes());
            u64::from_le_bytes(wide)
        };
        let (x, y) = (bits(a), bits(e));
        match (a.is_finite() && e.is_finite(), a.is_sign_negative() == e.is_sign_negative()) {
            (false, _) if a == e => 0,
            (false, _) => u64::MAX,
            (true, true) => x.abs_diff(y),
            (true, false) => x + y,
        }
    };
    match (actual, expected) {
        (Scalar::Float(a), Scalar::Float(e)) => part(a, e),
        (Scalar::Complex(a_re, a_im), Scalar::Complex(e_re, e_im)) => part(a_re, e_re).max(part(a_im, e_im)),
        _ => u64::from(actual != expected),
    }
}
