//! Guarantees at run time: Run() uses at most the stack that the metadata states, on threads with
//! small stacks, and does not change the machine's state.

use crate::support::{root, succeed, tfcompile};
use std::path::Path;
use std::process::Command;

/// Returns the bound on the stack in the metadata of an object.
fn stated_stack(directory: &Path) -> u64 {
    let output = succeed(tfcompile(directory).args(["inspect", "--json", "model.o"]));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let stack = &json["programs"][0]["metadata"]["memory"]["stack"];
    stack.as_u64().unwrap_or_else(|| panic!("no stack in {json}"))
}

fn check(model: &str, multiversion: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let case = root().join("tests").join(model);
    let graph =
        ["graph.pb", "graph.pbtxt"].map(|name| case.join(name)).into_iter().find(|path| path.exists());
    let flag = |name: &str, value: &Path| format!("--{name}={}", value.display());
    let mut build = tfcompile(directory.path());
    build.arg("build").arg(graph.expect("a graph")).arg(flag("output", directory.path()));
    let config =
        ["config.pbtxt", "graph.config.pbtxt"].map(|name| case.join(name)).into_iter().find(|p| p.exists());
    build.arg(flag("config", &config.expect("a config"))).args(["--name=model", "--class=Model", "--quiet"]);
    succeed(build.arg(format!("--multiversion={multiversion}")));
    let stated = stated_stack(directory.path());
    assert!((16..=64 << 10).contains(&stated), "{model}: {stated} bytes of stack");
    let mut compile = Command::new("g++");
    compile.current_dir(directory.path()).args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]);
    compile.arg("-I").arg(root().join("runtime/include")).arg("-I.").arg(format!("-DSTATED={stated}"));
    compile.arg(root().join("tests/stack/main.cc")).args(["model.o", "-lpthread", "-o", "program"]);
    succeed(&mut compile);
    let output = succeed(&mut Command::new(directory.path().join("program")));
    println!("{model}: {}", String::from_utf8_lossy(&output.stdout).trim());
}

#[test]
fn run_uses_the_stated_stack_and_keeps_the_machines_state() {
    for model in
        ["consumer/threads", "oracle/tfcompile_tests/tftop_k", "oracle/tfcompile_tests/tfrandom_uniform"]
    {
        for multiversion in ["none", "v1,v2,v3,v4"] {
            check(model, multiversion);
        }
    }
}
