//! Ensembles of trees for any number of rows, next to ONNX Runtime.

use super::result;
use crate::support::{succeed, tfcompile};
use shape::Literal;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Thresholds, weights, and features.
fn number(k: usize) -> f32 {
    ((k * 7919 % 101) as f32 - 50.0) / 32.0
}

/// A graph of complete trees of three features, which are made of [`number`].
fn graph(trees: usize, depth: u32) -> String {
    let (count, inner) = (2usize.pow(depth + 1) - 1, 2usize.pow(depth) - 1);
    let mut lists: BTreeMap<&str, String> = BTreeMap::new();
    for tree in 0..trees {
        for k in 0..count {
            let is_leaf = k >= inner;
            let mut add = |name: &'static str, text: String| {
                write!(lists.entry(name).or_default(), " {text}").expect("text");
            };
            let child = |number: usize| format!("i: {}", if is_leaf { 0 } else { number });
            add("nodes_treeids", format!("i: {tree}"));
            add("nodes_nodeids", format!("i: {k}"));
            add("nodes_featureids", child((tree + k) % 3));
            add("nodes_modes", format!("s: \"{}\"", if is_leaf { "LEAF" } else { "BRANCH_LEQ" }));
            add("nodes_values", format!("f: {}", number(tree * count + k)));
            add("nodes_truenodeids", child(2 * k + 1));
            add("nodes_falsenodeids", child(2 * k + 2));
            if is_leaf {
                add("target_treeids", format!("i: {tree}"));
                add("target_nodeids", format!("i: {k}"));
                add("target_ids", "i: 0".to_owned());
                add("target_weights", format!("f: {}", number(7 * k + tree)));
            }
        }
    }
    let mut text = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
node { name: "y" op: "OnnxMlTreeEnsembleRegressor" input: "x"
       attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
       attr { key: "operands" value { list { i: 0 } } } attr { key: "n_targets" value { i: 1 } }
"#
    .to_owned();
    for (name, list) in lists {
        writeln!(text, "       attr {{ key: \"{name}\" value {{ list {{{list} }} }} }}").expect("text");
    }
    text + "}\nversions { producer: 1286 }\n"
}

#[test]
fn batches_of_trees_are_computed_in_pieces() {
    // From ONNX Runtime, for 13 rows: trees that make all tests at once, and trees that are walked.
    let shallow = [
        0.6875f32, 0.6875, -2.78125, -1.28125, -3.78125, -1.125, -0.96875, -0.96875, -0.96875, -0.96875,
        -0.96875, 0.6875, 0.6875,
    ];
    let deep = [
        -0.71875f32,
        -0.71875,
        0.34375,
        1.34375,
        0.84375,
        0.84375,
        0.84375,
        -0.65625,
        -0.65625,
        1.625,
        1.625,
        -0.71875,
        -0.71875,
    ];
    for (trees, depth, expected) in [(4, 3, shallow), (2, 5, deep)] {
        let place = tempfile::tempdir().expect("a directory");
        std::fs::write(place.path().join("g.pbtxt"), graph(trees, depth)).expect("writable");
        // One row and the smallest form for many rows, pieces of both, and the largest batch.
        for rows in [1usize, 3, 8, 13] {
            let x: Vec<f32> = (0..3 * rows).map(|k| number(5 * k + 2)).collect();
            let feed = BTreeMap::from([("x".to_owned(), Literal::from_elements(&[rows as i64, 3], &x))]);
            std::fs::write(place.path().join("in.npz"), npz::write(&feed).expect("small")).expect("writable");
            let mut tool = tfcompile(place.path());
            tool.args(["run", "g.pbtxt", "-v", "--dim=batch=1..13", "--feed=@in.npz", "--out=out.npz"]);
            let output = succeed(&mut tool);
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8(said).expect("UTF-8");
            assert!(said.contains("sizes of batch that may get code: 1, 2, 4, 8"), "{said}");
            let wanted = Literal::from_elements(&[rows as i64, 1], &expected[..rows]);
            assert_eq!(result(place.path(), "y"), wanted, "{trees} trees, {rows} rows");
        }
    }
}
