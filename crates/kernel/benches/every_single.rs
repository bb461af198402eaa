//! How far the functions of one `F32` number are from their values at most, over all numbers.
//!
//!     cargo bench -p kernel --bench every_single [-- FUNCTION.. every=N share=K/N]
//!
//! Takes minutes for each function; `every=16` takes every 16th block of 2^16 numbers. `share=K/N` takes the K-th of N parts of
//! the blocks, K from 0: the parts of several processes are all numbers. What cargo builds needs nothing beside it but LLVM's
//! library, so that it may be run elsewhere. An error of more than 2 units in the last place makes it fail in the end.

#[path = "../tests/functions/mod.rs"]
mod functions;

use functions::{CASES, Case, bytes_of, executable, targets, ulps};
use jit::AlignedBytes;
use nest::ScalarType;

/// Numbers at a time.
const CHUNK: u64 = 1 << 16;

/// Which blocks of numbers are looked at: those whose number leaves `first` when divided by `step`.
#[derive(Clone, Copy)]
struct Blocks {
    first: usize,
    step: usize,
}

/// What the words of the command line ask for; words that cargo adds begin with `--`.
fn choice(words: impl Iterator<Item = String>) -> (Blocks, Vec<String>) {
    let (mut every, mut share, mut names) = (1, (0, 1), Vec::new());
    for word in words {
        match word.split_once('=') {
            Some(("every", number)) => every = number.parse().expect("every=NUMBER"),
            Some(("share", part)) => {
                let (part, of) = part.split_once('/').expect("share=K/N");
                share = (part.parse().expect("share=K/N"), of.parse().expect("share=K/N"));
            }
            _ if word.starts_with("--") => {}
            _ => names.push(word),
        }
    }
    let (part, of): (usize, usize) = share;
    assert!(every > 0 && part < of, "every=N is at least 1, and the K of share=K/N below N");
    (Blocks { first: part * every, step: of * every }, names)
}

fn main() {
    let (blocks, names) = choice(std::env::args().skip(1));
    let is_chosen = |case: &&Case| names.is_empty() || names.iter().any(|name| *name == case.name);
    let cases: Vec<&Case> = CASES.iter().filter(|case| case.operands == 1).filter(is_chosen).collect();
    assert!(!cases.is_empty(), "there is no function of these names");
    let far: Vec<&str> = cases.iter().filter(|case| !measure(case, blocks)).map(|case| case.name).collect();
    assert!(far.is_empty(), "more than 2 units from the value: {}", far.join(", "));
}

/// Prints the largest error for each target, and says whether it is small enough.
fn measure(case: &Case, blocks: Blocks) -> bool {
    let targets = targets();
    let bytes = 4 * CHUNK as usize;
    let executables: Vec<_> =
        targets.iter().map(|t| executable(case, t, ScalarType::F32, t.lanes(4), bytes)).collect();
    let mut instances: Vec<_> = executables.iter().map(|e| e.instance().expect("small buffers")).collect();
    let mut worst = vec![(0.0, 0.0); targets.len()];
    for block in (blocks.first as u64..(1 << 32) / CHUNK).step_by(blocks.step) {
        let first = block * CHUNK;
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
    for (target, (error, x)) in targets.iter().zip(&worst) {
        println!("{:<10} {error:.3} units at {x:e} on '{}'", case.name, target.cpu);
    }
    worst.iter().all(|(error, _)| *error <= 2.0)
}
