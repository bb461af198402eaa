//! Models exported by TensorFlow and Keras (`tests/saved_models`), compared with TensorFlow's
//! results; and a model of TensorFlow.js.

use crate::support::{refuse, root, succeed, tfcompile};
use npz::Archive;
use shape::{Literal, PrimitiveType};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn models() -> PathBuf {
    root().join("tests/saved_models")
}

fn archive(path: &Path) -> Archive {
    Archive::open(std::fs::read(path).expect("readable").into(), 1 << 20).expect("an archive")
}

/// Returns the recorded arrays of a signature: `in` or `out`.
fn recorded(model: &str, signature: &str, role: &str) -> BTreeMap<String, Literal> {
    let mut archive = archive(&models().join(format!("{model}.npz")));
    let prefix = format!("{signature}/{role}/");
    let members: Vec<String> =
        archive.names().filter(|name| name.starts_with(&prefix)).map(str::to_owned).collect();
    assert!(!members.is_empty(), "{model}: {prefix}");
    let named = |member: String| {
        let array = archive.require(&member).expect("a member");
        (member[prefix.len()..].replace('/', "_"), array)
    };
    members.into_iter().map(named).collect()
}

fn close(actual: &Literal, expected: &Literal) -> bool {
    if actual.shape() != expected.shape() {
        return false;
    }
    if expected.array_shape().element_type != PrimitiveType::F32 {
        return actual.bytes() == expected.bytes();
    }
    let floats = |literal: &Literal| -> Vec<f32> {
        literal.bytes().chunks(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
    };
    let near = |(actual, expected): (&f32, f32)| (actual - expected).abs() <= 1e-5 + 1e-5 * expected.abs();
    floats(actual).iter().zip(floats(expected)).all(near)
}

/// Runs a model on recorded inputs, compares with the recorded results, and returns the tool's
/// standard error.
fn check(path: &str, recording: &str, signature: &str, flags: &[&str]) -> String {
    let place = tempfile::tempdir().expect("a directory");
    let inputs = npz::write(&recorded(recording, signature, "in")).expect("small");
    std::fs::write(place.path().join("in.npz"), inputs).expect("writable");
    let mut run = tfcompile(place.path());
    run.arg("run").arg(models().join(path)).args(["--feed", "@in.npz", "--out", "out.npz"]).args(flags);
    let message = String::from_utf8(succeed(&mut run).stderr).expect("UTF-8");
    let mut out = archive(&place.path().join("out.npz"));
    for (name, expected) in recorded(recording, signature, "out") {
        let actual = out.require(&name).expect("a result");
        assert!(
            close(&actual, &expected),
            "{path} {signature} {name}: expected {expected:?}, got {actual:?}"
        );
    }
    message
}

#[test]
fn signatures_with_variables_and_captures() {
    let message = check("module", "module", "serving_default", &["--batch=2"]);
    assert!(!message.contains("variable"), "no variable remains: {message}");
    check("module/saved_model.pb", "module", "serving_default", &["--dim=x.0=2", "--shape=b/bias=2,3"]);
    check("module", "module", "serving_default", &["--shape=serving_default_x=2,3", "--batch=2"]);
}

#[test]
fn written_and_fed_variables_start_with_their_saved_values() {
    let message = check("module", "module", "update", &["--signature=update"]);
    assert!(
        message.contains("2 variables remain variables because the program writes them: 'count' and 1 more"),
        "{message}"
    );
    let all = ["--batch=2", "--variables-to-feed=all"];
    let message = check("module", "module", "serving_default", &all);
    assert!(message.contains("2 variables, 0 of them written"), "{message}");
    let message = check("module", "module", "serving_default", &["--batch=2", "--variables-to-feed=v_1"]);
    assert!(message.contains("1 variable, 0 of them written"), "{message}");
}

#[test]
fn variables_within_branches_and_loops() {
    check("flow", "flow", "branches", &["--signature=branches"]);
    check("flow", "flow", "loop", &["--signature=loop"]);
    check("flow", "flow", "loop", &["--signature=loop", "--variables-to-feed=w"]);
}

#[test]
fn static_tables() {
    check("tables", "tables", "find", &["--signature=find", "--shape=keys=2,4"]);
    let place = tempfile::tempdir().expect("a directory");
    let mut check = tfcompile(place.path());
    check.arg("run").arg(models().join("tables")).args(["--signature=strings", "--random=1"]);
    let message = refuse(&mut check, place.path());
    assert!(
        message.contains("table 'hash_table") && message.contains("the table maps string to int64"),
        "{message}"
    );
}

#[test]
fn sizes_that_follow_from_open_ones() {
    let runs = [
        ("open", "windows", 4, "--dim=ids.1=words --dim=words=1..16 --dim=batch=1..4"),
        ("open", "positions", 4, "--dim=batch=3..16"),
        ("open", "tiles", 3, "--dim=batch=1..5"),
        (
            "open",
            "dilated",
            3,
            "--dim=x.1=high --dim=x.2=wide --dim=high=1..8 --dim=wide=1..9 --dim=batch=1..3",
        ),
        ("arrays", "serving_default", 4, "--dim=x.1=words --dim=words=1..12 --dim=batch=1..4"),
    ];
    for (model, signature, count, dims) in runs {
        let own = format!("--signature={signature}");
        let flags: Vec<&str> = dims.split(' ').chain([own.as_str()]).collect();
        for k in 0..count {
            check(model, model, &format!("{signature}.{k}"), &flags);
        }
    }
}

#[test]
fn keras_exports() {
    check("keras2", "keras2", "serving_default", &["--batch=3"]);
    check("keras3", "keras3", "serving_default", &["--batch=2"]);
    // The sizes are those of the arrays.
    for ranges in [&[][..], &["--dim=batch=2..5"], &["--batch=0..100"]] {
        check("keras2", "keras2", "serving_default", ranges);
        check("keras3", "keras3", "serving_default", ranges);
    }
    check("module", "module", "serving_default", &[]);
}

#[test]
fn graphs_of_tensorflow_1_by_their_tags() {
    check("builder", "builder", "predict", &["--shape=x=3", "--tag-set=serve"]);
    check("builder/saved_model.pbtxt", "builder", "debug", &["--shape=x=3", "--tags=debug,serve"]);
    check("meta/model.meta", "builder", "predict", &["--shape=x=3", "--fetch=y"]);
}

#[test]
fn the_drop_in_command_takes_models() {
    let place = tempfile::tempdir().expect("a directory");
    let graph = format!("--graph={}", models().join("keras2").display());
    succeed(tfcompile(place.path()).args([&graph, "--cpp_class=Comp", "--batch=1"]));
    assert!(place.path().join("out_model.o").exists() && place.path().join("out.h").exists());
    let say = |flags: &[&str]| {
        let place = tempfile::tempdir().expect("a directory");
        refuse(tfcompile(place.path()).arg(&graph).args(flags), place.path())
    };
    assert!(say(&["--batch=1"]).contains("Must specify --cpp_class"));
    let open = say(&["--cpp_class=Comp"]);
    assert!(open.contains("Must specify --config") && open.contains("--dim batch=1"), "{open}");
}

#[test]
fn wrong_choices_list_the_alternatives() {
    let say = |model: &str, flags: &[&str]| {
        let place = tempfile::tempdir().expect("a directory");
        let mut config = tfcompile(place.path());
        refuse(config.arg("config").arg(models().join(model)).args(flags), place.path())
    };
    let keys = say("module", &["--signature=nokey"]);
    assert!(
        keys.contains(
            "Unable to find signature_def_key 'nokey' in signature def map of `meta_graph_def`. Available keys: \
             ['__saved_model_init_op', 'serving_default', 'update']"
        ),
        "{keys}"
    );
    let tags = say("builder", &["--tag-set=gpu"]);
    assert!(tags.contains("MetaGraphDef associated with tag-set gpu could not be found"), "{tags}");
    assert!(tags.contains("['serve', 'debug,serve']"), "{tags}");
    let variables = say("module", &["--variables-to-feed=q", "--batch=1"]);
    assert!(
        variables.contains(
            "Asked to feed variables that were not found in graph: {'q'}. Variables contained in the graph:"
        ),
        "{variables}"
    );
    assert!(say("", &[]).contains("without saved_model.pb"));
    let values = say("module", &["--batch=1", "--checkpoint=/nonexistent"]);
    assert!(values.contains("Input checkpoint '/nonexistent' doesn't exist!"), "{values}");
}

#[test]
fn aot_compile_cpu_writes_files_for_a_makefile() {
    let place = tempfile::tempdir().expect("a directory");
    let dir = models().join("module");
    let mut compile = tfcompile(place.path());
    compile.arg("aot_compile_cpu").arg("--dir").arg(&dir);
    compile.args([
        "--output_prefix=out/affine",
        "--cpp_class=ns::Affine",
        "--tag_set=serve",
        "--dim",
        "batch=2",
    ]);
    succeed(compile.args(["--variables_to_feed=v", "--multithreading=true"]));
    // Computed by hand: y = x * scale + offset + constant + bias with scale 1.5, -2, 0.5 and
    // constant 0.25, 0.5, 0.75.
    let main = r#"
#include "affine.h"
#include <cstdio>
extern "C" int32_t _xla_out_affine_ns_Affine(tfcompile_frame*);
int main() {
  ns::Affine affine;
  const float offset[] = {100, 200, 300};
  for (int i = 0; i < 6; ++i) {
    affine.arg_feed_x_data()[i] = static_cast<float>(i);
    affine.arg_feed_b_bias_data()[i] = 0.5f;
  }
  affine.set_var_param_v_data(offset);
  if (!affine.Run() || affine.LookupArgIndex("feed_x") < 0) return 1;
  for (int i = 0; i < 6; ++i) std::printf("%g ", affine.result_fetch_y_data()[i]);
}
"#;
    std::fs::write(place.path().join("main.cc"), main).expect("writable");
    let makefile = "include out/affine_makefile.inc\nmain: main.cc\n\t$(CXX) $(CXXFLAGS) $(INC) -Iout $(LIB) main.cc \
                    out/affine.o out/affine_metadata.o out/affine_constants.o -o main\n";
    std::fs::write(place.path().join("Makefile"), makefile).expect("writable");
    succeed(std::process::Command::new("make").current_dir(place.path()).arg("CXX=c++"));
    let program = place.path().join("main");
    let ran = succeed(&mut std::process::Command::new(program));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "100.75 199 302.25 105.25 193 303.75 ");
}

#[test]
fn aot_compile_cpu_names_missing_flags() {
    let say = |flags: &[&str]| {
        let place = tempfile::tempdir().expect("a directory");
        refuse(tfcompile(place.path()).arg("aot-compile-cpu").args(flags), place.path())
    };
    let dir = format!("--dir={}", models().join("module").display());
    assert!(say(&[]).contains("Must specify --dir"));
    assert!(say(&[&dir]).contains("Must specify --output_prefix"));
    assert!(say(&[&dir, "--output_prefix=m"]).contains("Must specify --cpp_class"));
    let complete = [dir.as_str(), "--output_prefix=m", "--cpp_class=C"];
    assert!(
        say(&complete).contains("Expected fully defined input shape for signature_def 'serving_default'")
    );
    let with = |more: &str| say(&[&complete[..], &[more]].concat());
    assert!(with("--signature_def_key=nokey").contains("Unable to find signature_def_key 'nokey'"));
    assert!(with("--tag_set=a,b").contains("tag-set a,b could not be found"));
    assert!(
        say(&["--dir=/nonexistent", "--output_prefix=m", "--cpp_class=C"])
            .contains("SavedModel file does not exist at")
    );
}

/// Truncated or modified files lead to a result or to one message, quickly.
#[test]
fn damaged_models_are_refused() {
    let source = models().join("tables");
    let good = std::fs::read(source.join("saved_model.pb")).expect("readable");
    let place = tempfile::tempdir().expect("a directory");
    let model = place.path().join("model");
    for folder in ["variables", "assets"] {
        std::fs::create_dir_all(model.join(folder)).expect("writable");
        for file in std::fs::read_dir(source.join(folder)).expect("readable") {
            let file = file.expect("readable").path();
            std::fs::copy(&file, model.join(folder).join(file.file_name().expect("a name")))
                .expect("writable");
        }
    }
    let mut refused = 0;
    for number in 0..120usize {
        let mut bytes = good.clone();
        let at = number * good.len() / 120;
        match number % 3 {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << (number % 8),
            _ => bytes[at] = 0xff,
        }
        std::fs::write(model.join("saved_model.pb"), bytes).expect("writable");
        let mut config = tfcompile(place.path());
        config.arg("config").arg(&model).args(["--signature=find", "--shape=keys=2,2"]);
        let output = config.output().expect("the tool");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!message.contains("INTERNAL"), "byte {at}: {message}");
        match output.status.code() {
            Some(0) => {}
            Some(1) => refused += 1,
            code => panic!("byte {at}: {code:?}"),
        }
    }
    assert!(refused > 60, "{refused} of 120");
}

/// A convolution of one pixel with two features, fused with its bias and a `Prelu`; a depthwise one
/// with a `Relu`; and a `Prelu` of its own.
fn tfjs_model() -> serde_json::Value {
    let list = |op: &[&str]| serde_json::json!({"list": {"s": op}});
    let window = serde_json::json!({"list": {"i": ["1", "1", "1", "1"]}});
    let node = |name: &str, op: &str, inputs: &[&str], fused: &[&str], count: &str| {
        serde_json::json!({"name": name, "op": op, "input": inputs, "attr": {
            "T": {"type": "DT_FLOAT"},
            "strides": window,
            "padding": {"s": "VkFMSUQ="},
            "num_args": {"i": count},
            "fused_ops": list(fused),
        }})
    };
    let constant = |name: &str| serde_json::json!({"name": name, "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}});
    let weight = |name: &str, shape: &[i64]| {
        serde_json::json!({"name": name, "shape": shape, "dtype": "float32",
            "quantization": {"dtype": "uint8", "scale": 0.25, "min": -3}})
    };
    let (bias_add, prelu, relu) = ("Qmlhc0FkZA==", "UHJlbHU=", "UmVsdQ==");
    serde_json::json!({
        "format": "graph-model",
        "modelTopology": {"node": [
            {"name": "x", "op": "Placeholder", "attr": {
                "dtype": {"type": "DT_FLOAT"},
                "shape": {"shape": {"dim": [{"size": "-1"}, {"size": "1"}, {"size": "2"}, {"size": "1"}]}},
            }},
            constant("filter"), constant("bias"), constant("alpha"), constant("taps"),
            node("conv", "_FusedConv2D", &["x", "filter", "bias", "alpha"], &[bias_add, prelu], "2"),
            node("plain", "_FusedConv2D", &["x", "filter", "bias"], &[bias_add], "1"),
            node("depthwise", "FusedDepthwiseConv2dNative", &["plain", "taps"], &[relu], "0"),
            {"name": "prelu", "op": "Prelu", "input": ["plain", "alpha"]},
        ]},
        "signature": {"outputs": {
            "conv": {"name": "conv:0"}, "depthwise": {"name": "depthwise"}, "prelu": {"name": "prelu:0"},
        }},
        "weightsManifest": [{"paths": ["weights.bin"], "weights": [
            weight("filter", &[1, 1, 1, 2]), weight("bias", &[2]), weight("alpha", &[1, 1, 2]),
            weight("taps", &[1, 1, 2, 1]),
        ]}],
    })
}

#[test]
fn a_model_of_tensorflow_js_is_compiled_with_its_quantized_weights() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.path().join(name), bytes).expect("writable");
    };
    write("model.json", tfjs_model().to_string().as_bytes());
    // The filter (1, -3), the bias (0.5, 1), alpha (0.5, 0.25), and the taps (2, -1).
    write("weights.bin", &[16, 0, 14, 16, 14, 13, 20, 8]);
    let x = Literal::from_elements(&[1, 1, 2, 1], &[1f32, -2.0]);
    write("x.npy", &npz::write_npy(&x));
    let mut run = tfcompile(directory.path());
    succeed(run.args(["run", "model.json", "--dim", "batch=1", "--feed", "x=x.npy", "--out", "out.npz"]));
    let mut archive = archive(&directory.path().join("out.npz"));
    let mut result = |name: &str| archive.require(name).expect("a result").to_vec::<f32>();
    assert_eq!(result("conv"), Some(vec![1.5, -0.5, -0.75, 7.0]));
    assert_eq!(result("depthwise"), Some(vec![3.0, 2.0, 0.0, 0.0]));
    assert_eq!(result("prelu"), Some(vec![1.5, -0.5, -0.75, 7.0]));
    let mut check = tfcompile(directory.path());
    let refused = refuse(check.args(["check", "model.json", "--tag-set", "serve"]), directory.path());
    assert!(refused.contains("is a TensorFlow.js model: omit --tag-set"), "{refused}");
}

/// The floats of a table at the keys `x`, or 9. A graph of its own fills the table: 3 with 1.5, and
/// 7 with -2.
fn tfjs_model_with_table() -> serde_json::Value {
    let types = serde_json::json!({
        "key_dtype": {"type": "DT_INT32"}, "value_dtype": {"type": "DT_FLOAT"},
        "Tin": {"type": "DT_INT32"}, "Tout": {"type": "DT_FLOAT"},
    });
    let node = |name: &str, op: &str, inputs: &[&str]| serde_json::json!({"name": name, "op": op, "input": inputs, "attr": types});
    let constant = |name: &str, dtype: &str| serde_json::json!({"name": name, "op": "Const", "attr": {"dtype": {"type": dtype}}});
    let weight = |name: &str, shape: &[i64], dtype: &str| serde_json::json!({"name": name, "shape": shape, "dtype": dtype});
    serde_json::json!({
        "format": "graph-model",
        "modelTopology": {"node": [
            {"name": "x", "op": "Placeholder", "attr": {
                "dtype": {"type": "DT_INT32"}, "shape": {"shape": {"dim": [{"size": "3"}]}},
            }},
            node("table", "HashTableV2", &[]), constant("default", "DT_FLOAT"),
            node("y", "LookupTableFindV2", &["table", "x", "default"]),
        ]},
        "modelInitializer": {"node": [
            node("table", "HashTableV2", &[]), constant("keys", "DT_INT32"), constant("values", "DT_FLOAT"),
            node("fill", "LookupTableImportV2", &["table", "keys", "values"]),
        ]},
        "signature": {"outputs": {"y": {"name": "y:0"}}},
        "weightsManifest": [{"paths": ["weights.bin"], "weights": [
            weight("default", &[], "float32"), weight("keys", &[2], "int32"), weight("values", &[2], "float32"),
        ]}],
    })
}

#[test]
fn a_table_of_a_model_of_tensorflow_js_has_the_entries_of_its_initializer() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.path().join(name), bytes).expect("writable");
    };
    write("model.json", tfjs_model_with_table().to_string().as_bytes());
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let keys = [3i32, 7].map(i32::to_le_bytes).concat();
    write("weights.bin", &[floats(&[9.0]), keys, floats(&[1.5, -2.0])].concat());
    write("x.npy", &npz::write_npy(&Literal::from_elements(&[3], &[7i32, 4, 3])));
    let mut run = tfcompile(directory.path());
    succeed(run.args(["run", "model.json", "--feed", "x=x.npy", "--out", "out.npz"]));
    let mut archive = archive(&directory.path().join("out.npz"));
    assert_eq!(archive.require("y").expect("a result").to_vec::<f32>(), Some(vec![-2.0, 9.0, 1.5]));
}
