//! Programs whose callers choose sizes: `--dim batch=1..64` and `--size batch=7`.

mod exact;
mod images;
mod lists;
mod matrices;
mod trees;

use crate::support::{refuse, root, succeed, tfcompile};
use npz::Archive;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;

/// `y = x * sum(w) + w`, where the rows of `x` and `w` have one number.
const GRAPH: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "w" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: -1 } } } } }
node { name: "axes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 0 int_val: 1 } } } }
node { name: "sum" op: "Sum" input: "w" input: "axes" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "scaled" op: "Mul" input: "x" input: "sum" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "y" op: "ConcatV2" input: "scaled" input: "w" input: "axis"
       attr { key: "N" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } }
node { name: "inverse" op: "MatrixInverse" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1286 }
"#;

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("g.pbtxt"), GRAPH).expect("writable");
    place
}

/// Runs the graph with these flags, and returns its standard output.
fn run(place: &Path, flags: &[&str]) -> String {
    let output = succeed(tfcompile(place).args(["run", "g.pbtxt", "--fetch=y"]).args(flags));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn say(flags: &[&str]) -> String {
    let place = place();
    refuse(tfcompile(place.path()).args(["run", "g.pbtxt"]).args(flags), place.path())
}

#[test]
fn a_run_has_the_sizes_of_its_arrays_and_sums_nothing_beyond_them() {
    let place = place();
    let dims = ["--dim=batch=1..6", "--dim=w.1=cols", "--dim=cols=0..5"];
    let x = Literal::from_elements(&[2, 2], &[1f32, 2.0, 3.0, 4.0]);
    let w = Literal::from_elements(&[2, 1], &[10f32, 20.0]);
    let arrays = BTreeMap::from([("x".to_owned(), x), ("w".to_owned(), w)]);
    std::fs::write(place.path().join("in.npz"), npz::write(&arrays).expect("small")).expect("writable");
    run(place.path(), &[&dims[..], &["--feed=@in.npz", "--out=out.npz"]].concat());
    let bytes = std::fs::read(place.path().join("out.npz")).expect("readable");
    let mut out = Archive::open(bytes.into(), 1 << 20).expect("an archive");
    let expected = Literal::from_elements(&[2, 3], &[30f32, 60.0, 10.0, 90.0, 120.0, 20.0]);
    assert_eq!(out.require("y").expect("a result"), expected);
    // Several runs with arrays of one size.
    let ones = ["--feed=x=ones", "--feed=w=ones", "--size=batch=3", "--size=cols=0"];
    let text = run(place.path(), &[&dims[..], &ones].concat());
    assert!(text.contains("y: f32[3,2]") && text.contains("[0, 0]"), "{text}");
    // The name of a dimension of one feed.
    let text = run(place.path(), &["--dim=batch=2", "--dim=w.1=1..4", "--random=1", "--size=w.1=3"]);
    assert!(text.contains("y: f32[2,5]"), "{text}");
    let largest = run(place.path(), &["--dim=batch=2", "--dim=w.1=1..4", "--random=1"]);
    assert!(largest.contains("y: f32[2,6]"), "{largest}");
}

#[test]
fn impossible_sizes_are_one_clear_error() {
    let given = |more: &[&str]| {
        let flags = [&["--fetch=y", "--random=1", "--dim=batch=1..6", "--dim=w.1=1..3"], more].concat();
        say(&flags)
    };
    assert!(given(&["--size=batch=7"]).contains("size 7 of 'batch' is out of range: 1..6"));
    assert!(given(&["--size=batch=0"]).contains("size 0 of 'batch' is out of range: 1..6"));
    assert!(given(&["--size=rows=3"]).contains("'batch' of 1..6, 'w_1' of 1..3"));
    assert!(given(&["--size=batch"]).contains("expected NAME=N"));
    assert!(given(&["--size=batch=99999999999"]).contains("expected NAME=N"));
    assert!(given(&["--size=batch=2", "--size=batch=3"]).contains("given twice"));
    assert!(given(&["--feed=batch=random"]).contains("--size batch=N"));
    let fixed = say(&["--fetch=y", "--random=1", "--dim=batch=2", "--dim=w.1=1", "--size=batch=2"]);
    assert!(fixed.contains("all sizes of the program are fixed"), "{fixed}");

    let place = place();
    let x = npz::write(&BTreeMap::from([
        ("x".to_owned(), Literal::from_elements(&[3, 2], &[0f32; 6])),
        ("w".to_owned(), Literal::from_elements(&[2, 1], &[0f32; 2])),
    ]));
    std::fs::write(place.path().join("in.npz"), x.expect("small")).expect("writable");
    let mut run = tfcompile(place.path());
    run.args(["run", "g.pbtxt", "--fetch=y", "--feed=@in.npz", "--dim=batch=1..6", "--dim=w.1=1..3"]);
    let message = refuse(&mut run, place.path());
    assert!(message.contains("dimensions with one name have one size"), "{message}");
}

#[test]
fn impossible_ranges_are_refused() {
    let message = |dim: &str| say(&["--fetch=y", "--random=1", "--dim=w.1=1", dim]);
    for range in ["-1..3", "1..", "..", "0..0x", "1...4", "1..4..5", "1.5..3", "", "-3"] {
        let message = message(&format!("--dim=batch={range}"));
        assert!(message.contains(&format!("got 'batch={range}'")), "{message}");
        assert!(message.contains("a range LOW..HIGH of numbers from 0 to 2147483647"), "{message}");
    }
    assert!(message("--dim=batch=4..3").contains("smallest size of the range exceeds its largest"));
    for range in ["1..2147483648", "0..99999999999999999999"] {
        assert!(message(&format!("--dim=batch={range}")).contains("at most 2147483647"), "{range}");
    }
    assert!(message("--dim=w.5=0..3").contains("--dim w.5 does not name a dimension of a feed"));
    let twice = say(&["--fetch=y", "--random=1", "--dim=w.1=1", "--dim=batch=1..4", "--dim=batch=1..8"]);
    assert!(twice.contains("--dim batch is given twice, with different sizes"), "{twice}");
    let apart = ["--fetch=y", "--random=1", "--dim=x.0=n", "--dim=w.0=m", "--dim=n=1..4", "--dim=m=5..9"];
    let apart = say(&[&apart[..], &["--dim=w.1=1"]].concat());
    assert!(apart.contains("the shapes differ") && apart.contains("node 'y'"), "{apart}");
    assert!(message("--dim=x.1=1..4").contains("has size 2 in the graph"));
    assert!(message("--dim=rows=1..4").contains("does not name a dimension of a feed"));
    assert!(message("--dim=batch=rows").contains("no flag states the size 'rows'"));
    let chain = say(&["--fetch=y", "--random=1", "--dim=batch=a", "--dim=a=b", "--dim=b=1..2"]);
    assert!(chain.contains("itself given by a name"), "{chain}");
    let large = say(&["--fetch=y", "--random=1", "--dim=batch=1..2147483647", "--dim=w.1=1..2147483647"]);
    assert!(large.contains("'w:0' has a size of 2^63 bytes or more"), "{large}");
    let session = say(&["--fetch=y", "--random=1", "--dim=batch=1..4", "--jit=off"]);
    assert!(session.contains("a session has fixed sizes"), "{session}");
}

/// Refuses the graph with a config whose feeds have the dimensions `batch` and `cols`.
fn say_of_config(x: &str, dimensions: &str) -> String {
    let place = place();
    let config = format!(
        "feed {{ id {{ node_name: \"x\" }} shape {{ dim {{ size: -1 name: \"batch\" }} dim {{ {x} }} }} }}\n\
         feed {{ id {{ node_name: \"w\" }} shape {{ dim {{ size: -1 name: \"batch\" }} dim {{ size: -1 name: \"cols\" }} }} }}\n\
         fetch {{ id {{ node_name: \"y\" }} }}\n{dimensions}"
    );
    std::fs::write(place.path().join("c.pbtxt"), config).expect("writable");
    let mut tool = tfcompile(place.path());
    refuse(tool.args(["run", "g.pbtxt", "--config=c.pbtxt", "--random=1"]), place.path())
}

#[test]
fn impossible_dimensions_of_a_config_are_one_clear_error() {
    let dimension = |name: &str, range: (i64, i64), sizes: &str| {
        format!("dimension {{ name: \"{name}\" min: {} max: {} {sizes} }}\n", range.0, range.1)
    };
    let cols = dimension("cols", (1, 3), "");
    let with = |batch: &str| say_of_config("size: 2", &(batch.to_owned() + &cols));
    for (min, max) in [(5, 2), (-3, 2), (0, 0), (1, 99_999_999_999), (1, i64::MAX), (i64::MIN, 1)] {
        let message = with(&dimension("batch", (min, max), ""));
        assert!(
            message.contains(&format!("dimension 'batch' has the impossible range {min}..{max}")),
            "{message}"
        );
    }
    for size in [9, 0, -1, i64::MAX] {
        let message = with(&dimension("batch", (1, 4), &format!("size: {size}")));
        assert!(message.contains(&format!("the size {size}, which is not in its range 1..4")), "{message}");
    }
    let twice = with(&(dimension("batch", (1, 4), "") + &dimension("batch", (1, 8), "")));
    assert!(twice.contains("dimension 'batch' is listed twice: remove one of them"), "{twice}");
    let unused = with(&(dimension("batch", (1, 4), "") + &dimension("rows", (1, 4), "")));
    assert!(unused.contains("no feed has the dimension 'rows'"), "{unused}");
    assert!(with("").contains("give open sizes a name and a range"));
    let fixed = say_of_config("size: 2 name: \"cols\"", &(dimension("batch", (1, 4), "") + &cols));
    assert!(fixed.contains("dimension 1 of feed 'x:0' has the size 2, and the name 'cols'"), "{fixed}");
    let large = dimension("batch", (1, 2_147_483_647), "") + &dimension("cols", (1, 2_147_483_647), "");
    assert!(say_of_config("size: 2", &large).contains("'w:0' has a size of 2^63 bytes or more"));
}

#[test]
fn arrays_that_exceed_the_memory_are_an_error_for_any_size() {
    let dims = ["--fetch=y", "--random=1", "--dim=batch=1..2147483647", "--dim=w.1=1..1000000"];
    for sizes in [&["--size=batch=3", "--size=w.1=2"][..], &[]] {
        let message = say(&[&dims[..], sizes].concat());
        let is_clear = message.contains("cannot allocate") || message.contains("is larger than");
        assert!(is_clear && message.contains("feed 'w'"), "{message}");
    }
}

#[test]
fn empty_arrays_are_sizes_like_others() {
    let place = place();
    let dims = ["--dim=batch=0..4", "--dim=w.1=0..3", "--random=1"];
    for (batch, cols) in [(0, 0), (0, 2), (3, 0)] {
        let sizes = [format!("--size=batch={batch}"), format!("--size=w.1={cols}")];
        let text = run(place.path(), &[&dims[..], &[&sizes[0], &sizes[1]]].concat());
        assert!(text.contains(&format!("y: f32[{batch},{}]", cols + 2)), "{text}");
    }
}

#[test]
fn an_op_without_ranges_is_named_with_the_flag_that_fixes_the_size() {
    let place = place();
    for command in ["hlo", "check"] {
        let mut tool = tfcompile(place.path());
        tool.args([command, "g.pbtxt", "--fetch=inverse", "--dim=batch=4", "--dim=w.1=1..4"]);
        let output = tool.output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("inverse") && text.contains("MatrixInverse"), "{text}");
    }
}

#[test]
fn config_and_check_list_names_and_ranges() {
    let place = place();
    let dims = ["--fetch=y", "--dim=batch=1..6", "--dim=w.1=cols", "--dim=cols=2..5"];
    let output = succeed(tfcompile(place.path()).args(["config", "g.pbtxt"]).args(dims));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("dim { size: -1 name: \"batch\" } dim { size: -1 name: \"cols\" }"), "{text}");
    assert!(text.contains("dimension {\n  name: \"cols\"\n  min: 2\n  max: 5\n}"), "{text}");
    // The config that the tool prints means the same.
    std::fs::write(place.path().join("c.pbtxt"), &text).expect("writable");
    let with_config = ["--config=c.pbtxt", "--random=3", "--size=batch=2", "--size=cols=3"];
    let ours = succeed(tfcompile(place.path()).args(["run", "g.pbtxt"]).args(with_config)).stdout;
    let sizes = ["--random=3", "--size=batch=2", "--size=cols=3"];
    assert_eq!(String::from_utf8(ours).expect("UTF-8"), run(place.path(), &[&dims[1..], &sizes].concat()));
    let output = succeed(tfcompile(place.path()).args(["check", "g.pbtxt"]).args(dims));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for (name, range) in [("batch", "1..6"), ("cols", "2..5")] {
        let is_row = |line: &str| line.split_whitespace().eq([name, range]);
        assert!(text.lines().any(is_row), "{name}: {text}");
    }
}

#[test]
fn results_are_those_of_a_program_with_that_size() {
    let place = tempfile::tempdir().expect("a directory");
    let model = root().join("tests/saved_models/keras3");
    for size in [1, 5, 9] {
        let of = |flags: &[String]| {
            let mut tool = tfcompile(place.path());
            succeed(tool.arg("run").arg(&model).args(["--random=7", "--out=out.npz"]).args(flags));
            let bytes = std::fs::read(place.path().join("out.npz")).expect("readable");
            let mut out = Archive::open(bytes.into(), 1 << 20).expect("an archive");
            let name = out.names().next().expect("a result").to_owned();
            let array = out.require(&name).expect("a result");
            (array.shape().clone(), array.floats().expect("floats"))
        };
        let any = of(&["--dim=batch=1..9".to_owned(), format!("--size=batch={size}")]);
        let fixed = of(&[format!("--dim=batch={size}")]);
        assert_eq!(any.0, fixed.0);
        let close = any.1.iter().zip(&fixed.1).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()));
        assert!(close, "{size}: expected {fixed:?}, got {any:?}");
    }
    succeed(tfcompile(place.path()).arg("verify").arg(&model).args(["--dim=batch=1..9", "-q"]));
    let hlo = "HloModule m\n\nENTRY e {\n  x = f32[<=8,2] parameter(0)\n  ROOT y = f32[<=8,2] negate(x)\n}\n";
    std::fs::write(place.path().join("m.hlo"), hlo).expect("writable");
    let output = succeed(tfcompile(place.path()).args(["run", "m.hlo", "--feed=x=ones", "--size=x_0=3"]));
    assert!(String::from_utf8_lossy(&output.stdout).contains("result0: f32[3,2]"));
}

#[test]
fn the_price_and_the_gain_of_each_size_are_reported() {
    let place = tempfile::tempdir().expect("a directory");
    let model = root().join("tests/saved_models/keras3");
    let mut build = tfcompile(place.path());
    build.arg("build").arg(&model).args(["--dim=batch=1..64", "--sizes=batch=16", "-v", "--name=net"]);
    let output = succeed(build.args(["--emit=obj,header,metadata", "--output=out"]));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("UTF-8");
    let mut inspect = tfcompile(place.path());
    let object =
        if place.path().join("out/net.metadata.o").exists() { "out/net.metadata.o" } else { "out/net.o" };
    let output = succeed(inspect.args(["inspect", object, "--json"]));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let metadata = &json["programs"][0]["metadata"];
    let numbers = |key: &str| -> Vec<u64> {
        let sizes = metadata["sizes"].as_array().expect("a list").iter();
        sizes.map(|size| size[key].as_u64().expect("a number")).collect()
    };
    let sizes = numbers("size");
    assert!(sizes.starts_with(&[1]) && sizes.contains(&16) && sizes.is_sorted(), "{sizes:?}");
    // The rest is the entry.
    let functions = metadata["functions"].as_array().expect("a list").iter();
    let all: u64 = functions.map(|function| function["bytes"].as_u64().expect("a number")).sum();
    let code = numbers("code");
    let own: u64 = code.iter().sum();
    assert!(code.iter().all(|&bytes| bytes > 0) && own < all && 2 * own > all, "{code:?} of {all}");
    let constants = numbers("constants");
    assert_eq!(constants.iter().sum::<u64>(), metadata["memory"]["constants"].as_u64().expect("a number"));
    assert!(numbers("nanoseconds").iter().all(|&time| time > 0));
    // The same numbers for a person.
    for (size, bytes) in sizes.iter().zip(&code) {
        let is_row = |line: &str| {
            line.split_whitespace().take(2).eq([size.to_string().as_str(), bytes.to_string().as_str()])
        };
        assert!(text.lines().any(is_row), "{size}: {text}");
    }
    let output = succeed(tfcompile(place.path()).args(["inspect", object]));
    assert!(String::from_utf8_lossy(&output.stdout).contains("times the rows/s of 1"));
}

/// Halves of `x` after itself, a slice with the largest end, and a shape whose -1 becomes 1.
const SIZES_OF_SHAPES: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "five" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 5 } } } }
node { name: "twice" op: "ConcatV2" input: "x" input: "x" input: "zero"
       attr { key: "N" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } }
node { name: "halves" op: "Split" input: "zero" input: "twice"
       attr { key: "num_split" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } }
node { name: "begin" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
       attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: 0 int64_val: 0 } } } }
node { name: "end" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
       attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } }
         int64_val: 9223372036854775807 int64_val: 1 } } } }
node { name: "strides" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
       attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: 1 int64_val: 1 } } } }
node { name: "column" op: "StridedSlice" input: "x" input: "begin" input: "end" input: "strides"
       attr { key: "T" value { type: DT_FLOAT } } attr { key: "Index" value { type: DT_INT64 } } }
node { name: "shape" op: "Shape" input: "x" attr { key: "T" value { type: DT_FLOAT } } attr { key: "out_type" value { type: DT_INT64 } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
       attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: 2 } } } }
node { name: "is_two" op: "Equal" input: "shape" input: "two" attr { key: "T" value { type: DT_INT64 } } }
node { name: "wide" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
       attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: 1 } } } }
node { name: "sizes" op: "SelectV2" input: "is_two" input: "wide" input: "shape" attr { key: "T" value { type: DT_INT64 } } }
node { name: "fives" op: "BroadcastTo" input: "five" input: "sizes"
       attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tidx" value { type: DT_INT64 } } }
node { name: "y" op: "ConcatV2" input: "halves:1" input: "column" input: "fives" input: "one"
       attr { key: "N" value { i: 3 } } attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1286 }
"#;

#[test]
fn sizes_follow_splits_ends_beyond_s32_and_selected_shapes() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("g.pbtxt"), SIZES_OF_SHAPES).expect("writable");
    for size in [3i64, 5] {
        let x: Vec<f32> = (0..2 * size).map(|k| k as f32 + 0.5).collect();
        let arrays = BTreeMap::from([("x".to_owned(), Literal::from_elements(&[size, 2], &x))]);
        std::fs::write(place.path().join("in.npz"), npz::write(&arrays).expect("small")).expect("writable");
        // With a least size of 3, the number of rows is not the number that is selected.
        let mut tool = tfcompile(place.path());
        tool.args(["run", "g.pbtxt", "--fetch=y", "--dim=batch=3..9", "--feed=@in.npz", "--out=out.npz"]);
        succeed(&mut tool);
        let bytes = std::fs::read(place.path().join("out.npz")).expect("readable");
        let mut out = Archive::open(bytes.into(), 1 << 20).expect("an archive");
        let name = out.names().next().expect("a result").to_owned();
        let y = out.require(&name).expect("a result");
        let want: Vec<f32> = x.chunks(2).flat_map(|row| [row[0], row[1], row[0], 5.0]).collect();
        assert_eq!(y.shape().as_array().expect("an array").sizes(), [size, 4]);
        assert_eq!(y.floats().expect("floats"), want.into_iter().map(f64::from).collect::<Vec<_>>());
    }
}

/// Ops on `x`, a vector of any size.
const OPS: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "shift" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: -4 } } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } } }
node { name: "rolled" op: "Roll" input: "x" input: "shift" input: "zero" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tshift" value { type: DT_INT32 } } attr { key: "Taxis" value { type: DT_INT32 } } }
node { name: "erfc" op: "Erfc" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "shape" op: "Shape" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "at" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } dim { size: 1 } } int_val: 1 } } } }
node { name: "five" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 5 } } } }
node { name: "placed" op: "ScatterNd" input: "at" input: "five" input: "shape" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tindices" value { type: DT_INT32 } } }
node { name: "triples" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: -1 int_val: 3 } } } }
node { name: "table" op: "Reshape" input: "x" input: "triples" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "ones" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 1 int_val: 1 } } } }
node { name: "single" op: "Reshape" input: "x" input: "ones" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "columns" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: -1 int_val: 1 } } } }
node { name: "column" op: "Reshape" input: "x" input: "columns" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "scales" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 float_val: 2 } } } }
node { name: "wide" op: "OnnxResize" input: "column" input: "scales" attr { key: "Tin" value { list { type: DT_FLOAT type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
       attr { key: "operands" value { list { i: 0 i: -1 i: 1 } } } attr { key: "opset" value { i: 13 } } attr { key: "mode" value { s: "nearest" } } attr { key: "coordinate_transformation_mode" value { s: "asymmetric" } } }
node { name: "bytes" op: "OnnxDynamicQuantizeLinear" input: "x" attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_UINT8 type: DT_FLOAT type: DT_UINT8 } } }
       attr { key: "operands" value { list { i: 0 } } } }
node { name: "ordered" op: "OnnxTopK" input: "x" input: "shape" attr { key: "Tin" value { list { type: DT_FLOAT type: DT_INT32 } } } attr { key: "Tout" value { list { type: DT_FLOAT type: DT_INT64 } } } attr { key: "operands" value { list { i: 0 i: 1 } } } attr { key: "largest" value { i: 0 } } }
node { name: "last" op: "OnnxArgMax" input: "x" attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_INT64 } } }
       attr { key: "operands" value { list { i: 0 } } } attr { key: "keepdims" value { i: 0 } } attr { key: "select_last_index" value { i: 1 } } }
node { name: "real" op: "OnnxDequantizeLinear" input: "bytes" input: "bytes:1" input: "bytes:2" attr { key: "Tin" value { list { type: DT_UINT8 type: DT_FLOAT type: DT_UINT8 } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } attr { key: "operands" value { list { i: 0 i: 1 i: 2 } } } }
node { name: "written" op: "OnnxScatterElements" input: "x" input: "zero" input: "five" attr { key: "Tin" value { list { type: DT_FLOAT type: DT_INT32 type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } attr { key: "operands" value { list { i: 0 i: 1 i: 2 } } } }
node { name: "ends" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } dim { size: 1 } } int_val: -1 int_val: 1 } } } }
node { name: "rows" op: "OnnxGatherND" input: "x" input: "ends" attr { key: "Tin" value { list { type: DT_FLOAT type: DT_INT32 } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } attr { key: "operands" value { list { i: 0 i: 1 } } } }
node { name: "samples" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 3 } } int_val: 1 int_val: -1 int_val: 1 } } } }
node { name: "sample" op: "Reshape" input: "x" input: "samples" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "twice" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 3 } } int_val: 2 int_val: 1 int_val: 1 } } } }
node { name: "times" op: "Tile" input: "sample" input: "twice" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_INT8 } } attr { key: "value" value { tensor { dtype: DT_INT8 tensor_shape { dim { size: 1 } dim { size: 1 } dim { size: 4 } } int_val: 1 int_val: 2 int_val: -1 int_val: 3 } } } }
node { name: "r" op: "Const" attr { key: "dtype" value { type: DT_INT8 } } attr { key: "value" value { tensor { dtype: DT_INT8 tensor_shape { dim { size: 1 } dim { size: 1 } dim { size: 4 } } int_val: 2 int_val: -3 int_val: 1 int_val: 1 } } } }
node { name: "b" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } dim { size: 8 } } float_val: 0 float_val: 0.5 float_val: 0 float_val: -0.25 float_val: 0 float_val: 0 float_val: 0 float_val: 0 } } } }
node { name: "ws" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 0.5 } } } }
node { name: "rs" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 0.25 } } } }
node { name: "nil" op: "Const" attr { key: "dtype" value { type: DT_INT8 } } attr { key: "value" value { tensor { dtype: DT_INT8 tensor_shape { dim { size: 1 } } int_val: 0 } } } }
node { name: "layer" op: "OnnxMsDynamicQuantizeLSTM" input: "times" input: "w" input: "r" input: "b" input: "ws" input: "nil" input: "rs" input: "nil" attr { key: "Tin" value { list { type: DT_FLOAT type: DT_INT8 type: DT_INT8 type: DT_FLOAT type: DT_FLOAT type: DT_INT8 type: DT_FLOAT type: DT_INT8 } } } attr { key: "Tout" value { list { type: DT_FLOAT type: DT_FLOAT type: DT_FLOAT } } } attr { key: "hidden_size" value { i: 1 } }
       attr { key: "operands" value { list { i: 0 i: 1 i: 2 i: 3 i: -1 i: -1 i: -1 i: -1 i: 4 i: 5 i: 6 i: 7 } } } }
versions { producer: 1286 }
"#;

/// The results of fetches for `x = [0, 1, 2]`, whose size may be 1 to 6.
fn results_of_ops(fetches: &[&str]) -> Vec<(Vec<i64>, Vec<f64>)> {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("g.pbtxt"), OPS).expect("writable");
    let x = BTreeMap::from([("x".to_owned(), Literal::from_elements(&[3], &[0f32, 1.0, 2.0]))]);
    std::fs::write(place.path().join("in.npz"), npz::write(&x).expect("small")).expect("writable");
    let mut tool = tfcompile(place.path());
    tool.args(["run", "g.pbtxt", "--dim=batch=1..6", "--feed=@in.npz", "--out=out.npz"]);
    succeed(tool.args(fetches.iter().map(|fetch| format!("--fetch={fetch}"))));
    let bytes = std::fs::read(place.path().join("out.npz")).expect("readable");
    let mut out = Archive::open(bytes.into(), 1 << 20).expect("an archive");
    let mut results = Vec::new();
    for fetch in fetches {
        let array = out.require(&fetch.replace(':', "_")).expect("a result");
        let values = array.scalars().filter_map(|scalar| scalar.as_f64()).collect();
        results.push((array.array_shape().sizes(), values));
    }
    results
}

#[test]
fn ops_of_open_sizes_compute_what_those_of_fixed_ones_do() {
    let fetches = "rolled erfc placed table wide bytes bytes:1 ordered last real written rows layer:1";
    let fetches: Vec<&str> = fetches.split(' ').collect();
    let expected: [(&[i64], &[f64]); 13] = [
        (&[3], &[1.0, 2.0, 0.0]),
        (&[3], &[1.0, 0.157_299_207, 0.004_677_735]),
        (&[3], &[0.0, 5.0, 0.0]),
        (&[1, 3], &[0.0, 1.0, 2.0]),
        (&[3, 2], &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0]),
        (&[3], &[0.0, 127.0, 255.0]),
        (&[], &[2.0 / 255.0]),
        (&[3], &[0.0, 1.0, 2.0]),
        (&[], &[2.0]),
        (&[3], &[0.0, 127.0 * 2.0 / 255.0, 2.0]),
        (&[3], &[5.0, 1.0, 2.0]),
        (&[2], &[2.0, 1.0]),
        // From NumPy, which quantizes the input and the state of each step.
        (&[1, 3, 1], &[-0.1190806, 0.5074942, 0.6743573]),
    ];
    for ((fetch, (sizes, values)), found) in fetches.iter().zip(expected).zip(results_of_ops(&fetches)) {
        assert_eq!(found.0, sizes, "{fetch}");
        let close = found.1.iter().zip(values).all(|(a, b)| (a - b).abs() <= 1e-6);
        assert!(close && found.1.len() == values.len(), "{fetch}: {found:?}");
    }
}

#[test]
fn a_reshape_to_another_number_of_elements_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("g.pbtxt"), OPS).expect("writable");
    let refused = |flags: &[&str]| {
        let mut tool = tfcompile(place.path());
        refuse(tool.args(["run", "g.pbtxt", "--dim=batch=1..6", "--random=1"]).args(flags), place.path())
    };
    let text = refused(&["--fetch=table", "--size=batch=4"]);
    assert!(text.contains("the numbers of elements before and after differ (node 'table')"), "{text}");
    let text = refused(&["--fetch=single"]);
    assert!(text.contains("with the smallest sizes it compiles: --dim batch=1"), "{text}");
}

#[test]
fn sizes_without_effect_are_refused() {
    let place = place();
    std::fs::write(place.path().join("m.mlir"), PRODUCT).expect("writable");
    let whole = ["--dim=batch=1..9000", "--sizes=batch=5000"];
    let text = refuse(tfcompile(place.path()).args(["build", "m.mlir"]).args(whole), place.path());
    assert!(text.contains("--sizes batch=5000 has no effect, remove it: 5000 exceeds 4096"), "{text}");
}

/// `y = x * w` and `z = x * scale`, with an open number of rows.
const PRODUCT: &str = r#"func.func @main(%x: tensor<?x3xf32>, %w: tensor<3x2xf32>, %scale: tensor<1x3xf32>)
    -> (tensor<?x2xf32>, tensor<?x3xf32>) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %c = stablehlo.constant dense<3> : tensor<1xi32>
  %s = stablehlo.concatenate %n1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %t = stablehlo.dynamic_broadcast_in_dim %scale, %s, dims = [0, 1] : (tensor<1x3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
  %z = stablehlo.multiply %x, %t : tensor<?x3xf32>
  return %y, %z : tensor<?x2xf32>, tensor<?x3xf32>
}
"#;

/// A result in `out.npz`.
fn result(place: &Path, name: &str) -> Literal {
    let bytes = std::fs::read(place.join("out.npz")).expect("readable");
    Archive::open(bytes.into(), 1 << 20).expect("an archive").require(name).expect("a result")
}

#[test]
fn weights_from_a_file_serve_every_size() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path();
    std::fs::write(path.join("m.mlir"), PRODUCT).expect("writable");
    let write = |name: &str, arrays: &[(&str, Literal)]| {
        let arrays: BTreeMap<_, _> = arrays.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        std::fs::write(path.join(name), npz::write(&arrays).expect("small")).expect("writable");
    };
    let w = Literal::from_elements(&[3, 2], &[1f32, -1.0, 0.0, 2.0, 10.0, 100.0]);
    let scale = Literal::from_elements(&[1, 3], &[2f32, 3.0, 5.0]);
    write("w.npz", &[("w", w.clone()), ("scale", scale)]);
    let tool = |command: &str, flags: &[&str]| {
        let mut tool = tfcompile(path);
        tool.args([command, "m.mlir", "--dim=batch=1..9", "--weights=w.npz"]).args(flags);
        tool
    };
    for rows in [1u8, 2, 5, 9] {
        // Row r is (r, 1, 2): (r + 20, 202 - r) in y, and (2r, 3, 10) in z.
        let numbers =
            |row: &dyn Fn(f32) -> Vec<f32>| -> Vec<f32> { (0..rows).flat_map(|r| row(r.into())).collect() };
        let rows = i64::from(rows);
        write("in.npz", &[("x", Literal::from_elements(&[rows, 3], &numbers(&|r| vec![r, 1.0, 2.0])))]);
        succeed(&mut tool("run", &["--feed=@in.npz", "--out=out.npz"]));
        let y = Literal::from_elements(&[rows, 2], &numbers(&|r| vec![r + 20.0, 202.0 - r]));
        let z = Literal::from_elements(&[rows, 3], &numbers(&|r| vec![2.0 * r, 3.0, 10.0]));
        assert_eq!(result(path, "result0"), y);
        assert_eq!(result(path, "result1"), z);
    }
    // Sizes keep code of their own, which has the weights, too.
    succeed(&mut tool("build", &["--sizes=batch=6", "--emit=obj,metadata"]));
    let output = succeed(tfcompile(path).args(["inspect", "m.o", "--json"]));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let metadata = &json["programs"][0]["metadata"];
    let sizes = metadata["sizes"].as_array().expect("a list").iter();
    let sizes: Vec<u64> = sizes.filter_map(|size| size["size"].as_u64()).collect();
    assert!(sizes.starts_with(&[1]) && sizes.contains(&6), "{sizes:?}");
    // An array of any size does not come from a file, and neither does the size.
    let message = |name: &str, array: Literal| {
        write("w.npz", &[(name, array)]);
        refuse(&mut tool("run", &["--random=1"]), path)
    };
    let text = message("x", Literal::from_elements(&[2, 3], &[0f32; 6]));
    assert!(text.contains("dimension 0 of 'x' has the size 'batch', which each run states"), "{text}");
    let text = message("batch", Literal::scalar(2i32));
    assert!(text.contains("fix the size with --dim batch=N"), "{text}");
    // With a fixed size, both are arrays like others.
    write("w.npz", &[("x", Literal::from_elements(&[2, 3], &[1f32; 6])), ("w", w)]);
    let mut fixed = tfcompile(path);
    fixed.args(["run", "m.mlir", "--dim=batch=2", "--weights=w.npz", "--feed=scale=ones", "--out=out.npz"]);
    succeed(&mut fixed);
    assert_eq!(result(path, "result0"), Literal::from_elements(&[2, 2], &[11f32, 101.0, 11.0, 101.0]));
}

#[test]
fn sizes_that_get_no_code_are_refused_with_the_reason() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path();
    let hlo = "HloModule m\nENTRY e {\n  x = f32[<=4] parameter(0)\n  ROOT y = f32[<=4] negate(x)\n}\n";
    let negate = "func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {\n  %y = stablehlo.negate %x : \
                  tensor<?x2xf32>\n  return %y : tensor<?x2xf32>\n}\n";
    let fixed = negate.replace('?', "4");
    for (name, text) in [("m.mlir", negate), ("fixed.mlir", &fixed), ("h.hlo", hlo), ("g.pbtxt", GRAPH)] {
        std::fs::write(path.join(name), text).expect("writable");
    }
    let symbolic = root().join("tests/stablehlo/symbolic/odd.jax");
    let odd = symbolic.to_str().expect("UTF-8");
    let one_size = "--sizes batch=3 has no effect, remove it: programs for GPUs have one size";
    let profile = "--sizes batch=3 has no effect, remove it: a profile measures the code of the largest size";
    let graph = ["--fetch=scaled", "--dim=w.1=2"];
    let cases: [(&[&str], &[&str], &str); 12] = [
        (&["build", "m.mlir", "--target=cuda"], &["--dim=batch=3"], one_size),
        (&["build", "m.mlir", "--target=opencl"], &[], one_size),
        (&["build", "g.pbtxt", "--target=cuda"], &graph, one_size),
        (&["build", "g.pbtxt", "--target=opencl"], &graph, one_size),
        (&["profile", "m.mlir"], &[], profile),
        (&["profile", "g.pbtxt"], &graph, profile),
        (&["run", "g.pbtxt", "--jit=off", "--dim=batch=3"], &graph, "remove it: a session has fixed sizes"),
        (&["build", "fixed.mlir"], &[], "names no dimension with a range: all sizes are fixed"),
        (
            &["build", "m.mlir", "--dim=batch=1..2"],
            &[],
            "--sizes batch: 3 is not in the range 1..2 of 'batch'",
        ),
        (&["build", "m.mlir", "--dim=batch=3"], &[], "no dimension with a range: add --dim batch=LOW..HIGH"),
        (&["build", "h.hlo"], &[], "'h.hlo' is HLO, whose code is that of the largest sizes"),
        (&["build", odd], &[], "--sizes batch names no dimension with a range: expected one of a"),
    ];
    for (command, more, expected) in cases {
        let text = refuse(tfcompile(path).args(command).args(more).arg("--sizes=batch=3"), path);
        assert!(text.contains(expected), "{command:?}: {text}");
    }
    // The argument has 2 a + 1 rows.
    let text = refuse(tfcompile(path).args(["build", odd, "--sizes=a=3"]), path);
    assert!(
        text.contains("--sizes a=3 has no effect, remove it: sizes of dimensions are computed"),
        "{text}"
    );
    let mut counted = tfcompile(path);
    counted.env("XLA_FLAGS", "--xla_hlo_profile").args(["build", "m.mlir", "--sizes=batch=3"]);
    assert!(refuse(&mut counted, path).contains(profile));
}
