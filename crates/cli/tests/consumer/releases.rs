//! Builds and runs programs with the objects and headers that earlier versions wrote, as the README
//! of `tests/releases` says.

use super::{has_needs, read_directives, sources};
use crate::devices;
use crate::rust::Package;
use crate::support::{root, succeed, tfcompile};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the directories in a directory.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

/// Returns the directory of each recorded release.
fn releases() -> Vec<PathBuf> {
    let found = directories(&root().join("tests/releases"));
    assert!(!found.is_empty(), "no release is recorded");
    found
}

/// Returns the objects in a directory.
fn objects(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("readable")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "o"))
        .collect();
    found.sort();
    found
}

/// Builds a program of a release from its sources, its headers and objects in `built`, and this
/// version's runtime headers.
fn build(release: &Path, program: &Path, flags: &[String], to: &Path) {
    let built = program.join("built");
    let mut build = Command::new("g++");
    build.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1"]).args(flags);
    for include in
        [root().join("runtime/include"), built.clone(), program.to_owned(), release.join("consumer")]
    {
        build.arg("-I").arg(include);
    }
    build.args(sources(program)).args(objects(&built)).args(["-lpthread", "-ldl", "-o"]).arg(to);
    succeed(&mut build);
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn programs_of_releases_run_with_the_headers_of_this_version() {
    let out = tempfile::tempdir().expect("a directory");
    for release in releases() {
        for program in directories(&release.join("consumer")) {
            let case = read_directives(&program);
            if !has_needs(&program.to_string_lossy(), &case) {
                continue;
            }
            let to = out.path().join("program");
            build(&release, &program, &case.cxx, &to);
            // Constants files are in the working directory.
            succeed(Command::new(&to).current_dir(program.join("built")));
        }
    }
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn programs_of_releases_for_gpus_run_with_the_headers_of_this_version() {
    let out = tempfile::tempdir().expect("a directory");
    let variables = devices::opencl();
    for release in releases() {
        let to = out.path().join("program");
        build(&release, &release.join("device"), &[], &to);
        if let Some(variables) = &variables {
            succeed(Command::new(&to).current_dir(out.path()).envs(variables.iter().cloned()));
        }
    }
}

/// The build script of a recorded Rust package: it provides the files that the release wrote.
const BUILD_SCRIPT: &str = r#"
fn main() {
    let built = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("built");
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR").expect("Cargo sets OUT_DIR"));
    for entry in std::fs::read_dir(&built).expect("readable") {
        let path = entry.expect("readable").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        std::fs::copy(&path, out.join(path.file_name().expect("a name"))).expect("copied");
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("a") => println!("cargo::rustc-link-lib=static={}", stem.strip_prefix("lib").expect("libNAME.a")),
            Some("constants") => {
                println!("cargo::rustc-env={}_CONSTANTS={}", stem.to_ascii_uppercase(), path.display());
            }
            _ => {}
        }
    }
    println!("cargo::rustc-link-search=native={}", out.display());
}
"#;

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn rust_programs_of_releases_run_with_the_crate_of_this_version() {
    for release in releases() {
        let package = Package::copy(&release.join("rust"));
        for part in [".", "core"] {
            let manifest = package.path(part).join("Cargo.toml");
            let text = std::fs::read_to_string(&manifest).expect("a manifest");
            let (text, _) =
                text.split_once("[build-dependencies]").expect("dependencies of the build script");
            let workspace = if part == "." { "[workspace]\nmembers = [\"core\"]\n" } else { "" };
            std::fs::write(&manifest, format!("{text}{workspace}")).expect("writable");
            std::fs::write(package.path(part).join("build.rs"), BUILD_SCRIPT).expect("writable");
        }
        assert_eq!(package.run(), "all variants agree\n");
    }
}

#[test]
fn objects_of_releases_are_described() {
    let mut count = 0;
    for release in releases() {
        let programs = directories(&release.join("consumer"));
        for object in programs.iter().flat_map(|program| objects(&program.join("built"))) {
            // Objects of several functions, and those of the original's flags, have no record; the
            // latter have it in an object of its own.
            let name = object.to_string_lossy().into_owned();
            if name.ends_with("_metadata.o") || name.ends_with("/rows.o") || name.ends_with("/maximum.o") {
                let output = succeed(tfcompile(&release).arg("inspect").arg(&object).arg("--json"));
                let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
                let record = &value["programs"][0]["metadata"];
                assert!(record["arguments"].is_array() && record["results"].is_array(), "{name}: {value}");
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count} objects");
}

/// Compiles the assertions about the C structs for machines with addresses of 64 and of 32 bits.
/// Needs only Clang's own headers.
#[test]
fn structs_have_the_layout_of_the_first_release() {
    for triple in [
        "x86_64-linux-gnu",
        "aarch64-linux-gnu",
        "x86_64-pc-windows-msvc",
        "i686-linux-gnu",
        "armv7-linux-gnueabihf",
        "riscv32-unknown-elf",
        "wasm32-unknown-unknown",
    ] {
        let mut check = Command::new("clang");
        check.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fsyntax-only"]);
        check.arg(format!("--target={triple}")).arg("-I").arg(root().join("runtime/include"));
        succeed(check.arg(root().join("tests/releases/layout.c")));
    }
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn classes_have_the_layout_of_the_first_release() {
    let mut check = Command::new("g++");
    check.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]);
    succeed(check.arg(root().join("runtime/include")).arg(root().join("tests/releases/classes.cc")));
}
