//! Functions that JAX wrote as StableHLO, with its answers (`tests/stablehlo`, made by `scripts/jax_programs.py`).

use conformance::programs::Run;
use std::path::{Path, PathBuf};

/// Runs every program; a panic that lists those that fail.
fn run_all(extension: &str, evaluates: bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stablehlo");
    let entries = std::fs::read_dir(&folder).expect("the folder of programs");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    let is_program = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    paths.retain(is_program);
    paths.sort();
    assert!(paths.len() > 60, "{} programs", paths.len());
    let run = Run { evaluates, tolerance: 1e-5 };
    let outcomes = paths.iter().flat_map(|path| run.file(path));
    let failures: Vec<String> =
        outcomes.filter_map(|outcome| Some(format!("{}: {}", outcome.name, outcome.result.err()?))).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn compiled_programs_give_what_jax_gives() {
    run_all("mlir", false);
}

#[test]
fn evaluated_programs_give_what_jax_gives() {
    run_all("mlir", true);
}

#[test]
fn exported_artefacts_give_what_jax_gives() {
    run_all("jax", false);
}
