//! Rust programs with compiled graphs: the example for Cargo, and the options of `tfcompile-build`.

use crate::support::{quantized_case, root, succeed};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Copy of a package in a temporary directory, with dependencies on the checkout's crates.
pub struct Package {
    directory: TempDir,
}

impl Package {
    pub fn copy(source: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        copy_files(source, directory.path());
        let crates = root().join("crates");
        let crates = crates.to_str().expect("a path in UTF-8");
        for manifest in ["Cargo.toml", "core/Cargo.toml"] {
            let manifest = directory.path().join(manifest);
            if let Ok(text) = std::fs::read_to_string(&manifest) {
                std::fs::write(&manifest, text.replace("../../crates", crates)).expect("writable");
            }
        }
        Self { directory }
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Returns a Cargo command without network access, with the tool of this checkout.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(self.directory.path()).args(arguments).arg("--offline");
        command
            .env("TFCOMPILE", env!("CARGO_BIN_EXE_tfcompile"))
            .env("CARGO_TARGET_DIR", self.path("target"));
        // Variables set by the test runner's Cargo are meant for other packages.
        for variable in ["RUSTFLAGS", "XLA_FLAGS", "TF_XLA_FLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
            command.env_remove(variable);
        }
        command
    }

    pub fn run(&self) -> String {
        String::from_utf8(succeed(&mut self.cargo(&["run", "--quiet"])).stdout).expect("UTF-8")
    }

    fn replace(&self, file: &str, old: &str, new: &str) {
        let text = std::fs::read_to_string(self.path(file)).expect("readable");
        assert_eq!(text.matches(old).count(), 1, "{file} has one '{old}'");
        std::fs::write(self.path(file), text.replace(old, new)).expect("writable");
    }
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name");
        if !path.is_dir() {
            std::fs::copy(&path, to.join(name)).expect("copied");
        } else if name != "target" {
            copy_files(&path, &to.join(name));
        }
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// Computed by hand: x w + b with w = [[1, -1], [2, -2], [3, 0.5]] and b = [0.25, 4], negative
// values replaced by 0.
const SCORES: &str = "\
scores [[14.25, 0.5], [32.25, 0.0]]
scores [[3.25, 4.5], [0.0, 5.0]]
rows 4
rows 102
";

#[test]
fn the_example_builds_once_and_again_when_its_graph_changes() {
    let package = Package::copy(&root().join("examples/cargo"));
    assert_eq!(package.run(), SCORES);

    let again = stderr(&succeed(&mut package.cargo(&["build", "--verbose"])));
    assert!(again.contains("Fresh scorer"), "{again}");
    assert!(!again.contains("Running") && !again.contains("Compiling"), "{again}");

    // A change of a file that is not part of the model rebuilds the program without compiling the
    // model.
    package.replace("src/main.rs", "println!(\"rows {}\", scorer.var_rows());\n    *scorer", "*scorer");
    let other = stderr(&succeed(&mut package.cargo(&["build", "--verbose"])));
    assert!(other.contains("Compiling scorer") && !other.contains("build-script-build"), "{other}");

    package.replace("model/scorer.pbtxt", "float_val: 0.25 float_val: 4", "float_val: 0.25 float_val: 5");
    let changed = stderr(&succeed(&mut package.cargo(&["build", "--verbose"])));
    assert!(changed.contains("build-script-build"), "{changed}");
    let expected = "\
scores [[14.25, 1.5], [32.25, 0.0]]
scores [[3.25, 5.5], [0.0, 6.0]]
rows 102
";
    assert_eq!(package.run(), expected);

    // Cargo shows the tool's message and its fix.
    package.replace("model/scorer.config.pbtxt", "node_name: \"score\"", "node_name: \"scores\"");
    let output = package.cargo(&["build"]).output().expect("cargo");
    let message = stderr(&output);
    assert!(
        !output.status.success() && message.contains("model/scorer.pbtxt: ") && message.contains("scores"),
        "{message}"
    );
    let output = package.cargo(&["build"]).env("TFCOMPILE", "/nowhere/tfcompile").output().expect("cargo");
    let message = stderr(&output);
    assert!(
        message.contains("TFCOMPILE is '/nowhere/tfcompile', which is not a file: install tfcompile"),
        "{message}"
    );
}

#[test]
fn models_without_std_with_constants_files_and_with_bounded_results() {
    let package = Package::copy(&root().join("tests/rust"));
    let model = root().join("examples/cargo/model");
    copy_files(&model, &package.path("model"));
    let row = package.path("model/row.tflite");
    quantized_case(("maximum", "int8_quantized_row"), &row);
    assert_eq!(package.run(), "all variants agree\n");
}
