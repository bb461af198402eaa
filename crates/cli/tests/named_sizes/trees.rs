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
    let mut lists: BTreeMap<[&str; 3], Vec<String>> = BTreeMap::new();
    let mut add = |name: &'static str, ty: &'static str, value: String| {
        let field = if ty == "DT_FLOAT" { "float_val" } else { "int_val" };
        lists.entry([name, ty, field]).or_default().push(value);
    };
    for tree in 0..trees {
        let root = tree * count;
        add("roots", "DT_INT32", root.to_string());
        for k in 0..count {
            let is_leaf = k >= inner;
            let child = |other: usize| (root + if is_leaf { k } else { other }).to_string();
            add("features", "DT_INT32", if is_leaf { 0 } else { (tree + k) % 3 }.to_string());
            add("modes", "DT_UINT8", if is_leaf { 255 } else { 0 }.to_string());
            add("thresholds", "DT_FLOAT", number(root + k).to_string());
            add("tracks", "DT_UINT8", "0".to_owned());
            add("yes", "DT_INT32", child(2 * k + 1));
            add("no", "DT_INT32", child(2 * k + 2));
            if is_leaf {
                add("leaves", "DT_INT32", (root + k).to_string());
                add("targets", "DT_INT32", "0".to_owned());
                add("weights", "DT_FLOAT", number(7 * k + tree).to_string());
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
    for ([name, ty, field], values) in lists {
        let (size, separator) = (values.len(), format!(" {field}: "));
        let values = values.join(&separator);
        writeln!(
            text,
            "       attr {{ key: \"{name}\" value {{ tensor {{ dtype: {ty} tensor_shape {{ dim {{ size: {size} }} }} {field}: \
             {values} }} }} }}"
        )
        .expect("text");
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
