//! Checks a few hundred graphs with fixed seeds. `cargo run --release -p fuzz-graphs` checks more.

use fuzz_graphs::Outcome;
use fuzz_graphs::named;
use fuzz_graphs::subject::{Kind, run};
use fuzz_graphs::translation;

/// Graphs with complex functions of large numbers, whose infinities have any direction.
const DIRECTIONS: [u64; 2] = [1_119_158, 51_049_378];

#[test]
fn random_graphs_compute_what_the_evaluator_computes() {
    let mut refused = 0;
    for seed in (0..300).chain(DIRECTIONS) {
        match run(Kind::All, seed) {
            Outcome::Clean { .. } => {}
            Outcome::Refused(_) => refused += 1,
            Outcome::Failed(why) => panic!("seed {seed}: {why}"),
        }
    }
    assert!(refused < 30, "{refused} graphs were refused");
}

#[test]
fn graphs_with_named_dimensions_compute_what_fixed_sizes_compute() {
    let (mut refused, mut pieces, mut masks) = (0, 0, 0);
    for seed in 0..40 {
        let report = named::run(seed);
        match report.outcome {
            Outcome::Clean { .. } => {}
            Outcome::Refused(_) => refused += 1,
            Outcome::Failed(why) => panic!("seed {seed}: {why}"),
        }
        pieces += usize::from(report.notes.iter().any(|note| note == "pieces"));
        masks += usize::from(report.notes.iter().any(|note| note == "masks"));
    }
    assert!(refused < 4 && pieces > 10 && masks > 10, "{refused} refused, {pieces} pieces, {masks} masks");
}

#[test]
fn passes_keep_what_graphs_compute() {
    for (kind, count) in [(Kind::All, 60), (Kind::Files, 100), (Kind::Sizes, 5)] {
        for seed in 0..count {
            let report = translation::run(kind, seed);
            if let Outcome::Failed(why) = report.outcome {
                panic!("{kind:?}, seed {seed}: {why}");
            }
        }
    }
}
