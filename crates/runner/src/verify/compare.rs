//! Compares results with estimates.

use super::estimate::{Known, differ_in_sign, distance};
use crate::fill::extremes;
use crate::summary::number;
use shape::index::multi_index;
use shape::{Literal, PrimitiveType, Scalar};

/// A wrong element.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Index of the element.
    pub index: Vec<i64>,
    /// Value computed by the code.
    pub got: String,
    /// Value computed by the evaluator.
    pub want: String,
    /// Allowed distance for correct code.
    pub limit: f64,
}

/// Comparison of an array with the evaluator's.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Name of the array: a fetch, or a kernel's result.
    pub name: String,
    /// Number of elements.
    pub elements: usize,
    /// Largest distance between an element and the evaluator's, in ulps; 0 for integers.
    pub max_ulp: u64,
    /// Largest difference relative to the evaluator's element.
    pub max_relative: f64,
    /// Largest difference relative to its limit. Above 1 is wrong.
    pub share_of_limit: f64,
    /// Number of undecidable elements, because correct code may or may not overflow.
    pub undecided: usize,
    /// Number of wrong elements.
    pub mismatches: usize,
    /// The first wrong element.
    pub first: Option<Mismatch>,
}

impl Comparison {
    /// Works like [`Comparison::of`], but treats elements outside the limit as undecided if an
    /// error may be as large as `may_be`. The limits assume independent errors. Errors of equal
    /// numbers, or of one number that is reused repeatedly in a loop, are not independent.
    pub(super) fn within(name: &str, got: &Literal, want: &Known, may_be: &[f64]) -> Self {
        let mut limits = want.errors();
        let shape = want.value.array_shape();
        if limits.len() == may_be.len() && got.array_shape() == shape {
            let pairs = got.scalars().zip(want.value.scalars()).zip(may_be);
            for (limit, ((got, value), &may_be)) in limits.iter_mut().zip(pairs) {
                let difference = distance(got, value);
                let is_over = difference > *limit && !overflows(shape.element_type, got, value, *limit);
                if is_over && (difference <= may_be || overflows(shape.element_type, got, value, may_be)) {
                    *limit = f64::INFINITY;
                }
            }
        }
        Self::of(name, got, &Known::new(want.value.clone(), limits))
    }

    /// Compares element by element. NaN matches NaN, an infinity matches the same infinity, and
    /// integers and booleans must be equal, unless the estimate permits more.
    pub(super) fn of(name: &str, got: &Literal, want: &Known) -> Self {
        let shape = want.value.array_shape();
        let mut comparison = Self {
            name: name.to_owned(),
            elements: shape.element_count() as usize,
            max_ulp: 0,
            max_relative: 0.0,
            share_of_limit: 0.0,
            undecided: 0,
            mismatches: 0,
            first: None,
        };
        if got.array_shape().sizes() != shape.sizes() || got.array_shape().element_type != shape.element_type
        {
            comparison.mismatches = comparison.elements.max(1);
            return comparison;
        }
        for (position, (got, value)) in got.scalars().zip(want.value.scalars()).enumerate() {
            let limit = want.error.as_ref().map_or(0.0, |error| error[position]);
            if limit == f64::INFINITY {
                comparison.undecided += 1;
                continue;
            }
            let difference = distance(got, value);
            comparison.note(shape.element_type, got, value, difference, limit);
            if difference > limit && !overflows(shape.element_type, got, value, limit) {
                comparison.mismatches += 1;
                comparison.first.get_or_insert_with(|| Mismatch {
                    index: multi_index(&shape.sizes(), position as i64),
                    got: exact(got, shape.element_type),
                    want: exact(value, shape.element_type),
                    limit,
                });
            }
        }
        comparison
    }

    /// Also counts zeros with the wrong sign as wrong, if correct code has no error at all except
    /// in the choice of NaN.
    pub(super) fn with_signs(mut self, got: &Literal, want: &Known) -> Self {
        let shape = want.value.array_shape();
        let is_nan = |scalar: Scalar| distance(scalar, Scalar::Float(f64::NAN)) == 0.0;
        let mut errors = want.value.scalars().zip(want.errors());
        if errors.any(|(value, error)| error != 0.0 && !is_nan(value)) || got.array_shape() != shape {
            return self;
        }
        for (position, (got, value)) in got.scalars().zip(want.value.scalars()).enumerate() {
            if !differ_in_sign(got, value) {
                continue;
            }
            self.mismatches += 1;
            self.first.get_or_insert_with(|| Mismatch {
                index: multi_index(&shape.sizes(), position as i64),
                got: exact(got, shape.element_type),
                want: exact(value, shape.element_type),
                limit: 0.0,
            });
        }
        self
    }

    fn note(&mut self, element_type: PrimitiveType, got: Scalar, value: Scalar, difference: f64, limit: f64) {
        if difference == 0.0 || !difference.is_finite() {
            return;
        }
        if limit > 0.0 {
            self.share_of_limit = self.share_of_limit.max(difference / limit);
        }
        let magnitude = distance(value, zero(value));
        if magnitude > 0.0 {
            self.max_relative = self.max_relative.max(difference / magnitude);
        }
        self.max_ulp = self.max_ulp.max(ulps_between(element_type, got, value));
    }

    /// True if every element is correct.
    pub fn passed(&self) -> bool {
        self.mismatches == 0
    }
}

/// True if the code overflowed to infinity (or to NaN, for a type without infinities) and the limit
/// permits values beyond the largest number.
fn overflows(element_type: PrimitiveType, got: Scalar, value: Scalar, limit: f64) -> bool {
    let largest = extremes(element_type).0;
    let has_infinity = element_type.float_format().is_none_or(|format| format.has_infinity());
    match (got, value) {
        (Scalar::Float(got), Scalar::Float(value)) if !has_infinity && got.is_nan() != value.is_nan() => {
            let finite = if got.is_nan() { value } else { got };
            limit > 0.0 && finite.abs() + limit > largest
        }
        (Scalar::Float(got), Scalar::Float(value)) => {
            let overflowed = if got.is_infinite() { got } else { value };
            let finite = if got.is_infinite() { value } else { got };
            overflowed.is_infinite()
                && finite.is_finite()
                && overflowed.signum() == finite.signum()
                && finite.abs() + limit > largest
        }
        _ => false,
    }
}

fn zero(like: Scalar) -> Scalar {
    match like {
        Scalar::Pred(_) => Scalar::Pred(false),
        Scalar::Signed(_) => Scalar::Signed(0),
        Scalar::Unsigned(_) => Scalar::Unsigned(0),
        Scalar::Float(_) => Scalar::Float(0.0),
        Scalar::Complex(..) => Scalar::Complex(0.0, 0.0),
    }
}

/// Returns the number of steps between two numbers of a floating-point type; 0 for other types.
fn ulps_between(element_type: PrimitiveType, a: Scalar, b: Scalar) -> u64 {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => position(element_type, a).abs_diff(position(element_type, b)),
        (Scalar::Complex(a, ai), Scalar::Complex(b, bi)) => {
            let part = element_type.real_part();
            let parts = [(a, b), (ai, bi)].map(|(a, b)| position(part, a).abs_diff(position(part, b)));
            parts[0].max(parts[1])
        }
        _ => 0,
    }
}

/// Returns the position of a number among all numbers of its type, with 0 at 0.
fn position(element_type: PrimitiveType, value: f64) -> i64 {
    let Some(format) = element_type.float_format() else { return 0 };
    let magnitude = (format.encode(value.abs()) & !format.sign_bit()) as i64;
    if value.is_sign_negative() { -magnitude } else { magnitude }
}

/// Formats a number with all its digits.
fn exact(value: Scalar, element_type: PrimitiveType) -> String {
    match value {
        Scalar::Float(value) if element_type == PrimitiveType::F32 => format!("{:?}", value as f32),
        Scalar::Float(value) => format!("{value:?}"),
        other => number(other, element_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::ArrayShape;

    fn compare(got: &[f32], want: &[f32], error: Vec<f64>) -> Comparison {
        let literal = |values: &[f32]| Literal::from_elements(&[values.len() as i64], values);
        Comparison::of("y", &literal(got), &Known::new(literal(want), error))
    }

    #[test]
    fn differences_are_counted_in_ulps_and_shares() {
        let next = f32::from_bits(1f32.to_bits() + 3);
        let c = compare(&[next, 2.0], &[1.0, 2.0], vec![1e-6, 0.0]);
        assert!(c.passed());
        assert_eq!(c.max_ulp, 3);
        assert!((c.max_relative - 3.0 * 2f64.powi(-23)).abs() < 1e-12);
        assert!((c.share_of_limit - 0.3576).abs() < 1e-3);
        // There are two steps from the smallest negative to the smallest positive number.
        let tiny = f32::from_bits(1);
        assert_eq!(compare(&[tiny], &[-tiny], vec![1.0]).max_ulp, 2);
    }

    #[test]
    fn what_dependent_errors_may_make_is_undecided_and_nothing_else() {
        let literal = |values: &[f32]| Literal::from_elements(&[values.len() as i64], values);
        let want = Known::new(literal(&[1.0, 2.0, 3.0]), vec![0.01; 3]);
        let c = Comparison::within("y", &literal(&[1.001, 2.05, 3.2]), &want, &[0.1; 3]);
        assert_eq!((c.undecided, c.mismatches), (1, 1));
        assert_eq!(c.first.unwrap().index, [2]);
    }

    #[test]
    fn signs_of_zeros_count_where_nothing_rounds() {
        let literal = |value: f32| Literal::from_elements(&[1], &[value]);
        let compare = |error: f64| {
            let want = Known::new(literal(-0.0), vec![error]);
            Comparison::of("y", &literal(0.0), &want).with_signs(&literal(0.0), &want)
        };
        assert!(!compare(0.0).passed());
        assert!(compare(1e-30).passed());
    }

    #[test]
    fn nan_and_infinities_answer_to_themselves() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert!(compare(&[nan, inf], &[nan, inf], vec![0.0; 2]).passed());
        for (got, want) in [(0.0, nan), (nan, 0.0), (inf, -inf), (inf, 1.0), (1.0, inf)] {
            let c = compare(&[got], &[want], vec![1e30]);
            assert_eq!(c.mismatches, 1, "{got} for {want}");
            assert_eq!(c.first.unwrap().index, [0]);
        }
        assert!(compare(&[inf], &[f32::MAX], vec![1e32]).passed(), "one ulp from overflow");
        let c = compare(&[nan], &[1.0], vec![f64::INFINITY]);
        assert!(c.passed() && c.undecided == 1);
    }

    #[test]
    fn nan_is_what_a_type_without_infinities_overflows_to() {
        let literal = |value: f64| {
            let shape = ArrayShape::new(PrimitiveType::F8e5m2fnuz, &[1]);
            Literal::from_scalars(shape, [Scalar::Float(value)])
        };
        let passes = |got: f64, want: f64, error: f64| {
            Comparison::of("y", &literal(got), &Known::new(literal(want), vec![error])).passed()
        };
        assert!(passes(f64::NAN, 57344.0, 8192.0) && passes(-57344.0, f64::NAN, 8192.0));
        assert!(!passes(f64::NAN, 57344.0, 0.0));
        assert!(!passes(f64::NAN, 40960.0, 8192.0));
    }

    #[test]
    fn without_an_error_only_the_same_value_is_right() {
        assert!(!compare(&[1.0000001], &[1.0], vec![0.0]).passed());
        let integers = Known::new(Literal::from_elements(&[2], &[1i32, 2]), vec![0.0; 2]);
        let c = Comparison::of("i", &Literal::from_elements(&[2], &[1i32, 3]), &integers);
        let first = c.first.unwrap();
        assert_eq!((first.index, first.got.as_str(), first.want.as_str()), (vec![1], "3", "2"));
    }
}
