//! How far the functions of one `F32` number are from their values at most, over all numbers.
//!
//!     cargo bench -p runner --bench every_single [-- FUNCTION.. every=N]
//!
//! Takes minutes for each function; `every=16` takes every 16th block of 2^16 numbers. An error of more than 2 units in the last
//! place ends it with a failure.

#[path = "../../kernel/tests/functions/mod.rs"]
mod functions;

use functions::{CASES, Case, bytes_of, executable, targets, ulps};
use jit::AlignedBytes;
use kernel::ir::ScalarType;

/// Numbers at a time.
const CHUNK: u64 = 1 << 16;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let (steps, names): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.starts_with("every="));
    let step = steps.last().map_or(1, |word| word["every=".len()..].parse().expect("every=NUMBER"));
    let is_chosen = |case: &&Case| names.is_empty() || names.iter().any(|name| *name == case.name);
    for case in CASES.iter().filter(|case| case.operands == 1).filter(is_chosen) {
        measure(case, step);
    }
}

fn measure(case: &Case, step: usize) {
    let targets = targets();
    let bytes = 4 * CHUNK as usize;
    let executables: Vec<_> =
        targets.iter().map(|t| executable(case, t, ScalarType::F32, t.lanes(4), bytes)).collect();
    let mut instances: Vec<_> = executables.iter().map(|e| e.instance().expect("small buffers")).collect();
    let mut worst = vec![(0.0, 0.0); targets.len()];
    for first in (0..1u64 << 32).step_by(CHUNK as usize * step) {
        let numbers = (first..first + CHUNK).map(|bits| f32::from_bits(bits as u32));
        let values: Vec<f64> = numbers.clone().map(|x| (case.reference)(&[f64::from(x)])).collect();
        let operand = bytes_of(numbers.clone().map(f32::to_ne_bytes));
        let mut operand = AlignedBytes::from_bytes(&operand).expect("a small buffer");
        for (instance, worst) in instances.iter_mut().zip(&mut worst) {
            instance.run(&mut [&mut *operand]).expect("the code runs");
            let results = instance.result(0).chunks_exact(4);
            for (got, (x, &value)) in results.zip(numbers.clone().zip(&values)) {
                let error = ulps(f32::from_ne_bytes(got.try_into().expect("4 bytes")), value);
                if error > worst.0 {
                    *worst = (error, x);
                }
            }
        }
    }
    for (target, (error, x)) in targets.iter().zip(worst) {
        println!("{:<10} {error:.3} units at {x:e} on '{}'", case.name, target.cpu);
        assert!(error <= 2.0, "{} of {x:e}", case.name);
    }
}
