//! Models with quantized arrays: scales and zero points in the output of the commands, and
//! conversions in the generated code. The models are cases of `tests/tflite`.

use crate::support::{quantized_case, succeed, tfcompile};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// `max(x, y)` of `s8[2,3,4]` and `s8[4]`. The file states scale 0.05 and zero point 3 for both and
/// for the result.
const MAXIMUM: (&str, &str) = ("maximum", "int8_quantized_row");

/// Programs that quantize 0.5 and [0, 1, -1, 100], which become 13 and [3, 23, -17, 127]. The
/// greater of each pair are 13, 23, 13, 127, which stand for 0.5, 1, 0.5, and 0.05 * 124 = 6.2.
const CPP: &str = r#"
#include <cmath>

#include "model.h"

static_assert(Model::arg0_scale() == 0.05f && Model::arg_serving_default_input_1_0_zero_point() == 3, "argument");
static_assert(Model::result_model_maximum_scale() == 0.05f && Model::result0_zero_point() == 3, "result");

int main() {
  Model model;
  float x[24];
  for (float& value : x) value = 0.5f;
  const float y[4] = {0, 1, -1, 100};
  model.quantize_arg_serving_default_input_1_0(x);
  model.quantize_arg1(y);
  if (model.arg1(0) != 3 || model.arg1(2) != -17 || !model.Run()) return 1;
  const int want[4] = {13, 23, 13, 127};
  float real[24];
  model.dequantize_result0(real);
  for (int i = 0; i < 24; ++i) {
    if (model.result_model_maximum_data()[i] != want[i % 4]) return 2;
    if (std::fabs(real[i] - 0.05f * static_cast<float>(want[i % 4] - 3)) > 1e-6f) return 3;
  }
  return real[3] > 6.19f && real[3] < 6.21f ? 0 : 4;
}
"#;

const C: &str = r#"
#include <stdlib.h>

#include "model_c.h"

int main(void) {
  model_state* const state = MODEL_CREATE();
  const float y[4] = {0, 1, -1, 100};
  float x[MODEL_arg_serving_default_input_1_0_COUNT], real[MODEL_result_model_maximum_COUNT];
  int i;
  for (i = 0; i < 24; ++i) x[i] = 0.5f;
  if (MODEL_result_model_maximum_SCALE != 0.05f || MODEL_result_model_maximum_ZERO_POINT != 3) return 1;
  model_quantize_arg_serving_default_input_1_0(state, x);
  model_quantize_arg_serving_default_input_2_0(state, y);
  if (model_run(state) != 0) return 2;
  model_dequantize_result_model_maximum(state, real);
  if (model_result_model_maximum(state)[3] != 127 || real[3] < 6.19f || real[3] > 6.21f) return 3;
  MODEL_DESTROY(state);
  return 0;
}
"#;

fn text(command: &mut Command) -> String {
    String::from_utf8(succeed(command).stdout).expect("UTF-8")
}

/// Entries of a JSON with a scale, as kind, name, scale, and zero point.
fn quantized(entries: &Value) -> Vec<Value> {
    let entries = entries.as_array().expect("a list").iter();
    let of = |entry: &Value| json!([entry["kind"], entry["name"], entry["scale"], entry["zero_point"]]);
    entries.filter(|entry| entry.get("scale").is_some()).map(of).collect()
}

fn expected() -> [Value; 3] {
    let of = |kind: &str, name: &str| json!([kind, name, 0.05f32, 3]);
    [
        of("feed", "serving_default_input_1_0"),
        of("feed", "serving_default_input_2_0"),
        of("fetch", "model_maximum"),
    ]
}

fn run_program(directory: &Path, compiler: &str, source: &str) {
    let mut compile = Command::new(compiler);
    compile.current_dir(directory).args(["-Wall", "-Wextra", "-Werror", "-I", "out", "-I", "out/include"]);
    compile.args([source, "out/model.o", "-lpthread", "-o", "program"]);
    succeed(&mut compile);
    succeed(Command::new(directory.join("program")).current_dir(directory));
}

#[test]
fn commands_state_scales_and_zero_points() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    quantized_case(MAXIMUM, &directory.join("model.tflite"));
    let tool = |arguments: &[&str]| text(tfcompile(directory).args(arguments));

    let checked = tool(&["check", "model.tflite"]);
    for line in [
        "s8[2,3,4] scale 0.05 zero point 3  arg_serving_default_input_1_0()",
        "s8[4] scale 0.05 zero point 3      arg_serving_default_input_2_0()",
        "s8[2,3,4] scale 0.05 zero point 3  result_model_maximum()",
    ] {
        assert!(checked.contains(line), "{line}: {checked}");
    }
    let checked: Value =
        serde_json::from_str(&tool(&["check", "model.tflite", "--json"])).expect("valid JSON");
    assert_eq!(quantized(&checked["interface"]), expected());

    let files = ["--name=model", "--class=Model", "--output=out", "--emit=obj,header,c-header", "--quiet"];
    tool(&[&["build", "model.tflite"], files.as_slice()].concat());
    let inspected = tool(&["inspect", "out/model.o"]);
    assert!(inspected.contains("s8[2,3,4] scale 0.05 zero point 3  24 B  result_model"), "{inspected}");
    let inspected: Value =
        serde_json::from_str(&tool(&["inspect", "out/model.o", "--json"])).expect("valid JSON");
    let record = &inspected["programs"][0]["metadata"];
    let both = [quantized(&record["arguments"]), quantized(&record["results"])].concat();
    assert_eq!(both, expected());

    assert!(tool(&["verify", "model.tflite"]).contains("the code agrees with the evaluator"));
    let result = tool(&["run", "model.tflite", "--random=1"]);
    let (first, elements) = result.split_once('\n').expect("lines");
    assert!(first.starts_with("model_maximum: s8[2,3,4]"), "{result}");
    assert!(!elements.contains('.'), "stored integers: {result}");
    for (compiler, file, program) in [("c++", "main.cc", CPP), ("cc", "main.c", C)] {
        std::fs::write(directory.join(file), program).expect("writable");
        run_program(directory, compiler, file);
    }
}

#[test]
fn a_config_has_comments_about_quantized_arrays() {
    let directory = tempfile::tempdir().expect("a directory");
    quantized_case(("add", "int8_quantized_both_0"), &directory.path().join("model.tflite"));
    let config = text(tfcompile(directory.path()).args(["config", "model.tflite"]));
    let comments = "\
# real = scale * (stored - zero point)
# feed serving_default_input_1_0: scale 0.05 zero point 3
# feed serving_default_input_2_0: scale 0.07 zero point -11
# fetch model_add: scale 0.096 zero point -5
";
    assert!(config.ends_with(comments), "{config}");
    // The text with its comments is a config.
    quantized_case(MAXIMUM, &directory.path().join("model.tflite"));
    let config = text(tfcompile(directory.path()).args(["config", "model.tflite"]));
    std::fs::write(directory.path().join("config.pbtxt"), config).expect("writable");
    succeed(tfcompile(directory.path()).args(["check", "model.tflite", "--config=config.pbtxt"]));
}

/// A graph whose nodes state scales: `v` takes the value of `x`, which is also the result.
const GRAPH: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT8 } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_INT8 } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } attr { key: "shared_name" value { s: "v" } }
       attr { key: "_scales" value { list { f: 0.25 } } } attr { key: "_zero_points" value { list { i: -1 } } } }
node { name: "assign" op: "AssignVariableOp" input: "v" input: "x" attr { key: "dtype" value { type: DT_INT8 } } }
node { name: "y" op: "ReadVariableOp" input: "v" input: "^assign" attr { key: "dtype" value { type: DT_INT8 } }
       attr { key: "_scales" value { list { f: 0 } } } attr { key: "_zero_points" value { list { i: 0 } } } }
"#;

#[test]
fn variables_are_quantized_and_a_scale_of_zero_is_none() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("graph.pbtxt"), GRAPH).expect("writable");
    let checked = text(tfcompile(directory.path()).args(["check", "graph.pbtxt", "--fetch=y", "--json"]));
    let checked: Value = serde_json::from_str(&checked).expect("valid JSON");
    let [variable] = <[Value; 1]>::try_from(quantized(&checked["interface"])).expect("one entry");
    assert_eq!(variable, json!(["variable", "v", 0.25, -1]));
}

/// Dots and convolutions in optimized HLO, as the types of the result and of both operands.
fn contractions(hlo: &str) -> Vec<[&str; 3]> {
    let type_of = |shape: &'_ str| shape.split('[').next().map(str::len);
    let mut found = Vec::new();
    for computation in hlo.split("\n\n") {
        let shape = |name: &str| {
            let line = computation.lines().find_map(|line| {
                let (left, right) = line.trim_start().trim_start_matches("ROOT ").split_once(" = ")?;
                (left == name).then_some(right)
            })?;
            Some(&line[..type_of(line)?])
        };
        for line in computation.lines() {
            let Some((left, right)) = line.split_once(" = ") else { continue };
            let Some((result, call)) = right.split_once(' ') else { continue };
            let Some(operands) = ["dot(", "convolution("].iter().find_map(|op| call.strip_prefix(op)) else {
                continue;
            };
            let names: Vec<&str> = operands.split(')').next().unwrap_or("").split(", ").collect();
            let types = [&result[..type_of(result).unwrap_or(0)]].into_iter();
            let types = types.chain(names.iter().filter_map(|name| shape(name)));
            found.push(<[&str; 3]>::try_from(types.collect::<Vec<_>>()).unwrap_or_else(|_| panic!("{left}")));
        }
    }
    found
}

/// Layers of each front end are products of bytes with constant weights.
#[test]
fn quantized_graphs_multiply_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let optimized = |arguments: &[&str]| {
        let flags = ["--stage=optimized", "--target-cpu=znver4"];
        text(tfcompile(directory).arg("hlo").args(arguments).args(flags))
    };
    let of_tensorflow = [
        ("fake_quantized_layers", &["u8", "u8"][..]),
        ("fake_quantized_sum", &["u8", "u8"]),
        ("quantized_and_dequantized", &["s8"]),
        ("scaled", &["s8"]),
        ("min_first", &["u8"]),
        ("uniform_layers", &["s8"]),
    ];
    for (case, types) in of_tensorflow {
        let path = crate::support::root().join("tests/conformance/quantized_graphs").join(case);
        let bytes = std::fs::read(path.with_extension("npz")).expect("readable");
        let mut archive = npz::Archive::open(bytes.into(), 1 << 24).expect("an archive");
        for file in ["graph.pb", "config.pbtxt"] {
            let bytes = archive.require(file).expect("a member");
            std::fs::write(directory.join(file), bytes.bytes()).expect("writable");
        }
        let hlo = optimized(&["graph.pb", "--config=config.pbtxt"]);
        let expected: Vec<[&str; 3]> = types.iter().map(|x| ["s32", x, "s8"]).collect();
        assert_eq!(contractions(&hlo), expected, "{case}: {hlo}");
    }
    for (program, types) in [("int8_layers", &["s8", "s8"][..]), ("fake_quantized_layer", &["s8"])] {
        let path = crate::support::root().join("tests/stablehlo").join(program).with_extension("mlir");
        let hlo = optimized(&[path.to_str().expect("UTF-8")]);
        let expected: Vec<[&str; 3]> = types.iter().map(|x| ["s32", x, "s8"]).collect();
        assert_eq!(contractions(&hlo), expected, "{program}: {hlo}");
    }
}
