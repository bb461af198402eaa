//! `run`, `bench`, and `verify`: on graphs with results recorded from TensorFlow, and with invalid
//! inputs.

use crate::support::{refuse, root, succeed, tfcompile};
use npz::Archive;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn oracle(name: &str) -> PathBuf {
    root().join("tests/oracle/tfcompile_tests").join(name)
}

/// Returns a member of the recorded vectors.
fn recorded(name: &str, member: &str) -> Literal {
    let data = std::fs::read(oracle(name).join("vectors.npz")).expect("readable");
    Archive::open(data.into(), 1 << 20).expect("an archive").require(member).expect("a member")
}

fn archive(path: &Path) -> Archive {
    Archive::open(std::fs::read(path).expect("readable").into(), 1 << 20).expect("an archive")
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Returns a command with an oracle graph.
fn command(command: &str, name: &str, directory: &Path) -> Command {
    let mut tool = tfcompile(directory);
    tool.arg(command).arg(oracle(name).join("graph.pb"));
    tool.arg("--config").arg(oracle(name).join("config.pbtxt"));
    tool
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn write(directory: &Path, name: &str, array: &Literal) {
    std::fs::write(directory.join(name), npz::write_npy(array)).expect("writable");
}

#[test]
fn run_computes_what_tensorflow_recorded() {
    let out = directory();
    let x = recorded("tfmatmulandadd", "case1/x_hold:0");
    let y = recorded("tfmatmulandadd", "case1/y_hold:0");
    write(out.path(), "x.npy", &x);
    // One feed comes from an array, by its name in the config; the other from an archive with more
    // members, by its node's name.
    let more = BTreeMap::from([("y_hold:0".to_owned(), y), ("unrelated".to_owned(), Literal::scalar(1i8))]);
    std::fs::write(out.path().join("in.npz"), npz::write(&more).expect("arrays")).expect("writable");
    let mut run = command("run", "tfmatmulandadd", out.path());
    let output = succeed(run.args(["--feed", "x=x.npy", "--feed", "@in.npz", "--out", "out.npz"]));
    assert!(text(&output).starts_with("x_y_prod: f32[2,2]  min "), "{}", text(&output));
    let mut results = archive(&out.path().join("out.npz"));
    for name in ["x_y_prod", "x_y_sum"] {
        let expected = recorded("tfmatmulandadd", &format!("case1/run0/{name}:0"));
        assert_eq!(results.require(name).expect("a result"), expected, "{name}");
    }
}

#[test]
fn variables_keep_their_values_from_step_to_step() {
    let name = "tfvariable_sequential_updates";
    let out = directory();
    for variable in ["x", "y"] {
        write(out.path(), &format!("{variable}.npy"), &recorded(name, &format!("case0/var/{variable}")));
    }
    for steps in [1, 2] {
        let mut run = command("run", name, out.path());
        run.args(["--var", "x=x.npy", "--var", "y=y.npy", "--out", "out.npz", "--threads", "2"]);
        let output = succeed(run.args(["--steps", &steps.to_string()]));
        assert!(text(&output).contains("variable x: f32[]"), "{}", text(&output));
        let mut results = archive(&out.path().join("out.npz"));
        let names: Vec<String> = results.names().map(str::to_owned).collect();
        assert_eq!(names, ["result:0", "x"], "y is never written");
        for (result, member) in [("result:0", "result:0"), ("x", "var/x")] {
            let actual = results.require(result).expect("a result").to_vec::<f32>().expect("f32")[0];
            let expected = recorded(name, &format!("case0/run{}/{member}", steps - 1));
            let expected = expected.to_vec::<f32>().expect("f32")[0];
            assert!(
                (actual - expected).abs() <= 1e-6 + 1e-6 * expected.abs(),
                "{result} after {steps}: {actual}, {expected}"
            );
        }
    }
}

#[test]
fn filled_feeds_are_the_same_for_the_same_seed() {
    let out = directory();
    let run = |flags: &[&str]| text(&succeed(command("run", "tfmatmulandadd", out.path()).args(flags)));
    assert_eq!(run(&["--random", "7"]), run(&["--random", "7"]));
    assert_ne!(run(&["--random", "7"]), run(&["--random", "8"]));
    // The square of [[1, 1], [1, 1]].
    let ones = run(&["--feed", "x=ones", "--feed", "y=ones"]);
    assert!(ones.contains("[[2, 2],\n   [2, 2]]"), "{ones}");
    let zeros = run(&["--feed", "x=ones", "--feed", "y=zeros"]);
    assert!(zeros.contains("[[0, 0],") && zeros.contains("[[1, 1],"), "{zeros}");
}

/// 64 labels of three classes. A label out of range gives NaN.
const CLASSES: &str = r#"
node { name: "labels" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } } attr { key: "shape" value { shape { dim { size: 64 } } } } }
node { name: "logits" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 64 } dim { size: 3 } } } } }
node { name: "losses" op: "SparseSoftmaxCrossEntropyWithLogits" input: "logits" input: "labels" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tlabels" value { type: DT_INT64 } } }
"#;

#[test]
fn random_labels_are_among_the_classes() {
    let out = directory();
    std::fs::write(out.path().join("classes.pbtxt"), CLASSES).expect("writable");
    for flags in [&[][..], &["--jit=off"]] {
        let mut run = tfcompile(out.path());
        run.args(["run", "classes.pbtxt", "--fetch=losses", "--random=3", "--out=out.npz"]).args(flags);
        succeed(&mut run);
        let mut archive = archive(&out.path().join("out.npz"));
        let name = archive.names().next().expect("a result").to_owned();
        let losses = archive.require(&name).expect("a member").floats().expect("floats");
        assert_eq!(losses.len(), 64);
        assert!(losses.iter().all(|loss| loss.is_finite()), "{flags:?}: {losses:?}");
    }
}

#[test]
fn invalid_inputs_are_errors_that_name_them() {
    let out = directory();
    write(out.path(), "wide.npy", &Literal::from_elements(&[4], &[0f32; 4]));
    write(out.path(), "double.npy", &Literal::from_elements(&[2, 2], &[0f64; 4]));
    std::fs::write(out.path().join("broken.npz"), b"PK\x03\x04 and no more").expect("writable");
    std::fs::write(out.path().join("broken.npy"), b"no array").expect("writable");
    let other = BTreeMap::from([("z".to_owned(), Literal::scalar(1f32))]);
    std::fs::write(out.path().join("other.npz"), npz::write(&other).expect("arrays")).expect("writable");
    for (flags, expected) in [
        (&["--feed", "x=zeros"][..], &["missing value for feed 'y' of f32[2,2]", "--feed y=FILE.npy"][..]),
        (&["--feed", "x=wide.npy"], &["feed 'x' has shape [2, 2], the array has [4]; reshape it"]),
        (&["--feed", "x=double.npy"], &["feed 'x' has elements of f32, the array has f64; convert it"]),
        (&["--feed", "q=zeros"], &["there is no feed 'q'", "'x' of f32[2,2], 'y' of f32[2,2]"]),
        (&["--var", "x=zeros"], &["there is no variable 'x'", "the program has no variable"]),
        (&["--feed", "x=zeros", "--feed", "x_hold=ones"], &["feed 'x' is given twice"]),
        (&["--feed", "zeros"], &["--feed zeros", "expected NAME=FILE.npy"]),
        (&["--feed", "@broken.npz"], &["--feed @broken.npz", "malformed .npz"]),
        (&["--feed", "x=broken.npy"], &["broken.npy", "not a .npy array"]),
        (&["--feed", "@other.npz"], &["no member of the file is a feed", "'x', 'y'", "'z'"]),
        (&["--feed", "x=other.npz"], &["has shape [2, 2], the array has []"]),
        (&["--feed", "x=missing.npy"], &["missing.npy"]),
        (&["--random", "1", "--steps", "0"], &["--steps"]),
        (&["--random", "1", "--threads", "0"], &["--threads"]),
        (&["--random", "1", "--target-triple", "riscv64-unknown-linux-gnu"], &["cannot run on this machine"]),
        (&["--random", "1", "--out", "missing/out.npz"], &["missing/out.npz"]),
    ] {
        let message = refuse(command("run", "tfmatmulandadd", out.path()).args(flags), out.path());
        for part in expected {
            assert!(message.contains(part), "{flags:?}: {message}");
        }
    }
}

#[test]
fn bench_reports_times_in_text_and_json() {
    let out = directory();
    let flags = ["--seconds", "0.02", "--threads", "1,2", "--no-peak", "--kernels"];
    let output = text(&succeed(command("bench", "tfmatmulandadd", out.path()).args(flags)));
    // A product of [2,2] by [2,2] is 16 flops, a sum of two such arrays 4.
    assert!(output.contains("20 flops"), "{output}");
    assert!(output.contains("p99") && output.contains("kernels alone"), "{output}");
    let json = text(&succeed(command("bench", "tfmatmulandadd", out.path()).args(flags).arg("--json")));
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["cost"]["flops"], 20);
    let times = report["times"].as_array().expect("times");
    assert_eq!(times.iter().map(|t| t["threads"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    for time in times {
        let at = |name: &str| time["latency"][name].as_f64().expect("seconds");
        let order = ["min", "p50", "p90", "p99", "max"].map(at);
        assert!(order[0] > 0.0 && order.is_sorted(), "{order:?}");
    }
    let message =
        refuse(command("bench", "tfmatmulandadd", out.path()).args(["--seconds", "nan"]), out.path());
    assert!(message.contains("--seconds"), "{message}");
}

#[test]
fn verify_passes_for_correct_code() {
    let out = directory();
    for name in
        ["tfmatmulandadd", "tfvariable_sequential_updates", "tftop_k", "tfcond_cfv1", "tfrandom_uniform"]
    {
        let json = text(&succeed(command("verify", name, out.path()).arg("--json")));
        let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(report["passed"], true, "{name}: {json}");
        // The branches of the conditional return their arguments, which takes no kernel.
        let has_kernels = !report["kernels"].as_array().expect("kernels").is_empty();
        assert_eq!(has_kernels, name != "tfcond_cfv1", "{name}");
        assert_eq!(report["programs"].as_array().expect("programs").len(), 7, "{name}");
    }
    let output = text(&succeed(&mut command("verify", "tfmatmulandadd", out.path())));
    assert!(output.contains("the code agrees with the evaluator"), "{output}");
    // Large inputs overflow for some orders of summation, so the output explains every column.
    for words in ["\nmax ulp, max relative: ", "\nof limit: "] {
        assert!(output.contains(words), "{words:?} in {output}");
    }
    let quiet = text(&succeed(command("verify", "tfmatmulandadd", out.path()).arg("-q")));
    assert_eq!(quiet, "");
}

#[test]
fn verify_measures_how_far_a_precision_moves_results() {
    let out = directory();
    let row = |k: usize| format!("{{{}}}", vec![format!("0.{k}01"); 8].join(","));
    let weights: Vec<String> = (0..8).map(row).collect();
    let program = format!(
        "HloModule layer\n\nENTRY main {{\n  x = f32[4,8] parameter(0)\n  \
         w = f32[8,8] constant({{{}}})\n  ROOT y = f32[4,8] dot(x, w), \
         lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n",
        weights.join(",")
    );
    std::fs::write(out.path().join("layer.hlo"), program).expect("it is written");
    for (precision, unit) in [("bf16", 2f64.powi(-9)), ("f16", 2f64.powi(-12))] {
        let mut command = tfcompile(out.path());
        command.args(["verify", "layer.hlo", "--json", "--precision", precision, "--random", "7"]);
        let report: serde_json::Value = serde_json::from_str(&text(&succeed(&mut command))).expect("JSON");
        assert_eq!(report["passed"], true, "{report}");
        let moved = &report["precision"];
        assert_eq!(moved["precision"], precision);
        // Each operand moves by at most a unit of rounding, and the code does round.
        let relative = moved["results"][0]["from_f64"]["relative"].as_f64().expect("a number");
        assert!((unit / 64.0..2.0 * unit).contains(&relative), "{precision}: {relative}");
        let single = moved["results"][0]["f32_from_f64"]["relative"].as_f64().expect("a number");
        assert!(single < 1e-6, "{precision}: {single}");
    }
    let mut command = tfcompile(out.path());
    let message = refuse(command.args(["verify", "layer.hlo", "--random", "7"]), out.path());
    assert!(message.contains("--precision"), "{message}");
}

/// A second step, with the state that the first one saved, for each kind of file.
#[test]
fn state_is_saved_and_restored() {
    let name = "tfvariable_sequential_updates";
    let start = |out: &Path| {
        for variable in ["x", "y"] {
            write(out, &format!("{variable}.npy"), &recorded(name, &format!("case0/var/{variable}")));
        }
    };
    for file in ["state.npz", "state.safetensors", "model.ckpt", "model"] {
        let out = directory();
        start(out.path());
        let mut run = command("run", name, out.path());
        succeed(run.args(["--var", "x=x.npy", "--var", "y=y.npy", "--save", file]));
        // The second step, from the file only, gives the result that the original recorded.
        let mut run = command("run", name, out.path());
        let output = succeed(run.args(["--variables", file, "--out", "out.npz"]));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{file}");
        let actual = archive(&out.path().join("out.npz"))
            .require("x")
            .expect("a result")
            .to_vec::<f32>()
            .expect("f32")[0];
        let expected = recorded(name, "case0/run1/var/x").to_vec::<f32>().expect("f32")[0];
        assert!((actual - expected).abs() <= 1e-6 + 1e-6 * expected.abs(), "{file}: {actual}, {expected}");
        // A flag for one variable has precedence over a file for all.
        let mut run = command("run", name, out.path());
        let output = text(&succeed(run.args([
            "--variables",
            file,
            "--var",
            "x=zeros",
            "--var",
            &format!("y={file}"),
        ])));
        assert!(output.contains("variable x: f32[]"), "{output}");
    }
}

#[test]
fn partial_state_is_used_and_the_rest_is_named() {
    let name = "tfvariable_sequential_updates";
    let out = directory();
    let part = BTreeMap::from([
        ("x".to_owned(), Literal::scalar(2f32)),
        ("other/one".to_owned(), Literal::scalar(1i8)),
    ]);
    std::fs::write(out.path().join("part.npz"), npz::write(&part).expect("arrays")).expect("writable");
    std::fs::write(out.path().join("part.safetensors"), npz::write_safetensors(&part).expect("arrays"))
        .expect("writable");
    for file in ["part.npz", "part.safetensors"] {
        let output = succeed(command("run", name, out.path()).args(["--variables", file]));
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(notes.contains("the file has no value for 'y'"), "{notes}");
        assert!(notes.contains("no variable takes 'other/one'"), "{notes}");
        let output = succeed(command("run", name, out.path()).args(["--variables", file, "-q"]));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
    let none = BTreeMap::from([("z".to_owned(), Literal::scalar(2f32))]);
    std::fs::write(out.path().join("none.npz"), npz::write(&none).expect("arrays")).expect("writable");
    for (file, expected) in [
        ("none.npz", "the file has 'z', the program has 'x', 'y'"),
        ("missing.npz", "missing.npz"),
        ("missing", "does not hold variables"),
    ] {
        let message = refuse(command("run", name, out.path()).args(["--variables", file]), out.path());
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_leading_dimension_holds_batches() {
    let out = directory();
    let x = Literal::from_elements(&[3, 2, 2], &(0..12).map(|i| i as f32).collect::<Vec<_>>());
    let batches = BTreeMap::from([("x".to_owned(), x)]);
    std::fs::write(out.path().join("batches.npz"), npz::write(&batches).expect("arrays")).expect("writable");
    let run = |flags: &[&str]| {
        let given = ["--feed", "@batches.npz", "--feed", "y=ones"];
        text(&succeed(command("run", "tfmatmulandadd", out.path()).args(given).args(flags)))
    };
    // [[4k, 4k+1], [4k+2, 4k+3]] times ones.
    let output = run(&[]);
    for (step, product) in
        [(0, "[[1, 1],\n   [5, 5]]"), (1, "[[9, 9],\n   [13, 13]]"), (2, "[[17, 17],\n   [21, 21]]")]
    {
        let at = output.find(&format!("step {step}  x_y_prod: f32[2,2]")).expect("a step");
        assert!(output[at..].split("step").nth(1).expect("its text").contains(product), "{output}");
    }
    assert!(!output.contains("step 3"), "{output}");
    // The first batch follows the last one.
    let output = run(&["--steps", "4"]);
    let at = output.find("step 3  x_y_prod").expect("a step");
    assert!(output[at..].contains("[[1, 1],\n   [5, 5]]"), "{output}");
}

/// A reshape to a size that is fed.
const RESHAPE: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 6 } } } } }
node { name: "rows" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "shape" value { shape { unknown_rank: true } } } }
node { name: "rest" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: -1 } } } }
node { name: "sizes" op: "Pack" input: "rows" input: "rest" attr { key: "T" value { type: DT_INT32 } }
       attr { key: "N" value { i: 2 } } }
node { name: "y" op: "Reshape" input: "x" input: "sizes" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "Tshape" value { type: DT_INT32 } } }
"#;

#[test]
fn a_feed_becomes_a_constant_by_a_flag_or_in_the_config() {
    let out = directory();
    std::fs::write(out.path().join("graph.pbtxt"), RESHAPE).expect("writable");
    write(out.path(), "x.npy", &Literal::from_elements(&[6], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let mut config = tfcompile(out.path());
    let printed = text(&succeed(config.args(["config", "graph.pbtxt", "--feed-constant", "rows=2"])));
    assert!(printed.contains("constant: \"2\""), "{printed}");
    std::fs::write(out.path().join("config.pbtxt"), printed).expect("writable");
    for flags in [["--feed-constant", "rows=2"], ["--config", "config.pbtxt"]] {
        let mut run = tfcompile(out.path());
        run.args(["run", "graph.pbtxt", "--feed", "x=x.npy", "--out", "out.npz"]).args(flags);
        let printed = text(&succeed(&mut run));
        assert!(printed.starts_with("y: f32[2,3]"), "{printed}");
    }
    let say = |flags: &[&str]| {
        refuse(
            tfcompile(out.path()).args(["check", "graph.pbtxt", "--shape", "rows="]).args(flags),
            out.path(),
        )
    };
    assert!(say(&["--feed-constant", "rows=2.5"]).contains("'2.5' is not a number of the type int32"));
    assert!(say(&["--feed-constant", "y=1"]).contains("only placeholders can be constants"));
    assert!(say(&["--feed-constant", "z=1"]).contains("'z:0' is not a node of the graph"));
    assert!(say(&["--feed-constant", "rows"]).contains("expected a constant feed as NAME=VALUE"));
    let unknown =
        tfcompile(out.path()).args(["check", "graph.pbtxt", "--shape", "rows="]).output().expect("the tool");
    assert!(text(&unknown).contains("--feed-constant rows=VALUE"), "{}", text(&unknown));
}
