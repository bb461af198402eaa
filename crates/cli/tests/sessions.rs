//! `run --jit`: sessions that run a small training step.

use crate::support::{refuse, succeed, tfcompile};
use npz::Archive;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

/// `w -= 0.5 * mean(w - x)` over the rows of `x`, from `w = [1, 2]`. The fetch is the sum of the
/// new `w`.
const STEP: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } dim { size: 2 } } } } }
node { name: "w" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "start" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 float_val: 2 } } } }
node { name: "w/Assign" op: "Assign" input: "w" input: "start" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "read" op: "Identity" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "sub" op: "Sub" input: "read" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "mean" op: "Mean" input: "sub" input: "axis" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "Tidx" value { type: DT_INT32 } } }
node { name: "rate" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.5 } } } }
node { name: "train" op: "ApplyGradientDescent" input: "w" input: "rate" input: "mean"
       attr { key: "T" value { type: DT_FLOAT } } }
node { name: "total" op: "Sum" input: "train" input: "axis" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "Tidx" value { type: DT_INT32 } } }
"#;

fn text_of(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn prepare(directory: &Path) {
    std::fs::write(directory.join("step.pbtxt"), STEP).expect("writable");
    // Batches of two rows: their means are [3, 6], then [1, 2].
    let x = Literal::from_elements(&[4, 2], &[2f32, 4.0, 4.0, 8.0, 0.0, 0.0, 2.0, 4.0]);
    let all = BTreeMap::from([("x".to_owned(), x)]);
    std::fs::write(directory.join("x.npz"), npz::write(&all).expect("arrays")).expect("writable");
}

#[test]
fn training_starts_at_the_initializers_and_uses_one_batch_per_step() {
    for jit in ["off", "on", "2"] {
        let out = tempfile::tempdir().expect("a directory");
        prepare(out.path());
        let mut run = tfcompile(out.path());
        run.args(["run", "step.pbtxt", "--fetch", "total", "--jit", jit, "--batches", "x.npz"]);
        let output = succeed(run.args(["--steps", "3", "--save", "w.npz", "--quiet"]));
        // [1, 2] -> [2, 4] -> [1.5, 3] -> [2.25, 4.5]
        let lines: Vec<String> = text_of(&output).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        for (line, total) in lines.iter().zip(["6", "4.5", "6.75"]) {
            assert!(line.ends_with(&format!(": {total}")), "{jit}: {lines:?}");
        }
        let saved = std::fs::read(out.path().join("w.npz")).expect("written");
        let mut saved = Archive::open(saved.into(), 1 << 20).expect("an archive");
        assert_eq!(saved.require("w").expect("the variable").to_vec::<f32>(), Some(vec![2.25, 4.5]));
    }
}

/// The same on the device that compiles everything, with a subsequent node that cannot be compiled.
#[test]
fn sessions_run_on_the_compiling_device() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    let print = r#"node { name: "told" op: "Print" input: "total" input: "total" attr { key: "T" value { type: DT_FLOAT } }
        attr { key: "U" value { list { type: DT_FLOAT } } } attr { key: "message" value { s: "the sum is " } } }"#;
    let placed = format!("{STEP}{print}").replace(" op:", " device: \"/device:XLA_CPU:0\" op:");
    std::fs::write(out.path().join("placed.pbtxt"), placed).expect("writable");
    std::fs::write(out.path().join("soft.pbtxt"), "allow_soft_placement: true").expect("writable");
    let command = |more: &[&str]| {
        let mut run = tfcompile(out.path());
        run.args(["run", "placed.pbtxt", "--jit", "off", "--batches", "x.npz", "--steps", "3"]).args(more);
        run
    };
    let output = succeed(&mut command(&["--fetch", "total", "--timeline", "t.json"]));
    let timeline = std::fs::read_to_string(out.path().join("t.json")).expect("written");
    assert!(timeline.contains("device:XLA_CPU:0 Compute"), "{timeline}");
    let totals = |output: &Output| {
        let text = text_of(output);
        let totals = text.lines().map(|line| line.rsplit(": ").next().expect("a sum").to_owned());
        totals.collect::<Vec<_>>()
    };
    assert_eq!(totals(&output), ["6", "4.5", "6.75"]);
    let message = refuse(&mut command(&["--fetch", "told"]), out.path());
    assert!(message.contains("operation told: op Print cannot run on"), "{message}");
    for soft in [&["--soft-placement"][..], &["--session-config", "soft.pbtxt"]] {
        let output = succeed(command(&["--fetch", "told"]).args(soft));
        assert_eq!(totals(&output), ["6", "4.5", "6.75"], "{soft:?}");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains("the sum is [6.75]"), "{log}");
    }
}

#[test]
fn configs_of_sessions_are_checked() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    std::fs::write(out.path().join("c.pbtxt"), "inter_op_parallelism_threads: -7").expect("writable");
    let command = |more: &[&str]| {
        let mut run = tfcompile(out.path());
        run.args(["run", "step.pbtxt", "--fetch", "total"]).args(more);
        run
    };
    let message = refuse(&mut command(&["--jit", "off", "--session-config", "c.pbtxt"]), out.path());
    assert!(message.contains("inter_op_parallelism_threads: invalid number of threads -7"), "{message}");
    let message = refuse(&mut command(&["--session-config", "c.pbtxt"]), out.path());
    assert!(message.contains("inter_op_parallelism_threads: invalid number of threads -7"), "{message}");
    let message = refuse(&mut command(&["--batches", "x.npz"]), out.path());
    assert!(message.contains("--jit"), "{message}");
    std::fs::write(out.path().join("c.pbtxt"), "inter_op_parallelism_threads: 2 log_device_placement: true")
        .expect("writable");
    succeed(&mut command(&["--jit", "off", "--session-config", "c.pbtxt", "--random", "1"]));
}

#[test]
fn a_configs_level_holds_for_cpus_where_config_or_flags_say_so() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    let launches = |config: &str, flags: &str| {
        let text = format!("graph_options {{ optimizer_options {{ {config} }} }}");
        std::fs::write(out.path().join("c.pbtxt"), text).expect("writable");
        let mut run = tfcompile(out.path());
        run.args(["run", "step.pbtxt", "--fetch", "total", "--batches", "x.npz", "--steps", "2"]);
        run.args(["--session-config", "c.pbtxt", "--timeline", "t.json"]);
        let flags = format!("--tf_xla_min_cluster_size=1 {flags}");
        let output = succeed(run.env("TF_XLA_FLAGS", flags));
        assert!(text_of(&output).ends_with(": 4.5\n"), "{}", text_of(&output));
        let warning = String::from_utf8(output.stderr).expect("UTF-8").contains("Not using XLA:CPU");
        let timeline = std::fs::read_to_string(out.path().join("t.json")).expect("written");
        (timeline.contains(r#""op": "_XlaLaunch""#), warning)
    };
    assert_eq!(launches("", ""), (false, false));
    assert_eq!(launches("global_jit_level: ON_1", ""), (false, true), "the level alone is for other devices");
    assert_eq!(launches("global_jit_level: ON_1 cpu_global_jit: true", ""), (true, false));
    assert_eq!(launches("global_jit_level: ON_2", "--tf_xla_cpu_global_jit"), (true, false));
    assert_eq!(launches("global_jit_level: OFF", "--tf_xla_cpu_global_jit"), (false, false));
    assert_eq!(launches("", "--tf_xla_cpu_global_jit --tf_xla_auto_jit=2"), (true, false));
    let mut both = tfcompile(out.path());
    both.args(["run", "step.pbtxt", "--fetch", "total", "--jit", "off", "--session-config", "c2.pbtxt"]);
    std::fs::write(
        out.path().join("c2.pbtxt"),
        "graph_options { optimizer_options { global_jit_level: ON_1 } }",
    )
    .expect("writable");
    let message = refuse(&mut both, out.path());
    assert!(message.contains("--jit=off disables it"), "{message}");
}

#[test]
fn a_step_is_traced_and_its_timeline_written() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    let command = |more: &[&str]| {
        let mut run = tfcompile(out.path());
        run.args(["run", "step.pbtxt", "--fetch", "total", "--batches", "x.npz", "--quiet", "--steps", "3"]);
        run.args(more);
        run
    };
    let file = |name: &str| std::fs::read(out.path().join(name)).expect("written");
    succeed(&mut command(&[
        "--jit",
        "off",
        "--trace",
        "FULL_TRACE",
        "--timeline",
        "t.json",
        "--show-memory",
    ]));
    let stats =
        tf::source::parse_run_metadata(file("run_metadata.pb").into(), "run_metadata.pb").expect("binary");
    let text = tf::source::parse_run_metadata(file("run_metadata.pbtxt").into(), "run_metadata.pbtxt")
        .expect("text");
    assert_eq!(stats, text);
    let nodes = &stats.step_stats.as_ref().expect("stats").dev_stats[0].node_stats;
    let train = nodes.iter().find(|node| node.node_name == "train").expect("the update");
    assert_eq!(train.timeline_label, "train = ApplyGradientDescent(w, rate, mean)");
    let events = |name: &str| -> Vec<serde_json::Value> {
        let trace: serde_json::Value = serde_json::from_slice(&file(name)).expect("JSON");
        trace["traceEvents"].as_array().expect("a list").clone()
    };
    let bars =
        |name: &str, op: &str| events(name).iter().filter(|e| e["ph"] == "X" && e["name"] == op).count();
    assert_eq!((bars("t.json", "Sub"), bars("t.json", "_XlaLaunch")), (1, 0));
    assert!(
        events("t.json").iter().any(|e| e["ph"] == "C" && e["name"] == "cpu"),
        "memory is part of the timeline"
    );
    // A cluster is one bar, and metadata is only written on request.
    std::fs::remove_file(out.path().join("run_metadata.pb")).expect("exists");
    let launches = ["--jit", "2", "--timeline", "launch.json", "--trace-step", "1"];
    let mut clustered = command(&launches);
    succeed(clustered.env("TF_XLA_FLAGS", "--tf_xla_min_cluster_size=1"));
    assert_eq!((bars("launch.json", "Sub"), bars("launch.json", "_XlaLaunch") > 0), (0, true));
    assert!(!out.path().join("run_metadata.pb").exists());
    let message =
        refuse(&mut command(&["--jit", "off", "--timeline", "t2.json", "--trace-step", "3"]), out.path());
    assert!(message.contains("--trace-step 3: expected a step from 0 to 2"), "{message}");
    let message = refuse(&mut command(&["--jit", "off", "--trace-step", "1"]), out.path());
    assert!(message.contains("--trace-step 1") && message.contains("--timeline FILE"), "{message}");
}
