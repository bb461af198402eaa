//! Decides whether a result is correct: types, shapes, and elements within a tolerance of a
//! recorded answer.

use crate::case::Expected;
use crate::tolerance::Tolerance;
use shape::{ArrayShape, Literal, Scalar, index};

/// Compares results with a case's answers. Returns a description of the first difference.
pub fn check_results(
    got: &[Literal],
    expected: &[Expected],
    tolerance: Tolerance,
    values: bool,
) -> Result<(), String> {
    if got.len() != expected.len() {
        return Err(format!("{} results, want {}", got.len(), expected.len()));
    }
    got.iter().zip(expected).try_for_each(|(got, expected)| {
        check_result(got, expected, tolerance, values).map_err(|e| format!("{}: {e}", expected.name))
    })
}

fn check_result(
    got: &Literal,
    expected: &Expected,
    tolerance: Tolerance,
    values: bool,
) -> Result<(), String> {
    let Literal::Array { shape, .. } = got else { return Err("got a tuple, want an array".to_owned()) };
    if shape.element_type != expected.shape.element_type {
        return Err(format!("type {}, want {}", shape.element_type, expected.shape.element_type));
    }
    if !values {
        return if fits(shape, &expected.shape) { Ok(()) } else { Err(wrong_shape(shape, &expected.shape)) };
    }
    let fitting: Vec<&Literal> =
        expected.answers.iter().filter(|answer| fits(shape, answer.array_shape())).collect();
    match fitting.as_slice() {
        [] => Err(wrong_shape(shape, expected.answers[0].array_shape())),
        [first, rest @ ..] if rest.iter().all(|a| a.array_shape() == first.array_shape()) => {
            check_elements(got, &fitting, tolerance)
        }
        // For answers of different sizes, the result must match one of them completely.
        all => {
            let mut failures = all.iter().map(|&answer| check_elements(got, &[answer], tolerance));
            failures.find(Result::is_ok).unwrap_or_else(|| check_elements(got, &all[..1], tolerance))
        }
    }
}

/// True if a result of this shape can match the answer. Results with bounded sizes are cut to the
/// sizes that the run reported, so only the answer's exact size matches.
fn fits(got: &ArrayShape, want: &ArrayShape) -> bool {
    got.sizes() == want.sizes()
}

fn wrong_shape(got: &ArrayShape, want: &ArrayShape) -> String {
    format!("shape {:?}, want {:?}", got.sizes(), want.sizes())
}

/// Compares all elements with the answers, which have the same shape.
fn check_elements(got: &Literal, answers: &[&Literal], tolerance: Tolerance) -> Result<(), String> {
    let got_sizes = got.array_shape().sizes();
    let want_sizes = answers[0].array_shape().sizes();
    let (mut wrong, mut first) = (0, None);
    for (linear, at) in index::indices(&want_sizes).enumerate() {
        let value = got.scalar_at(index::linear_index(&got_sizes, &at) as usize);
        if answers.iter().any(|answer| matches(value, answer.scalar_at(linear), tolerance)) {
            continue;
        }
        wrong += 1;
        first.get_or_insert_with(|| {
            let want: Vec<String> = answers.iter().map(|answer| show(answer.scalar_at(linear))).collect();
            format!("at {at:?} {}, want {}", show(value), want.join(" or "))
        });
    }
    match first {
        None => Ok(()),
        Some(first) => {
            Err(format!("{wrong} of {} elements differ, {first}", answers[0].array_shape().element_count()))
        }
    }
}

/// True if one element is correct. Elements of different kinds never match.
pub fn matches(got: Scalar, want: Scalar, tolerance: Tolerance) -> bool {
    match (got, want) {
        (Scalar::Float(got), Scalar::Float(want)) => close(got, want, tolerance),
        (Scalar::Complex(re, im), Scalar::Complex(want_re, want_im)) => {
            let finite = [re, im, want_re, want_im].iter().all(|part| part.is_finite());
            if finite {
                let limit = tolerance.absolute + tolerance.relative * want_re.hypot(want_im);
                (re - want_re).hypot(im - want_im) <= limit
            } else {
                close(re, want_re, tolerance) && close(im, want_im, tolerance)
            }
        }
        _ => got == want,
    }
}

fn close(got: f64, want: f64, tolerance: Tolerance) -> bool {
    if got == want || (got.is_nan() && want.is_nan()) {
        return true;
    }
    // An infinite limit or difference would accept anything for infinities.
    got.is_finite()
        && want.is_finite()
        && (got - want).abs() <= tolerance.absolute + tolerance.relative * want.abs()
}

fn show(value: Scalar) -> String {
    match value {
        Scalar::Pred(value) => value.to_string(),
        Scalar::Signed(value) => value.to_string(),
        Scalar::Unsigned(value) => value.to_string(),
        Scalar::Float(value) => format!("{value:?}"),
        Scalar::Complex(re, im) => format!("({re:?}, {im:?})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::PrimitiveType;

    const LOOSE: Tolerance = Tolerance { absolute: 0.5, relative: 0.125 };

    fn expected(answers: Vec<Literal>) -> Vec<Expected> {
        let shape = answers[0].array_shape().clone();
        vec![Expected { name: "fetch 0".to_owned(), shape, answers }]
    }

    #[test]
    fn the_tolerance_is_absolute_plus_relative_to_the_expected_value() {
        let right = |got, want| matches(Scalar::Float(got), Scalar::Float(want), LOOSE);
        assert!(right(9.5, 8.0));
        assert!(!right(9.5001, 8.0));
        assert!(right(-0.5, 0.0));
        // Relative to the expected value, not to the actual one: 10 + 0.5 + 10/8 = 11.75.
        assert!(!right(11.8, 10.0));
    }

    #[test]
    fn special_values_match_only_themselves() {
        let right = |got, want| matches(Scalar::Float(got), Scalar::Float(want), LOOSE);
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert!(right(nan, -nan) && right(inf, inf));
        assert!(
            !right(nan, 0.0)
                && !right(0.0, nan)
                && !right(inf, -inf)
                && !right(1e300, inf)
                && !right(inf, 1e300)
        );
    }

    #[test]
    fn complex_numbers_are_compared_by_the_size_of_the_difference() {
        let right = |got: (f64, f64), want: (f64, f64)| {
            matches(Scalar::Complex(got.0, got.1), Scalar::Complex(want.0, want.1), LOOSE)
        };
        assert!(right((3.8, 4.7), (3.0, 4.0)), "1.063 within 0.5 + 5/8");
        assert!(!right((3.9, 4.7), (3.0, 4.0)), "1.14 is not");
        assert!(right((f64::NAN, 4.0), (f64::NAN, 4.5)));
        assert!(!right((f64::NAN, 4.0), (f64::NAN, 9.0)));
    }

    #[test]
    fn integers_are_equal_or_wrong_whatever_the_tolerance() {
        assert!(!matches(Scalar::Signed(1), Scalar::Signed(2), Tolerance { absolute: 9.0, relative: 9.0 }));
        assert!(!matches(Scalar::Signed(1), Scalar::Unsigned(1), Tolerance::EXACT));
        assert!(matches(Scalar::Pred(true), Scalar::Pred(true), Tolerance::EXACT));
    }

    #[test]
    fn each_element_may_match_either_answer() {
        let answers =
            vec![Literal::from_elements(&[3], &[1i32, 2, 3]), Literal::from_elements(&[3], &[10i32, 20, 30])];
        let expected = expected(answers);
        let check = |values: &[i32; 3]| {
            check_results(&[Literal::from_elements(&[3], values)], &expected, Tolerance::EXACT, true)
        };
        assert_eq!(check(&[1, 20, 3]), Ok(()));
        let message = check(&[1, 21, 4]).unwrap_err();
        assert_eq!(message, "fetch 0: 2 of 3 elements differ, at [1] 21, want 2 or 20");
    }

    #[test]
    fn a_dynamic_result_has_the_true_size() {
        let answer = Literal::from_elements(&[2, 2], &[1i64, 2, 3, 4]);
        let got = Literal::from_elements(&[3, 2], &[1i64, 2, 3, 4, -7, -7]);
        let check = |got: &Literal| {
            let expected = expected(vec![answer.clone()]);
            check_results(std::slice::from_ref(got), &expected, Tolerance::EXACT, true)
        };
        assert_eq!(check(&answer), Ok(()));
        // The bound's size would mean that the true size was lost.
        assert!(check(&got).unwrap_err().contains("shape [3, 2], want [2, 2]"));
        let small = Literal::from_elements(&[1, 2], &[1i64, 2]);
        assert!(check(&small).unwrap_err().contains("shape"));
    }

    #[test]
    fn answers_of_two_sizes_are_taken_as_wholes() {
        let answers = vec![Literal::from_elements(&[1], &[5i32]), Literal::from_elements(&[2], &[6i32, 7])];
        let expected = expected(answers);
        let check = |got: Literal| check_results(&[got], &expected, Tolerance::EXACT, true).is_ok();
        assert!(check(Literal::from_elements(&[1], &[5i32])));
        assert!(check(Literal::from_elements(&[2], &[6i32, 7])));
        assert!(!check(Literal::from_elements(&[2], &[6i32, 0])));
    }

    #[test]
    fn where_only_shapes_count_the_type_still_does() {
        let expected = expected(vec![Literal::from_elements(&[2], &[1.0f32, 2.0])]);
        let check = |got: Literal| check_results(&[got], &expected, Tolerance::EXACT, false);
        assert_eq!(check(Literal::from_elements(&[2], &[8.0f32, 9.0])), Ok(()));
        assert!(check(Literal::from_elements(&[3], &[1.0f32; 3])).is_err());
        let double = Literal::from_elements(&[2], &[1.0f64, 2.0]);
        assert!(check(double).unwrap_err().contains(PrimitiveType::F64.name()));
        let none = check_results(&[], &expected, Tolerance::EXACT, false);
        assert_eq!(none.unwrap_err(), "0 results, want 1");
    }
}
