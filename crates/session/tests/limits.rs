//! Limits of a run and their messages: nesting of lists, time, and strings in clusters.

use crate::graph::{F, Graph, I, failure, func, ints, ty, types};
use cluster::{Flags, JitLevel};
use session::{Options, Value};
use shape::Literal;
use std::time::Duration;
use tf::DataType;
use tf::proto::attr_value::Value as Attr;
use tf::proto::{ArgDef, FunctionDef, NodeDef, OpDef};

fn function(
    name: &str,
    arguments: &[(&str, DataType)],
    results: &[(&str, DataType, &str)],
    nodes: Vec<NodeDef>,
) -> FunctionDef {
    let arg =
        |name: &str, t: DataType| ArgDef { name: name.to_owned(), r#type: t.number(), ..ArgDef::default() };
    let signature = OpDef {
        name: name.to_owned(),
        input_arg: arguments.iter().map(|(name, t)| arg(name, *t)).collect(),
        output_arg: results.iter().map(|(name, t, _)| arg(name, *t)).collect(),
        ..OpDef::default()
    };
    let ret = results.iter().map(|(name, _, from)| ((*name).to_owned(), (*from).to_owned())).collect();
    FunctionDef { signature: Some(signature), node_def: nodes, ret, ..FunctionDef::default() }
}

/// Nests lists `times` levels deep.
fn nested(times: i32) -> Graph {
    const V: DataType = DataType::Variant;
    let list = [("element_dtype", ty(V)), ("shape_type", ty(I))];
    let constant = |name: &str, value: Literal| crate::graph::constant(name, &value);
    let nothing = || Literal::from_elements::<i32>(&[0], &[]);
    let mut g = Graph::default();
    g.constant("shape", nothing()).int("most", -1).int("zero", 0);
    g.add("empty", "EmptyTensorList", &["shape", "most"], &list);
    let state = [("i", I), ("l", V)];
    let less = crate::graph::node("less", "Less", &["i", "times:output:0"], &[("T", ty(I))]);
    let goes_on = [("r", DataType::Bool, "less:z:0")];
    g.function(function("goes_on", &state, &goes_on, vec![constant("times", Literal::scalar(times)), less]));
    let body = vec![
        constant("one", Literal::scalar(1)),
        constant("shape", nothing()),
        constant("most", Literal::scalar(-1)),
        crate::graph::node("next", "AddV2", &["i", "one:output:0"], &[("T", ty(I))]),
        crate::graph::node("new", "EmptyTensorList", &["shape:output:0", "most:output:0"], &list),
        crate::graph::node("put", "TensorListPushBack", &["new:handle:0", "l"], &list[..1]),
    ];
    g.function(function("deeper", &state, &[("i2", I, "next:z:0"), ("l2", V, "put:output_handle:0")], body));
    let attributes = [("T", types(&[I, V])), ("cond", func("goes_on")), ("body", func("deeper"))];
    g.add("loop", "While", &["zero", "empty"], &attributes);
    g.add("length", "TensorListLength", &["loop:1"], &[]);
    g
}

#[test]
fn lists_in_lists_are_bounded() {
    assert_eq!(ints(&nested(1000).session(), &[], "length"), [1]);
    let message = failure(&nested(100_000).session(), &[], &["length"], &[]);
    assert!(
        message.contains("'put' (op TensorListPushBack)") && message.contains("1000 levels"),
        "{message}"
    );
}

#[test]
fn a_step_that_takes_too_long_is_aborted() {
    let mut g = Graph::default();
    let without_end = vec![crate::graph::constant("yes", &Literal::scalar(true))];
    let yes = [("r", DataType::Bool, "yes:output:0")];
    g.function(function("for_ever", &[("x", F)], &yes, without_end));
    let tanh = crate::graph::node("tanh", "Tanh", &["x"], &[("T", ty(F))]);
    g.function(function("tanh_of", &[("x", F)], &[("y", F, "tanh:y:0")], vec![tanh]));
    g.placeholder("x", F);
    let attributes = [("T", types(&[F])), ("cond", func("for_ever")), ("body", func("tanh_of"))];
    g.add("endless", "While", &["x"], &attributes);
    let text = "operation_timeout_in_ms: 200";
    let config = tf::source::parse_session_config(text.into(), "c.pbtxt").expect("text");
    let options = Options::default().with_config(&config).expect("valid");
    assert_eq!(options.step_timeout, Some(Duration::from_millis(200)));
    let session = g.session_with(options);
    let message = failure(&session, &[("x", Literal::scalar(1f32))], &["endless"], &[]);
    assert!(message.contains("operation_timeout_in_ms") && message.contains("'endless'"), "{message}");
}

#[test]
fn a_fetch_on_the_branch_not_taken_is_named() {
    let mut g = Graph::default();
    g.placeholder("x", F).placeholder("p", DataType::Bool);
    g.add("switch", "Switch", &["x", "p"], &[("T", ty(F))]);
    g.add("taken", "Relu", &["switch:1"], &[("T", ty(F))]);
    let feeds = [("x", Literal::scalar(1f32)), ("p", Literal::scalar(false))];
    for (fetch, named) in [("taken", "'taken:0'"), ("switch:1", "'switch:1'")] {
        let message = failure(&g.session(), &feeds, &[fetch], &[]);
        assert!(message.contains(named) && message.contains("not taken"), "{message}");
    }
}

#[test]
fn a_loop_without_a_name_is_rejected() {
    let mut g = Graph::default();
    g.placeholder("x", F);
    g.add("enter", "Enter", &["x"], &[("T", ty(F)), ("frame_name", crate::graph::text(""))]);
    g.add("exit", "Exit", &["enter"], &[("T", ty(F))]);
    let message = failure(&g.session(), &[("x", Literal::scalar(1f32))], &["exit"], &[]);
    assert!(message.contains("'enter' (op Enter) has an empty frame name"), "{message}");
}

#[test]
fn an_invalid_permutation_has_a_short_message() {
    let mut g = Graph::default();
    g.placeholder("x", I).add("y", "InvertPermutation", &["x"], &[("T", ty(I))]);
    let zeros = Literal::from_elements(&[10_000], &[0i32; 10_000]);
    let message = failure(&g.session(), &[("x", zeros)], &["y"], &[]);
    assert!(message.contains("element 1 is 0") && message.len() < 200, "{message}");
}

#[test]
fn strings_stay_outside_clusters() {
    let mut g = Graph::default();
    g.string("a", "ab").placeholder("x", F);
    for (name, inputs) in [("b", ["a", "a"]), ("c", ["b", "a"]), ("d", ["c", "b"]), ("e", ["d", "c"])] {
        g.add(name, "StringJoin", &inputs, &[("N", Attr::I(2))]);
    }
    g.add("text", "AsString", &["x"], &[("T", ty(F))]).add(
        "f",
        "StringJoin",
        &["e", "text"],
        &[("N", Attr::I(2))],
    );
    let flags = Flags { cpu_global_jit: true, min_cluster_size: 1, ..Flags::default() };
    let rewrite = session::clusters(cluster::Options::new(JitLevel::On2, flags), Box::new(cluster::Silent));
    let session = g.session_with(Options { rewrite: Some(rewrite), ..Options::default() });
    let x = Literal::scalar(1f32);
    let feeds = [("x", Value::Tensor(session::Tensor::from_literal(&x).expect("an array")))];
    let results = session.run_values(&feeds, &["f"], &[]).expect("a run");
    let Value::Strings(strings) = &results[0] else { panic!("expected strings") };
    assert_eq!(strings.strings[0], "ab".repeat(8) + "1.000000");
}

#[test]
fn large_values_are_abbreviated() {
    let mut g = Graph::default();
    g.placeholder("x", F);
    let attributes = [
        ("T", types(&[F])),
        ("template", crate::graph::text("{}")),
        ("placeholder", crate::graph::text("{}")),
    ];
    g.add("text", "StringFormat", &["x"], &attributes);
    let x = Literal::from_elements(&[3, 1000], &(0..3000).map(|k| k as f32).collect::<Vec<_>>());
    let feeds = [("x", Value::Tensor(session::Tensor::from_literal(&x).expect("an array")))];
    let results = g.session().run_values(&feeds, &["text"], &[]).expect("a run");
    let Value::Strings(strings) = &results[0] else { panic!("expected strings") };
    let row = |k: i32| format!("[{k} {} {} ... {} {} {}]", k + 1, k + 2, k + 997, k + 998, k + 999);
    assert_eq!(strings.strings[0], format!("[{}\n{}\n{}]", row(0), row(1000), row(2000)));
}
