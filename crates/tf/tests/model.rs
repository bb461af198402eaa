//! Models from files: bindings within functions, tables, and models made to do harm.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use tf::model::{LoadOptions, Model, VariablesToFeed, load};
use tf::proto::attr_value::Value;

const HANDLE: &str = "node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' \
                      value { shape { dim { size: 2 } } } } attr { key: 'shared_name' value { s: 'v' } } }\n";

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A checkpoint of `v` = [1, 2] at the place of a SavedModel's.
fn write_variables(directory: &Path) {
    use shape::{ArrayShape, Literal, PrimitiveType};
    let bytes: Vec<u8> = [1f32, 2f32].iter().flat_map(|value| value.to_le_bytes()).collect();
    let literal =
        Literal::from_bytes(ArrayShape::new(PrimitiveType::F32, &[2]), bytes.into()).expect("two floats");
    std::fs::create_dir_all(directory.join("variables")).expect("writable");
    let bundle = tf::checkpoint::write_v2(&[("v".to_owned(), literal)].into()).expect("small");
    for (suffix, bytes) in bundle.files() {
        std::fs::write(directory.join(format!("variables/variables{suffix}")), bytes).expect("writable");
    }
}

/// The SavedModel of a graph whose `y` is fetched.
fn saved_model(graph: &str, more: &str) -> String {
    format!(
        "saved_model_schema_version: 1 meta_graphs {{ meta_info_def {{ tags: 'serve' }} graph_def {{ {graph} versions {{ \
         producer: 1286 }} }} signature_def {{ key: 'serving_default' value {{ outputs {{ key: 'y' value {{ name: 'y:0' \
         dtype: DT_FLOAT }} }} }} }} {more} }}"
    )
}

fn read(directory: &Path, text: &str, options: &LoadOptions) -> support::Result<Model> {
    std::fs::write(directory.join("saved_model.pbtxt"), text).expect("writable");
    let start = Instant::now();
    let model = load(directory, options);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    model
}

fn node(name: &str, op: &str, inputs: &[String], attributes: &str) -> String {
    let inputs: String = inputs.iter().map(|input| format!("input: '{input}' ")).collect();
    format!("node {{ name: '{name}' op: '{op}' {inputs}{attributes} }}\n")
}

fn attribute(name: &str, value: &str) -> String {
    format!("attr {{ key: '{name}' value {{ {value} }} }} ")
}

/// A call of a function that takes handles and returns them.
fn call(name: &str, function: &str, inputs: &[String], outputs: usize) -> String {
    let types = |count| "type: DT_RESOURCE ".repeat(count);
    let attributes = attribute("f", &format!("func {{ name: '{function}' }}"))
        + &attribute("Tin", &format!("list {{ {} }}", types(inputs.len())))
        + &attribute("Tout", &format!("list {{ {} }}", types(outputs)));
    node(name, "PartitionedCall", inputs, &attributes)
}

fn read_variable(name: &str, input: &str) -> String {
    node(name, "ReadVariableOp", &[input.to_owned()], &attribute("dtype", "type: DT_FLOAT"))
}

/// `function` with handles `a` and `b` that returns both.
fn pair(name: &str, body: &str, results: [&str; 2]) -> String {
    let argument = |name: &str| format!("input_arg {{ name: '{name}' type: DT_RESOURCE }} ");
    format!(
        "library {{ function {{ signature {{ name: '{name}' {}{} output_arg {{ name: 'r' type: DT_RESOURCE }} output_arg \
         {{ name: 's' type: DT_RESOURCE }} }} {} ret {{ key: 'r' value: '{}' }} ret {{ key: 's' value: '{}' }} }} }}",
        argument("a"),
        argument("b"),
        body.replace("node {", "node_def {"),
        results[0],
        results[1]
    )
}

#[test]
fn handles_are_followed_through_calls_that_return_them() {
    let place = place();
    write_variables(place.path());
    let mut graph = HANDLE.to_owned();
    graph += &call("swap", "swap", &["v".to_owned(), "v".to_owned()], 2);
    graph += &read_variable("y", "swap:1");
    graph += &pair("swap", "", ["b", "a"]);
    let model = read(place.path(), &saved_model(&graph, ""), &LoadOptions::default()).expect("a model");
    let ops: Vec<&str> = model.graph.node.iter().map(|node| node.op.as_str()).collect();
    assert_eq!(ops, ["Const", "PartitionedCall", "Identity"]);
    let Some(Value::Type(number)) = model.graph.node[2].attr["T"].value else { panic!("a type") };
    assert_eq!(number, tf::DataType::Float.number());
    let program = tf::prepare(model.graph.clone(), model.infer().expect("a config").config);
    assert_eq!(program.expect("a program").variables.len(), 0);

    let options = LoadOptions { variables_to_feed: VariablesToFeed::All, ..LoadOptions::default() };
    let model = read(place.path(), &saved_model(&graph, ""), &options).expect("a model");
    assert_eq!(model.graph.node[0].op, "VarHandleOp");
    assert_eq!(model.initial["v"].bytes().as_ref(), [0, 0, 128, 63, 0, 0, 0, 64]);
    let config = model.infer().expect("a config").config;
    assert_eq!(config.variable.len(), 1);
}

/// Each call hands the handles on to the next: neither their number nor the paths through them may
/// count twice.
#[test]
fn long_and_wide_chains_take_no_time() {
    let place = place();
    write_variables(place.path());
    let mut graph = HANDLE.to_owned();
    graph += &call("c0", "swap", &["v".to_owned(), "v".to_owned()], 2);
    for k in 1..3000 {
        let inputs = [format!("c{}:0", k - 1), format!("c{}:1", k - 1)];
        let _ = write!(graph, "{}", call(&format!("c{k}"), "swap", &inputs, 2));
    }
    let mut last = "c2999:1".to_owned();
    for k in 0..50_000 {
        let _ = write!(
            graph,
            "{}",
            node(&format!("i{k}"), "Identity", &[last], &attribute("T", "type: DT_RESOURCE"))
        );
        last = format!("i{k}");
    }
    graph += &read_variable("y", &last);
    graph += &pair("swap", "", ["b", "a"]);
    let model = read(place.path(), &saved_model(&graph, ""), &LoadOptions::default()).expect("a model");
    assert_eq!(model.graph.node.last().map(|node| node.op.as_str()), Some("Identity"));
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let place = place();
    write_variables(place.path());
    let graph = HANDLE.to_owned()
        + &call("c", "f", &["v".to_owned(), "v".to_owned()], 2)
        + &read_variable("y", "c:0")
        + &pair(
            "f",
            &call("again", "f", &["a".to_owned(), "b".to_owned()], 2),
            ["again:output:0", "again:output:1"],
        );
    let error = read(place.path(), &saved_model(&graph, ""), &LoadOptions::default()).expect_err("a circle");
    assert!(error.message().contains("function 'f' calls itself"), "{error}");
}

#[test]
fn assets_stay_below_their_directory() {
    let table = node(
        "t",
        "HashTableV2",
        &[],
        &(attribute("key_dtype", "type: DT_INT64") + &attribute("value_dtype", "type: DT_FLOAT")),
    );
    let string = "tensor { dtype: DT_STRING tensor_shape { } string_val: 'anywhere' }";
    let constants =
        node("file", "Const", &[], &(attribute("dtype", "type: DT_STRING") + &attribute("value", string)));
    let key = "tensor { dtype: DT_INT64 tensor_shape { } int64_val: 3 }";
    let value = "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 }";
    let keys = node("k", "Const", &[], &(attribute("dtype", "type: DT_INT64") + &attribute("value", key)));
    let default =
        node("d", "Const", &[], &(attribute("dtype", "type: DT_FLOAT") + &attribute("value", value)));
    let types = attribute("Tin", "type: DT_INT64") + &attribute("Tout", "type: DT_FLOAT");
    let find = node("y", "LookupTableFindV2", &["t".to_owned(), "k".to_owned(), "d".to_owned()], &types);
    let attributes = attribute("key_index", "i: 0")
        + &attribute("value_index", "i: 1")
        + &attribute("delimiter", "s: ','");
    let init =
        node("init", "InitializeTableFromTextFileV2", &["t".to_owned(), "file".to_owned()], &attributes);
    let graph = table + &constants + &keys + &default + &find + &init;
    let with = |name: &str| {
        let place = place();
        std::fs::create_dir_all(place.path().join("model/assets")).expect("writable");
        std::fs::write(place.path().join("secret"), "3,4\n").expect("writable");
        std::fs::write(place.path().join("model/assets/table"), "3,4\n5,6\n").expect("writable");
        std::os::unix::fs::symlink("../../secret", place.path().join("model/assets/link")).expect("a link");
        let asset = format!("asset_file_def {{ tensor_info {{ name: 'file:0' }} filename: '{name}' }}");
        read(&place.path().join("model"), &saved_model(&graph, &asset), &LoadOptions::default())
    };
    let model = with("table").expect("a model");
    assert!(model.graph.node.iter().any(|node| node.op == "t__find"));
    for bad in ["../../secret", "/etc/hostname", "link", "", ".", "a/../../../secret"] {
        let error = with(bad).expect_err(bad);
        assert!(
            error.message().contains("is not in '") || error.message().contains("No such file"),
            "{bad}: {error}"
        );
    }
    let error = with("missing").expect_err("missing");
    assert!(error.message().contains("missing"), "{error}");
}

#[test]
fn keras_files_say_how_to_export() {
    for (bytes, name) in [(&b"PK\x03\x04rest of it"[..], "m.keras"), (b"\x89HDF\r\n\x1a\nrest", "m.h5")] {
        let place = place();
        let path = place.path().join(name);
        std::fs::write(&path, bytes).expect("writable");
        let error = load(&path, &LoadOptions::default()).expect_err(name);
        assert!(error.message().contains(".export('DIRECTORY')"), "{error}");
    }
}
