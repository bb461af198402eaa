//! What a program states about its own values: the `check` operations of StableHLO's tests.

use shape::{Literal, Scalar};
use support::{Error, Result};

/// How two values have to agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CheckKind {
    /// Equal: numbers as numbers, NaN equal to nothing.
    Equal,
    /// No further apart than a tolerance; NaN agrees with NaN, an infinity with itself.
    AlmostEqual {
        /// The tolerance.
        tolerance: f64,
    },
    /// So many representable numbers apart, at least and at most; NaN agrees with NaN.
    Close {
        /// The fewest.
        min_ulp: u64,
        /// The most.
        max_ulp: u64,
    },
}

/// A statement about two values, which are results of the module behind those of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// How they have to agree.
    pub kind: CheckKind,
    /// The line of the statement.
    pub line: usize,
}

impl Check {
    /// An error that says where two values do not agree as stated.
    pub fn verify(&self, actual: &Literal, expected: &Literal) -> Result<()> {
        for (linear, (a, e)) in actual.scalars().zip(expected.scalars()).enumerate() {
            let agrees = match self.kind {
                CheckKind::Equal => a == e,
                CheckKind::AlmostEqual { tolerance } => almost_equal(a, e, tolerance),
                CheckKind::Close { min_ulp, max_ulp } => {
                    let apart = ulp_distance(a, e, actual);
                    (min_ulp..=max_ulp).contains(&apart)
                }
            };
            if !agrees {
                let index = shape::index::multi_index(&actual.array_shape().sizes(), linear as i64);
                return Err(Error::invalid(format!(
                    "{}: the check fails at {index:?}: {a:?}, not {e:?}",
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

/// How many representable numbers lie between two, of the more distant parts if they are complex.
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
