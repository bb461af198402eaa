//! Reads and prepares every graph of the oracle set.

use std::path::{Path, PathBuf};
use tf::source;

/// Every folder below `root` that holds a graph and a config, by path.
fn entries(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut work = vec![root.to_owned()];
    while let Some(folder) = work.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                work.push(path);
            }
        }
        if folder.join("graph.pb").exists() && folder.join("config.pbtxt").exists() {
            found.push(folder);
        }
    }
    found.sort();
    found
}

#[test]
fn binary_and_text_of_every_graph_are_equal() {
    let Some(oracle) = crate::shared::folder("") else { return };
    let entries = entries(&oracle);
    assert!(entries.len() > 60, "{} entries", entries.len());
    for folder in entries {
        let binary = source::read_graph_def(&folder.join("graph.pb")).expect("binary");
        let text = source::read_graph_def(&folder.join("graph.pbtxt")).expect("text");
        assert!(binary == text, "{}", folder.display());
    }
}

#[test]
fn every_graph_prepares() {
    let Some(oracle) = crate::shared::folder("") else { return };
    let mut loops = 0;
    for folder in entries(&oracle) {
        if folder.parent().is_some_and(|p| p.ends_with("errors")) {
            continue;
        }
        let name = folder.strip_prefix(&oracle).expect("below").display().to_string();
        for config in ["config.pbtxt", "config_named.pbtxt"] {
            let path = folder.join(config);
            if !path.exists() {
                continue;
            }
            let graph_path = match folder.join("frozen.pb") {
                frozen if frozen.exists() => frozen,
                _ => folder.join("graph.pb"),
            };
            let graph = source::read_graph_def(&graph_path).expect("a graph");
            loops += usize::from(graph.node.iter().any(|n| n.op == "Enter"));
            let program = tf::prepare(graph, source::read_config(&path).expect("a config"));
            crate::shared::well_formed::check(&program.unwrap_or_else(|e| panic!("{name}: {e}")), &name);
        }
    }
    assert!(loops >= 10, "{loops} graphs with loops");
}

/// Words that the message about each wrong input must contain.
const CULPRITS: [(&str, &str); 21] = [
    ("bad_cpp_feed_name", "illegal char: feed name: 'a-b', given to 'x:0'"),
    ("cycle", "2 nodes in a cycle: 'b' -> 'a'"),
    ("duplicate_feed", "feed 'x:0' is listed twice"),
    ("duplicate_feed_name", "duplicate feed name: a"),
    ("duplicate_node", "two nodes have the name 'x'"),
    ("empty_feed_node", "TensorId node_name must be non-empty: feed number 2"),
    ("empty_fetch_node", "TensorId node_name must be non-empty: fetch number 0"),
    ("feed_type_mismatch", "feed 'x:0' has type int32 in the config"),
    ("missing_input", "'gone"),
    ("negative_index", "TensorId output_index must be positive: fetch 'sum' has -1"),
    ("no_fetch", "fetches must be specified"),
    ("no_such_feed", "Can't find feed node: nosuch:0"),
    ("no_such_fetch", "While pruning graph, node nosuch needed but not found in the graph"),
    ("no_such_output", "Invalid fetch id: sum:3, output index should be < 1"),
    ("no_such_variable", "Variable \"w\""),
    ("placeholder_not_fed", "'y' (needed by 'sum')"),
    ("type_mismatch", "Input 1 of node sum was passed int32 from y:0 incompatible with expected float."),
    ("unknown_dimension", "Shape [?] is not fully defined: it is the shape of feed 'x:0'"),
    ("unknown_op_needed", "op 'SomeUnknownOp' (node '"),
    ("variable_not_in_config", "Variable: v not configured"),
    ("variable_shape_mismatch", "variable 'v' has shape [3] in the config, but [2] in the graph"),
];

#[test]
fn wrong_graphs_and_configs_are_refused_with_the_culprits_name() {
    let Some(oracle) = crate::shared::folder("") else { return };
    for (name, culprit) in CULPRITS {
        let folder = oracle.join("tfcompile_tests/errors").join(name);
        let graph = source::read_graph_def(&folder.join("graph.pb")).expect("a graph");
        let config = source::read_config(&folder.join("config.pbtxt")).expect("a config");
        let error = tf::prepare(graph, config).expect_err(name);
        assert!(error.message().contains(culprit), "{name}: {error}");
    }
}
