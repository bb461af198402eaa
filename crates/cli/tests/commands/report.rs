//! `tfcompile report`: its page, JSON, differences, budgets, and messages.

use crate::support::{refuse, root, succeed, tfcompile};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A directory with relu(x w + b) for x of type f32[2,4] and w of f32[4,3].
fn layer() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["layer.pbtxt", "layer.config.pbtxt"] {
        let from = root().join("examples/builds").join(name);
        std::fs::copy(from, directory.path().join(name)).expect("copied");
    }
    directory
}

/// A report on the layer, without measured times.
fn report(directory: &Path) -> Command {
    let mut command = tfcompile(directory);
    command.args(["report", "layer.pbtxt", "--config=layer.config.pbtxt", "--no-time", "-q"]);
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn write(directory: &Path, name: &str, text: &str) {
    std::fs::write(directory.join(name), text).expect("written");
}

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).expect("readable")
}

#[test]
fn the_json_has_the_figures_of_the_layer() {
    let directory = layer();
    let found = json(&succeed(report(directory.path()).arg("--json")));
    assert_eq!(found["schema"], "tfcompile-report");
    assert_eq!((&found["name"], &found["kind"]), (&"layer.pbtxt".into(), &"model".into()));
    // 2 x 4 and 2 x 3 numbers of four bytes.
    assert_eq!((&found["sizes"]["feeds"], &found["sizes"]["results"]), (&32.into(), &24.into()));
    assert_eq!(found["time"]["source"], "modeled");
    let layers = found["layers"].as_array().expect("layers");
    assert_eq!(layers.len(), 1, "{found}");
    assert_eq!((&layers[0]["node"], &layers[0]["kind"]), (&"product".into(), &"dot".into()));
    // For each of 6 results, 4 products and sums, an addition, and a comparison.
    assert_eq!((&layers[0]["flops"], &layers[0]["runs"]), (&60.into(), &1.into()));
    assert_eq!(layers[0]["precision"], "f32");
    assert!(layers[0]["weight_bytes"].as_u64().is_some_and(|bytes| bytes >= 4 * (4 * 3 + 3)));
    assert!(!directory.path().join("layer.report.html").exists(), "only JSON was requested");
}

#[test]
fn a_layer_says_what_chose_its_strategy() {
    let directory = layer();
    let found = json(&succeed(report(directory.path()).arg("--json")));
    let dot = &found["layers"][0];
    assert!(dot["candidates"].as_array().is_some_and(|all| all.len() > 1), "{dot}");
    assert_eq!(dot["costs"], serde_json::json!([]));
    let reason = dot["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("rules without a cost; "), "{reason}");
    assert!(reason.contains("; right: constants are packed at compile time;"), "{reason}");

    let convolution = "HloModule m\n\nENTRY main {\n  x = f32[1,9,9,16] parameter(0)\n  \
        k = f32[3,3,16,32] parameter(1)\n  ROOT y = f32[1,9,9,32] convolution(x, k), \
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n}\n";
    write(directory.path(), "convolution.hlo", convolution);
    let mut command = tfcompile(directory.path());
    command.args(["report", "convolution.hlo", "--precise", "--no-time", "-q", "--json"]);
    let found = json(&succeed(&mut command));
    let layer = &found["layers"][0];
    let costs = layer["costs"].as_array().expect("costs");
    let names: Vec<&Value> = costs.iter().map(|cost| &cost["candidate"]).collect();
    let candidates: Vec<&Value> = layer["candidates"].as_array().expect("candidates").iter().collect();
    assert_eq!(names, candidates, "each candidate has a cost");
    assert!(costs.iter().all(|cost| cost["unit"] == "cycles per group"), "{layer}");
    let cost = |cost: &Value| cost["cost"].as_f64().expect("a number");
    assert!(costs.iter().all(|other| cost(&costs[0]) <= cost(other)), "{layer}");
    let reason = layer["reason"].as_str().expect("a reason");
    assert!(reason.contains("pixels: the tile takes the fewest cycles per group;"), "{reason}");
}

#[test]
fn the_page_is_one_file_that_loads_nothing() {
    let directory = layer();
    let output = succeed(report(directory.path()).args(["-o", "page.html"]));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("wrote page.html\n"));
    let page = read(directory.path(), "page.html");
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(page.contains("product") && page.contains("layer.pbtxt"));
    for loads in ["<link", "src=\"http", "@import", "fetch("] {
        assert!(!page.contains(loads), "the page has {loads}");
    }
    succeed(&mut report(directory.path()));
    assert!(directory.path().join("layer.report.html").exists(), "the default name");
}

#[test]
fn a_difference_names_what_changed() {
    let directory = layer();
    let old = succeed(report(directory.path()).arg("--json"));
    std::fs::write(directory.path().join("old.json"), old.stdout).expect("written");
    let changes = |new: &str| {
        write(directory.path(), "layer.pbtxt", new);
        json(&succeed(report(directory.path()).args(["--diff=old.json", "--json"])))
    };
    let text = read(directory.path(), "layer.pbtxt");
    let same = changes(&text);
    assert_eq!(same["layers"].as_array().map(Vec::len), Some(1));
    assert_eq!(same["layers"][0]["changes"], serde_json::json!([]));
    assert!(same["figures"].as_array().is_some_and(|all| all.iter().all(|one| one["old"] == one["new"])));
    // A layer of another name takes the place of the old one.
    let renamed = changes(&text.replace("\"product\"", "\"scores\""));
    let named: Vec<(&Value, &Value)> = renamed["layers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|layer| (&layer["name"], &layer["changes"][0]))
        .collect();
    assert_eq!(named, [(&"scores".into(), &"added".into()), (&"product".into(), &"removed".into())]);
}

#[test]
fn a_difference_names_the_nodes_that_are_fused_differently() {
    let directory = layer();
    // A node that is a result ends the kernel that computes it.
    let config = read(directory.path(), "layer.config.pbtxt");
    write(
        directory.path(),
        "both.config.pbtxt",
        &format!("{config}fetch {{ id {{ node_name: \"sum\" }} }}\n"),
    );
    let of_config = |config: &str, more: &[&str]| {
        let config = format!("--config={config}");
        let mut command = tfcompile(directory.path());
        let fixed = ["report", "layer.pbtxt", &config, "--no-time", "-q", "--json"];
        succeed(command.args(fixed).args(more))
    };
    let one = of_config("layer.config.pbtxt", &[]);
    let both = of_config("both.config.pbtxt", &[]);
    let mut nodes: Vec<String> =
        serde_json::from_value(json(&one)["layers"][0]["nodes"].clone()).expect("a list of names");
    assert_eq!(nodes[0], "product", "the main node comes first");
    nodes.sort_unstable();
    assert_eq!(nodes, ["product", "sum", "y"]);
    std::fs::write(directory.path().join("one.json"), one.stdout).expect("written");
    std::fs::write(directory.path().join("both.json"), both.stdout).expect("written");
    let layers = |output: &Output| {
        let layers = json(output)["layers"].as_array().cloned().unwrap_or_default();
        let part = |layer: &Value, key: &str| layer[key].clone();
        let keys = ["name", "fused_with", "split_from", "part_of"];
        layers.iter().map(|layer| keys.map(|key| part(layer, key))).collect::<Vec<_>>()
    };
    let split = of_config("both.config.pbtxt", &["--diff=one.json"]);
    let expected = serde_json::json!([["product", [], ["y"], null], ["y", [], [], "product"]]);
    assert_eq!(serde_json::json!(layers(&split)), expected);
    let fused = of_config("layer.config.pbtxt", &["--diff=both.json"]);
    let expected = serde_json::json!([["product", ["y"], [], null], ["y", [], [], "product"]]);
    assert_eq!(serde_json::json!(layers(&fused)), expected);
    let text = succeed(report(directory.path()).args(["--diff=both.json"])).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("fused with y\n"), "{text}");
}

#[test]
fn a_budget_that_holds_passes_and_a_broken_one_names_its_line() {
    let directory = layer();
    // Feeds and results alone have 56 bytes.
    write(directory.path(), "held.toml", "size = \"1 MB\"\nram = \"1 MB\"\n\n[error]\ny = 1e-5\n");
    succeed(report(directory.path()).args(["--budget=held.toml", "--junit=held.xml", "--github"]));
    let held = read(directory.path(), "held.xml");
    assert!(held.contains("<testsuites tests=\"3\" failures=\"0\">"), "{held}");

    write(directory.path(), "broken.toml", "size = \"1 MB\"\n# Too little.\nram = \"55 B\"\n");
    let arguments = ["--budget=broken.toml", "--junit=broken.xml", "--github", "-o", "broken.html"];
    let output = report(directory.path()).args(arguments).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    let (printed, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(told.starts_with("INVALID ARGUMENTS: broken.toml:3: ram is "), "{told}");
    assert!(told.contains("over the budget of 55 B"), "{told}");
    assert_eq!(printed.matches("::error ").count(), 1, "{printed}");
    assert!(printed.contains("::error file=broken.toml,line=3,title=budget ram::ram is "), "{printed}");
    let junit = read(directory.path(), "broken.xml");
    assert!(junit.contains("<testsuites tests=\"2\" failures=\"1\">"), "{junit}");
    assert_eq!(junit.matches("<failure ").count(), 1);
    assert!(directory.path().join("broken.html").exists(), "the page is written anyway");
}

#[test]
fn accuracy_compares_layers_and_results() {
    let directory = layer();
    let plain = json(&succeed(report(directory.path()).arg("--json")));
    assert_eq!((&plain["results"], &plain["layers"][0]["accuracy"]), (&serde_json::json!([]), &Value::Null));
    let found = json(&succeed(report(directory.path()).args(["--accuracy", "--json"])));
    let results = found["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "{found}");
    assert_eq!(results[0]["name"], "y");
    assert!(results[0]["relative"].as_f64().is_some_and(|error| error < 1e-5));
    assert!(results[0]["magnitude"].as_f64().is_some_and(|largest| largest > 0.0));
    let share = found["layers"][0]["accuracy"]["share_of_limit"].as_f64();
    assert!(share.is_some_and(|share| (0.0..1.0).contains(&share)), "{found}");
}

#[test]
fn a_compiled_file_has_sizes_only() {
    let directory = layer();
    let flags = ["build", "layer.pbtxt", "--config=layer.config.pbtxt", "--name=layer", "-q", "-o", "out"];
    succeed(tfcompile(directory.path()).args(flags));
    let object = |command: &mut Command| json(&succeed(command.args(["report", "out/layer.o", "--json"])));
    let found = object(&mut tfcompile(directory.path()));
    assert_eq!((&found["kind"], &found["time"]), (&"object".into(), &Value::Null));
    assert_eq!((&found["sizes"]["feeds"], &found["sizes"]["results"]), (&32.into(), &24.into()));
    assert!(found["missing"].as_array().is_some_and(|missing| !missing.is_empty()));
    // Errors need the model.
    write(directory.path(), "errors.toml", "[error]\ny = 1e-5\n");
    let mut command = tfcompile(directory.path());
    command.args(["report", "out/layer.o", "--json", "--budget=errors.toml"]);
    let message = refuse(&mut command, directory.path());
    assert!(message.contains("errors.toml:2: error of 'y': errors are measured on models"), "{message}");
}

#[test]
fn wrong_input_is_refused_and_nothing_is_written() {
    let directory = layer();
    write(directory.path(), "unknown.toml", "ram = \"1 MB\"\nspeed = \"1 MB\"\n");
    write(directory.path(), "twice.toml", "ram = \"1 MB\"\nram = \"2 MB\"\n");
    write(directory.path(), "empty.toml", "# Nothing.\n");
    write(directory.path(), "not.json", "{\"schema\": \"tfcompile-report\", \"version\": 1}");
    write(directory.path(), "not.o", "no object");
    let wrong = [
        ("--budget=unknown.toml", "unknown.toml:2: unknown key 'speed'; expected latency, size, code,"),
        ("--budget=twice.toml", "twice.toml:2: duplicate key 'ram'"),
        ("--budget=empty.toml", "empty.toml: a budget without limits"),
        ("--budget=missing.toml", "cannot open 'missing.toml': no such file or directory"),
        ("--diff=not.json", "not.json: damaged report: missing field `name`"),
        ("--diff=not.o", "not.o: not an object file"),
        ("--seconds=0", "--seconds 0: expected a number from 0.001 to 3600"),
        // Flags of a budget need one.
        ("--github", "--budget <FILE.toml>"),
        ("--junit=broken.xml", "--budget <FILE.toml>"),
    ];
    for (flag, expected) in wrong {
        let message = refuse(report(directory.path()).arg(flag), directory.path());
        assert!(message.contains(expected), "{flag}: {message}");
    }
}

#[test]
fn a_report_on_a_range_of_sizes_says_of_which_code_it_is() {
    let directory = layer();
    let report = |flags: &[&str]| {
        let mut command = tfcompile(directory.path());
        command.args(["report", "layer.pbtxt", "--shape=x=?,4", "--no-time", "-q", "--json"]).args(flags);
        command
    };
    let notes = |flags: &[&str]| json(&succeed(&mut report(flags)))["missing"].to_string();
    let range = notes(&["--dim=batch=1..8"]);
    assert!(
        range.contains("is a range: a report is about the code of the largest size; --dim NAME=N"),
        "{range}"
    );
    assert!(!notes(&["--dim=batch=8"]).contains("largest size"));
    let message = refuse(&mut report(&["--dim=batch=1..8", "--sizes=batch=4"]), directory.path());
    assert!(message.contains("--sizes batch=4 has no effect, remove it: a report is about"), "{message}");
}
