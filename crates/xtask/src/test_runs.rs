//! Runs the tests of the workspace: test binaries side by side, which `cargo test` runs one by one.
//!
//! Many binaries spend most of their time in one long test or wait for a child process, so that one
//! binary at a time leaves processors idle. Here each processor runs a binary of its own, and each
//! binary runs its tests one after another.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread::available_parallelism;

/// A built test binary.
#[derive(Debug, PartialEq)]
struct TestBinary {
    executable: PathBuf,
    /// The folder of its package, in which it runs.
    folder: PathBuf,
    /// Package and target, for reports.
    name: String,
}

/// Builds all tests, runs them, then runs the examples in doc comments. Returns true if all pass;
/// prints the output of those that fail.
pub fn run() -> Result<bool, String> {
    let mut build = Command::new("cargo");
    build.args(["test", "--workspace", "--no-run", "--quiet"]);
    build.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let built = build.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !built.status.success() {
        return Ok(false);
    }
    let mut binaries = binaries(&String::from_utf8_lossy(&built.stdout));
    // The size of a binary grows with the crates that its tests go through, and those tests take
    // longest. Starting with them leaves short ones to fill the end.
    binaries.sort_by_key(|binary| std::fs::metadata(&binary.executable).map_or(0, |file| file.len()));
    let failed = run_all(binaries)?;
    failed.iter().for_each(|name| eprintln!("test: {name} failed"));
    let mut examples = Command::new("cargo");
    examples.args(["test", "--workspace", "--doc", "--quiet"]);
    let examples = examples.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !examples.status.success() {
        print(&examples);
    }
    Ok(failed.is_empty() && examples.status.success())
}

/// The test binaries that cargo's messages name, one message per line.
fn binaries(messages: &str) -> Vec<TestBinary> {
    let binary = |message: Value| {
        let executable = PathBuf::from(message["executable"].as_str()?);
        let manifest = PathBuf::from(message["manifest_path"].as_str()?);
        if message["profile"]["test"] != true {
            return None;
        }
        let folder = manifest.parent()?.to_owned();
        let package = folder.file_name()?.to_string_lossy();
        let name = format!("{package}, {}", message["target"]["name"].as_str()?);
        Some(TestBinary { executable, folder, name })
    };
    messages.lines().filter_map(|line| binary(serde_json::from_str(line).ok()?)).collect()
}

/// Runs all `binaries`, the last one first, and returns the names of those that fail.
fn run_all(binaries: Vec<TestBinary>) -> Result<Vec<String>, String> {
    let processors = available_parallelism().map_or(1, usize::from);
    let waiting = Mutex::new(binaries);
    let work = || -> Result<Vec<String>, String> {
        let mut failed = Vec::new();
        while let Some(binary) = waiting.lock().ok().and_then(|mut waiting| waiting.pop()) {
            let mut test = Command::new(&binary.executable);
            test.current_dir(&binary.folder).args(["--quiet", "--test-threads=1"]);
            test.env("CARGO_MANIFEST_DIR", &binary.folder);
            let output = test.output().map_err(|error| format!("cannot run {}: {error}", binary.name))?;
            if !output.status.success() {
                print(&output);
                failed.push(binary.name);
            }
        }
        Ok(failed)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let mut failed = Vec::new();
        for worker in workers {
            failed.extend(worker.join().map_err(|_| "a thread that runs tests panicked".to_owned())??);
        }
        Ok(failed)
    })
}

fn print(output: &Output) {
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(executable: &str) -> TestBinary {
        TestBinary { executable: executable.into(), folder: "/".into(), name: executable.to_owned() }
    }

    #[test]
    fn test_binaries_are_read_from_messages() {
        let messages = r#"
{"reason":"compiler-artifact","manifest_path":"/a/nest/Cargo.toml","target":{"name":"text"},"profile":{"test":true},"executable":"/t/text-1"}
{"reason":"compiler-artifact","manifest_path":"/a/nest/Cargo.toml","target":{"name":"nest"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/a/cli/Cargo.toml","target":{"name":"tfcompile"},"profile":{"test":false},"executable":"/t/tfcompile"}
{"reason":"build-finished","success":true}"#;
        let expected = TestBinary {
            executable: "/t/text-1".into(),
            folder: "/a/nest".into(),
            name: "nest, text".to_owned(),
        };
        assert_eq!(binaries(messages), [expected]);
    }

    #[test]
    fn binaries_that_fail_are_named() {
        let all = vec![binary("/bin/true"), binary("/bin/false"), binary("/bin/true")];
        assert_eq!(run_all(all), Ok(vec!["/bin/false".to_owned()]));
        assert!(run_all(vec![binary("/no/such/binary")]).is_err());
    }
}
