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

/// The same program in C. The functions share the variable's memory and the contents of the file.
const C_MAIN: &str = "#include <stdio.h>
#include \"counter_add_c.h\"
#include \"counter_show_c.h\"
static unsigned char one[COUNTER_ADD_ARENA_BYTES], other[COUNTER_SHOW_ARENA_BYTES];
static _Alignas(64) unsigned char weights[4096];
int main(void) {
  FILE* file = fopen(\"counter.constants\", \"rb\");
  const size_t size = file == NULL ? 0 : fread(weights, 1, sizeof weights, file);
  counter_add_state* add = counter_add_init(one);
  counter_show_state* show = counter_show_init(other);
  if (counter_add_set_constants(add, weights, size) != NULL) return 1;
  if (counter_show_set_constants(show, weights, size) != NULL) return 2;
  counter_show_set_var_total(show, counter_add_var_total(add));
  for (int run = 1; run <= 2; ++run) {
    for (int k = 0; k < 4; ++k) counter_add_arg_x(add)[k] = (float)(run * k);
    if (counter_add_run(add) != 0 || counter_show_run(show) != 0) return 3;
    const float *product = counter_add_result_product(add), *twice = counter_show_result_twice(show);
    for (int k = 0; k < 3; ++k) printf(\"%g %g \", product[k], twice[k]);
  }
  return 0;
}
";

#[test]
fn functions_share_a_file_of_c_source() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    write(path, &[4, 3]);
    std::fs::write(path.join("main.c"), C_MAIN).expect("written");
    std::fs::write(path.join("main.cc"), MAIN).expect("written");
    let strict = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"];
    let functions = ["--signature", "add,show", "--constants=file"];
    for vectors in ["gcc", "none"] {
        let kinds = ["--emit=c,header,c-header", "--c-vectors", vectors];
        succeed(build(path, &functions).args(kinds));
        succeed(Command::new("cc").current_dir(path).args(strict).args(["-c", "counter.c"]));
        let links: [&[&str]; 2] = [
            &["cc", "-std=c11", "main.c", "counter.o", "-o", "main"],
            &["c++", "-std=c++17", "-Iinclude", "main.cc", "counter.o", "-pthread", "-o", "main"],
        ];
        for link in links {
            succeed(Command::new(link[0]).current_dir(path).args(&link[1..]));
            let output = succeed(Command::new("./main").current_dir(path));
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "42 84 48 96 54 108 84 252 96 288 108 324 ",
                "{vectors} {link:?}"
            );
        }
    }
    // C source works where objects do not: with addresses of 32 bits.
    let small = ["--target=cortex-m0plus", "-o", "small"];
    succeed(build(path, &functions).args(small).args(["--emit=c,c-header"]));
    let out = path.join("refused");
    let error = refuse(build(path, &functions).args(["--target=cortex-m0plus", "-o", "refused"]), path);
    assert!(error.contains("64-bit ELF objects") && error.contains("--emit=c"), "{error}");
    let error = refuse(build(path, &functions).args(["--emit=c,rust", "-o", "refused"]), path);
    assert!(error.contains("--emit: the 2 functions") && error.contains("c-header only"), "{error}");
    assert!(!out.exists());
}

/// The kernel `b` of the function `a` has a name of its own beside the function `a_b`.
#[test]
fn names_of_functions_of_c_source_differ() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let function = |name: &str, factor: u32| {
        format!(
            "  func.func public @{name}(%x: tensor<40xf32>) -> (tensor<40xf32> {{jax.result_info = \"y\"}}) {{
    %c = stablehlo.constant dense<{factor}.0> : tensor<40xf32>
    %s = stablehlo.multiply %x, %c : tensor<40xf32>
    func.return %s : tensor<40xf32>
  }}
"
        )
    };
    let names = ["a", "a_multiply", "a_multiply_2", "a_constants_x"];
    let functions: String = names.iter().zip(2..).map(|(name, factor)| function(name, factor)).collect();
    std::fs::write(path.join("p.mlir"), format!("module @p {{\n{functions}}}\n")).expect("written");
    let mut main = String::from("#include <stdio.h>\n");
    for name in names {
        main += &format!("#include \"p_{name}_c.h\"\n");
    }
    main += "int main(void) {\n  static unsigned char memory[4096], weights[4096] __attribute__((aligned(64)));\n";
    main += "  FILE* file = fopen(\"p.constants\", \"rb\");\n  const size_t size = fread(weights, 1, 4096, file);\n";
    for name in names {
        main += &format!(
            "  p_{name}_state* {name} = p_{name}_init(memory);\n  p_{name}_arg_x({name})[39] = 7.0f;\n  \
             if (p_{name}_set_constants({name}, weights, size) != NULL || p_{name}_run({name}) != 0) return 1;\n  \
             printf(\"%g \", p_{name}_result_y({name})[39]);\n"
        );
    }
    main += "  return 0;\n}\n";
    std::fs::write(path.join("main.c"), main).expect("written");
    let mut command = tfcompile(path);
    let flags = ["--signature", &names.join(","), "--constants=file", "--emit=c,c-header"];
    succeed(command.args(["build", "p.mlir"]).args(flags));
    succeed(Command::new("cc").current_dir(path).args(["-std=c11", "-Wall", "main.c", "p.c", "-o", "main"]));
    let output = succeed(Command::new("./main").current_dir(path));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "14 21 28 35 ");
}

/// Two of three functions have the same kernel, which is written once.
#[test]
fn functions_of_c_source_share_their_kernels() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let names = [("two", 2), ("twice", 2), ("triple", 3)];
    let mut functions = String::new();
    let mut main = String::from("#include <stdio.h>\n");
    let mut calls = String::new();
    for (name, factor) in names {
        functions += &format!(
            "  func.func public @{name}(%x: tensor<40xf32>) -> (tensor<40xf32> {{jax.result_info = \"y\"}}) {{
    %c = stablehlo.constant dense<{factor}.0> : tensor<40xf32>
    %s = stablehlo.multiply %x, %c : tensor<40xf32>
    func.return %s : tensor<40xf32>
  }}
"
        );
        main += &format!("#include \"p_{name}_c.h\"\n");
        calls += &format!(
            "  p_{name}_state* {name} = p_{name}_init(memory);\n  p_{name}_arg_x({name})[39] = 7.0f;\n  \
             if (p_{name}_set_constants({name}, weights, size) != NULL || p_{name}_run({name}) != 0) return 1;\n  \
             printf(\"%g \", p_{name}_result_y({name})[39]);\n"
        );
    }
    std::fs::write(path.join("p.mlir"), format!("module @p {{\n{functions}}}\n")).expect("written");
    main += "int main(void) {\n  static unsigned char memory[4096], weights[4096] __attribute__((aligned(64)));\n";
    main += "  FILE* file = fopen(\"p.constants\", \"rb\");\n  const size_t size = fread(weights, 1, 4096, file);\n";
    std::fs::write(path.join("main.c"), format!("{main}{calls}  return 0;\n}}\n")).expect("written");
    let flags = ["--signature", "two,twice,triple", "--constants=file", "--emit=c,c-header"];
    succeed(tfcompile(path).args(["build", "p.mlir"]).args(flags));
    let source = std::fs::read_to_string(path.join("p.c")).expect("C source");
    let kernels: Vec<&str> =
        source.lines().filter(|line| line.starts_with("static") && line.contains(" p_")).collect();
    assert_eq!(kernels.len(), 2, "{kernels:?}");
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "main.c", "p.c", "-o", "main"];
    succeed(Command::new("cc").current_dir(path).args(flags));
    let output = succeed(Command::new("./main").current_dir(path));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "14 14 21 ");
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

/// Two functions with a batch of their own range, of which one also has tokens, and a third without
/// either. They share the weights, and the number of calls.
const MODEL: &str = r#"saved_model_schema_version: 1
meta_graphs {
meta_info_def { tags: "serve" }
graph_def {
node { name: "px" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: -1 } dim { size: 64 } } } } }
node { name: "dx" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 64 } } } } }
node { name: "one" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 1 } dim { size: 64 } } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor {
       dtype: DT_FLOAT tensor_shape { dim { size: 64 } dim { size: 32 } } WEIGHTS } } } }
node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "inc" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
node { name: "calls" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { } } } attr { key: "shared_name" value { s: "calls" } } }
node { name: "pooled" op: "Sum" input: "px" input: "axis" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "Tidx" value { type: DT_INT32 } } }
node { name: "pm" op: "MatMul" input: "pooled" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "count" op: "AssignAddVariableOp" input: "calls" input: "inc" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "counted" op: "ReadVariableOp" input: "calls" input: "^count" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "py" op: "AddV2" input: "pm" input: "counted" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "read" op: "ReadVariableOp" input: "calls" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "dm" op: "MatMul" input: "dx" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "dy" op: "AddV2" input: "dm" input: "read" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "sy" op: "MatMul" input: "one" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1286 } }
signature_def { key: "prefill" value {
  inputs { key: "x" value { name: "px:0" dtype: DT_FLOAT tensor_shape { dim { size: -1 } dim { size: -1 } dim { size: 64 } } } }
  outputs { key: "y" value { name: "py:0" dtype: DT_FLOAT tensor_shape { dim { size: -1 } dim { size: 32 } } } }
  method_name: "tensorflow/serving/predict" } }
signature_def { key: "decode" value {
  inputs { key: "x" value { name: "dx:0" dtype: DT_FLOAT tensor_shape { dim { size: -1 } dim { size: 64 } } } }
  outputs { key: "y" value { name: "dy:0" dtype: DT_FLOAT tensor_shape { dim { size: -1 } dim { size: 32 } } } }
  method_name: "tensorflow/serving/predict" } }
signature_def { key: "single" value {
  inputs { key: "x" value { name: "one:0" dtype: DT_FLOAT tensor_shape { dim { size: 1 } dim { size: 64 } } } }
  outputs { key: "y" value { name: "sy:0" dtype: DT_FLOAT tensor_shape { dim { size: 1 } dim { size: 32 } } } }
  method_name: "tensorflow/serving/predict" } }
}
"#;

/// The weight in row `k` and column `c` is `(k + 3 c) mod 7`.
fn write_model(path: &Path) {
    let weights: Vec<String> =
        (0..64 * 32).map(|at| format!("float_val: {}", (at / 32 + 3 * (at % 32)) % 7)).collect();
    std::fs::create_dir(path.join("net")).expect("a directory");
    let text = MODEL.replace("WEIGHTS", &weights.join(" "));
    std::fs::write(path.join("net/saved_model.pbtxt"), text).expect("written");
}

/// Runs all functions for several sizes, and prints the places with wrong results.
const SIZES_MAIN: &str = "#include <cstdio>
#include \"net.h\"
static float weight(int k, int c) { return static_cast<float>((k + 3 * c) % 7); }
static float x(int row, int token, int k) { return static_cast<float>((row + 2 * token + k) % 3 - 1); }
static bool wrong(const char* name, int batch, float got, float want) {
  if (got == want) return false;
  std::printf(\"%s of %d rows: %g, not %g\\n\", name, batch, static_cast<double>(got), static_cast<double>(want));
  return true;
}
int main() {
  std::string error;
  if (!Net::LoadDefaultConstants(\"net.constants\", &error)) return std::puts(error.c_str()), 1;
  static Net net;
  float calls = 0;
  for (int batch = 1; batch <= 20; ++batch) {
    const int tokens = 1 + batch * 5 % 12, rows = batch < 5 ? batch : 5;
    for (int r = 0; r < rows; ++r)
      for (int t = 0; t < tokens; ++t)
        for (int k = 0; k < 64; ++k) net.prefill().arg_x(r, t, k) = x(r, t, k);
    for (int r = 0; r < batch; ++r)
      for (int k = 0; k < 64; ++k) net.decode().arg_x(r, k) = x(r, 0, k);
    for (int k = 0; k < 64; ++k) net.single().arg_x(0, k) = x(batch, 0, k);
    if (!net.prefill().Run(rows, tokens) || !net.decode().Run(batch) || !net.single().Run()) return std::puts(\"failed\"), 1;
    calls += 1;
    if (net.prefill().result_y_dim_size(0) != rows || net.decode().result_y_dim_size(0) != batch) return std::puts(\"sizes\"), 1;
    for (int c = 0; c < 32; ++c) {
      for (int r = 0; r < rows; ++r) {
        float sum = calls;
        for (int t = 0; t < tokens; ++t)
          for (int k = 0; k < 64; ++k) sum += x(r, t, k) * weight(k, c);
        if (wrong(\"prefill\", batch, net.prefill().result_y(r, c), sum)) return 1;
      }
      for (int r = 0; r < batch; ++r) {
        float sum = calls;
        for (int k = 0; k < 64; ++k) sum += x(r, 0, k) * weight(k, c);
        if (wrong(\"decode\", batch, net.decode().result_y(r, c), sum)) return 1;
      }
      float sum = 0;
      for (int k = 0; k < 64; ++k) sum += x(batch, 0, k) * weight(k, c);
      if (wrong(\"single\", batch, net.single().result_y(0, c), sum)) return 1;
    }
  }
  if (net.decode().Run(21) || net.decode().error_msg() != \"batch is out of range: 1..20\") return std::puts(\"range\"), 1;
  if (net.prefill().Run(5, 13) || net.prefill().error_msg() != \"tokens is out of range: 1..12\") return std::puts(\"range\"), 1;
  if (net.prefill().Run(6, 1) || net.prefill().Run(0, 1)) return std::puts(\"range\"), 1;
  if (*net.decode().var_calls_data() != calls) return std::puts(\"a failed run has an effect\"), 1;
  if (net.prefill().constants() != net.decode().constants()) return std::puts(\"constants\"), 1;
  return net.prefill().var_calls_data() != net.decode().var_calls_data();
}
";

#[test]
fn functions_have_sizes_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    write_model(path);
    let build = |flags: &[&str]| {
        let mut command = tfcompile(path);
        command
            .args([
                "build",
                "net",
                "--signature=prefill,decode,single",
                "--constants=file",
                "--variables-to-feed=all",
            ])
            .args(flags);
        command
    };
    let shared = ["--dim=x.1=tokens", "--dim=tokens=1..12", "--dim=batch=1..20"];
    succeed(&mut build(&[&shared[..], &["--dim=prefill:batch=1..5", "--sizes=decode:batch=3"]].concat()));
    std::fs::write(path.join("main.cc"), SIZES_MAIN).expect("written");
    let flags =
        ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I.", "-Iinclude", "main.cc", "net.o", "-pthread"];
    succeed(Command::new("c++").current_dir(path).args(flags).args(["-o", "main"]));
    let output = Command::new("./main").current_dir(path).output().expect("it runs");
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()),
        (Some(0), String::new())
    );
    // The weights, packed once for all functions and sizes, and little else.
    let constants = std::fs::metadata(path.join("net.constants")).expect("a file").len();
    assert!((8192..2 * 8192).contains(&constants), "{constants} bytes of constants");

    // A flag must have an effect on one of the functions, and on the one that it names.
    let error = refuse(&mut build(&["--dim=x.1=8", "--dim=rows=3"]), path);
    assert!(error.contains("--dim rows: no function has a dimension of this name"), "{error}");
    let error = refuse(&mut build(&["--dim=x.1=8", "--sizes=tokens=3"]), path);
    assert!(error.contains("--sizes tokens: no function has a dimension"), "{error}");
    let error = refuse(&mut build(&["--dim=x.1=8", "--dim=decode:x.1=8"]), path);
    assert!(error.contains("function 'decode'") && error.contains("has size 64 in the graph"), "{error}");
}

/// Functions of StableHLO of which one has rows of any number, and another columns.
const OPEN: &str = "module @two {
  func.func public @a(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %y = stablehlo.negate %x : tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  }
  func.func public @b(%z: tensor<4x?xf32>) -> tensor<4x?xf32> {
    %y = stablehlo.negate %z : tensor<4x?xf32>
    return %y : tensor<4x?xf32>
  }
}
";

#[test]
fn each_function_of_a_program_takes_the_flags_of_its_dimensions() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("m.mlir"), OPEN).expect("writable");
    let build = |flags: &[&str]| {
        let mut build = tfcompile(place.path());
        build.args(["build", "m.mlir", "--signature=a,b", "--constants=file"]);
        build.args(["--dim=batch=1..8", "--dim=z.1=1..5"]).args(flags);
        build
    };
    let text = refuse(&mut build(&["--dim=rows=3"]), place.path());
    assert!(text.contains("--dim rows: no function has a dimension of this name"), "{text}");
    let text = refuse(&mut build(&["--sizes=rows=3"]), place.path());
    assert!(text.contains("--sizes rows: no function has a dimension of this name"), "{text}");
    let text = String::from_utf8(succeed(&mut build(&["--sizes=batch=5", "-v"])).stderr).expect("UTF-8");
    assert!(text.contains("sizes of batch that may get code: 1, 2, 4, 5, 8"), "{text}");
    assert!(text.contains("code for the largest size only: "), "{text}");
}
