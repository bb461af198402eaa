//! Results whose sizes are determined at run time, and dimensions whose sizes the caller chooses:
//! accessors of the headers, `run`, and `verify`.

use crate::support::{refuse, root, succeed, tfcompile};
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// `y0 = Where(x > 0)`, `y1 = x + x`, `y2 = boolean_mask(x, x > 0)` in terms of `GatherNd`.
const GRAPH: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
node { name: "positive" op: "Greater" input: "x" input: "zero" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "where" op: "Where" input: "positive" attr { key: "T" value { type: DT_BOOL } } }
node { name: "twice" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "taken" op: "GatherNd" input: "x" input: "where" attr { key: "Tparams" value { type: DT_FLOAT } }
       attr { key: "Tindices" value { type: DT_INT64 } } }
"#;

const CONFIG: &str = r#"
feed { id { node_name: "x" } shape { dim { size: 2 } dim { size: 3 } } name: "x" }
fetch { id { node_name: "where" } name: "places" }
fetch { id { node_name: "twice" } name: "twice" }
fetch { id { node_name: "taken" } name: "taken" }
"#;

/// Programs in C++ and C that read the results. Three elements of `[[1, -1, 2], [0, 3, -4]]` are
/// positive, at [0, 0], [0, 2], and [1, 1]; no element of the second input is.
const CPP: &str = r#"
#include "model.h"
int main() {
  ns::Model first;
  ns::Model model(static_cast<ns::Model&&>(first));
  const float x[6] = {1, -1, 2, 0, 3, -4};
  for (int i = 0; i < 6; ++i) model.arg_x_data()[i] = x[i];
  if (!model.Run()) return 1;
  if (model.num_dynamic_sizes() != 2 || model.num_results() != 3) return 2;
  if (model.result_places_dim_size(0) != 3 || model.result_places_dim_size(1) != 2) return 3;
  if (model.result0_dim_size(0) != 3 || model.result_taken_dim_size(0) != 3) return 4;
  const int places[3][2] = {{0, 0}, {0, 2}, {1, 1}};
  for (int i = 0; i < 3; ++i) {
    if (model.result_places(i, 0) != places[i][0] || model.result_places(i, 1) != places[i][1]) return 5;
    if (model.result_taken(i) != x[places[i][0] * 3 + places[i][1]]) return 6;
  }
  if (model.result_twice(1, 1) != 6) return 7;
  for (int i = 0; i < 6; ++i) model.arg_x_data()[i] = -1;
  if (!model.Run()) return 8;
  return model.result_places_dim_size(0) == 0 && model.result_taken_dim_size(0) == 0 ? 0 : 9;
}
"#;

const C: &str = r#"
#include "model_c.h"
static unsigned char memory[MODEL_ARENA_BYTES];
int main(void) {
  const float x[6] = {1, -1, 2, 0, 3, -4};
  model_state* state = model_init(memory);
  model_set_arg_x(state, x);
  if (model_run(state) != 0) return 1;
  if (model_result_places_dim_size(state, 0) != 3 || model_result_places_dim_size(state, 1) != 2) return 2;
  if (model_result_taken_dim_size(state, 0) != 3 || model_result_taken(state)[2] != 3) return 3;
  return 0;
}
"#;

fn model(directory: &Path) {
    for (name, text) in [("graph.pbtxt", GRAPH), ("config.pbtxt", CONFIG), ("main.cc", CPP), ("main.c", C)] {
        std::fs::write(directory.join(name), text).expect("writable");
    }
}

fn program(directory: &Path, compiler: &str, flags: &[&str]) {
    let include = root().join("runtime/include");
    let mut build = Command::new(compiler);
    build.current_dir(directory).args(flags).args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(include);
    succeed(build.args(["-o", "program"]));
    succeed(&mut Command::new(directory.join("program")));
}

#[test]
fn programs_read_true_sizes() {
    let directory = tempfile::tempdir().expect("a directory");
    model(directory.path());
    let build = |flags: &[&str]| {
        let mut tool = tfcompile(directory.path());
        tool.args([
            "build",
            "graph.pbtxt",
            "--config",
            "config.pbtxt",
            "--name",
            "model",
            "--class",
            "ns::Model",
        ]);
        succeed(tool.args(["-q", "-o", "."]).args(flags));
    };
    build(&["--emit", "obj,header,c-header"]);
    let cpp = ["-std=c++17", "main.cc", "model.o"];
    program(directory.path(), "g++", &cpp);
    program(directory.path(), "gcc", &["-std=c99", "main.c", "model.o"]);
    let undefined = succeed(Command::new("nm").arg("-u").arg(directory.path().join("model.o")));
    let undefined = String::from_utf8(undefined.stdout).expect("UTF-8");
    let memory = ["U", "memcpy", "memset", "memmove"];
    assert!(undefined.split_whitespace().all(|word| memory.contains(&word)), "{undefined}");
    build(&["--freestanding"]);
    let in_place = CPP
        .replace("  ns::Model first;\n", "")
        .replace("ns::Model model(static_cast<ns::Model&&>(first));", "static ns::Model model;")
        .replace("model.num_dynamic_sizes() != 2 || model.num_results() != 3", "model.kNumResults != 3");
    std::fs::write(directory.path().join("main.cc"), in_place).expect("writable");
    program(directory.path(), "g++", &cpp);
}

#[test]
fn run_cuts_results_to_their_sizes_and_verify_compares_them() {
    let directory = tempfile::tempdir().expect("a directory");
    model(directory.path());
    let x = shape::Literal::from_elements(&[2, 3], &[1f32, -1.0, 2.0, 0.0, 3.0, -4.0]);
    std::fs::write(directory.path().join("x.npy"), npz::write_npy(&x)).expect("writable");
    for threads in ["1", "2"] {
        let mut run = tfcompile(directory.path());
        run.args(["run", "graph.pbtxt", "--config", "config.pbtxt", "--feed", "x=x.npy", "--out", "out.npz"]);
        let output = succeed(run.args(["--threads", threads]));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.contains("places: s64[3,2]") && text.contains("taken: f32[3]"), "{text}");
        let archive = std::fs::read(directory.path().join("out.npz")).expect("readable");
        let mut archive = npz::Archive::open(archive.into(), 1 << 20).expect("an archive");
        let places = archive.require("places").expect("a member").to_vec::<i64>();
        assert_eq!(places, Some(vec![0, 0, 0, 2, 1, 1]));
        assert_eq!(archive.require("taken").expect("a member").to_vec::<f32>(), Some(vec![1.0, 2.0, 3.0]));
    }
    let mut verify = tfcompile(directory.path());
    let output = succeed(verify.args(["verify", "graph.pbtxt", "--config", "config.pbtxt"]));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("places"), "{text}");
}

/// The elements other than 0, sorted, and their positions.
const SORTS: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
node { name: "other" op: "NotEqual" input: "x" input: "zero" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "where" op: "Where" input: "other" attr { key: "T" value { type: DT_BOOL } } }
node { name: "taken" op: "GatherNd" input: "x" input: "where" attr { key: "Tparams" value { type: DT_FLOAT } }
       attr { key: "Tindices" value { type: DT_INT64 } } }
node { name: "places" op: "Squeeze" input: "where" attr { key: "T" value { type: DT_INT64 } }
       attr { key: "squeeze_dims" value { list { i: 1 } } } }
node { name: "sort" op: "XlaSort" input: "taken" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "pairs" op: "XlaKeyValueSort" input: "taken" input: "places" attr { key: "K" value { type: DT_FLOAT } }
       attr { key: "V" value { type: DT_INT64 } } }
"#;

#[test]
fn sorts_ignore_elements_beyond_the_size() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = "feed { id { node_name: \"x\" } shape { dim { size: 6 } } }\n\
                  fetch { id { node_name: \"sort\" } name: \"sorted\" }\n\
                  fetch { id { node_name: \"pairs\" } name: \"keys\" }\n\
                  fetch { id { node_name: \"pairs\" output_index: 1 } name: \"values\" }\n";
    for (name, text) in [("graph.pbtxt", SORTS), ("config.pbtxt", config)] {
        std::fs::write(directory.path().join(name), text).expect("writable");
    }
    let x = shape::Literal::from_elements(&[6], &[f32::INFINITY, 0.0, -2.0, 0.0, f32::MAX, 1.0]);
    std::fs::write(directory.path().join("x.npy"), npz::write_npy(&x)).expect("writable");
    let mut run = tfcompile(directory.path());
    run.args(["run", "graph.pbtxt", "--config", "config.pbtxt", "--feed", "x=x.npy", "--out", "out.npz"]);
    succeed(&mut run);
    let archive = std::fs::read(directory.path().join("out.npz")).expect("readable");
    let mut archive = npz::Archive::open(archive.into(), 1 << 20).expect("an archive");
    let rising = Some(vec![-2.0, 1.0, f32::MAX, f32::INFINITY]);
    for name in ["sorted", "keys"] {
        assert_eq!(archive.require(name).expect("a member").to_vec::<f32>(), rising, "{name}");
    }
    assert_eq!(archive.require("values").expect("a member").to_vec::<i64>(), Some(vec![2, 5, 4, 0]));
    succeed(tfcompile(directory.path()).args(["verify", "graph.pbtxt", "--config", "config.pbtxt"]));
}

/// The elements other than 0: added to three numbers, padded to eight, padded by their number at
/// both ends, and as scores of boxes that do not overlap.
const KNOWN_SIZES: &str = r#"
node { name: "weights" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [10, 20, 30] } } } }
node { name: "sum" op: "AddV2" input: "taken" input: "weights" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "count" op: "Shape" input: "taken" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "eight" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 8 } } } }
node { name: "none" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } } }
node { name: "rest" op: "Sub" input: "eight" input: "count" attr { key: "T" value { type: DT_INT32 } } }
node { name: "to_eight" op: "Pack" input: "none" input: "rest" attr { key: "T" value { type: DT_INT32 } }
       attr { key: "N" value { i: 2 } } attr { key: "axis" value { i: 1 } } }
node { name: "one_less" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: -1 } } } }
node { name: "padded" op: "PadV2" input: "taken" input: "to_eight" input: "one_less" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "by_count" op: "Pack" input: "count" input: "count" attr { key: "T" value { type: DT_INT32 } }
       attr { key: "N" value { i: 2 } } attr { key: "axis" value { i: 1 } } }
node { name: "around" op: "Pad" input: "taken" input: "by_count" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "corner" op: "Cast" input: "where" attr { key: "SrcT" value { type: DT_INT64 } } attr { key: "DstT" value { type: DT_FLOAT } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
node { name: "far_corner" op: "AddV2" input: "corner" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "boxes" op: "ConcatV2" input: ["corner", "corner", "far_corner", "far_corner", "axis"]
       attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 4 } } }
node { name: "most" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 5 } } } }
node { name: "chosen" op: "NonMaxSuppressionV3" input: ["boxes", "taken", "most", "one", "zero"] attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "T_threshold" value { type: DT_FLOAT } } }
"#;

#[test]
fn sizes_that_must_be_equal_are_known_and_checked() {
    let directory = tempfile::tempdir().expect("a directory");
    let taken = SORTS.split_once("node { name: \"places\"").expect("the first part").0;
    let names = ["sum", "padded", "around", "chosen"];
    let fetches = names.map(|name| format!("fetch {{ id {{ node_name: \"{name}\" }} name: \"{name}\" }}\n"));
    let config =
        format!("feed {{ id {{ node_name: \"x\" }} shape {{ dim {{ size: 6 }} }} }}\n{}", fetches.concat());
    for (name, text) in [("graph.pbtxt", format!("{taken}{KNOWN_SIZES}")), ("config.pbtxt", config)] {
        std::fs::write(directory.path().join(name), text).expect("writable");
    }
    let run = |x: [f32; 6]| {
        let x = shape::Literal::from_elements(&[6], &x);
        std::fs::write(directory.path().join("x.npy"), npz::write_npy(&x)).expect("writable");
        let mut run = tfcompile(directory.path());
        run.args(["run", "graph.pbtxt", "--config", "config.pbtxt", "--feed", "x=x.npy", "--out", "out.npz"]);
        run.output().expect("the tool")
    };
    let output = run([5.0, 0.0, -2.0, 0.0, 7.0, 0.0]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("sum: f32[3]") && text.contains("padded: f32[8]"), "{text}");
    let archive = std::fs::read(directory.path().join("out.npz")).expect("readable");
    let mut archive = npz::Archive::open(archive.into(), 1 << 20).expect("an archive");
    let mut floats = |name: &str| archive.require(name).expect("a member").to_vec::<f32>();
    assert_eq!(floats("sum"), Some(vec![15.0, 18.0, 37.0]));
    assert_eq!(floats("padded"), Some(vec![5.0, -2.0, 7.0, -1.0, -1.0, -1.0, -1.0, -1.0]));
    assert_eq!(floats("around"), Some(vec![0.0, 0.0, 0.0, 5.0, -2.0, 7.0, 0.0, 0.0, 0.0]));
    assert_eq!(archive.require("chosen").expect("a member").to_vec::<i32>(), Some(vec![2, 0]));
    let output = run([5.0, 0.0, -2.0, 3.0, 7.0, 0.0]);
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{text}");
    let message = "the sizes of dimension 0 of input 0 and dimension 0 of input 1 differ (node 'sum')";
    assert!(text.contains(message), "{text}");
}

/// The positions of the numbers that are not 0, added to the numbers.
const POSITIONS: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "where" op: "Where" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "flat" op: "Squeeze" input: "where" attr { key: "T" value { type: DT_INT64 } }
       attr { key: "squeeze_dims" value { list { i: 1 } } } }
node { name: "floats" op: "Cast" input: "flat" attr { key: "SrcT" value { type: DT_INT64 } }
       attr { key: "DstT" value { type: DT_FLOAT } } }
node { name: "sum" op: "AddV2" input: "x" input: "floats" attr { key: "T" value { type: DT_FLOAT } } }
"#;

#[test]
fn two_sizes_that_depend_on_a_run_are_equal_or_one_of_them_is_one() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("graph.pbtxt"), POSITIONS).expect("writable");
    let run = |x: &[f32]| {
        let x = shape::Literal::from_elements(&[x.len() as i64], x);
        std::fs::write(directory.path().join("x.npy"), npz::write_npy(&x)).expect("writable");
        let mut run = tfcompile(directory.path());
        run.args(["run", "graph.pbtxt", "--fetch=sum", "--dim=x.0=1..6", "--feed=x=x.npy"]);
        run.output().expect("the tool")
    };
    for (x, sum) in [(&[5.0, 7.0, 8.0][..], "[5, 8, 10]"), (&[0.0, 7.0, 0.0], "[1, 8, 1]")] {
        let output = run(x);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.contains(sum), "{text}");
    }
    let output = run(&[5.0, 7.0, 0.0]);
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("the sizes of dimension 0 of input 1 and dimension 0 of input 0 differ (node 'sum')"),
        "{text}"
    );
}

/// Sums of products and summands for any number of rows.
const NAMED: &str = include_str!("../../../tests/rust/model/batched.hlo");

/// Sizes, and a result computed by loops. All numbers are integers, so sums are exact in any order.
const NAMED_CPP: &str = r#"
#include <cstring>
#include "model.h"
static ns::Model net;
static float x[64][16], w[16][8], z[64][8];
static int check(int rows) {
  if (net.batch() != rows || net.result0_dim_size(0) != rows || net.result0_dim_size(1) != 8) return 1;
  if (net.result_result0_count() != 8 * rows || net.arg_x_count() != 16 * rows) return 2;
  if (net.arg_z_size() != 32 * rows || net.arg_w_count() != 128) return 3;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = z[i][j];
      for (int k = 0; k < 16; ++k) sum += x[i][k] * w[k][j];
      if (net.result_result0(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) != sum) return 4;
    }
  }
  return 0;
}
static bool reports_the_range() { return std::strcmp(ERROR, "batch is out of range: 1..64") == 0; }
int main() {
  static_assert(ns::Model::kBatchMin == 1 && ns::Model::kBatchMax == 64, "range");
  for (int i = 0; i < 64; ++i) {
    for (int k = 0; k < 16; ++k) x[i][k] = static_cast<float>((7 * i + k) % 11);
    for (int j = 0; j < 8; ++j) z[i][j] = static_cast<float>(i * j);
  }
  for (int k = 0; k < 16; ++k) {
    for (int j = 0; j < 8; ++j) w[k][j] = static_cast<float>((3 * k + 5 * j) % 7) - 3;
  }
  const int sizes[] = {64, 1, 7, 64, 33, 2};
  std::memcpy(net.arg_w_data(), w, sizeof(w));
  for (int rows : sizes) {
    std::memset(net.arg_x_data(), 0xff, sizeof(x));
    std::memset(net.arg_z_data(), 0xff, sizeof(z));
    if (!net.set_batch(rows)) return 10;
    std::memcpy(net.arg_x_data(), x, static_cast<std::size_t>(net.arg_x_size()));
    std::memcpy(net.arg_z_data(), z, static_cast<std::size_t>(net.arg_z_size()));
    if (!net.Run() || ERROR[0] != 0) return 11;
    if (const int failed = check(rows)) return 20 + failed;
  }
  const std::int64_t outside[] = {0, -1, 65, INT64_C(1) << 32};
  for (std::int64_t size : outside) {
    if (net.set_batch(size) || net.Run() || !reports_the_range()) return 12;
    if (net.Run(size) || !reports_the_range() || net.batch() != 2) return 13;
    if (const int failed = check(2)) return 30 + failed;
  }
  net.set_arg_x_data(x);
  net.set_arg_z_data(z);
  if (!net.Run(40)) return 14;
  return check(40);
}
"#;

const NAMED_C: &str = r#"
#include <string.h>
#include "model_c.h"
static unsigned char memory[MODEL_ARENA_BYTES];
int main(void) {
  static const int sizes[] = {1, 7, 64};
  int s, i, j, k;
  model_state* state = model_init(memory);
  for (i = 0; i < 128; ++i) model_arg_w(state)[i] = (float)(i % 5);
  for (s = 0; s < 3; ++s) {
    if (model_set_batch(state, sizes[s]) != 0 || model_batch(state) != sizes[s]) return 1;
    for (i = 0; i < 16 * 64; ++i) model_arg_x(state)[i] = (float)(i % 13);
    for (i = 0; i < 8 * 64; ++i) model_arg_z(state)[i] = (float)i;
    if (model_run(state) != 0 || model_result_result0_dim_size(state, 0) != sizes[s]) return 2;
    for (i = 0; i < sizes[s]; ++i) {
      for (j = 0; j < 8; ++j) {
        float sum = (float)(8 * i + j);
        for (k = 0; k < 16; ++k) sum += (float)((16 * i + k) % 13) * (float)((8 * k + j) % 5);
        if (model_result_result0(state)[8 * i + j] != sum) return 3;
      }
    }
  }
  if (MODEL_batch_MIN != 1 || MODEL_batch_MAX != 64) return 4;
  if (model_set_batch(state, 65) == 0 || model_run(state) == 0) return 5;
  if (strcmp(model_error(state), "batch is out of range: 1..64") != 0) return 6;
  /* The compiled code also checks the size, says the same, and writes nothing. */
  if (model_set_batch(state, 2) != 0 || model_run(state) != 0) return 7;
  for (s = 0; s < 3; ++s) {
    static const int32_t outside[] = {0, -1, 65};
    float* y = (float*)state->results[0];
    for (i = 0; i < 8 * 64; ++i) y[i] = -5;
    *(int32_t*)state->args[3] = outside[s];
    if (model_run(state) == 0 || strcmp(model_error(state), "batch is out of range: 1..64") != 0) return 8;
    for (i = 0; i < 8 * 64; ++i) {
      if (y[i] != -5) return 9;
    }
    if (model_result_result0_dim_size(state, 0) != 2) return 10;
  }
  return 0;
}
"#;

#[test]
fn programs_choose_sizes_of_named_dimensions() {
    let directory = tempfile::tempdir().expect("a directory");
    let build = |flags: &[&str]| {
        let mut tool = tfcompile(directory.path());
        tool.args(["build", "model.hlo", "--name", "model", "--class", "ns::Model", "-q", "-o", "."]);
        succeed(tool.args(flags));
    };
    for (name, text) in [("model.hlo", NAMED), ("main.cc", NAMED_CPP), ("main.c", NAMED_C)] {
        std::fs::write(directory.path().join(name), text).expect("writable");
    }
    build(&["--emit", "obj,header,c-header,test,metadata"]);
    let hosted = "-DERROR=net.error_msg().c_str()";
    for compiler in ["g++", "clang++"].into_iter().filter(|&compiler| compiler == "g++" || exists(compiler)) {
        program(directory.path(), compiler, &["-std=c++17", "-Wshadow", hosted, "main.cc", "model.o"]);
    }
    program(directory.path(), "gcc", &["-std=c99", "main.c", "model.o"]);
    program(directory.path(), "gcc", &["-std=c99", "model_test.c", "model.o"]);
    let inspected = succeed(tfcompile(directory.path()).args(["inspect", "model.o"]));
    let text = String::from_utf8(inspected.stdout).expect("UTF-8");
    assert!(text.contains("f32[batch,16]") && text.contains("s32[], 1..64"), "{text}");
    build(&["--standalone-header"]);
    program(directory.path(), "g++", &["-std=c++17", hosted, "main.cc", "model.o"]);
    build(&["--freestanding"]);
    program(directory.path(), "g++", &["-std=c++17", "-DERROR=net.error_msg()", "main.cc", "model.o"]);
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Matrices with `x` on the main diagonal, with `w` in its place, and that diagonal.
const DIAGONALS: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "w" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "matrix" op: "MatrixDiag" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "set" op: "MatrixSetDiag" input: "matrix" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "part" op: "MatrixDiagPart" input: "set" attr { key: "T" value { type: DT_FLOAT } } }
"#;

#[test]
fn diagonals_have_the_sizes_of_the_run() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("g.pbtxt"), DIAGONALS).expect("writable");
    let array = |values: &[f32]| Literal::from_elements(&[values.len() as i64], values);
    let arrays = BTreeMap::from([
        ("x".to_owned(), array(&[1.0, 2.0, 3.0])),
        ("w".to_owned(), array(&[4.0, 5.0, 6.0])),
    ]);
    std::fs::write(place.path().join("in.npz"), npz::write(&arrays).expect("small")).expect("writable");
    let mut tool = tfcompile(place.path());
    tool.args(["run", "g.pbtxt", "--dim=batch=1..5", "--feed=@in.npz", "--out=out.npz"]);
    succeed(tool.args(["--fetch=matrix", "--fetch=set", "--fetch=part"]));
    let bytes = std::fs::read(place.path().join("out.npz")).expect("readable");
    let mut out = npz::Archive::open(bytes.into(), 1 << 20).expect("an archive");
    let diagonal =
        |a: f32, b: f32, c: f32| Literal::from_elements(&[3, 3], &[a, 0.0, 0.0, 0.0, b, 0.0, 0.0, 0.0, c]);
    assert_eq!(out.require("matrix").expect("a result"), diagonal(1.0, 2.0, 3.0));
    assert_eq!(out.require("set").expect("a result"), diagonal(4.0, 5.0, 6.0));
    assert_eq!(out.require("part").expect("a result"), array(&[4.0, 5.0, 6.0]));
    // The diagonal has a size of its own.
    let mut tool = tfcompile(place.path());
    tool.args(["run", "g.pbtxt", "--dim=x.0=1..5", "--dim=w.0=1..6", "--fetch=part", "--random=1"]);
    let differs = |text: &str| {
        assert!(text.contains("size 0 of the diagonals is not that of the matrices (node 'set')"), "{text}");
    };
    differs(&refuse(tool.args(["--size=x.0=3", "--size=w.0=4"]), place.path()));
    let mut tool = tfcompile(place.path());
    tool.args(["run", "g.pbtxt", "--dim=x.0=1..5", "--dim=w.0=1..6", "--fetch=part", "--random=1"]);
    let output = succeed(tool.args(["--size=x.0=3", "--size=w.0=3"]));
    assert!(String::from_utf8_lossy(&output.stdout).contains("part: f32[3]"));
}

/// `pairs[i] = [i, position of the largest of x[i]]`. A branch of `same`, for `x` and `z` of other
/// lengths, would have another rank.
const TEXTS: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: -1 } } } } }
node { name: "z" op: "Exp" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "shape" op: "Shape" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "rows" op: "GatherV2" input: "shape" input: "zero" input: "zero"
       attr { key: "Tparams" value { type: DT_INT32 } } attr { key: "Tindices" value { type: DT_INT32 } }
       attr { key: "Taxis" value { type: DT_INT32 } } }
node { name: "rows_s64" op: "Cast" input: "rows" attr { key: "SrcT" value { type: DT_INT32 } } attr { key: "DstT" value { type: DT_INT64 } } }
node { name: "begin" op: "Cast" input: "zero" attr { key: "SrcT" value { type: DT_INT32 } } attr { key: "DstT" value { type: DT_INT64 } } }
node { name: "step" op: "Cast" input: "one" attr { key: "SrcT" value { type: DT_INT32 } } attr { key: "DstT" value { type: DT_INT64 } } }
node { name: "numbers" op: "Range" input: "begin" input: "rows_s64" input: "step" attr { key: "Tidx" value { type: DT_INT64 } } }
node { name: "largest" op: "ArgMax" input: "x" input: "one" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "Tidx" value { type: DT_INT32 } } attr { key: "output_type" value { type: DT_INT64 } } }
node { name: "pairs" op: "Pack" input: "numbers" input: "largest" attr { key: "N" value { i: 2 } }
       attr { key: "T" value { type: DT_INT64 } } attr { key: "axis" value { i: 1 } } }
node { name: "length" op: "GatherV2" input: "shape" input: "one" input: "zero"
       attr { key: "Tparams" value { type: DT_INT32 } } attr { key: "Tindices" value { type: DT_INT32 } }
       attr { key: "Taxis" value { type: DT_INT32 } } }
node { name: "other_shape" op: "Shape" input: "z" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "other" op: "GatherV2" input: "other_shape" input: "one" input: "zero"
       attr { key: "Tparams" value { type: DT_INT32 } } attr { key: "Tindices" value { type: DT_INT32 } }
       attr { key: "Taxis" value { type: DT_INT32 } } }
node { name: "differ" op: "NotEqual" input: "length" input: "other" attr { key: "T" value { type: DT_INT32 } } }
node { name: "same" op: "StatelessIf" input: "differ" input: "x" attr { key: "Tcond" value { type: DT_BOOL } }
       attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
       attr { key: "then_branch" value { func { name: "row" } } } attr { key: "else_branch" value { func { name: "all" } } } }
library {
  function {
    signature { name: "row" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } }
    node_def { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
               attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
    node_def { name: "sum" op: "Sum" input: "a" input: "axis:output:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "b" value: "sum:output:0" }
  }
  function {
    signature { name: "all" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } }
    ret { key: "b" value: "a" }
  }
}
versions { producer: 1286 }
"#;

#[test]
fn sizes_in_one_shape_have_ranges_of_their_own_and_select_branches() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("g.pbtxt"), TEXTS).expect("writable");
    let x = Literal::from_elements(&[2, 3], &[1f32, 3.0, 2.0, 6.0, 5.0, 4.0]);
    let arrays = BTreeMap::from([("x".to_owned(), x.clone())]);
    std::fs::write(place.path().join("in.npz"), npz::write(&arrays).expect("small")).expect("writable");
    let mut tool = tfcompile(place.path());
    tool.args(["run", "g.pbtxt", "--dim=batch=1..4", "--dim=x.1=1..48", "--feed=@in.npz", "--out=out.npz"]);
    succeed(tool.args(["--fetch=pairs", "--fetch=same"]));
    let bytes = std::fs::read(place.path().join("out.npz")).expect("readable");
    let mut out = npz::Archive::open(bytes.into(), 1 << 20).expect("an archive");
    assert_eq!(out.require("pairs").expect("a result"), Literal::from_elements(&[2, 2], &[0i64, 1, 1, 0]));
    assert_eq!(out.require("same").expect("a result"), x);
}

/// Windows of 3 rows at every second row.
const WINDOWS: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 1 } dim { size: -1 } dim { size: 1 } dim { size: 1 } } } } }
node { name: "filter" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT
       tensor_shape { dim { size: 3 } dim { size: 1 } dim { size: 1 } dim { size: 1 } } float_val: 1 } } } }
node { name: "sums" op: "Conv2D" input: "x" input: "filter" attr { key: "T" value { type: DT_FLOAT } } ATTRIBUTES }
node { name: "largest" op: "MaxPool" input: "x" attr { key: "T" value { type: DT_FLOAT } } KSIZE ATTRIBUTES }
node { name: "means" op: "AvgPool" input: "x" attr { key: "T" value { type: DT_FLOAT } } KSIZE ATTRIBUTES }
"#;

#[test]
fn windows_are_padded_for_the_size_of_the_run() {
    let place = tempfile::tempdir().expect("a directory");
    let list = |name: &str, rows: i64| {
        format!("attr {{ key: \"{name}\" value {{ list {{ i: 1 i: {rows} i: 1 i: 1 }} }} }}")
    };
    let attributes = list("strides", 2) + " attr { key: \"padding\" value { s: \"SAME\" } }";
    let graph = WINDOWS.replace("ATTRIBUTES", &attributes).replace("KSIZE", &list("ksize", 3));
    std::fs::write(place.path().join("g.pbtxt"), graph).expect("writable");
    let results = |rows: i64| {
        let x: Vec<f32> = (1..=rows).map(|row| row as f32).collect();
        let arrays = BTreeMap::from([("x".to_owned(), Literal::from_elements(&[1, rows, 1, 1], &x))]);
        std::fs::write(place.path().join("in.npz"), npz::write(&arrays).expect("small")).expect("writable");
        let mut tool = tfcompile(place.path());
        tool.args(["run", "g.pbtxt", "--dim=x.1=1..9", "--feed=@in.npz", "--out=out.npz"]);
        succeed(tool.args(["--fetch=sums", "--fetch=largest", "--fetch=means"]));
        let bytes = std::fs::read(place.path().join("out.npz")).expect("readable");
        let mut out = npz::Archive::open(bytes.into(), 1 << 20).expect("an archive");
        ["sums", "largest", "means"].map(|name| out.require(name).expect("a result"))
    };
    let columns = |values: [&[f32]; 3]| {
        values.map(|values| Literal::from_elements(&[1, values.len() as i64, 1, 1], values))
    };
    // One row is added before and one after 5 rows, and one after 4 rows.
    assert_eq!(results(5), columns([&[3.0, 9.0, 9.0], &[2.0, 4.0, 5.0], &[1.5, 3.0, 4.5]]));
    assert_eq!(results(4), columns([&[6.0, 7.0], &[3.0, 4.0], &[2.0, 3.5]]));
    assert_eq!(results(1), columns([&[1.0], &[1.0], &[1.0]]));
}
