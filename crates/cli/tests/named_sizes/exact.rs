//! Sizes that have code of their own beside that for all sizes.

use super::{place, result, run, say};
use crate::support::{succeed, tfcompile};
use shape::Literal;
use std::collections::BTreeMap;

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
