//! Compares HLO texts from other sources with XLA's answers: reads, prints, compiles, and evaluates
//! them.

use crate::worker::Outcome;
use compiler::{Executable, HloProgram, NoObserver, PassRun, host, in_process_options};
use evaluator::{Evaluator, Limits};
use hlo::{Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::path::Path;
use support::{Error, ErrorKind, Result};

/// Limits of the evaluator. Larger programs are only compiled.
const LIMITS: Limits = Limits { max_steps: 1 << 28, max_live_bytes: 1 << 32, max_depth: 128 };

/// Runs the text with the arguments of an archive (`in/0`, `in/1`, ...), compiled and evaluated,
/// and compares with the archive's results (`out/0`, ...). Returns the outcome, and the largest
/// error relative to the largest element.
pub fn judge(text: &Path, answers: &Path) -> (Outcome, f64) {
    let mut largest = 0.0;
    let outcome = match compiler::guarded(|| run(text, answers, &mut largest)) {
        Ok(None) => Outcome::Passed,
        Ok(Some(difference)) => Outcome::Wrong(difference),
        Err(error) if error.kind() == ErrorKind::Unsupported => Outcome::Unsupported(first_line(&error)),
        Err(error) => Outcome::Refused(first_line(&error)),
    };
    (outcome, largest)
}

fn first_line(error: &Error) -> String {
    let mut lines = error.message().lines();
    let first = lines.next().unwrap_or_default();
    match first.strip_suffix(':') {
        Some(head) => format!("{head}: {}", lines.next().unwrap_or_default()),
        None => first.to_owned(),
    }
}

/// Returns the first difference, if any.
fn run(text: &Path, answers: &Path, largest: &mut f64) -> Result<Option<String>> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|e| Error::invalid(format!("cannot read {}: {e}", path.display())))
    };
    let module = hlo::parse(&String::from_utf8_lossy(&read(text)?))?;
    let is_elided = |i: &hlo::Instruction| i.annotations().is_some_and(|annotations| annotations.is_elided);
    if module.computations().any(|(_, c)| c.instructions().any(|(_, instruction)| is_elided(instruction))) {
        return Err(Error::unsupported("the text omits constants"));
    }
    hlo::verify(&module)?;
    let is_random = has_open_random_numbers(&module);
    let module = HloProgram::of_module(module, &mut PassRun { disabled: &[], observer: &mut NoObserver })?
        .program
        .module;
    let signature = module.entry_computation().program_shape();
    let mut archive = npz::Archive::open(read(answers)?.into(), 1 << 32)?;
    let mut arguments = Vec::new();
    for (k, parameter) in signature.parameters.iter().enumerate() {
        let array = parameter.as_array().ok_or_else(|| Error::internal("expected array parameters"))?;
        arguments.push(with_type(&archive.require(&format!("in/{k}"))?, array.element_type)?);
    }
    let mut answers = Vec::new();
    for (k, result) in signature.result.as_tuple().unwrap_or_default().iter().enumerate() {
        let array = result.as_array().ok_or_else(|| Error::internal("expected array results"))?;
        answers.push(with_type(&archive.require(&format!("out/{k}"))?, array.element_type)?);
    }
    let options = in_process_options(host("native")?);
    let compiled = compiler::compile_module(module.clone(), &options, &mut NoObserver)?;
    let results = Executable::load(&compiled)?.run(&arguments)?;
    let sized = compiler::with_size_results(&module)?;
    for ((answer, result), shape) in
        answers.iter_mut().zip(&results).zip(signature.result.as_tuple().unwrap_or_default())
    {
        if !shape.as_array().is_some_and(|array| array.is_static()) {
            *answer = front(answer, result)?;
        }
    }
    let evaluated = match Evaluator::with_limits(&sized, LIMITS).evaluate(&arguments) {
        Ok(Literal::Tuple(results)) => Some(results),
        Ok(Literal::Array { .. }) => return Err(Error::internal("expected a tuple as the entry's result")),
        Err(error) if error.message().contains("limit") => None,
        // Code does not need a call with an unused result; the evaluator executes all calls.
        Err(error) if error.message().contains("no implementation of the custom call") => None,
        Err(error) => return Err(error.context("evaluated")),
    };
    let allowed = coarsest(&module);
    let compare =
        |results: &[Literal], expected: &[Literal]| differences(results, expected, allowed, is_random);
    match compare(&results, &answers) {
        Ok(error) => *largest = largest.max(error),
        Err(difference) => {
            let agrees = evaluated.is_some_and(|evaluated| compare(&results, &evaluated).is_ok());
            let who = if agrees { "compiled and evaluated alike" } else { "compiled" };
            return Ok(Some(format!("{who}: {difference}")));
        }
    }
    match evaluated.map(|evaluated| compare(&evaluated, &answers)) {
        Some(Err(difference)) => Ok(Some(format!("evaluated: {difference}"))),
        Some(Ok(_)) | None => Ok(None),
    }
}

/// Cuts XLA's answer to the number of elements in a bounded result. They are at the front of a
/// buffer of the bound's size.
fn front(answer: &Literal, result: &Literal) -> Result<Literal> {
    let shape = ArrayShape::new(answer.array_shape().element_type, &result.array_shape().sizes());
    let bytes = answer.bytes().get(..shape.byte_size() as usize).map(|bytes| answer.bytes().slice_ref(bytes));
    bytes
        .and_then(|bytes| Literal::from_bytes(shape, bytes))
        .ok_or_else(|| Error::invalid("the answer has fewer elements than the result"))
}

/// Returns the largest error of the results, relative to the largest element of each, or the first
/// mismatch.
fn differences(
    results: &[Literal],
    expected: &[Literal],
    allowed: f64,
    only_shape: bool,
) -> std::result::Result<f64, String> {
    let mut largest = 0.0f64;
    for (k, (result, expected)) in results.iter().zip(expected).enumerate() {
        let error = difference(result, expected, allowed, only_shape);
        largest = largest.max(error.map_err(|why| format!("result {k}: {why}"))?);
    }
    Ok(largest)
}

/// Returns the coarsest tolerance of the types in a module: a value that passed through `bf16` has
/// only its accuracy.
fn coarsest(module: &Module) -> f64 {
    let shapes = module.computations().flat_map(|(_, c)| c.instructions().map(|(_, i)| i.shape().leaves()));
    let types = shapes.flatten().map(|(_, array)| tolerance(array.element_type));
    types.fold(0.0, f64::max)
}

/// True if the module has implementation-defined random numbers.
fn has_open_random_numbers(module: &Module) -> bool {
    let is_open = |op: &Op| matches!(op, Op::Rng { .. } | Op::RngGetAndUpdateState { .. });
    module.computations().any(|(_, computation)| computation.instructions().any(|(_, i)| is_open(i.op())))
}

/// Converts an array stored as bits to a type without a NumPy equivalent.
fn with_type(stored: &Literal, element_type: PrimitiveType) -> Result<Literal> {
    let shape = ArrayShape::new(element_type, &stored.array_shape().sizes());
    let message = format!("stored as {}, but the program has {shape}", stored.shape());
    Literal::from_bytes(shape, stored.bytes().clone()).ok_or_else(|| Error::invalid(message))
}

/// Returns the tolerance of a type, relative to the largest element. Sums have a different order
/// than XLA's, and functions differ.
fn tolerance(element_type: PrimitiveType) -> f64 {
    match element_type.real_part() {
        PrimitiveType::F64 => 1e-9,
        PrimitiveType::F32 => 1e-4,
        PrimitiveType::F16 => 2f64.powi(-9),
        PrimitiveType::Bf16 => 2f64.powi(-6),
        other if other.is_floating_point() => 0.5,
        _ => 0.0,
    }
}

/// Returns the largest error relative to the largest element, or the first mismatch.
fn difference(
    actual: &Literal,
    expected: &Literal,
    allowed: f64,
    only_shape: bool,
) -> std::result::Result<f64, String> {
    let (shape, other) = (actual.array_shape(), expected.array_shape());
    if shape.sizes() != other.sizes() {
        return Err(format!("got {shape}, expected {other}"));
    }
    // Most answers are equal, and some have nearly a billion elements.
    let is_equal = shape.element_type == other.element_type && actual.bytes() == expected.bytes();
    if only_shape || is_equal {
        return Ok(0.0);
    }
    let allowed = if tolerance(shape.element_type) == 0.0 { 0.0 } else { allowed };
    let sizes = expected.scalars().flat_map(parts).map(f64::abs).filter(|size| size.is_finite());
    let scale = sizes.fold(1e-30, f64::max);
    let mut largest = 0.0f64;
    for (index, (a, w)) in actual.scalars().zip(expected.scalars()).enumerate() {
        if a == w {
            continue;
        }
        for (a_part, w_part) in parts(a).into_iter().zip(parts(w)) {
            if a_part == w_part || (a_part.is_nan() && w_part.is_nan()) {
                continue;
            }
            let error = (a_part - w_part).abs() / scale;
            if allowed == 0.0 || error.is_nan() || error > allowed {
                return Err(format!("element {index} is {a:?}, not {w:?}"));
            }
            largest = largest.max(error);
        }
    }
    Ok(largest)
}

fn parts(scalar: Scalar) -> [f64; 2] {
    match scalar {
        Scalar::Complex(re, im) => [re, im],
        other => [other.as_f64().unwrap_or(0.0), 0.0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shares_of_the_largest_element_and_integers_are_exact() {
        let array = |values: &[f32; 2]| Literal::from_elements(&[2], values);
        let compare = |a: &Literal, b: &Literal| difference(a, b, 1e-4, false);
        assert_eq!(compare(&array(&[100.0, 0.0]), &array(&[100.0, 0.0])), Ok(0.0));
        let error = compare(&array(&[100.0, 0.005]), &array(&[100.0, 0.0])).unwrap();
        assert!((error - 5e-5).abs() < 1e-9, "{error}");
        assert!(compare(&array(&[100.0, 0.02]), &array(&[100.0, 0.0])).is_err());
        assert!(compare(&array(&[f32::NAN, 1.0]), &array(&[0.0, 1.0])).is_err());
        assert_eq!(compare(&array(&[f32::NAN, 1.0]), &array(&[f32::NAN, 1.0])), Ok(0.0));
        let whole = |value: i32| Literal::from_elements(&[1], &[value]);
        assert!(compare(&whole(1 << 30), &whole((1 << 30) + 1)).is_err());
        assert!(difference(&whole(1), &array(&[1.0, 1.0]), 1e-4, true).is_err());
    }

    #[test]
    fn what_passed_through_a_coarse_type_is_compared_coarsely() {
        let text = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  c = bf16[2] convert(x)\n  ROOT r = f32[2] convert(c)\n}\n";
        assert_eq!(coarsest(&hlo::parse(text).unwrap()), 2f64.powi(-6));
    }
}
