//! Images of open sizes: resized, with transposed convolutions, and in blocks. The image is
//! `1 + 2 * row + column`.

use super::result;
use crate::support::{refuse, succeed, tfcompile};
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;

const IMAGES: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 1 } dim { size: -1 } dim { size: -1 } dim { size: 1 } } } } }
node { name: "shape" op: "Shape" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "begin" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } } }
node { name: "size" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 2 } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {  } int_val: 2 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {  } int_val: 1 } } } }
node { name: "three" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {  } int_val: 3 } } } }
node { name: "high_and_wide" op: "Slice" input: "shape" input: "begin" input: "size" attr { key: "T" value { type: DT_INT32 } } attr { key: "Index" value { type: DT_INT32 } } }
node { name: "twice" op: "Mul" input: "high_and_wide" input: "two" attr { key: "T" value { type: DT_INT32 } } }
node { name: "copied" op: "ResizeNearestNeighbor" input: "x" input: "twice" attr { key: "T" value { type: DT_FLOAT } } attr { key: "half_pixel_centers" value { b: true } } }
node { name: "between" op: "Sub" input: "twice" input: "one" attr { key: "T" value { type: DT_INT32 } } }
node { name: "smooth" op: "ResizeBilinear" input: "x" input: "between" attr { key: "T" value { type: DT_FLOAT } } attr { key: "align_corners" value { b: true } } }
node { name: "whole" op: "ConcatV2" input: "begin" input: "twice" input: "begin" input: "zero" attr { key: "N" value { i: 3 } } attr { key: "T" value { type: DT_INT32 } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {  } int_val: 0 } } } }
node { name: "filter" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 2 } dim { size: 1 } dim { size: 1 } } float_val: 1 float_val: 10 float_val: 100 float_val: 1000 } } } }
node { name: "transposed" op: "Conv2DBackpropInput" input: "whole" input: "filter" input: "x" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "strides" value { list { i: 1 i: 2 i: 2 i: 1 } } } attr { key: "padding" value { s: "SAME" } } }
node { name: "features" op: "SpaceToDepth" input: "transposed" attr { key: "T" value { type: DT_FLOAT } } attr { key: "block_size" value { i: 2 } } }
node { name: "pixels" op: "DepthToSpace" input: "features" attr { key: "T" value { type: DT_FLOAT } } attr { key: "block_size" value { i: 2 } } }
node { name: "blocks" op: "SpaceToDepth" input: "x" attr { key: "T" value { type: DT_FLOAT } } attr { key: "block_size" value { i: 2 } } }
node { name: "parts" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 1 int_val: 2 } } } }
node { name: "rows" op: "SplitV" input: "x" input: "parts" input: "one" attr { key: "T" value { type: DT_FLOAT } } attr { key: "num_split" value { i: 2 } } attr { key: "Tlen" value { type: DT_INT32 } } }
versions { producer: 1286 }
"#;

/// The image `1 + step * (2 * row + column)`, for numbers of `1 / step` in both directions.
fn image(high: i64, wide: i64, step: f32) -> Literal {
    let pixel = |k: i64| 1.0 + step * (2 * (k / wide) + k % wide) as f32;
    Literal::from_elements(&[1, high, wide, 1], &(0..high * wide).map(pixel).collect::<Vec<f32>>())
}

/// A command that runs a program for any size with an image.
fn run(place: &Path, fetch: &str, high: i64, wide: i64) -> std::process::Command {
    std::fs::write(place.join("g.pbtxt"), IMAGES).expect("writable");
    let feed = BTreeMap::from([("x".to_owned(), image(high, wide, 1.0))]);
    std::fs::write(place.join("in.npz"), npz::write(&feed).expect("small")).expect("writable");
    let mut tool = tfcompile(place);
    tool.args(["run", "g.pbtxt", "--dim=x.1=2..6", "--dim=x.2=1..5", "--feed=@in.npz", "--out=out.npz"]);
    tool.arg(format!("--fetch={fetch}"));
    tool
}

#[test]
fn resized_images_have_the_size_of_the_run() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    for (high, wide) in [(3, 2), (2, 1), (6, 5)] {
        succeed(&mut run(place, "smooth", high, wide));
        assert_eq!(result(place, "smooth"), image(2 * high - 1, 2 * wide - 1, 0.5));
        let each = |factors: [f32; 4]| {
            let pixel = |k: i64| {
                let (row, column) = (k / (2 * wide), k % (2 * wide));
                factors[(2 * (row % 2) + column % 2) as usize] * (1 + row / 2 * 2 + column / 2) as f32
            };
            let pixels: Vec<f32> = (0..4 * high * wide).map(pixel).collect();
            Literal::from_elements(&[1, 2 * high, 2 * wide, 1], &pixels)
        };
        succeed(&mut run(place, "copied", high, wide));
        assert_eq!(result(place, "copied"), each([1.0; 4]));
        let spread = each([1.0, 10.0, 100.0, 1000.0]);
        for fetch in ["transposed", "pixels"] {
            succeed(&mut run(place, fetch, high, wide));
            assert_eq!(result(place, fetch), spread, "{fetch}");
        }
    }
}

#[test]
fn sizes_that_do_not_fit_blocks_or_parts_fail() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    succeed(&mut run(place, "blocks", 4, 2));
    let features = Literal::from_elements(&[1, 2, 1, 4], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!(result(place, "blocks"), features);
    let said = refuse(&mut run(place, "blocks", 3, 2), place);
    assert!(said.contains("does not divide into blocks of 2"), "{said}");
    succeed(&mut run(place, "rows:1", 3, 2));
    assert_eq!(result(place, "rows_1"), Literal::from_elements(&[1, 2, 2, 1], &[3f32, 4.0, 5.0, 6.0]));
    let said = refuse(&mut run(place, "rows:1", 4, 2), place);
    assert!(said.contains("dimension 1 must have 3 elements") && said.contains("rows"), "{said}");
}
