//! Search for the tool, and its flags for the target machine.

use crate::Error;
use std::ffi::OsString;
use std::path::PathBuf;

/// Environment variable that names the tool.
pub(crate) const VARIABLE: &str = "TFCOMPILE";

pub(crate) const HOW_TO_FIX: &str =
    "install tfcompile in a directory of PATH, or set the environment variable TFCOMPILE to its path";

/// Returns the path of the tool.
pub(crate) fn find() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(Error(format!("TFCOMPILE is '{}', which is not a file: {HOW_TO_FIX}", path.display())))
        };
    }
    let name = format!("tfcompile{}", std::env::consts::EXE_SUFFIX);
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&directories)
        .map(|directory| directory.join(&name))
        .find(|path| path.is_file());
    found.ok_or_else(|| Error(format!("cannot find tfcompile in PATH: {HOW_TO_FIX}")))
}

/// Returns the flags that select a Rust target, unless the user's arguments select one. A GPU is not
/// one: the target is its host.
pub(crate) fn target_flags(target: &str, arguments: &[OsString]) -> Vec<String> {
    let is_gpu = |flag: &str| ["--target=cuda", "--target=opencl"].iter().any(|gpu| flag.starts_with(gpu));
    let chosen = arguments.iter().any(|argument| {
        let flag = argument.to_string_lossy();
        flag.starts_with("--target") && !is_gpu(&flag)
    });
    if chosen { Vec::new() } else { vec![format!("--target-triple={}", triple(target))] }
}

/// Returns LLVM's triple for a Rust target. Rust names some extensions in the architecture, which
/// LLVM treats as features.
fn triple(target: &str) -> String {
    let (architecture, rest) = target.split_once('-').unwrap_or((target, ""));
    let architecture = match architecture {
        "riscv64gc" | "riscv64a23" | "riscv64imac" => "riscv64",
        "x86_64h" => "x86_64",
        other => other,
    };
    format!("{architecture}-{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_rust_become_triples() {
        assert_eq!(triple("x86_64-unknown-linux-gnu"), "x86_64-unknown-linux-gnu");
        assert_eq!(triple("riscv64gc-unknown-linux-gnu"), "riscv64-unknown-linux-gnu");
        let chosen = [OsString::from("--target=aarch64-linux")];
        assert!(target_flags("x86_64-unknown-linux-gnu", &chosen).is_empty());
        let gpu = [OsString::from("--target=cuda:sm_90a")];
        assert_eq!(
            target_flags("aarch64-unknown-linux-gnu", &gpu),
            ["--target-triple=aarch64-unknown-linux-gnu"]
        );
        assert_eq!(target_flags("aarch64-apple-darwin", &[]), ["--target-triple=aarch64-apple-darwin"]);
    }
}
