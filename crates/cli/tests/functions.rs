//! Several functions of a program in one object: they share weights and variables.

use crate::support::{refuse, succeed, tfcompile};
use npz::write_safetensors;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// `add` adds the product of its argument and the weights to a total, and `show` returns twice the
/// total.
const PROGRAM: &str = "module @counter {
  func.func public @add(%x: tensor<1x4xf32>, %layer_w: tensor<4x3xf32>, %total: tensor<1x3xf32> {tf.aliasing_output = 0 : i32})
      -> (tensor<1x3xf32>, tensor<1x3xf32> {jax.result_info = \"product\"}) {
    %p = stablehlo.dot_general %x, %layer_w, contracting_dims = [1] x [0] : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
    %n = stablehlo.add %total, %p : tensor<1x3xf32>
    func.return %n, %p : tensor<1x3xf32>, tensor<1x3xf32>
  }
  func.func public @show(%layer_w: tensor<4x3xf32>, %total: tensor<1x3xf32> {tf.aliasing_output = 1 : i32})
      -> (tensor<1x3xf32> {jax.result_info = \"twice\"}, tensor<1x3xf32>) {
    %d = stablehlo.add %total, %total : tensor<1x3xf32>
    func.return %d, %total : tensor<1x3xf32>, tensor<1x3xf32>
  }
}
";

const MAIN: &str = "#include <cstdio>
#include \"counter.h\"
int main() {
  std::string error;
  if (!Counter::LoadDefaultConstants(\"counter.constants\", &error)) return std::puts(error.c_str()), 1;
  static Counter counter;
  for (int run = 1; run <= 2; ++run) {
    for (int k = 0; k < 4; ++k) counter.add().arg_x(0, k) = static_cast<float>(run * k);
    if (!counter.add().Run() || !counter.show().Run()) return 1;
    for (int k = 0; k < 3; ++k) std::printf(\"%g %g \", counter.add().result_product(0, k), counter.show().result_twice(0, k));
  }
  if (counter.add().constants() != counter.show().constants()) return 1;
  return counter.add().var_total_data() != counter.show().var_total_data();
}
";

/// Writes the program and its weights: the numbers from 0 to 11.
fn write(directory: &Path, sizes: &[i64]) {
    std::fs::write(directory.join("counter.mlir"), PROGRAM).expect("written");
    let numbers: Vec<f32> = (0..12).map(|k| k as f32).collect();
    let arrays = BTreeMap::from([("layer.w".to_owned(), Literal::from_elements(sizes, &numbers))]);
    let file = write_safetensors(&arrays).expect("a file");
    std::fs::write(directory.join("w.safetensors"), file).expect("written");
}

fn build(directory: &Path, flags: &[&str]) -> Command {
    let mut command = tfcompile(directory);
    command.args(["build", "counter.mlir", "--weights", "w.safetensors"]).args(flags);
    command
}

#[test]
fn functions_share_weights_and_variables() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    write(path, &[4, 3]);
    succeed(&mut build(path, &["--signature", "add,show", "--constants=file"]));
    std::fs::write(path.join("main.cc"), MAIN).expect("written");
    let flags =
        ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I.", "-Iinclude", "main.cc", "counter.o", "-pthread"];
    succeed(Command::new("c++").current_dir(path).args(flags).args(["-o", "main"]));
    let output = succeed(Command::new("./main").current_dir(path));
    // x = (0, 1, 2, 3) times the rows 3k, 3k + 1, 3k + 2 of the weights.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42 84 48 96 54 108 84 252 96 288 108 324 ");
}

/// Both functions multiply by the same weights, which become the same integers.
#[test]
fn functions_share_quantized_weights() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let function = |name: &str, rows: i64| {
        format!(
            "  func.func public @{name}(%x: tensor<{rows}x64xf32>, %w: tensor<64x32xf32>) -> tensor<{rows}x32xf32> {{
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<{rows}x64xf32>, tensor<64x32xf32>) -> tensor<{rows}x32xf32>
    func.return %p : tensor<{rows}x32xf32>
  }}
"
        )
    };
    let program = format!("module @m {{\n{}{}}}\n", function("many", 5), function("one", 1));
    std::fs::write(path.join("scorer.mlir"), program).expect("written");
    let numbers: Vec<f32> = (0..2048u16).map(|k| f32::from(k % 97) - 48.0).collect();
    let arrays = BTreeMap::from([("w".to_owned(), Literal::from_elements(&[64, 32], &numbers))]);
    std::fs::write(path.join("w.safetensors"), write_safetensors(&arrays).expect("a file")).expect("written");
    let build = |flags: &[&str]| {
        let mut command = tfcompile(path);
        let functions = ["--signature", "many,one", "--weights", "w.safetensors", "--constants=file"];
        command.args(["build", "scorer.mlir"]).args(functions).args(flags);
        command
    };
    let output = succeed(&mut build(&["--quantize=int8-weights"]));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("function 'one': scheme int8-weights"), "{text}");
    // 2048 integers and 32 scales, once, with a header; twice they would have 4352 bytes.
    let bytes = std::fs::metadata(path.join("scorer.constants")).expect("a file").len();
    assert!((2176..3000).contains(&bytes), "{bytes}");
    let error = refuse(&mut build(&["--data=d.npz"]), path);
    assert!(error.contains("--data has no effect without --quantize"), "{error}");
    let error = refuse(&mut build(&["--quantize=int8"]), path);
    assert!(error.contains("int8 needs examples of inputs"), "{error}");
}

/// `show` has no layer. Without weights, `add` has none either.
#[test]
fn functions_without_layers_stay_as_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    write(path, &[4, 3]);
    let flags = ["--signature", "add,show", "--constants=file", "--quantize=int8-weights"];
    let output = succeed(&mut build(path, &flags));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("function 'add': scheme int8-weights"), "{text}");
    assert!(text.contains("function 'show': no layers to quantize"), "{text}");
    let mut bare = tfcompile(path);
    let error = refuse(bare.args(["build", "counter.mlir", "-o", "bare"]).args(flags), path);
    assert!(error.contains("no function has layers to quantize"), "{error}");
}

#[test]
fn one_function_is_selected_by_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), &[4, 3]);
    let mut verify = tfcompile(directory.path());
    succeed(verify.args(["verify", "counter.mlir", "--weights", "w.safetensors", "--signature", "add"]));
}

#[test]
fn errors_name_the_function_the_array_and_the_flag() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    write(path, &[4, 3]);
    let both = ["--signature", "add,show"];
    let error = refuse(&mut build(path, &both), path);
    assert!(error.contains("add --constants=file"), "{error}");
    let error = refuse(&mut build(path, &["--signature", "add,add", "--constants=file"]), path);
    assert!(error.contains("'add' cannot be the name of a function"), "{error}");
    let error = refuse(&mut build(path, &["--signature", "subtract"]), path);
    assert!(error.contains("no public function 'subtract', but these: add, show"), "{error}");
    write(path, &[3, 4]);
    let error = refuse(&mut build(path, &["--signature", "add"]), path);
    assert!(error.contains("'layer.w': the file has f32[3,4], but the argument is f32[4,3]"), "{error}");
}
