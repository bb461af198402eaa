//! Properties that every rewritten module must satisfy.

use crate::generate::Random;
use evaluator::{Evaluator, Limits};
use hlo::Module;
use passes::{Changed, Pass};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};

/// Runs a pass. The module must be valid afterwards, and unchanged if the pass reports no change.
pub fn run_pass(pass: &dyn Pass, module: &mut Module) -> Result<(), String> {
    let before = module.clone();
    let changed = pass.run(module).map_err(|error| format!("{}: {error}", pass.name()))?;
    hlo::verify(module).map_err(|error| format!("{}: {error}", pass.name()))?;
    if changed == Changed::No && *module != before {
        return Err(format!("{} changed the module but reported no change", pass.name()));
    }
    Ok(())
}

/// Checks that the evaluator computes the same bits for both modules on random arguments. Any NaN
/// matches any NaN.
pub fn same_answers(before: &Module, after: &Module, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let parameters = before.entry_computation().program_shape().parameters;
    let arguments: Vec<Literal> = parameters.iter().map(|shape| argument(&mut random, shape)).collect();
    let limits = Limits { max_steps: 1 << 24, max_live_bytes: 1 << 30, ..Limits::default() };
    let evaluate = |module: &Module| Evaluator::with_limits(module, limits).evaluate(&arguments);
    // Unsupported programs have no result to compare.
    let Ok(expected) = evaluate(before) else { return Ok(()) };
    let actual = evaluate(after).map_err(|error| format!("no longer evaluates: {error}"))?;
    difference(&expected, &actual).map_or(Ok(()), |why| Err(format!("with arguments of seed {seed}: {why}")))
}

/// Checks that the evaluator computes nearly the same results for both modules on random arguments
/// of moderate size: the error may be at most `tolerance` times the result's largest element.
pub fn close_answers(before: &Module, after: &Module, seed: u64, tolerance: f64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let parameters = before.entry_computation().program_shape().parameters;
    let arguments: Vec<Literal> =
        parameters.iter().map(|shape| moderate_argument(&mut random, shape)).collect();
    let evaluate = |module: &Module| {
        evaluator::evaluate(module, &arguments).map_err(|error| format!("does not evaluate: {error}"))
    };
    distance(&evaluate(before)?, &evaluate(after)?, tolerance)
        .map_or(Ok(()), |why| Err(format!("with arguments of seed {seed}: {why}")))
}

/// Returns a random value whose floats are between 1/64 and 16.
fn moderate_argument(random: &mut Random, shape: &Shape) -> Literal {
    match shape {
        Shape::Array(array) if array.element_type.is_floating_point() => {
            let array = ArrayShape::new(array.element_type, &array.sizes());
            let count = array.element_count();
            let scalars = (0..count).map(|_| Scalar::Float((random.below(1024) + 1) as f64 / 64.0));
            Literal::from_scalars(array, scalars)
        }
        Shape::Tuple(elements) => {
            Literal::Tuple(elements.iter().map(|shape| moderate_argument(random, shape)).collect())
        }
        _ => argument(random, shape),
    }
}

/// Returns the first difference of two values that exceeds the tolerance.
fn distance(expected: &Literal, actual: &Literal, tolerance: f64) -> Option<String> {
    match (expected, actual) {
        (Literal::Tuple(expected), Literal::Tuple(actual)) if expected.len() == actual.len() => {
            expected.iter().zip(actual).enumerate().find_map(|(i, (expected, actual))| {
                Some(format!("result {i}: {}", distance(expected, actual, tolerance)?))
            })
        }
        (Literal::Array { shape, .. }, Literal::Array { shape: other, .. })
            if shape == other && shape.element_type.is_floating_point() =>
        {
            let number = |scalar: Scalar| scalar.as_f64().unwrap_or(f64::NAN);
            let largest = expected.scalars().fold(0.0, |most: f64, scalar| most.max(number(scalar).abs()));
            expected.scalars().zip(actual.scalars()).enumerate().find_map(|(i, (expected, actual))| {
                let is_near = (number(expected) - number(actual)).abs() <= tolerance * largest;
                (!is_near && !same_scalar(expected, actual))
                    .then(|| format!("element {i} is {actual:?}, not {expected:?}"))
            })
        }
        _ => difference(expected, actual),
    }
}

/// Returns a random value with many zeros of both signs, ones, infinities, NaNs, and small and
/// extreme integers.
pub fn argument(random: &mut Random, shape: &Shape) -> Literal {
    match shape {
        Shape::Array(array) => {
            let array = ArrayShape::new(array.element_type, &array.sizes());
            let count = array.element_count();
            let scalars: Vec<Scalar> = (0..count).map(|_| scalar(random, array.element_type)).collect();
            Literal::from_scalars(array, scalars)
        }
        Shape::Tuple(elements) => {
            Literal::Tuple(elements.iter().map(|shape| argument(random, shape)).collect())
        }
        Shape::Token => Literal::Tuple(Vec::new()),
    }
}

/// Returns a random number of a type.
pub fn scalar(random: &mut Random, element_type: PrimitiveType) -> Scalar {
    const FLOATS: &[f64] =
        &[0.0, -0.0, 1.0, -1.0, 2.0, 0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-40, 3e38];
    const INTEGERS: &[i64] =
        &[0, 1, -1, 2, 3, i64::MIN, i64::MAX, i32::MIN as i64, i32::MAX as i64, 127, -128, 255];
    let mut float = || match random.below(3) {
        0 => random.choose(FLOATS),
        _ => (random.below(2001) as f64 - 1000.0) / 64.0,
    };
    match element_type {
        PrimitiveType::Pred => Scalar::Pred(random.below(2) == 1),
        t if t.is_complex() => Scalar::Complex(float(), float()),
        t if t.is_floating_point() => Scalar::Float(float()),
        t => {
            let value = match random.below(3) {
                0 => random.choose(INTEGERS),
                _ => random.below(17) as i64 - 5,
            };
            if t.is_signed_integer() { Scalar::Signed(value) } else { Scalar::Unsigned(value as u64) }
        }
    }
}

/// Returns the first difference of two values. NaNs do not differ.
pub fn difference(expected: &Literal, actual: &Literal) -> Option<String> {
    if expected.shape() != actual.shape() {
        return Some(format!("expected a result of shape {}, got {}", expected.shape(), actual.shape()));
    }
    match (expected, actual) {
        (Literal::Tuple(expected), Literal::Tuple(actual)) => {
            expected.iter().zip(actual).enumerate().find_map(|(i, (expected, actual))| {
                Some(format!("result {i}: {}", difference(expected, actual)?))
            })
        }
        _ => expected.scalars().zip(actual.scalars()).enumerate().find_map(|(i, (expected, actual))| {
            (!same_scalar(expected, actual)).then(|| format!("element {i} is {actual:?}, not {expected:?}"))
        }),
    }
}

fn same_scalar(a: Scalar, b: Scalar) -> bool {
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => same(a, b),
        (Scalar::Complex(a, ai), Scalar::Complex(b, bi)) => same(a, b) && same(ai, bi),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_zeros_differ_and_nans_do_not() {
        let f = |x: f32| Literal::Tuple(vec![Literal::scalar(x)]);
        assert!(difference(&f(0.0), &f(-0.0)).is_some());
        assert_eq!(difference(&f(f32::NAN), &f(-f32::NAN)), None);
        assert!(difference(&f(1.0), &Literal::Tuple(vec![Literal::scalar(1i32)])).is_some());
    }

    #[test]
    fn what_is_near_is_near_in_proportion_to_the_largest() {
        let f = |x: [f32; 2]| Literal::from_elements(&[2], &x);
        assert_eq!(distance(&f([100.0, 0.1]), &f([100.0, 0.2]), 1e-2), None);
        assert!(distance(&f([1.0, 0.1]), &f([1.0, 0.2]), 1e-2).is_some());
        assert!(distance(&f([1.0, 0.1]), &f([1.0, f32::NAN]), 1e-2).is_some());
    }

    #[test]
    fn a_module_that_computes_something_else_is_found() {
        let module = |op: &str| {
            let text = format!(
                "HloModule m\nENTRY main {{\n  x = f32[7] parameter(0)\n  ROOT y = f32[7] {op}(x)\n}}\n"
            );
            hlo::parse(&text).expect("a valid text")
        };
        assert!(same_answers(&module("negate"), &module("abs"), 1).is_err());
        assert_eq!(same_answers(&module("abs"), &module("abs"), 1), Ok(()));
    }
}
