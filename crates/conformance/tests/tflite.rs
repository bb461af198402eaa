//! Runs a fixed part of the TensorFlow Lite models with LiteRT's answers (`tests/tflite`, recorded
//! by `scripts/tflite/make_cases.py`), or all cases of the archives that `TFCOMPILE_TFLITE` names.
//! `make conformance` runs all.

use conformance::{known_failures, models};
use std::path::{Path, PathBuf};

/// Runs every `step`-th case.
#[track_caller]
fn run(evaluates: bool, step: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tflite");
    let known = known_failures::read(&folder.join("known_failures.toml")).expect("a list");
    let selection = std::env::var("TFCOMPILE_TFLITE").unwrap_or_default();
    let selected: Vec<PathBuf> =
        selection.split_whitespace().map(|name| folder.join(name).with_extension("npz")).collect();
    let report = match selected.as_slice() {
        [] => models::run(&[folder], evaluates, step, &known),
        selected => models::run(selected, evaluates, 1, &known),
    };
    let report = report.expect("archives");
    println!(
        "{} passed, {} known failures, {} failed",
        report.passed,
        report.known.len(),
        report.failures.len()
    );
    assert!(report.failures.is_empty() && report.passed > 0, "{}", report.failures.join("\n"));
}

#[test]
fn compiled_models_give_what_lite_gives() {
    run(false, 20);
}

#[test]
fn evaluated_models_give_what_lite_gives() {
    run(true, 4);
}

#[test]
fn malformed_models_are_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tflite/malformed");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder of malformed files") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|end| end != "tflite") {
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file").into();
        let result = compiler::guarded(|| models::import(&path, bytes));
        let error = result.expect_err(&path.display().to_string());
        assert_ne!(error.kind(), support::ErrorKind::Internal, "{}: {error}", path.display());
        println!("{}: {error}", path.display());
        count += 1;
    }
    assert!(count > 30);
}
