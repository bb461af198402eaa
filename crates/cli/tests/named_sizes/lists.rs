//! Lists and blocks whose number follows from a size that callers choose.

use super::result;
use crate::support::{refuse, succeed, tfcompile};
use shape::Literal;
use std::collections::BTreeMap;

/// A loop over the rows of `x`, which writes their squares to a list in reverse order; and blocks
/// of pixels in the batch, and back.
const LOOP: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "row" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 2 } } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {  } int_val: 0 } } } }
node { name: "first" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } } }
node { name: "second" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } } }
node { name: "shape" op: "Shape" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "size" op: "StridedSlice" input: "shape" input: "first" input: "second" input: "second" attr { key: "T" value { type: DT_INT32 } } attr { key: "Index" value { type: DT_INT32 } } attr { key: "shrink_axis_mask" value { i: 1 } } }
node { name: "rows" op: "TensorListFromTensor" input: "x" input: "row" attr { key: "element_dtype" value { type: DT_FLOAT } } attr { key: "shape_type" value { type: DT_INT32 } } }
node { name: "squares" op: "TensorListReserve" input: "row" input: "size" attr { key: "element_dtype" value { type: DT_FLOAT } } attr { key: "shape_type" value { type: DT_INT32 } } }
node { name: "loop" op: "While" input: "zero" input: "size" input: "rows" input: "squares"
       attr { key: "T" value { list { type: DT_INT32 type: DT_INT32 type: DT_VARIANT type: DT_VARIANT } } }
       attr { key: "cond" value { func { name: "goes_on" } } } attr { key: "body" value { func { name: "step" } } } }
node { name: "y" op: "TensorListStack" input: "loop:3" input: "row" attr { key: "element_dtype" value { type: DT_FLOAT } } }
node { name: "sum" op: "AddV2" input: "y" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "sizes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 4 } } int_val: -1 int_val: 2 int_val: 1 int_val: 1 } } } }
node { name: "blocks" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 2 int_val: 1 } } } }
node { name: "none" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } dim { size: 2 } } int_val: 0 int_val: 0 int_val: 0 int_val: 0 } } } }
node { name: "image" op: "Reshape" input: "x" input: "sizes" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "batch_of_blocks" op: "SpaceToBatchND" input: "image" input: "blocks" input: "none" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "ten" op: "Exp" input: "batch_of_blocks" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "image_of_blocks" op: "BatchToSpaceND" input: "ten" input: "blocks" input: "none" attr { key: "T" value { type: DT_FLOAT } } }
library {
 function { signature { name: "goes_on" input_arg { name: "i" type: DT_INT32 } input_arg { name: "n" type: DT_INT32 } input_arg { name: "a" type: DT_VARIANT } input_arg { name: "b" type: DT_VARIANT } output_arg { name: "go" type: DT_BOOL } }
  node_def { name: "less" op: "Less" input: "i" input: "n" attr { key: "T" value { type: DT_INT32 } } }
  ret { key: "go" value: "less:z:0" } }
 function { signature { name: "step" input_arg { name: "i" type: DT_INT32 } input_arg { name: "n" type: DT_INT32 } input_arg { name: "a" type: DT_VARIANT } input_arg { name: "b" type: DT_VARIANT }
                        output_arg { name: "i_out" type: DT_INT32 } output_arg { name: "n_out" type: DT_INT32 } output_arg { name: "a_out" type: DT_VARIANT } output_arg { name: "b_out" type: DT_VARIANT } }
  node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {  } int_val: 1 } } } }
  node_def { name: "row" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 2 } } } }
  node_def { name: "item" op: "TensorListGetItem" input: "a" input: "i" input: "row:output:0" attr { key: "element_dtype" value { type: DT_FLOAT } } }
  node_def { name: "square" op: "Mul" input: "item:item:0" input: "item:item:0" attr { key: "T" value { type: DT_FLOAT } } }
  node_def { name: "next" op: "AddV2" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
  node_def { name: "place" op: "Sub" input: "n" input: "next:z:0" attr { key: "T" value { type: DT_INT32 } } }
  node_def { name: "set" op: "TensorListSetItem" input: "b" input: "place:z:0" input: "square:z:0" attr { key: "element_dtype" value { type: DT_FLOAT } } }
  ret { key: "i_out" value: "next:z:0" } ret { key: "n_out" value: "n" }
  ret { key: "a_out" value: "a" } ret { key: "b_out" value: "set:output_handle:0" } }
}
versions { producer: 1286 }
"#;

#[test]
fn lists_and_blocks_have_as_many_elements_as_the_run() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("g.pbtxt"), LOOP).expect("writable");
    for rows in [1i64, 3, 5] {
        let x: Vec<f32> = (0..2 * rows).map(|k| k as f32 - 1.5).collect();
        let feed = BTreeMap::from([("x".to_owned(), Literal::from_elements(&[rows, 2], &x))]);
        std::fs::write(place.path().join("in.npz"), npz::write(&feed).expect("small")).expect("writable");
        let mut tool = tfcompile(place.path());
        tool.args(["run", "g.pbtxt", "--dim=batch=1..5", "--feed=@in.npz", "--out=out.npz"]);
        succeed(tool.args([
            "--fetch=y",
            "--fetch=sum",
            "--fetch=batch_of_blocks",
            "--fetch=image_of_blocks",
        ]));
        let squares: Vec<f32> = x.chunks(2).rev().flatten().map(|value| value * value).collect();
        let sums: Vec<f32> = squares.iter().zip(&x).map(|(a, b)| a + b).collect();
        let columns: Vec<f32> = [0, 1].iter().flat_map(|&d| x.iter().skip(d).step_by(2).copied()).collect();
        assert_eq!(result(place.path(), "y"), Literal::from_elements(&[rows, 2], &squares));
        assert_eq!(result(place.path(), "sum"), Literal::from_elements(&[rows, 2], &sums));
        let blocks = result(place.path(), "batch_of_blocks");
        assert_eq!(blocks, Literal::from_elements(&[2 * rows, 1, 1, 1], &columns));
        let image = result(place.path(), "image_of_blocks").to_vec::<f32>().expect("floats");
        let close = image.iter().zip(&x).all(|(found, x)| (found - x.exp()).abs() <= 1e-6 * x.exp());
        assert!(close && image.len() == x.len(), "{rows} rows: {image:?}");
    }
}

/// Pairs of pixels in the batch, and rows that are written to places.
const PAIRS: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 1 } dim { size: -1 } dim { size: 1 } } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 2 } } } }
node { name: "none" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } dim { size: 2 } } int_val: 0 int_val: 0 } } } }
node { name: "pairs" op: "SpaceToBatchND" input: "x" input: "two" input: "none" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "at" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 3 } dim { size: 1 } } int_val: 3 int_val: 0 int_val: 2 } } } }
node { name: "sizes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: -1 } } } }
node { name: "five" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 5 } } } }
node { name: "updates" op: "Reshape" input: "x" input: "sizes" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "placed" op: "ScatterNd" input: "at" input: "updates" input: "five" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tindices" value { type: DT_INT32 } } }
versions { producer: 1286 }
"#;

#[test]
fn runs_whose_sizes_do_not_fit_fail() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("g.pbtxt"), PAIRS).expect("writable");
    let run = |fetch: &str, count: i64| {
        let x: Vec<f32> = (1..=count).map(|k| k as f32).collect();
        let feed = BTreeMap::from([("x".to_owned(), Literal::from_elements(&[1, count, 1], &x))]);
        std::fs::write(place.path().join("in.npz"), npz::write(&feed).expect("small")).expect("writable");
        let mut tool = tfcompile(place.path());
        tool.args(["run", "g.pbtxt", "--dim=x.1=1..8", "--feed=@in.npz", "--out=out.npz"]);
        tool.arg(format!("--fetch={fetch}"));
        tool
    };
    succeed(&mut run("pairs", 4));
    let pairs = Literal::from_elements(&[2, 2, 1], &[1f32, 3.0, 2.0, 4.0]);
    assert_eq!(result(place.path(), "pairs"), pairs);
    let said = refuse(&mut run("pairs", 3), place.path());
    assert!(said.contains("does not divide into blocks of 2"), "{said}");
    succeed(&mut run("placed", 3));
    let placed = Literal::from_elements(&[5], &[2f32, 0.0, 3.0, 1.0, 0.0]);
    assert_eq!(result(place.path(), "placed"), placed);
    let said = refuse(&mut run("placed", 2), place.path());
    assert!(said.contains("the sizes of dimension 0 of input 2 and dimension 0 of input 1 differ"), "{said}");
}

/// Two arrays of as many elements as `x` has rows: pairs of numbers, and all columns of `x`.
const CONCATENATED: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: -1 } } } } }
node { name: "none" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {  } int_val: 0 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {  } int_val: 1 } } } }
node { name: "first" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } } }
node { name: "second" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } } }
node { name: "last" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {  } int_val: -1 } } } }
node { name: "twice" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 3 } } int_val: 1 int_val: 1 int_val: 2 } } } }
node { name: "shape" op: "Shape" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "size" op: "StridedSlice" input: "shape" input: "first" input: "second" input: "second" attr { key: "T" value { type: DT_INT32 } } attr { key: "Index" value { type: DT_INT32 } } attr { key: "shrink_axis_mask" value { i: 1 } } }
node { name: "indices" op: "Range" input: "none" input: "size" input: "one" attr { key: "Tidx" value { type: DT_INT32 } } }
node { name: "column" op: "ExpandDims" input: "x" input: "last" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tdim" value { type: DT_INT32 } } }
node { name: "pairs" op: "Tile" input: "column" input: "twice" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tmultiples" value { type: DT_INT32 } } }
node { name: "array" op: "TensorArrayV3" input: "size" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "written" op: "TensorArrayScatterV3" input: "array" input: "indices" input: "pairs" input: "array:1" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "TensorArrayConcatV3" input: "array" input: "written" attr { key: "dtype" value { type: DT_FLOAT } } }
versions { producer: 1286 }
"#;

#[test]
fn arrays_of_any_length_are_concatenated() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("g.pbtxt"), CONCATENATED).expect("writable");
    for (dims, widths) in [(&["--dim=x.1=2"][..], &[2i64][..]), (&["--dim=x.1=1..4"], &[1, 3, 4])] {
        for (rows, &width) in
            [1i64, 3, 6].iter().flat_map(|&rows| widths.iter().map(move |width| (rows, width)))
        {
            let x: Vec<f32> = (0..rows * width).map(|k| k as f32 - 1.5).collect();
            let feed = BTreeMap::from([("x".to_owned(), Literal::from_elements(&[rows, width], &x))]);
            std::fs::write(place.path().join("in.npz"), npz::write(&feed).expect("small")).expect("writable");
            let mut tool = tfcompile(place.path());
            tool.args(["run", "g.pbtxt", "--dim=batch=1..6", "--feed=@in.npz", "--out=out.npz"]);
            succeed(tool.args(dims).args(["--fetch=y", "--fetch=y:1"]));
            let twice: Vec<f32> = x.iter().flat_map(|&value| [value, value]).collect();
            assert_eq!(result(place.path(), "y"), Literal::from_elements(&[rows * width, 2], &twice));
            let lengths = result(place.path(), "y_1");
            assert_eq!(lengths, Literal::from_elements(&[rows], &vec![width; rows as usize]));
        }
    }
}
