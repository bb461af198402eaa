//! Runs a fixed tenth of the recorded cases through the whole compiler and through the evaluator.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folders of cases: those of the repository, and the larger sets if available.
fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("TFCOMPILE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let sets = ["cases", "cases_raw"].map(|set| shared.join("conformance").join(set));
    let all = std::iter::once(root.join("tests/conformance")).chain(sets);
    all.filter(|folder| folder.is_dir()).collect()
}

fn count(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .map(|path| {
            if path.is_dir() {
                count(&path)
            } else {
                usize::from(path.extension().is_some_and(|e| e == "npz"))
            }
        })
        .sum()
}

#[track_caller]
fn a_tenth_passes(flags: &[&str]) {
    let folders = folders();
    let cases: usize = folders.iter().map(|folder| count(folder)).sum();
    assert!(cases > 0, "no cases found");
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/known_failures.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_conformance"))
        .args(&folders)
        .args(["--sample", &cases.div_ceil(10).to_string(), "--timeout", "300", "--known"])
        .arg(known)
        .args(flags)
        .output()
        .expect("the runner starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn compiled_code_answers_a_tenth_of_the_cases() {
    a_tenth_passes(&[]);
}

#[test]
fn the_evaluator_answers_a_tenth_of_the_cases() {
    a_tenth_passes(&["--evaluator"]);
}
