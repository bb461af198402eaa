//! Sanitizers find defects planted in instrumented code, and report nothing in code without
//! defects.

#![cfg(all(target_arch = "x86_64", debug_assertions))]

use codegen::Sanitizer;
use compiler::{AotOptions, BackOptions, File, Input, NoObserver};
use nest::defects::Defect;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use target::Target;

/// Program that runs the model on three threads and then prints "ran".
const DRIVER: &str = r#"
#include <cstdio>
#include "model.h"
#include "tfcompile/thread_pool.h"
int main() {
  tfcompile::ThreadPool pool(3);
  Layer layer;
  tfcompile::SetThreadPool(layer, &pool);
  for (int i = 0; i < layer.arg_x_count(); ++i) layer.arg_x_data()[i] = 0.25f * static_cast<float>(i % 17);
  for (int i = 0; i < layer.arg_y_count(); ++i) layer.arg_y_data()[i] = 0.5f * static_cast<float>(i % 13);
  for (int i = 0; i < 3; ++i) {
    if (!layer.Run()) return 1;
  }
  std::puts("ran");
}
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds the model of the test of threads and a program that uses it, and runs the program.
fn run(cpu: &str, sanitizer: Sanitizer, planted: Option<Defect>) -> Output {
    let model = root().join("tests/consumer/threads");
    let file = |name| {
        let content = std::fs::read(model.join(name)).expect("a file of the repository").into();
        File { name, content }
    };
    let input = Input::parse(file("graph.pbtxt"), file("config.pbtxt")).expect("a model");
    let target = Target::new("x86_64-pc-linux-gnu", cpu, "").expect("a triple");
    let back = BackOptions { sanitize: Some(sanitizer), planted, ..BackOptions::new(target, "entry_layer") };
    let options = AotOptions::new("Layer", back);
    let outputs = compiler::build(input, &options, &mut NoObserver).unwrap_or_else(|e| panic!("{e}"));

    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("model.h"), outputs.header).expect("writable");
    std::fs::write(at("model.o"), outputs.function_object).expect("writable");
    std::fs::write(at("main.cc"), DRIVER).expect("writable");
    let library = match sanitizer {
        Sanitizer::Address => "-fsanitize=address",
        Sanitizer::Thread => "-fsanitize=thread",
    };
    let mut build = Command::new("g++");
    build
        .args(["-std=c++17", "-O1", "-g", library, "-pthread"])
        .arg("-I")
        .arg(root().join("runtime/include"));
    build.arg("-I").arg(directory.path()).arg(at("main.cc")).arg(at("model.o")).arg("-o").arg(at("program"));
    let built = build.output().expect("g++");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // Older sanitizer libraries fail if address space randomization uses too many bits.
    Command::new("setarch").arg("-R").arg(at("program")).output().expect("setarch")
}

fn expect_clean(output: &Output, what: &str) {
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{log}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n", "{what}: {log}");
    assert!(!log.contains("Sanitizer"), "{what}: {log}");
}

fn expect_found(output: &Output, defect: &str, what: &str) {
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains(defect), "{what}: {}\n{log}", output.status);
    assert!(log.contains("entry_layer."), "{what}: expected the name of the kernel: {log}");
    assert!(!output.status.success(), "{what}: {log}");
}

#[test]
fn an_access_out_of_bounds_is_found() {
    for cpu in ["x86-64", "x86-64-v3"] {
        expect_clean(&run(cpu, Sanitizer::Address, None), cpu);
        let output = run(cpu, Sanitizer::Address, Some(Defect::OutOfBounds));
        expect_found(&output, "AddressSanitizer: heap-buffer-overflow", cpu);
    }
}

#[test]
fn a_race_is_found() {
    for cpu in ["x86-64", "x86-64-v3"] {
        expect_clean(&run(cpu, Sanitizer::Thread, None), cpu);
        let output = run(cpu, Sanitizer::Thread, Some(Defect::Race));
        expect_found(&output, "ThreadSanitizer: data race", cpu);
    }
}
