//! Maximum errors of the functions of one `F32` number, over all numbers.
//!
//!     cargo bench -p kernel --bench every_single [-- FUNCTION.. every=N share=K/N]
//!
//! Each function takes minutes. `every=16` checks every 16th block of 2^16 numbers. `share=K/N`
//! checks the K-th of N parts of the blocks, starting at 0, so that several processes can share the
//! work. The binary needs only LLVM's library, so it can run on other machines. The benchmark fails
//! at the end if an error exceeds 2 units in the last place.

#[path = "../tests/functions/mod.rs"]
mod functions;

use functions::{CASES, Case, bytes_of, executable, targets, ulps};
use jit::AlignedBytes;
use nest::ScalarType;

/// Numbers per block.
const CHUNK: u64 = 1 << 16;

/// The blocks to check: those whose number is `first` modulo `step`.
#[derive(Clone, Copy)]
struct Blocks {
    first: usize,
    step: usize,
}

/// Parses the command line. Words that cargo adds begin with `--`.
fn choice(words: impl Iterator<Item = String>) -> (Blocks, Vec<String>) {
    let (mut every, mut share, mut names) = (1, (0, 1), Vec::new());
    for word in words {
        match word.split_once('=') {
            Some(("every", number)) => every = number.parse().expect("expected every=N, where N is a number"),
            Some(("share", part)) => {
                let (part, parts) = part.split_once('/').expect("expected share=K/N");
                share = (
                    part.parse().expect("expected share=K/N, where K and N are numbers"),
                    parts.parse().expect("expected share=K/N, where K and N are numbers"),
                );
            }
            _ if word.starts_with("--") => {}
            _ => names.push(word),
        }
    }
    let (part, parts): (usize, usize) = share;
    assert!(every > 0 && part < parts, "expected every=N with N of at least 1, and share=K/N with K below N");
    (Blocks { first: part * every, step: parts * every }, names)
}

fn main() {
    let (blocks, names) = choice(std::env::args().skip(1));
    let is_chosen = |case: &&Case| names.is_empty() || names.iter().any(|name| *name == case.name);
    let cases: Vec<&Case> = CASES.iter().filter(|case| case.operands == 1).filter(is_chosen).collect();
    assert!(!cases.is_empty(), "no function has one of these names");
    let far: Vec<&str> = cases.iter().filter(|case| !measure(case, blocks)).map(|case| case.name).collect();
    assert!(far.is_empty(), "errors of more than 2 units in the last place: {}", far.join(", "));
}

/// Prints the largest error for each target. Returns true if it is small enough.
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
