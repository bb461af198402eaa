//! Sizes that have code of their own beside that for all sizes.

use super::{place, result, run, say};
use crate::support::{succeed, tfcompile};
use shape::Literal;
use std::collections::BTreeMap;
use std::process::Command;

#[test]
fn sizes_of_dependent_rows_and_of_several_dimensions_have_code_of_their_own() {
    let place = place();
    let dims = ["--fetch=y", "--dim=batch=1..6", "--dim=w.1=cols", "--dim=cols=1..5"];
    let own = ["--sizes=batch=2,4", "--sizes=cols=3"];
    let arrays = |batch: i64, cols: i64| {
        let array = |sizes: [i64; 2], first: i64| {
            let numbers: Vec<f32> = (first..first + sizes[0] * sizes[1]).map(|k| k as f32 / 4.0).collect();
            Literal::from_elements(&sizes, &numbers)
        };
        BTreeMap::from([("x".to_owned(), array([batch, 2], 1)), ("w".to_owned(), array([batch, cols], 5))])
    };
    for (batch, cols) in [(2, 3), (4, 3), (2, 1), (1, 3), (3, 5), (6, 5)] {
        let bytes = npz::write(&arrays(batch, cols)).expect("small");
        std::fs::write(place.path().join("in.npz"), bytes).expect("writable");
        let results = [&own[..], &[]].map(|own| {
            run(place.path(), &[&dims[..], own, &["--feed=@in.npz", "--out=out.npz"]].concat());
            result(place.path(), "y")
        });
        assert_eq!(results[0], results[1], "{batch} rows of {cols}");
        let sum: f32 = (5..5 + batch * cols).map(|k| k as f32 / 4.0).sum();
        let y = results[0].to_vec::<f32>().expect("floats");
        let (last, row) = (batch as usize - 1, 2 + cols as usize);
        assert_eq!(
            y[last * row..][..2],
            [sum * (2 * batch - 1) as f32 / 4.0, sum * (2 * batch) as f32 / 4.0]
        );
    }
    // What each size costs is in the metadata, and its code is beside that for all sizes.
    let flags = [&dims[..], &own, &["--emit=obj,metadata", "-v"]].concat();
    let output = succeed(tfcompile(place.path()).args(["build", "g.pbtxt", "--name=sums"]).args(&flags));
    let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
    let object = if place.path().join("sums.metadata.o").exists() { "sums.metadata.o" } else { "sums.o" };
    let output = succeed(tfcompile(place.path()).args(["inspect", object, "--json"]));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let sizes = json["programs"][0]["metadata"]["sizes"].as_array().expect("a list").clone();
    // Small kernels are a part of the entry.
    assert!(sizes.iter().any(|size| size["code"].as_u64() > Some(0)), "{sizes:?}");
    let found: Vec<String> = sizes.iter().map(|size| size["sizes"].to_string()).collect();
    let all = [
        r#"{"batch":2}"#,
        r#"{"batch":2,"cols":3}"#,
        r#"{"batch":4}"#,
        r#"{"batch":4,"cols":3}"#,
        r#"{"cols":3}"#,
    ];
    assert_eq!(found, all);
    let output = succeed(tfcompile(place.path()).args(["inspect", object]));
    for text in [text, String::from_utf8(output.stdout).expect("UTF-8")] {
        assert!(text.contains("batch=4, cols=3"), "{text}");
    }
    let text = say(&[&dims[..], &["--sizes=batch=1,2,3,4", "--sizes=cols=1,2,3"]].concat());
    assert!(
        text.contains("--sizes states more than 16 sizes and combinations of sizes: remove some"),
        "{text}"
    );
}

/// `sums` has the sums of rows, and `total` grows by all of them.
const TOTALS: &str = "module @totals {
  func.func public @main(%x: tensor<?x?xf32>, %total: tensor<f32> {tf.aliasing_output = 1 : i32})
      -> (tensor<?xf32> {jax.result_info = \"sums\"}, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
    %a = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
    %n = stablehlo.add %total, %a : tensor<f32>
    func.return %s, %n : tensor<?xf32>, tensor<f32>
  }
}
";

const MAIN: &str = "#include <cstdio>
#include \"totals.h\"
int main() {
  static Totals totals;
  const int sizes[5][2] = {{2, 3}, {4, 3}, {2, 1}, {1, 5}, {2, 3}};
  for (const auto& size : sizes) {
    for (int k = 0; k < 20; ++k) totals.arg_x_data()[k] = 1000;
    for (int b = 0; b < size[0]; ++b)
      for (int t = 0; t < size[1]; ++t) totals.arg_x(b, t) = static_cast<float>(10 * b + t);
    if (!totals.Run(size[0], size[1])) return std::puts(totals.error_msg().c_str()), 1;
    std::printf(\"%g %g\\n\", totals.result_sums(size[0] - 1), totals.var_total());
  }
}
";

#[test]
fn sizes_with_code_of_their_own_share_variables() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("totals.mlir"), TOTALS).expect("written");
    std::fs::write(place.path().join("main.cc"), MAIN).expect("written");
    let flags = ["--dim=batch=1..4", "--dim=x.1=1..5", "--sizes=batch=2", "--sizes=x_1=3"];
    succeed(tfcompile(place.path()).args(["build", "totals.mlir"]).args(flags));
    let compile = "c++ -std=c++17 -I . -I include main.cc totals.o -o main -pthread && ./main";
    let output = succeed(Command::new("sh").args(["-c", compile]).current_dir(place.path()));
    // The last row's sum, and the total: rows of `10 b + t`.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "33 36\n93 228\n10 238\n10 248\n33 284\n");
}
