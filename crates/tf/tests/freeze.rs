//! Freezes the checkpoints of the oracle set.

mod shared;

use prost::Message;
use std::path::{Path, PathBuf};
use tf::freeze::{FreezeOptions, freeze};
use tf::proto::GraphDef;
use tf::{Attributes, source};

fn options(folder: &Path, saver: bool) -> FreezeOptions {
    FreezeOptions {
        input_graph: folder.join("graph.pb"),
        input_saver: saver.then(|| folder.join("graph.saver")),
        input_checkpoint: folder.join("graph.ckpt"),
        checkpoint_version: 1,
        output_node_names: "x_y_sum".to_owned(),
        clear_devices: true,
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
    let Some(tests) = shared::folder("tfcompile_tests") else { return };
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
    let Some(tests) = shared::folder("tfcompile_tests") else { return };
    let good = options(&tests.join("tfadd_with_ckpt"), false);
    let message = |options: FreezeOptions| freeze(&options).expect_err("wrong").to_string();
    let missing = PathBuf::from("/nonexistent");
    assert_eq!(
        message(FreezeOptions { input_checkpoint: missing.clone(), ..good.clone() }),
        "Input checkpoint '/nonexistent' doesn't exist!"
    );
    assert_eq!(
        message(FreezeOptions { input_graph: missing, ..good.clone() }),
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
        message(FreezeOptions { input_graph: frozen, ..good.clone() })
            .contains("cannot freeze a graph twice")
    );
    assert!(message(FreezeOptions { output_node_names: "nope".to_owned(), ..good.clone() }).contains("nope"));
    assert!(message(FreezeOptions { output_node_names: "Assign".to_owned(), ..good }).contains("'y_saved'"));
}

/// Every byte of a checkpoint is under a checksum or checked otherwise: a flipped bit is refused or without effect.
#[test]
fn damaged_checkpoints_are_refused() {
    let Some(tests) = shared::folder("tfcompile_tests") else { return };
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
