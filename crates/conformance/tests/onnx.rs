//! Runs a fixed part of ONNX's tests (`tests/onnx/node.npz`, whose answers are those of ONNX's
//! package) and of the models with ONNX Runtime's answers (`tests/onnx/contrib.npz`), both written
//! by `scripts/onnx/make_cases.py`. `make test-onnx` runs all.

use conformance::models;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/onnx")
}

/// Runs every `step`-th case.
#[track_caller]
fn run(evaluates: bool, step: usize) {
    let report = models::run(&[folder()], evaluates, step, &BTreeMap::new()).expect("archives");
    println!("{} passed, {} failed", report.passed, report.failures.len());
    assert!(report.failures.is_empty() && report.passed > 40, "{}", report.failures.join("\n"));
}

#[test]
fn compiled_models_give_what_onnx_gives() {
    run(false, 7);
}

#[test]
fn evaluated_models_give_what_onnx_gives() {
    run(true, 2);
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// A model with one byte changed, cut off, or repeated.
fn damaged(model: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = model.to_vec();
    let at = random.below(bytes.len());
    match random.below(4) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = [0, 0x7f, 0x80, 0xff][random.below(4)],
        2 => bytes.truncate(at),
        _ => {
            let end = (at + 1 + random.below(24)).min(bytes.len());
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
    }
    bytes
}

#[test]
fn damaged_models_are_refused_or_are_models() {
    let mut random = Random(7);
    let (mut refused, mut accepted) = (0, 0);
    for archive in ["node.npz", "contrib.npz"] {
        for case in models::read(&folder().join(archive)).expect("an archive").iter().step_by(3) {
            for _ in 0..6 {
                let bytes = damaged(case.model(), &mut random);
                let path = Path::new("damaged.onnx");
                match compiler::guarded(|| models::import(path, bytes.clone().into())) {
                    Ok(()) => accepted += 1,
                    Err(error) => {
                        let is_internal = error.kind() == support::ErrorKind::Internal;
                        if is_internal {
                            std::fs::write(std::env::temp_dir().join("damaged.onnx"), &bytes)
                                .expect("writable");
                        }
                        assert!(!is_internal, "{}: {error}", case.name);
                        refused += 1;
                    }
                }
            }
        }
    }
    println!("{refused} refused, {accepted} accepted");
    assert!(refused > 300);
}
