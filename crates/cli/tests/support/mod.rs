//! Helpers that run the tool and other programs in tests.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

/// Returns the tool's command in a directory, without flags from the environment and without a
/// cache.
pub fn tfcompile(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfcompile"));
    command.current_dir(directory).env("TFCOMPILE_KERNEL_CACHE", "");
    for variable in ["XLA_FLAGS", "TF_XLA_FLAGS", "TF_CPP_MIN_VLOG_LEVEL", "TFCOMPILE_KERNEL_CACHE_LIMIT"] {
        command.env_remove(variable);
    }
    command
}

/// Writes the model of a case of `tests/tflite`: an archive, and the case's name.
pub fn quantized_case((archive, case): (&str, &str), file: &Path) {
    let path = root().join("tests/tflite").join(archive).with_extension("npz");
    let bytes = std::fs::read(path).expect("readable");
    let mut archive = npz::Archive::open(bytes.into(), 1 << 24).expect("an archive");
    let model = archive.require(&format!("{case}/model.tflite")).expect("a model");
    std::fs::write(file, model.bytes()).expect("writable");
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Runs the tool, which must fail with exit code 1 and one message and without leaving files.
/// Returns the message.
pub fn refuse(command: &mut Command, directory: &Path) -> String {
    let before = listing(directory);
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{command:?}: {message}");
    assert_eq!(
        message.matches("INVALID ARGUMENTS: ").count() + message.matches("UNSUPPORTED: ").count(),
        1,
        "{message}"
    );
    assert_eq!(listing(directory), before, "a failed run leaves nothing behind");
    message
}

fn listing(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(directory).expect("readable").map(|e| e.expect("readable").path()).collect();
    entries.sort();
    entries
}
