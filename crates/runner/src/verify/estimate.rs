//! Values, and the allowed distance of correct code from them.

use crate::fill::extremes;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::sync::Arc;

/// A value computed by the evaluator, and the error that correct code may have.
#[derive(Clone, Debug)]
pub(super) enum Estimate {
    /// An array.
    Array(Known),
    /// A tuple.
    Tuple(Vec<Estimate>),
}

/// An array and the error of each element.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Value computed by the evaluator.
    pub(super) value: Literal,
    /// Error bound of each element: nonnegative, infinite if anything is allowed. For complex
    /// numbers, it is the distance in the plane; for booleans, 1 if either value is allowed. `None`
    /// is 0 everywhere.
    pub(super) error: Option<Arc<[f64]>>,
}

/// The error of a NaN produced by arithmetic. Any NaN is correct, but the total order and bit
/// conversions distinguish them.
pub(super) const ANY_NAN: f64 = f64::from_bits(1);

/// Direction in which numbers are shifted by their errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To larger numbers; both parts of complex numbers.
    Up,
    /// To smaller numbers; both parts of complex numbers.
    Down,
    /// Like `Up`, but imaginary parts to smaller numbers.
    UpAndDown,
    /// Like `Down`, but imaginary parts to larger numbers.
    DownAndUp,
}

impl Way {
    /// Returns the directions that are distinct for a type.
    pub(super) fn all(is_complex: bool) -> &'static [Self] {
        const ALL: [Way; 4] = [Way::Up, Way::Down, Way::UpAndDown, Way::DownAndUp];
        if is_complex { &ALL } else { &ALL[..2] }
    }

    /// Returns the signs of the shifts of real numbers and imaginary parts.
    fn signs(self) -> (f64, f64) {
        match self {
            Self::Up => (1.0, 1.0),
            Self::Down => (-1.0, -1.0),
            Self::UpAndDown => (1.0, -1.0),
            Self::DownAndUp => (-1.0, 1.0),
        }
    }
}

impl Estimate {
    /// Creates an estimate without errors.
    pub(super) fn exact(value: &Literal) -> Self {
        match value {
            Literal::Array { .. } => Self::Array(Known { value: value.clone(), error: None }),
            Literal::Tuple(elements) => Self::Tuple(elements.iter().map(Self::exact).collect()),
        }
    }

    /// Returns the value alone.
    pub(super) fn value(&self) -> Literal {
        match self {
            Self::Array(known) => known.value.clone(),
            Self::Tuple(elements) => Literal::Tuple(elements.iter().map(Self::value).collect()),
        }
    }

    /// True if no element has an error.
    pub(super) fn is_exact(&self) -> bool {
        match self {
            Self::Array(known) => known.error.is_none(),
            Self::Tuple(elements) => elements.iter().all(Self::is_exact),
        }
    }

    /// Returns the same value with unlimited errors.
    pub(super) fn undecided(self) -> Self {
        match self {
            Self::Array(known) => {
                let count = known.value.array_shape().element_count() as usize;
                Self::Array(Known::new(known.value, vec![f64::INFINITY; count]))
            }
            Self::Tuple(elements) => Self::Tuple(elements.into_iter().map(Self::undecided).collect()),
        }
    }

    /// Shifts every element by its error, or slightly more.
    pub(super) fn shifted(&self, way: Way) -> Literal {
        match self {
            Self::Array(known) => known.shifted(way),
            Self::Tuple(elements) => Literal::Tuple(elements.iter().map(|e| e.shifted(way)).collect()),
        }
    }

    /// Creates an estimate from a value and errors for its arrays, in order.
    pub(super) fn with_errors(value: &Literal, errors: &mut impl Iterator<Item = Vec<f64>>) -> Self {
        match value {
            Literal::Array { .. } => {
                Self::Array(Known::new(value.clone(), errors.next().unwrap_or_default()))
            }
            Literal::Tuple(elements) => {
                Self::Tuple(elements.iter().map(|e| Self::with_errors(e, errors)).collect())
            }
        }
    }

    /// Returns the arrays, in order.
    pub(super) fn arrays(&self) -> Vec<&Known> {
        match self {
            Self::Array(known) => vec![known],
            Self::Tuple(elements) => elements.iter().flat_map(Self::arrays).collect(),
        }
    }
}

impl Known {
    /// Creates a value with errors, or an exact one if all errors are 0.
    pub(super) fn new(value: Literal, error: Vec<f64>) -> Self {
        let error = error.iter().any(|&e| e != 0.0).then(|| error.into());
        Self { value, error }
    }

    /// Returns the error of each element.
    pub(super) fn errors(&self) -> Vec<f64> {
        match &self.error {
            Some(error) => error.to_vec(),
            None => vec![0.0; self.value.array_shape().element_count() as usize],
        }
    }

    fn shifted(&self, way: Way) -> Literal {
        let Some(error) = &self.error else { return self.value.clone() };
        let shape = self.value.array_shape();
        let (sign, imaginary) = way.signs();
        if let Some(values) = self.value.floats() {
            let shifted = values.into_iter().zip(error.iter());
            let shifted = shifted.map(|(value, &error)| shift_float(shape.element_type, value, sign * error));
            return Literal::from_floats(shape.clone(), shifted);
        }
        let shifted = self.value.scalars().zip(error.iter());
        let shifted = shifted.map(|(value, &e)| shift(shape.element_type, value, sign * e, imaginary * e));
        Literal::from_scalars(shape.clone(), shifted)
    }
}

/// Adds a distance to a number and rounds away from the number. A complex number takes a distance
/// for each part.
fn shift(element_type: PrimitiveType, value: Scalar, distance: f64, imaginary: f64) -> Scalar {
    match value {
        _ if distance == 0.0 => value,
        Scalar::Pred(_) => Scalar::Pred(distance > 0.0),
        Scalar::Float(value) => Scalar::Float(shift_float(element_type, value, distance)),
        Scalar::Complex(re, im) => {
            Scalar::Complex(shift_float(element_type, re, distance), shift_float(element_type, im, imaginary))
        }
        Scalar::Signed(value) => {
            let limit = 1i128 << (element_type.bit_width() - 1);
            let moved = (i128::from(value)).saturating_add(whole(distance));
            Scalar::Signed(moved.clamp(-limit, limit - 1) as i64)
        }
        Scalar::Unsigned(value) => {
            let limit = 1i128 << element_type.bit_width();
            let moved = (i128::from(value)).saturating_add(whole(distance));
            Scalar::Unsigned(moved.clamp(0, limit - 1) as u64)
        }
    }
}

/// Shifts a float. NaN becomes an infinity if it may be anything, and the NaN of that sign if it
/// may be another NaN.
fn shift_float(element_type: PrimitiveType, value: f64, distance: f64) -> f64 {
    if distance == 0.0 {
        return value;
    }
    if value.is_nan() {
        return if distance.is_infinite() { distance } else { value.copysign(distance) };
    }
    let ulp = (value.abs() * epsilon(element_type)).max(extremes(element_type).2);
    value + distance + ulp.copysign(distance)
}

/// Rounds a distance away from 0.
fn whole(distance: f64) -> i128 {
    distance.abs().ceil().copysign(distance) as i128
}

/// Returns the distance from 1 to the next larger number of a floating-point type, or of a complex
/// number's parts.
pub(super) fn epsilon(element_type: PrimitiveType) -> f64 {
    let bits = element_type.real_part().float_format().map_or(23, |format| format.mantissa_bits);
    f64::from_bits((1023 - u64::from(bits)) << 52)
}

/// Returns the distance of two numbers: 0 for equal numbers and for two NaNs, infinite if only one
/// is NaN or infinite.
pub(super) fn distance(a: Scalar, b: Scalar) -> f64 {
    match (a, b) {
        (Scalar::Pred(a), Scalar::Pred(b)) => f64::from(u8::from(a != b)),
        (Scalar::Signed(a), Scalar::Signed(b)) => a.abs_diff(b) as f64,
        (Scalar::Unsigned(a), Scalar::Unsigned(b)) => a.abs_diff(b) as f64,
        (Scalar::Float(a), Scalar::Float(b)) => float_distance(a, b),
        (Scalar::Complex(a, ai), Scalar::Complex(b, bi)) => {
            float_distance(a, b).hypot(float_distance(ai, bi))
        }
        _ => f64::INFINITY,
    }
}

/// Returns the distance of each pair of elements of two arrays with the same type. Zeros of two
/// signs are the smallest number apart.
pub(super) fn distances(a: &Literal, b: &Literal) -> Vec<f64> {
    let smallest = extremes(a.array_shape().element_type).2;
    let apart = |a, b| if differ_in_sign(a, b) { smallest } else { distance(a, b) };
    match (a.floats(), b.floats()) {
        (Some(a), Some(b)) => {
            a.into_iter().zip(b).map(|(a, b)| apart(Scalar::Float(a), Scalar::Float(b))).collect()
        }
        _ => a.scalars().zip(b.scalars()).map(|(a, b)| apart(a, b)).collect(),
    }
}

/// True if two zeros have different signs.
pub(super) fn differ_in_sign(a: Scalar, b: Scalar) -> bool {
    let differ = |a: f64, b: f64| a == 0.0 && b == 0.0 && a.is_sign_negative() != b.is_sign_negative();
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => differ(a, b),
        (Scalar::Complex(a, ai), Scalar::Complex(b, bi)) => differ(a, b) || differ(ai, bi),
        _ => false,
    }
}

fn float_distance(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    let distance = (a - b).abs();
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// Returns the magnitude of each element.
pub(super) fn magnitudes(literal: &Literal) -> Vec<f64> {
    if let Some(floats) = literal.floats() {
        return floats.into_iter().map(f64::abs).collect();
    }
    let magnitude = |scalar| match scalar {
        Scalar::Complex(re, im) => f64::hypot(re, im),
        other => other.as_f64().map_or(f64::NAN, f64::abs),
    };
    literal.scalars().map(magnitude).collect()
}

/// Creates an `f64` array with the sizes of another.
pub(super) fn doubles(like: &Literal, values: impl IntoIterator<Item = f64>) -> Literal {
    let shape = ArrayShape::new(PrimitiveType::F64, &like.array_shape().sizes());
    Literal::from_floats(shape, values)
}

/// Rule for combining errors from several sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// Errors have the same sign: a bound suitable for a few steps.
    Worst,
    /// Errors are independent: squares add up. A worst-case bound over many layers would be
    /// meaningless.
    Independent,
}

impl Growth {
    /// Adds the errors of another source.
    pub(super) fn add(self, total: &mut [f64], more: &[f64]) {
        for (total, &more) in total.iter_mut().zip(more) {
            *total = match self {
                _ if more == 0.0 => *total,
                Self::Worst => *total + more,
                Self::Independent => total.hypot(more),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifting_goes_at_least_as_far_as_the_error() {
        let value = Literal::from_elements(&[3], &[1f32, -1e10, 0.0]);
        let known = Known::new(value.clone(), vec![1e-9, 1.0, 1e-50]);
        let (up, down) = (known.shifted(Way::Up), known.shifted(Way::Down));
        for ((v, u), d) in value.scalars().zip(up.scalars()).zip(down.scalars()) {
            let [v, u, d] = [v, u, d].map(|s| s.as_f64().unwrap());
            assert!(d < v && v < u, "{d} {v} {u}");
        }
        let integers = Known::new(Literal::from_elements(&[2], &[127i8, -3]), vec![2.0, 0.5]);
        assert_eq!(integers.shifted(Way::Up).to_vec::<i8>().unwrap(), [127, -2]);
        assert_eq!(integers.shifted(Way::Down).to_vec::<i8>().unwrap(), [125, -4]);
        assert!(Known::new(Literal::scalar(1f32), vec![0.0]).error.is_none());
    }

    #[test]
    fn nan_moves_to_another_nan_or_to_anything() {
        let known = Known::new(Literal::from_elements(&[2], &[f32::NAN; 2]), vec![ANY_NAN, f64::INFINITY]);
        let [up, down] = [Way::Up, Way::Down].map(|way| known.shifted(way).floats().unwrap());
        assert!(up[0].is_nan() && down[0].is_nan() && up[0].is_sign_positive() != down[0].is_sign_positive());
        assert_eq!((up[1], down[1]), (f64::INFINITY, f64::NEG_INFINITY));
    }

    #[test]
    fn complex_numbers_move_in_four_ways() {
        let shape = ArrayShape::new(PrimitiveType::C64, &[1]);
        let known = Known::new(Literal::from_scalars(shape, [Scalar::Complex(2.0, 0.0)]), vec![1.0]);
        let moved = Way::all(true).iter().map(|&way| match known.shifted(way).scalar_at(0) {
            Scalar::Complex(re, im) => (re > 2.0, im > 0.0),
            other => panic!("{other:?}"),
        });
        let moved: std::collections::BTreeSet<(bool, bool)> = moved.collect();
        assert_eq!(moved.len(), 4);
    }

    #[test]
    fn zeros_of_two_signs_are_not_the_same() {
        let array = |values: &[f32]| Literal::from_elements(&[3], values);
        let apart = distances(&array(&[-0.0, 0.0, 1.0]), &array(&[0.0, 0.0, 3.0]));
        assert!(apart[0] > 0.0 && apart[0] < 1e-37);
        assert_eq!(apart[1..], [0.0, 2.0]);
    }

    #[test]
    fn special_values_are_far_from_everything_else() {
        let (nan, inf) = (Scalar::Float(f64::NAN), Scalar::Float(f64::INFINITY));
        assert_eq!(distance(nan, nan), 0.0);
        assert_eq!(distance(inf, inf), 0.0);
        assert_eq!(distance(nan, inf), f64::INFINITY);
        assert_eq!(distance(inf, Scalar::Float(1e300)), f64::INFINITY);
        assert_eq!(distance(Scalar::Signed(-2), Scalar::Signed(3)), 5.0);
    }

    #[test]
    fn independent_errors_grow_more_slowly() {
        let (mut worst, mut independent) = ([3.0], [3.0]);
        Growth::Worst.add(&mut worst, &[4.0]);
        Growth::Independent.add(&mut independent, &[4.0]);
        assert_eq!((worst, independent), ([7.0], [5.0]));
    }
}
