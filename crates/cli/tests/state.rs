//! State and checkpoints on the command line: `freeze`, and variables that pass between the tool
//! and a program.

use crate::support::{refuse, root, succeed, tfcompile};
use npz::Archive;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of a recorded case of `freeze_graph`.
fn case(name: &str) -> PathBuf {
    root().join("crates/tf/tests/data/freeze").join(name)
}

fn freeze(name: &str, out: &Path, flags: &[&str]) -> Command {
    let case = case(name);
    let mut tool = tfcompile(out);
    let path = |flag: &str, file: &str| format!("--{flag}={}", case.join(file).display());
    tool.arg("freeze").arg(path("input_graph", "graph.pb")).arg(path("input_checkpoint", "model"));
    tool.args(["--output_graph=frozen.pb", "--output_node_names=out"]).args(flags);
    tool
}

/// Switches of `freeze` have a word or stand alone. The devices in the output show whether they
/// were understood.
#[test]
fn switches_of_freeze_are_bare_or_words() {
    let out = tempfile::tempdir().expect("a directory");
    for (flags, keeps) in [
        (&[][..], false),
        (&["--input_binary", "--clear_devices"], false),
        (&["--input_binary=True", "--clear_devices=TRUE"], false),
        (&["--clear_devices", "false"], true),
        (&["--input_binary", "false", "--clear_devices=False", "--checkpoint_version=1"], true),
        (
            &[
                "--restore_op_name=save/restore_all",
                "--filename_tensor_name=save/Const:0",
                "--clear_devices=false",
            ],
            true,
        ),
    ] {
        succeed(&mut freeze("devices_kept", out.path(), flags));
        let frozen = std::fs::read(out.path().join("frozen.pb")).expect("written");
        assert_eq!(frozen.windows(6).any(|bytes| bytes == b"device"), keeps, "{flags:?}");
    }
    for (flags, expected) in [
        (&["--clear_devices=maybe"][..], "maybe"),
        (&["--checkpoint_version=7"], "Invalid checkpoint version (must be '1' or '2'): 7"),
        (&["--no_such_flag"], "no_such_flag"),
    ] {
        std::fs::remove_file(out.path().join("frozen.pb")).ok();
        let message = refuse(&mut freeze("devices_kept", out.path(), flags), out.path());
        assert!(message.contains(expected), "{message}");
    }
}

/// A frozen graph computes the same as its original: y = (x w) s + b, computed by hand.
#[test]
fn a_frozen_graph_computes_the_same() {
    let out = tempfile::tempdir().expect("a directory");
    for name in ["reference", "resource_saver", "resource"] {
        let saver = case(name).join("saver.pb");
        let flag = format!("--input_saver={}", saver.display());
        let flags = if saver.exists() { vec![flag.as_str()] } else { vec![] };
        succeed(&mut freeze(name, out.path(), &flags));
        let ones = Literal::from_elements(&[2, 3], &[1f32, 1.0, 1.0, 0.0, 0.0, 2.0]);
        std::fs::write(out.path().join("x.npy"), npz::write_npy(&ones)).expect("written");
        let mut run = tfcompile(out.path());
        succeed(run.args(["run", "frozen.pb", "--fetch", "out", "--feed", "x=x.npy", "--out", "out.npz"]));
        let result = archive(&out.path().join("out.npz")).require("out").expect("a result");
        // w is 0..12 in three rows of four; s = 2, b = 0.5.
        let expected = [24.5, 30.5, 36.5, 42.5, 32.5, 36.5, 40.5, 44.5];
        assert_eq!(result.to_vec::<f32>().expect("floats"), expected, "{name}");
    }
}

fn archive(path: &Path) -> Archive {
    Archive::open(std::fs::read(path).expect("readable").into(), 1 << 20).expect("an archive")
}

const PROGRAM: &str = r#"
#include <cstdio>
#include "tfcompile/state.h"
#include "train.h"

// Loads, runs once, saves.
int main(int, char** argv) {
  ns::Train train;
  std::string error;
  train.arg0() = 2;
  if (!tfcompile::LoadVariables(train, argv[1], &error) || !train.Run() ||
      !tfcompile::SaveVariables(train, argv[2], &error)) {
    std::fprintf(stderr, "%s%s\n", error.c_str(), train.error_msg().c_str());
    return 1;
  }
  return 0;
}
"#;

/// kernel += scale * step, in the tool, in a program, and in the tool again. The names of the
/// variables contain slashes.
#[test]
fn state_goes_to_a_program_and_back() {
    let model = root().join("tests/consumer/variables");
    let out = tempfile::tempdir().expect("a directory");
    let start = BTreeMap::from([
        ("layer/kernel".to_owned(), Literal::from_elements(&[3], &[10f32, 20.0, 30.0])),
        ("layer/scale".to_owned(), Literal::from_elements(&[3], &[1f32, 2.0, 3.0])),
    ]);
    std::fs::write(out.path().join("start.safetensors"), npz::write_safetensors(&start).expect("arrays"))
        .expect("written");
    std::fs::write(out.path().join("step.npy"), npz::write_npy(&Literal::scalar(2f32))).expect("written");
    let feed = std::fs::read_to_string(model.join("config.pbtxt")).expect("a config");
    let node = feed.split('"').nth(1).expect("the feed's node").to_owned();
    let run = |from: &str, to: &str| {
        let mut tool = tfcompile(out.path());
        tool.arg("run").arg(model.join("graph.pbtxt")).arg("--config").arg(model.join("config.pbtxt"));
        tool.args(["--feed", &format!("{node}=step.npy"), "--variables", from, "--save", to]);
        succeed(&mut tool);
    };
    run("start.safetensors", "one.npz");
    let graph = |flag: &str, file: &str| format!("--{flag}={}", model.join(file).display());
    let mut compile = tfcompile(out.path());
    compile.arg(graph("graph", "graph.pbtxt")).arg(graph("config", "config.pbtxt"));
    succeed(compile.args(["--cpp_class=ns::Train", "--out_header=train.h", "--out_function_object=train.o"]));
    std::fs::write(out.path().join("main.cc"), PROGRAM).expect("written");
    for compiler in ["g++", "clang++"] {
        let mut build = Command::new(compiler);
        build.current_dir(out.path()).args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I."]);
        build.arg("-I").arg(root().join("runtime/include"));
        succeed(build.args(["main.cc", "train.o", "-o", "main"]));
        succeed(Command::new("./main").current_dir(out.path()).args(["one.npz", "two.npz"]));
        run("two.npz", "three.ckpt");
        run("three.ckpt", "four.npz");
        let mut state = archive(&out.path().join("four.npz"));
        let kernel = state.require("layer/kernel").expect("saved").to_vec::<f32>().expect("floats");
        // Four steps of 2 times the scale.
        assert_eq!(kernel, [18.0, 36.0, 54.0], "{compiler}");
        let scale = state.require("layer/scale").expect("saved").to_vec::<f32>().expect("floats");
        assert_eq!(scale, [1.0, 2.0, 3.0], "{compiler}");
        let text = std::fs::read_to_string(out.path().join("checkpoint")).expect("written");
        assert!(text.starts_with("model_checkpoint_path: \"three.ckpt\"\n"), "{text}");
    }
}

/// Adds the rows of `x` to a variable, and returns them.
const ROWS: &str = r#"func.func @main(%sum: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<?x2xf32>)
    -> (tensor<2xf32>, tensor<?x2xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rows = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<?x2xf32>, tensor<f32>) -> tensor<2xf32>
  %new = stablehlo.add %sum, %rows : tensor<2xf32>
  return %new, %x : tensor<2xf32>, tensor<?x2xf32>
}
"#;

#[test]
fn a_variable_and_rows_of_any_size_are_results() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("m.mlir"), ROWS).expect("writable");
    let x = Literal::from_elements(&[3, 2], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let write = |name: &str, key: &str, array: Literal| {
        let file = npz::write(&BTreeMap::from([(key.to_owned(), array)])).expect("small");
        std::fs::write(place.path().join(name), file).expect("writable");
    };
    write("in.npz", "x", x.clone());
    write("sum.npz", "sum", Literal::from_elements(&[2], &[100f32, 200.0]));
    let mut run = tfcompile(place.path());
    let arrays = ["--feed=@in.npz", "--var=@sum.npz", "--out=out.npz"];
    succeed(run.args(["run", "m.mlir", "--dim=batch=1..6"]).args(arrays));
    let mut out = archive(&place.path().join("out.npz"));
    assert_eq!(out.require("sum").expect("a variable"), Literal::from_elements(&[2], &[109f32, 212.0]));
    assert_eq!(out.require("result1").expect("a result"), x);
}
