//! Freezes the checkpoints of the oracle set.

use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tf::freeze::{FreezeOptions, freeze};
use tf::proto::GraphDef;
use tf::proto::attr_value::Value;
use tf::{Attributes, source};

fn options(folder: &Path, saver: bool) -> FreezeOptions {
    FreezeOptions {
        input_graph: Some(folder.join("graph.pb")),
        input_saver: saver.then(|| folder.join("graph.saver")),
        input_checkpoint: folder.join("graph.ckpt"),
        checkpoint_version: 1,
        output_node_names: "x_y_sum".to_owned(),
        clear_devices: true,
        ..FreezeOptions::default()
    }
}

/// Name, op, inputs and constant value of each node: what a frozen graph computes.
fn meaning(graph: &GraphDef) -> Vec<(String, String, Vec<String>, Option<shape::Literal>)> {
    let nodes = graph.node.iter().map(|node| {
        let attributes = Attributes::new(&node.name, &node.op, node.attr.clone());
        let value = (node.op == "Const").then(|| attributes.tensor("value").expect("a tensor"));
        (node.name.clone(), node.op.clone(), node.input.clone(), value)
    });
    nodes.collect()
}

#[test]
fn frozen_graphs_are_those_of_freeze_graph() {
    let Some(tests) = crate::shared::folder("tfcompile_tests") else { return };
    let cases = [
        ("tfadd_with_ckpt", false),
        ("tfadd_with_ckpt_saver", false),
        ("tfadd_with_ckpt_saver", true),
        ("tfadd_with_ckpt_v2", false),
        ("tfadd_with_ckpt_v2", true),
    ];
    for (name, saver) in cases {
        let folder = tests.join(name);
        let bytes = freeze(&options(&folder, saver)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let frozen = GraphDef::decode(bytes.as_slice()).expect("a GraphDef");
        let expected = source::read_graph_def(&folder.join("frozen.pb")).expect("a graph");
        assert_eq!(meaning(&frozen), meaning(&expected), "{name}");
        assert_eq!(freeze(&options(&folder, saver)).expect("again"), bytes, "{name}");
    }
}

#[test]
fn wrong_calls_are_refused() {
    let Some(tests) = crate::shared::folder("tfcompile_tests") else { return };
    let good = options(&tests.join("tfadd_with_ckpt"), false);
    let message = |options: FreezeOptions| freeze(&options).expect_err("wrong").to_string();
    let missing = PathBuf::from("/nonexistent");
    assert_eq!(
        message(FreezeOptions { input_checkpoint: missing.clone(), ..good.clone() }),
        "Input checkpoint '/nonexistent' doesn't exist!"
    );
    assert_eq!(
        message(FreezeOptions { input_graph: Some(missing), ..good.clone() }),
        "Input graph file '/nonexistent' does not exist!"
    );
    assert_eq!(
        message(FreezeOptions { output_node_names: String::new(), ..good.clone() }),
        "You need to supply the name of a node to --output_node_names."
    );
    assert_eq!(
        message(FreezeOptions { checkpoint_version: 3, ..good.clone() }),
        "Invalid checkpoint version (must be '1' or '2'): 3"
    );
    let frozen = tests.join("tfadd_with_ckpt/frozen.pb");
    assert!(
        message(FreezeOptions { input_graph: Some(frozen), ..good.clone() })
            .contains("cannot freeze a graph twice")
    );
    assert!(message(FreezeOptions { output_node_names: "nope".to_owned(), ..good.clone() }).contains("nope"));
    assert!(message(FreezeOptions { output_node_names: "Assign".to_owned(), ..good }).contains("'y_saved'"));
}

/// The inputs of a recorded case, by its flags.
fn recorded(folder: &Path) -> FreezeOptions {
    let mut options = FreezeOptions {
        checkpoint_version: 2,
        clear_devices: true,
        saved_model_tags: "serve".to_owned(),
        ..FreezeOptions::default()
    };
    for line in std::fs::read_to_string(folder.join("flags")).expect("flags").lines() {
        let (flag, value) = line.split_once('=').unwrap_or((line, "true"));
        match flag {
            "--input_graph" => options.input_graph = Some(folder.join(value)),
            "--input_saver" => options.input_saver = Some(folder.join(value)),
            "--input_meta_graph" => options.input_meta_graph = Some(folder.join(value)),
            "--input_saved_model_dir" => options.input_saved_model_dir = Some(folder.join(value)),
            "--saved_model_tags" => options.saved_model_tags = value.to_owned(),
            "--input_checkpoint" => options.input_checkpoint = folder.join(value),
            "--checkpoint_version" => options.checkpoint_version = value.parse().expect("a number"),
            "--output_node_names" => options.output_node_names = value.to_owned(),
            "--clear_devices" => options.clear_devices = value == "true",
            "--initializer_nodes" => options.initializer_nodes = value.to_owned(),
            "--variable_names_whitelist" => options.variable_names_whitelist = value.to_owned(),
            "--variable_names_denylist" => options.variable_names_denylist = value.to_owned(),
            "--input_binary" => {}
            other => panic!("{other}"),
        }
    }
    options
}

/// The numbers that the original gives to copies of functions differ from run to run.
fn without_numbers(mut graph: GraphDef) -> GraphDef {
    let renamed = |name: &str| match name.split_once("_frozen_") {
        Some((base, digits)) if digits.bytes().all(|b| b.is_ascii_digit()) => format!("{base}_frozen"),
        _ => name.to_owned(),
    };
    let functions = graph.library.iter_mut().flat_map(|library| &mut library.function);
    let mut bodies = Vec::new();
    for function in functions {
        let signature = function.signature.as_mut().expect("a signature");
        signature.name = renamed(&signature.name);
        bodies.push(&mut function.node_def);
    }
    for node in bodies.into_iter().flatten().chain(&mut graph.node) {
        for value in node.attr.values_mut().filter_map(|attr| attr.value.as_mut()) {
            match value {
                Value::Func(function) => function.name = renamed(&function.name),
                Value::List(list) => list.func.iter_mut().for_each(|f| f.name = renamed(&f.name)),
                _ => {}
            }
        }
    }
    graph
}

/// A graph node by node, functions by name. The original leaves empty attributes of arguments where
/// it looked for some.
fn parts(graph: GraphDef) -> BTreeMap<String, String> {
    let graph = without_numbers(graph);
    let functions = graph.library.into_iter().flat_map(|library| library.function).map(|mut function| {
        function.arg_attr.retain(|_, attributes| !attributes.attr.is_empty());
        function
    });
    let functions =
        functions.map(|f| (f.signature.as_ref().expect("a signature").name.clone(), format!("{f:#?}")));
    let nodes = graph.node.into_iter().enumerate();
    nodes.map(|(i, node)| (format!("{i:04}"), format!("{node:#?}"))).chain(functions).collect()
}

/// Panics if a node calls a function that the library does not have.
fn all_functions_exist(graph: &GraphDef) {
    let functions: Vec<_> = graph.library.iter().flat_map(|library| &library.function).collect();
    let names: BTreeSet<&str> =
        functions.iter().map(|f| f.signature.as_ref().expect("a signature").name.as_str()).collect();
    for node in functions.iter().flat_map(|f| &f.node_def).chain(&graph.node) {
        for value in node.attr.values().filter_map(|attr| attr.value.as_ref()) {
            let called = match value {
                Value::Func(function) => std::slice::from_ref(function),
                Value::List(list) => &list.func,
                _ => &[],
            };
            for function in called {
                assert!(names.contains(function.name.as_str()), "{} calls {}", node.name, function.name);
            }
        }
    }
}

/// Compares with the nodes and errors of `freeze_graph` that `data/make_freeze.py` recorded.
#[test]
fn freezing_is_what_freeze_graph_does() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/freeze");
    let mut folders: Vec<_> =
        std::fs::read_dir(&data).expect("data").map(|e| e.expect("an entry").path()).collect();
    folders.sort();
    assert!(folders.len() > 40);
    let mut failures = String::new();
    for folder in folders {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let result = freeze(&recorded(&folder));
        // Where the original fails for a reason of its own, the graph is frozen.
        let better = ["resource", "output_of_node"].contains(&name.as_str());
        match (std::fs::read_to_string(folder.join("error")), result) {
            // The original makes a graph that cannot be loaded: it assigns to a constant.
            (Err(_), Err(ours)) if name == "written" && ours.to_string().contains("node 'Assign'") => {}
            (Ok(error), Err(ours)) => {
                let message = error.split_once(": ").expect("kind and message").1.trim();
                // The list of available tags is worded differently.
                let message = message.split(". Please use").next().expect("a beginning");
                let message = message.replace(
                    "checkpoint 'model'",
                    &format!("checkpoint '{}'", folder.join("model").display()),
                );
                let place = format!("{}/", folder.display());
                let ours = ours.to_string().replace(&place, "");
                if !ours.contains(&message) {
                    failures.push_str(&format!("{name}: {ours}\n  instead of: {message}\n"));
                }
            }
            (Ok(_), Ok(_)) if better => {}
            (Ok(error), Ok(_)) => failures.push_str(&format!("{name}: frozen, instead of {error}")),
            (Err(_), Err(ours)) => failures.push_str(&format!("{name}: {ours}\n")),
            (Err(_), Ok(bytes)) => {
                // The original's graph calls functions by names that it has changed, and cannot be
                // loaded.
                let bodies_differ = name == "saved_v2";
                if ["reference", "reference_v1", "resource_saver", "shards", "saved_v1"]
                    .contains(&name.as_str())
                {
                    let expected = std::fs::read(folder.join("frozen.pb")).expect("readable");
                    assert_eq!(bytes, expected, "{name}: the same bytes, where attributes are sorted alike");
                }
                let ours = GraphDef::decode(bytes.as_slice()).expect("a GraphDef");
                all_functions_exist(&ours);
                let ours = parts(ours);
                let expected = parts(source::read_graph_def(&folder.join("frozen.pb")).expect("a graph"));
                let is_body = |key: &&String| !key.bytes().all(|byte| byte.is_ascii_digit());
                for key in ours
                    .keys()
                    .chain(expected.keys())
                    .filter(|key| !bodies_differ || !is_body(key))
                    .collect::<BTreeSet<_>>()
                {
                    let (ours, expected) = (ours.get(key), expected.get(key));
                    if ours != expected {
                        failures.push_str(&format!(
                            "{name} {key}: {}\n  instead of: {}\n",
                            ours.map_or("nothing", |t| t),
                            expected.map_or("nothing", |t| t)
                        ));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Every byte of a checkpoint is under a checksum or checked otherwise: a flipped bit is refused or
/// without effect.
#[test]
fn damaged_checkpoints_are_refused() {
    let Some(tests) = crate::shared::folder("tfcompile_tests") else { return };
    let folder = std::env::temp_dir().join(format!("tf-freeze-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let original = std::fs::read(tests.join("tfadd_with_ckpt/graph.ckpt")).expect("a checkpoint");
    let mut options = options(&tests.join("tfadd_with_ckpt"), false);
    let good = freeze(&options).expect("undamaged");
    options.input_checkpoint = folder.join("graph.ckpt");
    for at in 0..original.len() {
        let mut damaged = original.clone();
        damaged[at] ^= 0x41;
        std::fs::write(&options.input_checkpoint, &damaged).expect("written");
        if let Ok(bytes) = freeze(&options) {
            assert_eq!(bytes, good, "byte {at}");
        }
        std::fs::write(&options.input_checkpoint, &original[..at]).expect("written");
        freeze(&options).expect_err("cut off");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}
