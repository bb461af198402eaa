//! Runs of a program on examples of its inputs, and the errors of its results.

use crate::Inputs;
use crate::difference::Difference;
use compiler::Executable;
use hlo::Interface;
use shape::{Literal, PrimitiveType, Quantization};
use support::Result;

/// Runs a program on examples, and passes its results on. `extra` are arguments after the
/// program's own.
pub(super) fn run(
    executable: &Executable,
    inputs: &Inputs,
    interface: &Interface,
    extra: &[Literal],
    samples: &[u64],
    mut each: impl FnMut(u64, Vec<Literal>) -> Result<()>,
) -> Result<()> {
    let convert = |(k, argument): (usize, &Literal)| {
        let quantization = interface.arguments().get(k).and_then(|argument| argument.quantization);
        match quantization {
            Some(quantization) if argument.array_shape().element_type == PrimitiveType::F32 => {
                integers(argument, quantization)
            }
            _ => argument.clone(),
        }
    };
    let first = inputs.first.iter().enumerate().map(convert).chain(extra.iter().cloned());
    let mut session = executable.session(&first.collect::<Vec<Literal>>())?;
    for &sample in samples {
        for (k, argument) in inputs.at(sample) {
            session.set_argument(k, &convert((k, argument)))?;
        }
        session.run()?;
        each(sample, session.results()?)?;
    }
    Ok(())
}

/// Integers of `f32` values.
fn integers(values: &Literal, quantization: Quantization) -> Literal {
    let Quantization { scale, zero_point } = quantization;
    let integer =
        |value: f32| ((value / scale).round_ties_even() + zero_point as f32).clamp(-128.0, 127.0) as i8;
    let integers: Vec<i8> = values.to_vec().unwrap_or_default().into_iter().map(integer).collect();
    Literal::from_elements(&values.array_shape().sizes(), &integers)
}

/// Real numbers of a result: its floats, or what its integers stand for.
fn numbers(result: &Literal, quantization: Option<Quantization>) -> Option<Vec<f64>> {
    let Some(Quantization { scale, zero_point }) = quantization else { return result.floats() };
    let number = |integer: i64| f64::from(scale) * (integer - i64::from(zero_point)) as f64;
    Some(result.to_i64s()?.into_iter().map(number).collect())
}

/// Relative difference of two arrays.
pub(super) fn relative_difference(actual: &[f32], reference: &[f32]) -> f64 {
    let mut difference = Difference::default();
    let pairs = actual.iter().zip(reference);
    pairs.for_each(|(&actual, &reference)| difference.include(actual.into(), reference.into()));
    difference.relative()
}

/// Differences of the results of a program; `None` for results that are not numbers of a line,
/// such as labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Differences(pub(super) Vec<Option<Difference>>);

impl Differences {
    /// Includes the results of one sample. The interface is that of the actual results.
    pub(super) fn include(&mut self, actual: &[Literal], reference: &[Literal], interface: &Interface) {
        self.0.resize(interface.results().len(), None);
        for (k, result) in interface.results().iter().enumerate() {
            let (Some(actual), Some(reference)) = (actual.get(k), reference.get(k)) else { continue };
            let actual = numbers(actual, result.quantization);
            if let Some((actual, reference)) = actual.zip(numbers(reference, None)) {
                let difference = self.0[k].get_or_insert_default();
                let pairs = actual.into_iter().zip(reference);
                pairs.for_each(|(actual, reference)| difference.include(actual, reference));
            }
        }
    }

    /// The largest relative difference of all results.
    pub(super) fn largest(&self) -> f64 {
        self.0.iter().flatten().map(Difference::relative).fold(0.0, f64::max)
    }
}
