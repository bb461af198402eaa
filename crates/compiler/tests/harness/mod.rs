//! Programs of HLO text, and numbers to run them on.

use compiler::{HloProgram, NoObserver, PassRun};
use hlo::Module;
use shape::{Literal, Scalar};
use support::Result;

/// The module of a program.
pub(crate) fn module(text: &str) -> Result<Module> {
    let program = HloProgram::parse_hlo(text, &mut PassRun { disabled: &[], observer: &mut NoObserver })?;
    Ok(program.program.module)
}

/// Numbers from -1 to 1.
pub(crate) fn numbers(sizes: &[i64], seed: i64) -> Literal {
    let count = sizes.iter().product::<i64>();
    let number = |k: i64| ((k * 7919 + seed) % 2003) as f32 / 1001.0 - 1.0;
    Literal::from_elements(sizes, &(0..count).map(number).collect::<Vec<_>>())
}

/// The value of a float.
pub(crate) fn number(scalar: Scalar) -> f32 {
    scalar.as_f64().map_or(f32::NAN, |value| value as f32)
}
