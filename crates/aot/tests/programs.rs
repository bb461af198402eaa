//! C++ programs over generated headers, with hand-written entry functions in place of a compiled object: the runtime's
//! own test. Two compilers, with and without exceptions and RTTI, all warnings being errors.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod fixtures;

use aot::{HeaderOptions, header};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of generated headers below the target directory; one for each test, for they run at the same time.
fn workplace(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let all = HeaderOptions { gen_name_to_index: true, gen_program_shape: true, ..Default::default() };
    for (file, artifact, options) in [
        ("add.h", fixtures::add(), HeaderOptions::default()),
        ("matmul_and_add.h", fixtures::matmul_and_add(), all),
        ("train.h", fixtures::train(), all),
        ("types.h", fixtures::types(), all),
    ] {
        std::fs::write(folder.join(file), header(&artifact, &options).unwrap()).unwrap();
    }
    folder
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The C++ compilers at hand. g++ is a condition of the tests; clang++ is one only in CI.
fn compilers() -> Vec<&'static str> {
    let found: Vec<_> = ["g++", "clang++"].into_iter().filter(|compiler| exists(compiler)).collect();
    assert!(found.contains(&"g++"), "g++ is not installed");
    if found.len() == 1 {
        assert!(std::env::var_os("CI").is_none(), "clang++ is not installed");
        eprintln!("skipped: clang++ is not installed");
    }
    found
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}");
}

/// With every compiler.
fn build_and_run(name: &str, units: &[&str], flags: &[&str]) {
    build_and_run_with(&compilers(), name, units, flags);
}

/// With g++ alone, which brings its sanitizers' libraries along.
fn build_and_run_sanitized(name: &str, units: &[&str], flags: &[&str]) {
    build_and_run_with(&["g++"], name, units, flags);
}

fn build_and_run_with(compilers: &[&str], name: &str, units: &[&str], flags: &[&str]) {
    let folder = workplace(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = root.join("../../runtime/include");
    let sources = root.join("tests/cpp");
    let entries = folder.join("entries.o");
    run(Command::new("g++").args(["-x", "c", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-c"]).args(
        [
            sources.join("entries.c").as_os_str(),
            "-I".as_ref(),
            include.as_os_str(),
            "-o".as_ref(),
            entries.as_os_str(),
        ],
    ));
    for compiler in compilers {
        let program = folder.join(format!("{name}_{compiler}"));
        run(Command::new(compiler)
            .args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"])
            .args(flags)
            .arg("-I")
            .arg(&include)
            .arg("-I")
            .arg(&folder)
            .args(units.iter().map(|unit| sources.join(unit)))
            .arg(&entries)
            .args(["-lpthread", "-o"])
            .arg(&program));
        run(&mut Command::new(&program));
    }
}

#[test]
fn models_in_one_program() {
    build_and_run("models", &["models.cc", "second_unit.cc"], &["-Wpedantic", "-Wconversion", "-Wshadow"]);
}

#[test]
fn models_without_exceptions_and_rtti() {
    build_and_run("models_plain", &["models.cc", "second_unit.cc"], &["-fno-exceptions", "-fno-rtti"]);
}

#[test]
fn models_under_sanitizers() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    build_and_run_sanitized("models_sanitized", &["models.cc", "second_unit.cc"], &flags);
}

#[test]
fn models_as_a_later_standard() {
    build_and_run("models_20", &["models.cc", "second_unit.cc"], &["-std=c++20", "-DNDEBUG"]);
}

#[test]
fn pools_share_the_work_out() {
    build_and_run("threads", &["threads.cc"], &["-Wpedantic", "-fno-exceptions", "-fno-rtti"]);
}

#[test]
fn pools_have_no_data_race() {
    build_and_run_sanitized("threads_sanitized", &["threads.cc"], &["-fsanitize=thread"]);
}

#[test]
fn eigen_pools_share_the_work_out() {
    if !Path::new("/usr/include/eigen3").exists() {
        assert!(std::env::var_os("CI").is_none(), "Eigen is not installed");
        eprintln!("skipped: Eigen is not installed");
        return;
    }
    build_and_run("eigen", &["eigen.cc"], &[]);
}
